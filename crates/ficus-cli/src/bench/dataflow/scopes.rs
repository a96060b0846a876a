//! What scopes are worth (Banyan, VLDB 2022, §5.3): beside the same engine with shared pipelines and without early cancellation; with other policies; and what an
//! instance costs where nothing can be cancelled.
//!
//! *As users get it* compares the engine as it is, which evaluates short sub-queries in place, *in scopes* with a scope for each sub-query.

use std::time::Duration;

use ficus_query::engine::{Engine, Prepared};

use super::snb::Snb;
use super::{Print, at_least, measure};
use crate::Outcome;
use crate::failure::Failure;
use crate::serve::start_executors;

const ONE_EXECUTOR: &str = ".with('ficus.spread', false)";
const OFF: &str = ".with('ficus.scopes', false)";
const NOT_IN_PLACE: &str = ".with('ficus.inPlace', false)";
const NOT_CANCELLED: &str = ".with('ficus.earlyCancellation', false)";

/// A query that takes longer counts as so long.
const TIMEOUT: Duration = Duration::from_secs(4);

/// As [`TIMEOUT`], where the slower way is known to end: first in, first out on a graph of scale 4.
const TIMEOUT_OF_POLICIES: Duration = Duration::from_secs(60);

/// Those with sub-queries.
const QUERIES: [&str; 12] = ["CQ1", "CQ2", "CQ3", "CQ4", "CQ5", "CQ6", "IC3", "IC5", "IC6", "IC10", "IC11", "IC12"];

/// The best time of a way to ask, in seconds, and its rows; none if its time was over first.
type Best = (f64, Option<Vec<String>>);

/// The best time of each of several ways to ask, asked in turn; and their rows.
fn best(snb: &Snb, engine: &Engine, ways: &[Prepared], rounds: usize, timeout: Duration) -> Result<Vec<Best>, Failure> {
    let mut found: Vec<Best> = vec![(f64::INFINITY, None); ways.len()];
    for _ in 0..rounds {
        for (way, best) in ways.iter().zip(&mut found) {
            // What has taken so long is known well enough.
            if best.0.is_finite() && best.0 > 1.0 {
                continue;
            }
            let run = snb.run(engine, way, timeout)?;
            *best = (best.0.min(run.time.as_secs_f64()), run.rows);
        }
    }
    Ok(found)
}

fn median(ratios: &mut [f64]) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// An engine and the network.
pub struct Stage {
    engine: Engine,
    snb: Snb,
    rounds: usize,
}

impl Stage {
    /// Opens the network.
    pub fn open(quick: bool, directory: &std::path::Path) -> Result<Stage, Failure> {
        let engine =
            start_executors(&crate::serve::EngineSettings { khop: crate::serve::KHop::Single, ..Default::default() })?;
        let snb = Snb::open(directory, &engine, if quick { 1 } else { 3 }, 1)?;
        Ok(Stage { engine, snb, rounds: if quick { 2 } else { 3 } })
    }
}

/// With and without scopes.
pub fn effects(stage: &Stage, print: Print<'_>) -> Outcome {
    let Stage { engine, snb, rounds } = stage;
    let rounds = *rounds;
    let mut most = [0.0f64; 2];
    for name in QUERIES {
        let text = snb.text(name);
        let ways = [String::new(), OFF.into(), NOT_IN_PLACE.into(), format!("{NOT_IN_PLACE}{OFF}")];
        let mut ratios = [Vec::new(), Vec::new()];
        let mut times = vec![Vec::new(); ways.len()];
        for set in 0..snb.sets.len() {
            let prepared = ways
                .iter()
                .map(|with| snb.fill(&text.gremlin, set, &format!("{ONE_EXECUTOR}{with}")))
                .collect::<Result<Vec<_>, _>>()?;
            let found = best(snb, engine, &prepared, rounds, TIMEOUT)?;
            let usual = &found[0].1;
            for (_, rows) in &found[1..] {
                let equal = match (usual, rows) {
                    (Some(usual), Some(rows)) if text.is_any() => usual.len() == rows.len(),
                    (Some(usual), Some(rows)) => usual == rows,
                    _ => true,
                };
                if !equal {
                    return Err(Failure::failed(format!(
                        "{name}: answers with and without scopes differ in set {set}"
                    )));
                }
            }
            ratios[0].push(found[1].0 / found[0].0);
            ratios[1].push(found[3].0 / found[2].0);
            found.iter().zip(&mut times).for_each(|((time, _), all)| all.push(*time));
        }
        for (way, (ratios, name_of)) in ratios.iter_mut().zip(["as users get it", "in scopes"]).enumerate() {
            let ratio = median(ratios);
            if matches!(name, "CQ4" | "CQ5" | "CQ6") {
                most[way] = most[way].max(ratio);
            }
            let case = format!("scopes: {name} {name_of}");
            print(measure(&case, "with", median(&mut times[way * 2]) * 1e3, "ms", None))?;
            print(measure(&case, "without", median(&mut times[way * 2 + 1]) * 1e3, "ms", None))?;
            print(at_least(&case, "without / with", ratio, "ratio", Some(0.9)))?;
            print(at_least(&case, "lowest of sets", ratios[0], "ratio", None))?;
            print(at_least(&case, "highest of sets", ratios[ratios.len() - 1], "ratio", None))?;
        }
    }
    print(at_least("scopes: most of CQ4 to CQ6 as users get it", "without / with", most[0], "ratio", Some(10.0)))?;
    print(at_least("scopes: most of CQ4 to CQ6 in scopes", "without / with", most[1], "ratio", Some(10.0)))?;
    Ok(())
}

