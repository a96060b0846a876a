//! The suite `dataflow`: what the runtime owes to queries that share it, in this process, without a network.
//!
//! `hostile`: queries that try to run away are stopped, and everything they held is back in time. `leak`: a million cancelled queries. `isolation`: small queries
//! beside large ones. The others are the experiments E2 to E5 of Banyan (VLDB 2022, §5) over a store with a social network.

mod concurrency;
mod hostile;
mod isolation;
mod patterns;
mod scopes;
mod snb;

use std::path::Path;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use ficus_dataflow::Delivery;
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Cardinality, Value};
use ficus_query::QueryErrorKind;
use ficus_query::budget::Held;
use ficus_query::engine::{Prepared, QueryEnd, Row, RowSink, RowWaker};
use ficus_storage::{Graph, Store};

use super::measure::{Direction, Measure};
use crate::Outcome;
use crate::failure::Failure;

/// Where measures go.
type Print<'a> = &'a mut dyn FnMut(Measure) -> std::io::Result<()>;

/// A part of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Section {
    /// Small queries beside large ones.
    Isolation,
    /// Queries that try to run away.
    Hostile,
    /// Very many queries that are cancelled.
    Leak,
    /// With scopes and without. Needs --data-dir.
    Scopes,
    /// The scopes of a query with other policies. Needs --data-dir.
    Policies,
    /// What instances of scopes cost where nothing is cancelled. Needs --data-dir.
    Instances,
    /// Large queries on more and more executors. Needs --data-dir.
    Executors,
    /// More and more queries at once. Needs --data-dir.
    Width,
    /// A query in the foreground beside others. Needs --data-dir.
    Foreground,
    /// Subgraph patterns by match(). Needs --data-dir.
    Patterns,
}

impl Section {
    fn needs_network(self) -> bool {
        !matches!(self, Section::Isolation | Section::Hostile | Section::Leak)
    }
}

/// Runs these sections, or all that can be run if none is named; `network` is a store with a social network.
pub fn run(quick: bool, sections: &[Section], network: Option<&Path>, print: Print<'_>) -> Outcome {
    use clap::ValueEnum;
    let all = Section::value_variants();
    let wanted = all.iter().filter(|section| match sections {
        [] => !section.needs_network() || network.is_some(),
        _ => sections.contains(section),
    });
    for section in wanted {
        let network = || {
            let advice = "name a store with --data-dir that was loaded with docs/examples/mappings/snb.toml";
            network.ok_or_else(|| Failure::usage(format!("this part asks a social network: {advice}")))
        };
        match section {
            Section::Isolation => isolation::run(quick, print)?,
            Section::Hostile => hostile::run(quick, print)?,
            Section::Leak => hostile::leak(quick, print)?,
            Section::Scopes => scopes::effects(&scopes::Stage::open(quick, network()?)?, print)?,
            Section::Policies => scopes::policies(&scopes::Stage::open(quick, network()?)?, print)?,
            Section::Instances => scopes::overhead(&scopes::Stage::open(quick, network()?)?, print)?,
            Section::Executors => concurrency::scaling(&concurrency::Stage::open(quick, network()?)?, print)?,
            Section::Width => concurrency::width(&concurrency::Stage::open(quick, network()?)?, print)?,
            Section::Foreground => concurrency::foreground(&concurrency::Stage::open(quick, network()?)?, print)?,
            Section::Patterns => patterns::run(quick, network()?, print)?,
        }
    }
    Ok(())
}

fn at_least(case: &str, metric: &'static str, value: f64, unit: &'static str, target: Option<f64>) -> Measure {
    Measure { direction: Direction::AtLeast, ..measure(case, metric, value, unit, target) }
}

fn measure(case: &str, metric: &'static str, value: f64, unit: &'static str, target: Option<f64>) -> Measure {
    Measure { suite: "dataflow", case: case.into(), metric, value, unit, target, direction: Direction::AtMost }
}

/// A graph in memory: vertices with the ids from 0 and a name, each with edges to the `degree` that `next` names.
fn graph(vertices: usize, degree: usize, next: impl Fn(usize, usize) -> usize) -> Result<Arc<Graph>, Failure> {
    let graph = Store::in_memory().create_graph("g")?;
    let mut writing = graph.begin();
    let mut all = Vec::with_capacity(vertices);
    for number in 0..vertices {
        let vertex = writing.add_vertex("person", Some(Value::Long(number as i64)))?;
        let name = Value::from(format!("person {number}"));
        writing.set_vertex_property(vertex, "name", name, Cardinality::Single, None)?;
        all.push(vertex);
    }
    for (number, vertex) in all.iter().enumerate() {
        for step in 0..degree {
            writing.add_edge("knows", *vertex, all[next(number, step) % vertices], None)?;
        }
    }
    writing.commit()?;
    Ok(graph)
}

fn prepare(text: &str) -> Result<Prepared, Failure> {
    let bytecode = parse_traversal(text, &ParseOptions::default()).map_err(Failure::failed)?;
    Prepared::new(lower(&bytecode).map_err(Failure::failed)?).map_err(Failure::failed)
}

/// How a query ended, once its transaction is over.
type End = Result<(), QueryErrorKind>;

/// Throws rows away and tells of the end.
struct Forget(Sender<End>);

impl RowSink for Forget {
    fn rows(&mut self, rows: &mut VecDeque<Row>, _held: &mut Held, _waker: &RowWaker) -> Delivery {
        rows.clear();
        Delivery::Accepted
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        end.unwanted.roll_back(end.transaction);
        // Nobody listens any more if the measurement has failed.
        let _ = self.0.send(end.result.map_err(|error| error.kind));
    }
}
