//! The edges a program goes along: by label, or chosen one by one.

use ficus_model::{Direction, EdgeId, LabelId, Value, VertexId, number};
use ficus_storage::ScanCursor;

use crate::context::{Cx, QueryContext, Result};
use crate::elements::{KeyRef, LabelSet};
use crate::error::QueryError;
use crate::logical::{LabelledNode, Node, PropertyForm, Reach, Traversal};
use crate::operators::has::Conditions;
use crate::physical::Modulators;

/// Something that is asked of an element: settled on the spot where it is simple, else by an arm.
#[derive(Clone)]
pub enum Test {
    /// All pass.
    All,
    /// Conditions on properties, label or id.
    Conditions(Conditions),
    /// An arm yields something.
    Arm(usize),
}

impl Test {
    /// The test of a line of nodes.
    pub fn of<'a>(line: &'a Traversal, modulators: &mut Modulators<'a>) -> Result<Test> {
        let containers: Option<Vec<_>> = line
            .nodes
            .iter()
            .filter(|own| !(own.labels.is_empty() && own.node == Node::Identity))
            .map(|own| match own {
                LabelledNode { node: Node::Has { containers }, labels } if labels.is_empty() => Some(containers),
                _ => None,
            })
            .collect();
        Ok(match containers {
            Some(none) if none.is_empty() => Test::All,
            Some(containers) => {
                let containers: Vec<_> = containers.into_iter().flatten().cloned().collect();
                Test::Conditions(Conditions::compile(&containers)?)
            }
            None => Test::Arm(modulators.traversal(line)),
        })
    }
}

/// How long an edge is.
#[derive(Clone)]
pub enum Length {
    /// 1.
    One,
    /// The value of a property; 0 without.
    Key(KeyRef),
    /// The first result of an arm; 0 without.
    Arm(usize),
}

impl Length {
    /// The length that a traversal yields.
    pub fn of<'a>(line: Option<&'a Traversal>, modulators: &mut Modulators<'a>) -> Length {
        let Some(line) = line else { return Length::One };
        match line.nodes.as_slice() {
            [LabelledNode { node: Node::Properties { keys, form: PropertyForm::Value }, .. }] if keys.len() == 1 => {
                Length::Key(KeyRef::new(keys[0].clone()))
            }
            _ => Length::Arm(modulators.traversal(line)),
        }
    }
}

/// A length out of what an edge yields.
pub fn length_of(value: Option<Value>) -> Result<f64> {
    match value {
        None => Ok(0.0),
        Some(value) if number::is_number(&value) => Ok(number::to_double(&value)),
        Some(other) => {
            Err(QueryError::invalid(format!("the distance of an edge is a number, not a {}", other.type_name())))
        }
    }
}

/// The hop with which a choice of edges begins, and what is asked of its edges.
pub fn hop(edges: &Traversal) -> Result<(Direction, LabelSet, Traversal)> {
    match edges.nodes.split_first() {
        Some((LabelledNode { node: Node::Adjacent { direction, labels, reach: Reach::Edge }, .. }, rest)) => {
            Ok((*direction, LabelSet::new(labels.clone().into()), Traversal { nodes: rest.to_vec() }))
        }
        _ => Err(QueryError::invalid(format!(
            "the edges of a graph program begin with outE(), inE() or bothE(), and filters may follow, but they are {edges}"
        ))),
    }
}

/// An edge that was chosen.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// The edge.
    pub edge: EdgeId,
    /// Its ends.
    pub out: VertexId,
    /// Its ends.
    pub into: VertexId,
    /// How long it is.
    pub length: f64,
}

/// Edges looked at between two looks at the clock.
const EDGES_PER_LOOK: usize = 1 << 10;

/// Edges with some labels, a part at a time.
#[derive(Default)]
pub struct EdgeScan {
    cursor: ScanCursor,
    batch: Vec<EdgeId>,
}

impl EdgeScan {
    /// The next edges; false after the last.
    pub fn next(
        &mut self,
        context: &QueryContext,
        labels: Option<&[LabelId]>,
        mut visit: impl FnMut(Chosen) -> Result<()>,
    ) -> Result<bool> {
        self.batch.clear();
        let more = context.transaction.scan_edges(&mut self.cursor, EDGES_PER_LOOK, &mut self.batch);
        for edge in &self.batch {
            let Some(record) = context.transaction.edge(*edge) else { continue };
            if labels.is_none_or(|labels| labels.contains(&record.label)) {
                visit(Chosen { edge: *edge, out: record.out, into: record.in_, length: 1.0 })?;
            }
        }
        Ok(more)
    }
}

/// All vertices of the query's state.
///
/// Errors: those of a query that must stop.
pub fn all_vertices(cx: &mut Cx<'_>) -> Result<Vec<VertexId>> {
    let (mut cursor, mut vertices) = (ScanCursor::default(), Vec::new());
    loop {
        cx.context.check()?;
        if !cx.context.transaction.scan_vertices(&mut cursor, 1 << 13, &mut vertices) {
            return Ok(vertices);
        }
    }
}
