//! Turns one schema into the next, by a change from the log.
//!
//! Like all applying it uses no clock, no randomness and no hash-map order.

use std::sync::Arc;

use ficus_model::{KeyId, LabelId};

use super::step::{STEP_ELEMENTS, step_task};
use super::{DeclaredType, SchemaChange, TaskState, TaskWork, TypeDefinition, TypeState};
use crate::index::{ElementKind, Index, IndexShape};
use crate::mutation::Mutation;
use crate::root::GraphRoot;
use crate::words::Words;
use crate::{IndexDefinition, IndexState, StoreError};

/// Indexes, and declared types, that one graph may have. A commit copies the lists of them, some 100 nanoseconds for each, and a change of the schema
/// looks at all.
const INDEXES_LIMIT: usize = 4096;
const TYPES_LIMIT: usize = 4096;

/// Applies a change. An error leaves the schema as it was. Returns removals of elements that are to be applied as if a
/// transaction had made them.
pub(crate) fn apply_change(change: SchemaChange, root: &mut GraphRoot) -> Result<Vec<Mutation>, StoreError> {
    let removals = apply_change_alone(change, root)?;
    root.refresh_sorted();
    Ok(removals)
}

fn apply_change_alone(change: SchemaChange, root: &mut GraphRoot) -> Result<Vec<Mutation>, StoreError> {
    match change {
        SchemaChange::CreateIndex(definition) => create_index(&definition, root)?,
        SchemaChange::DropIndex { name } => drop_index(&name, root)?,
        SchemaChange::CreateType(definition) => create_type(definition, root)?,
        SchemaChange::DropType { elements, label, keeps_elements } => {
            drop_type(elements, &label, keeps_elements, root)?;
        }
        SchemaChange::StepTask { task, elements } => return Ok(step_task(task, elements, root)),
        SchemaChange::CancelTask { task } => cancel_task(task, root)?,
    }
    Ok(Vec::new())
}

fn refuse<T>(what: impl ToString, reason: impl Into<String>) -> Result<T, StoreError> {
    Err(StoreError::InvalidSchema { what: what.to_string(), reason: reason.into() })
}

fn create_index(definition: &IndexDefinition, root: &mut GraphRoot) -> Result<(), StoreError> {
    definition.check()?;
    let what = || format!("index '{}'", definition.name);
    for index in root.indexes() {
        let has_name = index.shape.name == definition.name;
        match index.shape.covers_the_same(definition, &root.words) {
            true if has_name => return Ok(()),
            true => return refuse(what(), format!("there is the same index under the name '{}'", index.shape.name)),
            false if has_name => {
                let existing = index.shape.definition(&root.words);
                return refuse(what(), format!("there is an index of this name: {existing}"));
            }
            false => {}
        }
    }
    if root.indexes().len() >= INDEXES_LIMIT {
        let what = "indexes in one graph, primary keys included".to_string();
        return Err(StoreError::LimitReached { what, limit: INDEXES_LIMIT as u64 });
    }
    if let Some(label) = &definition.label {
        Words::check_word(&root.words.labels, "label", label)?;
    }
    for key in &definition.keys {
        Words::check_word(&root.words.keys, "property key", key)?;
    }
    let label = definition.label.as_ref().map(|label| root.words.intern_label(label));
    let keys: Box<[KeyId]> = definition.keys.iter().map(|key| root.words.intern_key(key)).collect();
    let number = Arc::make_mut(&mut root.schema).number_index(definition.elements, &keys);
    let IndexDefinition { name, elements, kind, unique, .. } = definition.clone();
    let shape = IndexShape { number, name: name.clone(), elements, label, keys, kind, unique };
    let total = root.count_of(elements, label);
    let state = if total == 0 { IndexState::Ready } else { IndexState::Building };
    Arc::make_mut(&mut root.indexes).push(Index::new(shape, state));
    if total == 0 {
        return Ok(());
    }
    let task = Arc::make_mut(&mut root.schema).begin_task(TaskWork::BuildIndex { index: number, name }, total);
    finish_if_small(task, elements, label, root);
    Ok(())
}

