//! Projections that follow a graph which is written to: what a version costs, and what questions cost along it.

use std::path::Path;
use std::time::{Duration, Instant};

use ficus_analytics::question::Common;
use ficus_analytics::{Hops, Projection, ProjectionOptions, Question, Unlimited, Walk, answer};
use ficus_model::{Direction as Way, Value};
use ficus_storage::{Environment, Store, StoreOptions};

use super::users::copy_files;
use super::{Print, REPETITIONS, at_most, ms};
use crate::Outcome;
use crate::bench::storage::part;
use crate::failure::Failure;
use crate::output::talk;

/// Commits of one edge each between two versions.
const COMMITS: [usize; 3] = [1, 100, 1000];

/// Questions of a pass.
const QUESTIONS: usize = 100;

/// Measures on a copy of a graph.
pub fn run(folder: &Path, scale: u32, data: &Path, ids: &[u64], print: Print<'_>) -> Outcome {
    let copy = part(folder, &format!("data-{scale}-written"))?;
    copy_files(data, &copy)?;
    let store = Store::open(StoreOptions::default(), Environment::on_directory(&copy)?)?;
    let graph = crate::store::graph(&store, "g")?;
    let snapshot = graph.snapshot();
    let project = |snapshot| Projection::new(snapshot, &ProjectionOptions::default(), &Unlimited);
    let mut version = project(&snapshot).map_err(Failure::failed)?;
    let sources: Vec<_> = ids.iter().filter_map(|id| snapshot.find_vertex(&Value::Long(*id as i64))).collect();
    let (mut written, mut largest) = (0, 0.0);
    for commits in COMMITS {
        talk(&format!("writing {commits} edges"));
        for _ in 0..commits {
            let mut writing = graph.begin();
            let (out, into) = (sources[written % sources.len()], sources[(written * 7 + 1) % sources.len()]);
            writing.add_edge("knows", out, into, None)?;
            writing.commit()?;
            written += 1;
        }
        let snapshot = graph.snapshot();
        let started = Instant::now();
        let next = version.patched(&snapshot, &Unlimited).map_err(Failure::failed)?;
        largest = ms(started.elapsed());
        version = next.ok_or_else(|| Failure::failed("the graph was consolidated meanwhile; run the suite again"))?;
        print(at_most(scale, &format!("version after {commits} commits of an edge"), "time", largest, "ms", None))?;
    }
    let snapshot = graph.snapshot();
    let started = Instant::now();
    let anew = project(&snapshot).map_err(Failure::failed)?;
    let time = ms(started.elapsed());
    print(at_most(scale, "the same projection made anew", "time", time, "ms", None))?;
    print(at_most(scale, "version / made anew", "time", largest / time, "ratio", None))?;
    let mut best = [Duration::MAX; 2];
    let mut found = [0; 2];
    for _ in 0..REPETITIONS {
        for (position, projection) in [&version, &anew].into_iter().enumerate() {
            let common = Common { projection, direction: Way::Out, walk: Walk::WithinOrSource, allowed: None };
            let places = sources[..QUESTIONS].iter().filter_map(|source| projection.place(*source));
            let questions: Vec<Question> = places.map(|place| Question::from(place, Hops(3))).collect();
            let started = Instant::now();
            let answers = answer(common, &questions, &Unlimited).map_err(Failure::failed)?;
            best[position] = best[position].min(started.elapsed());
            found[position] = answers.iter().map(|answer| answer.count(Walk::WithinOrSource, Hops(3))).sum();
        }
    }
    if found[0] != found[1] {
        return Err(Failure::failed(format!("{} vertices along the version, {} along the whole", found[0], found[1])));
    }
    let case = format!("{QUESTIONS} x 3 hops");
    print(at_most(scale, &format!("{case}, along a version"), "time", ms(best[0]), "ms", None))?;
    print(at_most(scale, &format!("{case}, version / whole"), "time", ms(best[0]) / ms(best[1]), "ratio", None))?;
    store.close()?;
    std::fs::remove_dir_all(copy)?;
    Ok(())
}
