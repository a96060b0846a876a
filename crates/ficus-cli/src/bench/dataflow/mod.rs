//! The suite `dataflow`: what the runtime owes to queries that share it, in this process, without a network.
//!
//! `hostile`: queries that try to run away are stopped, and everything they held is back in time. `isolation`: small queries beside large ones
//! (Banyan, VLDB 2022, §5.4).

mod hostile;
mod isolation;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use ficus_dataflow::Delivery;
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Cardinality, Value};
use ficus_query::QueryErrorKind;
use ficus_query::engine::{Prepared, QueryEnd, Row, RowSink, RowWaker};
use ficus_storage::{Graph, Store};

use super::measure::{Direction, Measure};
use crate::Outcome;
use crate::failure::Failure;

/// Where measures go.
type Print<'a> = &'a mut dyn FnMut(Measure) -> std::io::Result<()>;

/// Runs the suite.
pub fn run(quick: bool, print: Print<'_>) -> Outcome {
    isolation::run(quick, print)?;
    hostile::run(quick, print)
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
    fn rows(&mut self, rows: &mut VecDeque<Row>, _waker: &RowWaker) -> Delivery {
        rows.clear();
        Delivery::Accepted
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        end.transaction.rollback();
        // Nobody listens any more if the measurement has failed.
        let _ = self.0.send(end.result.map_err(|error| error.kind));
    }
}