/// Few elements are looked at at once: then there is no need to wait for anything.
fn finish_if_small(task: u64, elements: ElementKind, label: Option<LabelId>, root: &mut GraphRoot) {
    // Edges of a label are found by looking at all.
    let label = label.filter(|_| elements == ElementKind::Vertex);
    if root.count_of(elements, label) < STEP_ELEMENTS {
        while root.schema.tasks.iter().any(|own| own.number == task && own.is_running()) {
            let removals = step_task(task, u64::MAX, root);
            assert!(removals.is_empty(), "only drops remove, and they take their time");
        }
    }
}

fn drop_index(name: &str, root: &mut GraphRoot) -> Result<(), StoreError> {
    let Some(index) = root.indexes().iter().find(|index| &*index.shape.name == name) else {
        return Err(StoreError::UnknownSchema { what: format!("index named '{name}'") });
    };
    let shape = index.shape.clone();
    let owner = root.schema.types.iter().find(|own| {
        own.state != TypeState::Dropping && own.definition.primary_index().is_some_and(|own| *own.name == *name)
    });
    if let Some(owner) = owner {
        return refuse(
            format!("index '{name}'"),
            format!("it holds the primary key of {}; drop the type", owner.definition),
        );
    }
    remove_index(shape.number, TaskState::Cancelled, root);
    Ok(())
}

/// Removes an index, and ends the task that builds it.
pub(super) fn remove_index(number: u32, state: TaskState, root: &mut GraphRoot) {
    Arc::make_mut(&mut root.indexes).retain(|index| index.shape.number != number);
    let schema = Arc::make_mut(&mut root.schema);
    let builds = |work: &TaskWork| matches!(work, TaskWork::BuildIndex { index, .. } if *index == number);
    let task = schema.tasks.iter().find(|task| task.is_running() && builds(&task.work)).map(|task| task.number);
    if let Some(task) = task {
        schema.end_task(task, state);
    }
}

fn create_type(definition: TypeDefinition, root: &mut GraphRoot) -> Result<(), StoreError> {
    definition.check()?;
    Words::check_word(&root.words.labels, "label", &definition.label)?;
    let elements = definition.elements;
    if let Some(existing) =
        root.words.labels.number(&definition.label).and_then(|label| root.schema.find(elements, LabelId(label)))
    {
        if existing.definition == definition && existing.state != TypeState::Dropping {
            return Ok(());
        }
        return refuse(&definition, "a type of this label is declared already; drop that first");
    }
    if root.schema.types.len() >= TYPES_LIMIT {
        let what = "declared types in one graph".to_string();
        return Err(StoreError::LimitReached { what, limit: TYPES_LIMIT as u64 });
    }
    let primary = definition.primary_index();
    let named = |name: &str| root.indexes().iter().find(|index| &*index.shape.name == name);
    if let Some(other) = primary.as_ref().and_then(|own| named(&own.name)) {
        return refuse(&definition, format!("the name of its primary key is taken by index '{}'", other.shape.name));
    }
    let label = root.words.intern_label(&definition.label);
    for sort in &definition.sort_keys {
        root.words.intern_key(&sort.key);
    }
    if let Some(index) = primary {
        create_index(&index, root)?;
        // Of few elements two have been found to be equal: a type cannot do without its primary key.
        if !root.indexes().iter().any(|own| own.shape.name == index.name) {
            return Ok(());
        }
    }
    let total = root.count_of(elements, Some(label));
    let state = if total == 0 { TypeState::Active } else { TypeState::Verifying };
    let name = definition.label.clone();
    let schema = Arc::make_mut(&mut root.schema);
    schema.types.push(Arc::new(DeclaredType { definition, label, state }));
    if total > 0 {
        let task = schema.begin_task(TaskWork::VerifyType { elements, label: name }, total);
        finish_if_small(task, elements, Some(label), root);
    }
    Ok(())
}