/// CQ6 with every policy first in, first out, and depth first, for more and more rows.
pub fn policies(stage: &Stage, print: Print<'_>) -> Outcome {
    let Stage { engine, snb, rounds } = stage;
    let rounds = *rounds;
    let text = "g.V('person:{person}').
        repeat(both('knows').where(__.in('hasCreator').out('hasTag').out('hasType').has('name', 'Country'))).times(5).as('walk').
        dedup().limit(LIMIT).id()";
    for limit in [1, 10, 100, 1_000, 10_000] {
        let text = text.replace("LIMIT", &limit.to_string());
        let policy = |policy: &str| {
            let settings = ["scope.walk.policy", "scope.walk.intraPolicy", "intraPolicy"];
            let with = settings.map(|setting| format!(".with('ficus.{setting}', '{policy}')"));
            format!("{ONE_EXECUTOR}{}", with.concat())
        };
        let (mut ratios, mut times) = (Vec::new(), [Vec::new(), Vec::new()]);
        for set in 0..snb.sets.len() {
            let ways = [snb.fill(&text, set, &policy("fifo"))?, snb.fill(&text, set, &policy("dfs"))?];
            let found = best(snb, engine, &ways, rounds, TIMEOUT_OF_POLICIES)?;
            ratios.push(found[0].0 / found[1].0);
            found.iter().zip(&mut times).for_each(|((time, _), all)| all.push(*time));
        }
        let case = format!("policies: CQ6, first {limit}");
        let [fifo, dfs] = &mut times;
        print(measure(&case, "fifo", median(fifo) * 1e3, "ms", None))?;
        print(measure(&case, "dfs", median(dfs) * 1e3, "ms", None))?;
        print(at_least(&case, "fifo / dfs", median(&mut ratios), "ratio", Some(1.8)))?;
    }
    Ok(())
}

/// What instances cost where nothing is cancelled and everything is asked for.
pub fn overhead(stage: &Stage, print: Print<'_>) -> Outcome {
    let Stage { engine, snb, rounds } = stage;
    let rounds = *rounds;
    let test = "where(__.in('hasCreator').out('hasTag').out('hasType').has('name', 'Country'))";
    for name in ["CQ3", "CQ5", "CQ6"] {
        let text = snb.text(name).gremlin.replace(".limit(10)", "").replace(test, &format!("{test}.as('test')"));
        // Five steps without an end to them would take a minute.
        let text = if name == "CQ6" { text.replace("times(5)", "times(2)") } else { text };
        let base = format!("{ONE_EXECUTOR}{NOT_IN_PLACE}");
        let ways = [
            format!("{base}{OFF}"),
            format!("{base}{NOT_CANCELLED}"),
            format!("{base}{NOT_CANCELLED}.with('ficus.scope.test.policy', 'bfs')"),
        ];
        let mut ratios = [Vec::new(), Vec::new()];
        for set in 0..snb.sets.len() {
            let prepared = ways.iter().map(|with| snb.fill(&text, set, with)).collect::<Result<Vec<_>, _>>()?;
            let found = best(snb, engine, &prepared, rounds, TIMEOUT)?;
            ratios[0].push(found[1].0 / found[0].0 - 1.0);
            ratios[1].push(found[2].0 / found[0].0 - 1.0);
        }
        for (ratios, (instances, target)) in ratios.iter_mut().zip([("1", 8.0), ("256", 15.0)]) {
            let case = format!("instantiation: {name}, maxInstances {instances}");
            print(measure(&case, "overhead", median(ratios) * 100.0, "%", Some(target)))?;
        }
    }
    Ok(())
}
