//! The schema of a graph: declared types, indexes, and the tasks that change them.
//!
//! It is a part of the root, so it is versioned with what it describes, changed by records of the log ([`change`]), and kept in
//! checkpoints ([`codec`]). Whether a write is allowed depends on the schema and the rows alone, never on how far the
//! entries of an unfinished index are: a replay of the log decides as it was decided the first time.

mod apply;
mod change;
mod codec;
mod commit_check;
mod control;
mod declaration;
mod enforce;
mod step;
mod task;

use std::collections::BTreeSet;
use std::sync::Arc;

use ficus_model::{KeyId, LabelId, Value};

pub(crate) use apply::apply_change;
pub(crate) use change::SchemaChange;
pub(crate) use codec::{put_change, put_schema, read_change, read_schema};
pub(crate) use commit_check::check_write;
pub(crate) use control::run_tasks;
pub use declaration::{
    ATTRIBUTES_LIMIT, Attribute, Multiplicity, SortKey, TypeDefinition, TypeMode, TypeState, ValueType,
};
pub(crate) use step::STEP_ELEMENTS;
pub(crate) use task::FINISHED_LIMIT;
pub use task::{Task, TaskState, TaskWork};

use crate::index::ElementKind;

/// A declared type in the numbers of its graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeclaredType {
    pub(crate) definition: TypeDefinition,
    pub(crate) label: LabelId,
    pub(crate) state: TypeState,
}

impl DeclaredType {
    /// What a new element gets that is made without them.
    pub(crate) fn defaults(&self) -> impl Iterator<Item = (&str, &Value)> {
        let attributes = self.definition.attributes.iter();
        attributes.filter_map(|own| own.default.as_ref().map(|default| (&*own.key, default)))
    }
}

/// The schema of a graph, but for its indexes, which stand beside it in the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Schema {
    /// The number of the next index.
    pub(crate) next_index: u32,
    /// Keys of vertices that were ever indexed. Writes to them are remembered value by value, so that a transaction can
    /// protect one value and still be right when the index is gone by the time it commits.
    pub(crate) precise_keys: BTreeSet<KeyId>,
    /// The number of the next task.
    pub(crate) next_task: u64,
    /// Running tasks and the last finished ones, by number.
    pub(crate) tasks: Vec<Task>,
    /// Declared types, oldest first.
    pub(crate) types: Vec<Arc<DeclaredType>>,
}

impl Schema {
    /// The declared type of these elements.
    pub(crate) fn find(&self, elements: ElementKind, label: LabelId) -> Option<&Arc<DeclaredType>> {
        self.types.iter().find(|own| own.label == label && own.definition.elements == elements)
    }

    /// Gives an index its number.
    pub(crate) fn number_index(&mut self, elements: ElementKind, keys: &[KeyId]) -> u32 {
        if elements == ElementKind::Vertex {
            self.precise_keys.extend(keys);
        }
        self.next_index += 1;
        self.next_index - 1
    }

    /// The task with this number.
    pub(crate) fn task_mut(&mut self, number: u64) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.number == number)
    }

    /// Adds a task and returns its number.
    pub(crate) fn begin_task(&mut self, work: TaskWork, total: u64) -> u64 {
        let number = self.next_task;
        self.next_task += 1;
        let state = TaskState::Running;
        self.tasks.push(Task { number, work, state, done: 0, total, next: 0 });
        number
    }

    /// Ends a task, and forgets the oldest finished one if there are many.
    pub(crate) fn end_task(&mut self, number: u64, state: TaskState) {
        if let Some(task) = self.task_mut(number) {
            task.state = state;
            task.next = 0;
        }
        let finished = self.tasks.iter().filter(|task| !task.is_running()).count();
        if finished > FINISHED_LIMIT
            && let Some(oldest) = self.tasks.iter().position(|task| !task.is_running())
        {
            self.tasks.remove(oldest);
        }
    }
}
