//! Tasks: changes of the schema that take longer than a commit may.
//!
//! A task is a part of the root, like what it works on: it is logged, versioned and in checkpoints. It advances by *step*
//! records of the log, each of which does a bounded piece of work. Who asks for the steps does not matter, so a restart
//! goes on where the log ends, and commits wait for one step at most.

use std::sync::Arc;

use crate::index::ElementKind;

/// Finished tasks that are remembered, newest first to go last.
pub(crate) const FINISHED_LIMIT: usize = 64;

/// What a task is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskWork {
    /// Fill an index; of a unique one, look for equal values afterwards.
    BuildIndex {
        /// The number of the index.
        index: u32,
        /// Its name.
        name: Arc<str>,
    },
    /// See whether the elements of a type obey its declaration.
    VerifyType {
        /// A vertex type or an edge type.
        elements: ElementKind,
        /// Its label.
        label: Arc<str>,
    },
    /// Remove the elements of a type, and then the type.
    DropType {
        /// A vertex type or an edge type.
        elements: ElementKind,
        /// Its label.
        label: Arc<str>,
    },
}

impl TaskWork {
    /// What the task does, for listings.
    pub fn describe(&self) -> String {
        match self {
            TaskWork::BuildIndex { name, .. } => format!("build index '{name}'"),
            TaskWork::VerifyType { elements, label } => format!("verify {} type '{label}'", elements.name()),
            TaskWork::DropType { elements, label } => format!("drop {} type '{label}'", elements.name()),
        }
    }
}

/// How far a task is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Steps are left.
    Running,
    /// All is done.
    Done,
    /// It could not be done, and what it began was undone.
    Failed {
        /// Why.
        reason: Arc<str>,
    },
    /// Somebody stopped it, and what it began was undone.
    Cancelled,
}

impl TaskState {
    /// `running`, `done`, `failed` or `cancelled`.
    pub const fn name(&self) -> &'static str {
        match self {
            TaskState::Running => "running",
            TaskState::Done => "done",
            TaskState::Failed { .. } => "failed",
            TaskState::Cancelled => "cancelled",
        }
    }
}

/// A change of the schema that goes on in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number, never given twice in a graph.
    pub number: u64,
    /// What it does.
    pub work: TaskWork,
    /// How far it is.
    pub state: TaskState,
    /// Elements it has looked at.
    pub done: u64,
    /// Elements there were to look at when it began, more or less.
    pub total: u64,
    /// The element that the next step begins with.
    pub(crate) next: u64,
}

impl Task {
    /// True if steps are left.
    pub fn is_running(&self) -> bool {
        self.state == TaskState::Running
    }
}
