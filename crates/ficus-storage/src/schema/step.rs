//! One step of a task: a bounded piece of work between two commits.
//!
//! ```text
//! build index   building ──all elements added──▶ ready
//!               building ──all elements added──▶ verifying ──none equal──▶ ready        (unique)
//!                                                verifying ──two equal───▶ failed
//! verify type   verifying ──all elements obey──▶ active, else failed
//! drop type     dropping ──no element left──▶ gone
//! ```
//! Writes are held against a unique index from *verifying* on, when its entries follow from the rows alone, and against a
//! declared type from its declaration on. So what a step has passed stays right.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_model::{Direction, EdgeId, LabelId, VertexId};

use super::apply::{remove_index, undeclare};
use super::{DeclaredType, Task, TaskState, TaskWork, TypeState};
use crate::index::ElementKind;
use crate::mutation::Mutation;
use crate::root::GraphRoot;
use crate::{IndexState, ScanCursor, Snapshot};

/// Elements that one step looks at: about a millisecond.
pub(crate) const STEP_ELEMENTS: u64 = 2048;

/// Does the next piece of a task, of at most `limit` elements; nothing if it is not running. Returns removals for the caller
/// to apply.
pub(super) fn step_task(number: u64, limit: u64, root: &mut GraphRoot) -> Vec<Mutation> {
    let Some(task) = root.schema.tasks.iter().find(|task| task.number == number && task.is_running()) else {
        return Vec::new();
    };
    let task = task.clone();
    let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
    match &task.work {
        TaskWork::BuildIndex { index, .. } => step_index(&task, *index, limit, root),
        TaskWork::VerifyType { elements, label } => match declared(*elements, label, root) {
            Some(declared) => verify_type(&task, &declared, limit, root),
            None => end(&task, TaskState::Cancelled, root),
        },
        TaskWork::DropType { elements, label } => match declared(*elements, label, root) {
            Some(declared) => remove_elements(&task, &declared, limit.min(STEP_ELEMENTS as usize), root),
            None => end(&task, TaskState::Done, root),
        },
    }
}

fn declared(elements: ElementKind, label: &str, root: &GraphRoot) -> Option<Arc<DeclaredType>> {
    let label = root.words.labels.number(label)?;
    root.schema.find(elements, LabelId(label)).cloned()
}

fn end(task: &Task, state: TaskState, root: &mut GraphRoot) -> Vec<Mutation> {
    Arc::make_mut(&mut root.schema).end_task(task.number, state);
    Vec::new()
}

/// Writes down how far a task is.
fn advance(task: &Task, seen: usize, next: u64, root: &mut GraphRoot) {
    if let Some(own) = Arc::make_mut(&mut root.schema).task_mut(task.number) {
        own.done = task.done + seen as u64;
        own.next = next;
        own.total = own.total.max(own.done);
    }
}

fn step_index(task: &Task, number: u32, limit: usize, root: &mut GraphRoot) -> Vec<Mutation> {
    let Some(position) = root.indexes().iter().position(|index| index.shape.number == number) else {
        return end(task, TaskState::Cancelled, root);
    };
    let (shape, state) = (root.indexes()[position].shape.clone(), root.indexes()[position].state);
    let (elements, next) = root.elements_from(shape.elements, shape.label, task.next, limit);
    if state == IndexState::Building {
        elements.iter().for_each(|element| root.fill_index_with(position, *element));
    } else {
        for element in &elements {
            let index = &root.indexes()[position];
            let Some((values, other)) = root.collision_of(index, *element) else { continue };
            let text = root.unique_violation(index, &values, other).to_string();
            remove_index(number, TaskState::Failed { reason: Arc::from(text.as_str()) }, root);
            // A type cannot do without its primary key.
            let owner = root
                .schema
                .types
                .iter()
                .find(|own| own.definition.primary_index().is_some_and(|own| own.name == shape.name));
            if let Some(owner) = owner.cloned() {
                let reason = Arc::from(text.as_str());
                undeclare(owner.definition.elements, owner.label, TaskState::Failed { reason }, root);
            }
            return Vec::new();
        }
    }
    advance(task, elements.len(), next.unwrap_or(0), root);
    if next.is_none() {
        let verify = shape.unique && state == IndexState::Building;
        let state = if verify { IndexState::Verifying } else { IndexState::Ready };
        Arc::make_mut(&mut root.indexes)[position].state = state;
        if !verify {
            return end(task, TaskState::Done, root);
        }
        if let Some(own) = Arc::make_mut(&mut root.schema).task_mut(task.number) {
            // As much again has to be looked at.
            own.total += own.done;
        }
    }
    Vec::new()
}

fn verify_type(task: &Task, declared: &Arc<DeclaredType>, limit: usize, root: &mut GraphRoot) -> Vec<Mutation> {
    let kind = declared.definition.elements;
    let (elements, next) = root.elements_from(kind, Some(declared.label), task.next, limit);
    for element in &elements {
        if let Err(error) = root.check_element(declared, *element) {
            let reason = Arc::from(error.to_string().as_str());
            undeclare(kind, declared.label, TaskState::Failed { reason }, root);
            return Vec::new();
        }
    }
    advance(task, elements.len(), next.unwrap_or(0), root);
    if next.is_none() {
        set_state(declared, TypeState::Active, root);
        return end(task, TaskState::Done, root);
    }
    Vec::new()
}

