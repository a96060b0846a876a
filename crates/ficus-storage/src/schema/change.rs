//! Changes of the schema, in the form in which they are logged and applied.

use std::sync::Arc;

use super::TypeDefinition;
use crate::IndexDefinition;
use crate::index::ElementKind;

/// One change of the schema of one graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SchemaChange {
    /// A new index; over many elements it begins a task.
    CreateIndex(IndexDefinition),
    /// The end of an index.
    DropIndex { name: Arc<str> },
    /// A declared type; with many elements it begins a task.
    CreateType(TypeDefinition),
    /// The end of a declaration, and unless `keeps_elements` the beginning of a task that removes its elements.
    DropType { elements: ElementKind, label: Arc<str>, keeps_elements: bool },
    /// The next piece of a task, of about this many elements.
    StepTask { task: u64, elements: u64 },
    /// The end of a task that is not done.
    CancelTask { task: u64 },
}