fn drop_type(elements: ElementKind, label: &str, keeps_elements: bool, root: &mut GraphRoot) -> Result<(), StoreError> {
    let unknown = || StoreError::UnknownSchema { what: format!("{} type '{label}'", elements.name()) };
    let number = root.words.labels.number(label).map(LabelId).ok_or_else(unknown)?;
    let declared = root.schema.find(elements, number).cloned();
    let total = root.count_of(elements, Some(number));
    if declared.is_none() && (keeps_elements || total == 0) {
        return Err(unknown());
    }
    undeclare(elements, number, TaskState::Cancelled, root);
    if keeps_elements {
        return Ok(());
    }
    // Indexes of just this label have nothing left to hold.
    let doomed =
        root.indexes().iter().filter(|index| index.shape.elements == elements && index.shape.label == Some(number));
    for index in doomed.map(|index| index.shape.number).collect::<Vec<_>>() {
        remove_index(index, TaskState::Cancelled, root);
    }
    if total == 0 {
        return Ok(());
    }
    // The label takes no new elements until the old ones are gone.
    let definition = declared.map_or_else(|| TypeDefinition::new(elements, label), |own| own.definition.clone());
    let definition = TypeDefinition { primary_key: Vec::new(), ..definition };
    let schema = Arc::make_mut(&mut root.schema);
    schema.types.push(Arc::new(DeclaredType { definition, label: number, state: TypeState::Dropping }));
    schema.begin_task(TaskWork::DropType { elements, label: Arc::from(label) }, total);
    Ok(())
}

/// Forgets the declaration of a type, with its primary key and the task that verifies it.
pub(super) fn undeclare(elements: ElementKind, label: LabelId, state: TaskState, root: &mut GraphRoot) {
    let Some(declared) = root.schema.find(elements, label).cloned() else { return };
    let schema = Arc::make_mut(&mut root.schema);
    schema.types.retain(|own| !Arc::ptr_eq(own, &declared));
    let concerns = |work: &TaskWork| match work {
        TaskWork::VerifyType { elements: own, label } | TaskWork::DropType { elements: own, label } => {
            *own == elements && *label == declared.definition.label
        }
        TaskWork::BuildIndex { .. } => false,
    };
    let tasks = schema.tasks.iter().filter(|task| task.is_running() && concerns(&task.work));
    for task in tasks.map(|task| task.number).collect::<Vec<_>>() {
        schema.end_task(task, state.clone());
    }
    let primary = declared.definition.primary_index();
    let index = primary.and_then(|own| root.indexes().iter().find(|index| index.shape.name == own.name));
    if let Some(number) = index.map(|index| index.shape.number) {
        remove_index(number, state, root);
    }
}

fn cancel_task(task: u64, root: &mut GraphRoot) -> Result<(), StoreError> {
    let running = root.schema.tasks.iter().find(|own| own.number == task && own.is_running());
    let Some(work) = running.map(|task| task.work.clone()) else {
        return Err(StoreError::UnknownSchema { what: format!("running task {task}") });
    };
    match work {
        TaskWork::BuildIndex { index, name } => {
            let owner = root.schema.types.iter().find(|own| {
                own.definition.primary_index().is_some_and(|own| own.name == name) && own.state != TypeState::Dropping
            });
            if let Some(owner) = owner.cloned() {
                undeclare(owner.definition.elements, owner.label, TaskState::Cancelled, root);
            } else {
                remove_index(index, TaskState::Cancelled, root);
            }
        }
        // What was removed is gone; the rest stays, undeclared.
        TaskWork::VerifyType { elements, label } | TaskWork::DropType { elements, label } => {
            if let Some(label) = root.words.labels.number(&label) {
                undeclare(elements, LabelId(label), TaskState::Cancelled, root);
            }
        }
    }
    Arc::make_mut(&mut root.schema).end_task(task, TaskState::Cancelled);
    Ok(())
}