fn set_state(declared: &Arc<DeclaredType>, state: TypeState, root: &mut GraphRoot) {
    let schema = Arc::make_mut(&mut root.schema);
    if let Some(own) = schema.types.iter_mut().find(|own| Arc::ptr_eq(own, declared)) {
        Arc::make_mut(own).state = state;
    }
}

/// Removes some elements: edges one by one, also those of a vertex before itself, so that no vertex is too large for a step.
fn remove_elements(task: &Task, declared: &Arc<DeclaredType>, limit: usize, root: &mut GraphRoot) -> Vec<Mutation> {
    let kind = declared.definition.elements;
    let (elements, next) = root.elements_from(kind, Some(declared.label), task.next, limit);
    let mut removals = Vec::new();
    let mut removed = BTreeSet::new();
    let mut seen = 0;
    let mut stopped_at = None;
    for element in &elements {
        if removals.len() >= limit {
            stopped_at = Some(*element);
            break;
        }
        match kind {
            ElementKind::Edge => removals.push(Mutation::RemoveEdge { edge: EdgeId(*element) }),
            ElementKind::Vertex => {
                let vertex = VertexId(*element);
                let room = limit - removals.len();
                let mut half_edges = Vec::new();
                // A loop has two half-edges, and some edges are gone with a vertex before.
                let most = 2 * (room + 1) + removed.len();
                let snapshot = Snapshot::new(Arc::new(root.clone()));
                let more =
                    snapshot.half_edges(vertex, Direction::Both, &[], &mut Default::default(), most, &mut half_edges);
                let edges: BTreeSet<EdgeId> = half_edges.iter().map(|half_edge| half_edge.edge).collect();
                let doomed: Vec<EdgeId> = edges.into_iter().filter(|edge| !removed.contains(edge)).take(room).collect();
                if more || doomed.len() == room {
                    removals.extend(doomed.iter().map(|edge| Mutation::RemoveEdge { edge: *edge }));
                    stopped_at = Some(*element);
                    break;
                }
                removals.extend(doomed.iter().map(|edge| Mutation::RemoveEdge { edge: *edge }));
                removed.extend(doomed);
                removals.push(Mutation::RemoveVertex { vertex });
            }
        }
        seen += 1;
    }
    let next = stopped_at.or(next);
    advance(task, seen, next.unwrap_or(0), root);
    if next.is_none() {
        // Some may have been added with numbers that were passed already.
        let left = root.count_of(kind, Some(declared.label)) > seen as u64;
        if !left {
            let schema = Arc::make_mut(&mut root.schema);
            schema.types.retain(|own| !Arc::ptr_eq(own, declared));
            schema.end_task(task.number, TaskState::Done);
        }
    }
    removals
}

impl GraphRoot {
    /// Number of elements, of one label or all.
    pub(crate) fn count_of(&self, elements: ElementKind, label: Option<LabelId>) -> u64 {
        match (elements, label) {
            (ElementKind::Vertex, None) => self.vertex_count,
            (ElementKind::Vertex, Some(label)) => self.vertex_count_with_label(label),
            (ElementKind::Edge, None) => self.edge_count,
            (ElementKind::Edge, Some(label)) => self.edge_count_with_label(label),
        }
    }

    /// Up to about `limit` elements at or after `from`, ascending, and where to go on, if there may be more. Of edges with
    /// a label, all edges are looked at.
    pub(crate) fn elements_from(
        &self,
        elements: ElementKind,
        label: Option<LabelId>,
        from: u64,
        limit: usize,
    ) -> (Vec<u64>, Option<u64>) {
        let mut found = Vec::new();
        if let (ElementKind::Vertex, Some(label)) = (elements, label) {
            let mut next = None;
            self.visit_label(label, VertexId(from), &mut |vertex| {
                if found.len() >= limit {
                    next = Some(vertex.0);
                    return ControlFlow::Break(());
                }
                found.push(vertex.0);
                ControlFlow::Continue(())
            });
            return (found, next);
        }
        let snapshot = Snapshot::new(Arc::new(self.clone()));
        let mut cursor = ScanCursor { next: from };
        let more = match elements {
            ElementKind::Vertex => {
                let mut vertices = Vec::new();
                let more = snapshot.scan_vertices(&mut cursor, limit, &mut vertices);
                found.extend(vertices.iter().map(|vertex| vertex.0));
                more
            }
            ElementKind::Edge => {
                let mut edges = Vec::new();
                let more = snapshot.scan_edges(&mut cursor, limit, &mut edges);
                let has_label = |edge: &&EdgeId| {
                    label.is_none_or(|label| self.edge(**edge).is_some_and(|record| record.label == label))
                };
                found.extend(edges.iter().filter(has_label).map(|edge| edge.0));
                more
            }
        };
        (found, more.then_some(cursor.next))
    }
}
