//! Subgraph patterns by `match()` (Banyan, VLDB 2022, §5.6), over the friendships of the graph, beside loops over the same store by hand.
//!
//! Each friendship has one direction in the store, so patterns along it are found once.

use std::path::Path;
use std::time::{Duration, Instant};

use ficus_model::{Direction, LabelId, VertexId};
use ficus_storage::{HalfEdgeCursor, Snapshot};

use super::snb::Snb;
use super::{Print, at_least, measure, prepare};
use crate::Outcome;
use crate::failure::Failure;
use crate::serve::start_executors;

const PATTERNS: [(&str, &str); 2] = [
    ("triangle", "as('a').out('knows').as('b'), as('b').out('knows').as('c'), as('a').out('knows').as('c')"),
    (
        "square",
        "as('a').out('knows').as('b'), as('a').out('knows').as('c'), as('b').out('knows').as('d'), as('c').out('knows').as('d')",
    ),
];

/// Neighbours along friendships, sorted.
fn neighbours(snapshot: &Snapshot, vertex: VertexId, label: LabelId) -> Vec<VertexId> {
    let mut found = Vec::new();
    let mut cursor = HalfEdgeCursor::default();
    while snapshot.copy_neighbours(vertex, Direction::Out, &[label], &mut cursor, 4096, &mut found) {}
    found.sort_unstable();
    found
}

fn common(a: &[VertexId], b: &[VertexId]) -> u64 {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                count += 1;
                i += 1;
                j += 1;
            }
        }
    }
    count
}

/// Runs the section.
pub fn run(quick: bool, directory: &Path, print: Print<'_>) -> Outcome {
    let engine = start_executors(&Default::default())?;
    let snb = Snb::open(directory, &engine, 1, 1)?;
    let persons = if quick { 100 } else { 500 };
    let transaction = snb.graph.begin_reading();
    let label = transaction.label_id("knows").ok_or_else(|| Failure::failed("there are no friendships"))?;
    let starts = snb.run(
        &engine,
        &prepare(&format!("g.V().hasLabel('person').order().by(id).limit({persons}).id()"))?,
        Duration::from_secs(60),
    )?;
    let starts: Vec<VertexId> = starts
        .rows
        .unwrap_or_default()
        .iter()
        .filter_map(|id| transaction.find_vertex(&ficus_model::Value::from(id.as_str())))
        .collect();
    for (name, pattern) in PATTERNS {
        let text = format!(
            "g.V().hasLabel('person').order().by(id).limit({persons}).match({}).count()",
            pattern.replace("as(", "__.as(").replace(").__.as(", ").as(")
        );
        let began = Instant::now();
        let expected: u64 = starts
            .iter()
            .map(|start| {
                let near = neighbours(&transaction, *start, label);
                let lists: Vec<_> = near.iter().map(|own| neighbours(&transaction, *own, label)).collect();
                match name {
                    "triangle" => lists.iter().map(|list| common(&near, list)).sum::<u64>(),
                    _ => lists.iter().flat_map(|a| lists.iter().map(|b| common(a, b))).sum(),
                }
            })
            .sum();
        let by_hand = began.elapsed().as_secs_f64();
        let run = snb.run(&engine, &prepare(&text)?, Duration::from_secs(60))?;
        let case = format!("patterns: {name} from {persons} persons");
        if let Some(rows) = &run.rows
            && rows.first().map(String::as_str) != Some(&expected.to_string())
        {
            return Err(Failure::failed(format!("{case}: match() finds {rows:?}, loops by hand {expected}")));
        }
        print(at_least(&case, "found", expected as f64, "patterns", None))?;
        print(measure(&case, "match()", run.time.as_secs_f64() * 1e3, "ms", None))?;
        print(measure(&case, "by hand", by_hand * 1e3, "ms", None))?;
        if run.rows.is_some() {
            print(at_least(&case, "rate", expected as f64 / run.time.as_secs_f64(), "patterns/s", None))?;
        }
    }
    Ok(())
}
