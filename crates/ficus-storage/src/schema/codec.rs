//! The schema as bytes, in log records and checkpoints.

use std::sync::Arc;

use ficus_model::{Cardinality, KeyId, LabelId};

use super::{
    Attribute, DeclaredType, Multiplicity, Schema, SchemaChange, SortKey, Task, TaskState, TaskWork, TypeDefinition,
    TypeMode, TypeState, ValueType,
};
use crate::index::{ElementKind, Index, IndexShape};
use crate::value_codec::{ByteReader, DecodeResult, put_bytes, put_number, put_value};
use crate::words::Words;
use crate::{IndexDefinition, IndexKind, IndexState};

mod kind {
    pub(super) const CREATE_INDEX: u8 = 1;
    pub(super) const DROP_INDEX: u8 = 2;
    pub(super) const CREATE_TYPE: u8 = 3;
    pub(super) const DROP_TYPE: u8 = 4;
    pub(super) const STEP_TASK: u8 = 5;
    pub(super) const CANCEL_TASK: u8 = 6;

    pub(super) const BUILD_INDEX: u8 = 1;
    pub(super) const VERIFY_TYPE: u8 = 2;
    pub(super) const DROPPED_TYPE: u8 = 3;

    pub(super) const RUNNING: u8 = 0;
    pub(super) const DONE: u8 = 1;
    pub(super) const FAILED: u8 = 2;
    pub(super) const CANCELLED: u8 = 3;
}

/// Appends a change.
pub(crate) fn put_change(change: &SchemaChange, out: &mut Vec<u8>) {
    match change {
        SchemaChange::CreateIndex(definition) => {
            out.push(kind::CREATE_INDEX);
            put_index(definition, out);
        }
        SchemaChange::DropIndex { name } => {
            out.push(kind::DROP_INDEX);
            put_text(name, out);
        }
        SchemaChange::CreateType(definition) => {
            out.push(kind::CREATE_TYPE);
            put_type(definition, out);
        }
        SchemaChange::DropType { elements, label, keeps_elements } => {
            out.push(kind::DROP_TYPE);
            out.push(*elements as u8);
            put_text(label, out);
            out.push(u8::from(*keeps_elements));
        }
        SchemaChange::StepTask { task, elements } => {
            out.push(kind::STEP_TASK);
            put_number(*task, out);
            put_number(*elements, out);
        }
        SchemaChange::CancelTask { task } => {
            out.push(kind::CANCEL_TASK);
            put_number(*task, out);
        }
    }
}

/// Reads a change back.
pub(crate) fn read_change(reader: &mut ByteReader<'_>) -> DecodeResult<SchemaChange> {
    Ok(match reader.byte()? {
        kind::CREATE_INDEX => SchemaChange::CreateIndex(read_index(reader)?),
        kind::DROP_INDEX => SchemaChange::DropIndex { name: reader.text()?.into() },
        kind::CREATE_TYPE => SchemaChange::CreateType(read_type(reader)?),
        kind::DROP_TYPE => SchemaChange::DropType {
            elements: read_elements(reader)?,
            label: reader.text()?.into(),
            keeps_elements: read_flag(reader)?,
        },
        kind::STEP_TASK => SchemaChange::StepTask { task: reader.number()?, elements: reader.number()? },
        kind::CANCEL_TASK => SchemaChange::CancelTask { task: reader.number()? },
        _ => return Err("an unknown change of a schema"),
    })
}

/// Appends schema and indexes of a graph.
pub(crate) fn put_schema(schema: &Schema, indexes: &[Index], out: &mut Vec<u8>) {
    put_number(u64::from(schema.next_index), out);
    put_number(schema.next_task, out);
    put_number(schema.precise_keys.len() as u64, out);
    schema.precise_keys.iter().for_each(|key| put_number(u64::from(key.0), out));
    put_number(indexes.len() as u64, out);
    for index in indexes {
        let IndexShape { number, name, elements, label, keys, kind, unique } = &*index.shape;
        put_number(u64::from(*number), out);
        put_text(name, out);
        out.extend_from_slice(&[*elements as u8, *kind as u8, u8::from(*unique), index.state as u8]);
        put_number(label.map_or(0, |label| u64::from(label.0) + 1), out);
        put_number(keys.len() as u64, out);
        keys.iter().for_each(|key| put_number(u64::from(key.0), out));
    }
    put_number(schema.types.len() as u64, out);
    for declared in &schema.types {
        out.push(declared.state as u8);
        put_type(&declared.definition, out);
    }
    put_number(schema.tasks.len() as u64, out);
    schema.tasks.iter().for_each(|task| put_task(task, out));
}

/// Reads schema and indexes of a graph with these words; the indexes are without entries.
pub(crate) fn read_schema(reader: &mut ByteReader<'_>, words: &Words) -> DecodeResult<(Schema, Vec<Index>)> {
    let mut schema = Schema { next_index: reader.narrow()?, next_task: reader.number()?, ..Schema::default() };
    for _ in 0..reader.count()? {
        schema.precise_keys.insert(read_key(reader, words)?);
    }
    let mut indexes = Vec::new();
    for _ in 0..reader.count()? {
        let number = reader.narrow()?;
        let name = reader.text()?.into();
        let elements = read_elements(reader)?;
        let index_kind = read_index_kind(reader)?;
        let unique = read_flag(reader)?;
        let state = match reader.byte()? {
            0 => IndexState::Building,
            1 => IndexState::Verifying,
            2 => IndexState::Ready,
            _ => return Err("an unknown state of an index"),
        };
        let label = reader.narrow::<u32>()?.checked_sub(1).map(LabelId);
        if label.is_some_and(|label| words.labels.name(label.0).is_none()) {
            return Err("an index names a label that its graph does not have");
        }
        let keys = (0..reader.count()?).map(|_| read_key(reader, words)).collect::<DecodeResult<Box<[KeyId]>>>()?;
        if keys.is_empty() || number >= schema.next_index || index_kind == IndexKind::Hash && keys.len() > 1 {
            return Err("an index without keys, or with a number that was never given");
        }
        let shape = IndexShape { number, name, elements, label, keys, kind: index_kind, unique };
        indexes.push(Index::new(shape, state));
    }
    for _ in 0..reader.count()? {
        let state = match reader.byte()? {
            0 => TypeState::Verifying,
            1 => TypeState::Active,
            2 => TypeState::Dropping,
            _ => return Err("an unknown state of a type"),
        };
        let definition = read_type(reader)?;
        let label =
            words.labels.number(&definition.label).ok_or("a type names a label that its graph does not have")?;
        schema.types.push(Arc::new(DeclaredType { definition, label: LabelId(label), state }));
    }
    for _ in 0..reader.count()? {
        let task = read_task(reader)?;
        if task.number >= schema.next_task {
            return Err("a task has a number that was never given");
        }
        schema.tasks.push(task);
    }
    Ok((schema, indexes))
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put_bytes(text.as_bytes(), out);
}

fn put_texts(texts: &[Arc<str>], out: &mut Vec<u8>) {
    put_number(texts.len() as u64, out);
    texts.iter().for_each(|text| put_text(text, out));
}

fn read_texts(reader: &mut ByteReader<'_>) -> DecodeResult<Vec<Arc<str>>> {
    (0..reader.count()?).map(|_| Ok(reader.text()?.into())).collect()
}

fn read_flag(reader: &mut ByteReader<'_>) -> DecodeResult<bool> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err("neither yes nor no"),
    }
}

fn read_key(reader: &mut ByteReader<'_>, words: &Words) -> DecodeResult<KeyId> {
    let key: u32 = reader.narrow()?;
    words.keys.name(key).ok_or("an index names a key that its graph does not have")?;
    Ok(KeyId(key))
}

fn read_elements(reader: &mut ByteReader<'_>) -> DecodeResult<ElementKind> {
    match reader.byte()? {
        0 => Ok(ElementKind::Vertex),
        1 => Ok(ElementKind::Edge),
        _ => Err("an unknown kind of elements"),
    }
}

fn read_index_kind(reader: &mut ByteReader<'_>) -> DecodeResult<IndexKind> {
    match reader.byte()? {
        0 => Ok(IndexKind::Hash),
        1 => Ok(IndexKind::Ordered),
        _ => Err("an unknown kind of index"),
    }
}

fn put_index(definition: &IndexDefinition, out: &mut Vec<u8>) {
    let IndexDefinition { name, elements, label, keys, kind, unique } = definition;
    put_text(name, out);
    out.extend_from_slice(&[*elements as u8, *kind as u8, u8::from(*unique), u8::from(label.is_some())]);
    if let Some(label) = label {
        put_text(label, out);
    }
    put_texts(keys, out);
}

fn read_index(reader: &mut ByteReader<'_>) -> DecodeResult<IndexDefinition> {
    let name = reader.text()?.into();
    let elements = read_elements(reader)?;
    let kind = read_index_kind(reader)?;
    let unique = read_flag(reader)?;
    let label = if read_flag(reader)? { Some(reader.text()?.into()) } else { None };
    Ok(IndexDefinition { name, elements, label, keys: read_texts(reader)?, kind, unique })
}

fn put_type(definition: &TypeDefinition, out: &mut Vec<u8>) {
    let TypeDefinition { elements, label, mode, attributes, primary_key, multiplicity, sort_keys } = definition;
    out.push(*elements as u8);
    put_text(label, out);
    out.push(*mode as u8);
    put_number(attributes.len() as u64, out);
    for Attribute { key, value_type, nullable, default, cardinality } in attributes {
        put_text(key, out);
        let cardinality = match cardinality {
            Cardinality::Single => 0,
            Cardinality::List => 1,
            Cardinality::Set => 2,
        };
        out.extend_from_slice(&[*value_type as u8, u8::from(*nullable), cardinality, u8::from(default.is_some())]);
        if let Some(default) = default {
            put_value(default, out);
        }
    }
    put_texts(primary_key, out);
    out.push(*multiplicity as u8);
    put_number(sort_keys.len() as u64, out);
    for SortKey { key, descending } in sort_keys {
        put_text(key, out);
        out.push(u8::from(*descending));
    }
}

fn read_type(reader: &mut ByteReader<'_>) -> DecodeResult<TypeDefinition> {
    let elements = read_elements(reader)?;
    let label = reader.text()?.into();
    let mode = if read_flag(reader)? { TypeMode::Strict } else { TypeMode::Open };
    let mut attributes = Vec::new();
    for _ in 0..reader.count()? {
        let key = reader.text()?.into();
        let value_type = *ValueType::ALL.get(reader.byte()? as usize).ok_or("an unknown type of values")?;
        let nullable = read_flag(reader)?;
        let cardinality = match reader.byte()? {
            0 => Cardinality::Single,
            1 => Cardinality::List,
            2 => Cardinality::Set,
            _ => return Err("an unknown cardinality"),
        };
        let default = if read_flag(reader)? { Some(reader.value()?) } else { None };
        attributes.push(Attribute { key, value_type, nullable, default, cardinality });
    }
    let primary_key = read_texts(reader)?;
    let multiplicity = *Multiplicity::ALL.get(reader.byte()? as usize).ok_or("an unknown multiplicity")?;
    let mut sort_keys = Vec::new();
    for _ in 0..reader.count()? {
        sort_keys.push(SortKey { key: reader.text()?.into(), descending: read_flag(reader)? });
    }
    Ok(TypeDefinition { elements, label, mode, attributes, primary_key, multiplicity, sort_keys })
}

fn put_task(task: &Task, out: &mut Vec<u8>) {
    put_number(task.number, out);
    match &task.work {
        TaskWork::BuildIndex { index, name } => {
            out.push(kind::BUILD_INDEX);
            put_number(u64::from(*index), out);
            put_text(name, out);
        }
        TaskWork::VerifyType { elements, label } => {
            out.extend_from_slice(&[kind::VERIFY_TYPE, *elements as u8]);
            put_text(label, out);
        }
        TaskWork::DropType { elements, label } => {
            out.extend_from_slice(&[kind::DROPPED_TYPE, *elements as u8]);
            put_text(label, out);
        }
    }
    match &task.state {
        TaskState::Running => out.push(kind::RUNNING),
        TaskState::Done => out.push(kind::DONE),
        TaskState::Failed { reason } => {
            out.push(kind::FAILED);
            put_text(reason, out);
        }
        TaskState::Cancelled => out.push(kind::CANCELLED),
    }
    put_number(task.done, out);
    put_number(task.total, out);
    put_number(task.next, out);
}

fn read_task(reader: &mut ByteReader<'_>) -> DecodeResult<Task> {
    let number = reader.number()?;
    let work = match reader.byte()? {
        kind::BUILD_INDEX => TaskWork::BuildIndex { index: reader.narrow()?, name: reader.text()?.into() },
        kind::VERIFY_TYPE => TaskWork::VerifyType { elements: read_elements(reader)?, label: reader.text()?.into() },
        kind::DROPPED_TYPE => TaskWork::DropType { elements: read_elements(reader)?, label: reader.text()?.into() },
        _ => return Err("an unknown kind of task"),
    };
    let state = match reader.byte()? {
        kind::RUNNING => TaskState::Running,
        kind::DONE => TaskState::Done,
        kind::FAILED => TaskState::Failed { reason: reader.text()?.into() },
        kind::CANCELLED => TaskState::Cancelled,
        _ => return Err("an unknown state of a task"),
    };
    let (done, total) = (reader.number()?, reader.number()?);
    Ok(Task { number, work, state, done, total, next: reader.number()? })
}

#[cfg(test)]
mod tests {
    use ficus_model::Value;

    use super::*;

    fn definition() -> TypeDefinition {
        let attribute = |key: &str, default| Attribute {
            nullable: false,
            default,
            cardinality: Cardinality::Set,
            ..Attribute::new(key, ValueType::Long)
        };
        TypeDefinition {
            mode: TypeMode::Strict,
            attributes: vec![attribute("a", None), attribute("b", Some(Value::Long(7)))],
            primary_key: vec!["a".into()],
            multiplicity: Multiplicity::OneToOne,
            sort_keys: vec![SortKey { key: "b".into(), descending: true }],
            ..TypeDefinition::new(ElementKind::Edge, "t")
        }
    }

    #[test]
    fn changes_come_back_as_they_were_and_damage_does_no_harm() {
        let index = IndexDefinition::new(ElementKind::Edge, Some("t"), &["a", "b"], IndexKind::Ordered).unique();
        let changes = [
            SchemaChange::CreateIndex(index),
            SchemaChange::CreateIndex(IndexDefinition::new(ElementKind::Vertex, None, &["a"], IndexKind::Hash)),
            SchemaChange::DropIndex { name: "x".into() },
            SchemaChange::CreateType(definition()),
            SchemaChange::DropType { elements: ElementKind::Edge, label: "t".into(), keeps_elements: true },
            SchemaChange::StepTask { task: 7, elements: 300 },
            SchemaChange::CancelTask { task: 7 },
        ];
        for change in changes {
            let mut bytes = Vec::new();
            put_change(&change, &mut bytes);
            assert_eq!(read_change(&mut ByteReader::new(&bytes)), Ok(change));
            for place in 0..bytes.len() {
                let _ = read_change(&mut ByteReader::new(&bytes[..place]));
                let mut damaged = bytes.clone();
                damaged[place] ^= 0x55;
                let _ = read_change(&mut ByteReader::new(&damaged));
            }
        }
    }

    #[test]
    fn a_schema_comes_back_as_it_was() {
        let mut words = Arc::new(Words::default());
        let label = words.intern_label(&"t".into());
        let keys: Box<[KeyId]> = ["a", "b"].map(|key| words.intern_key(&key.into())).into();
        let shape = |kind, keys: &[KeyId]| IndexShape {
            number: 3,
            name: "n".into(),
            elements: ElementKind::Vertex,
            label: Some(label),
            keys: keys.into(),
            kind,
            unique: true,
        };
        let indexes = [
            Index::new(shape(IndexKind::Ordered, &keys), IndexState::Verifying),
            Index::new(IndexShape { label: None, ..shape(IndexKind::Hash, &keys[..1]) }, IndexState::Building),
        ];
        let mut schema = Schema { next_index: 4, precise_keys: keys.iter().copied().collect(), ..Schema::default() };
        let declared = DeclaredType { definition: definition(), label, state: TypeState::Dropping };
        schema.types.push(Arc::new(declared));
        schema.begin_task(TaskWork::BuildIndex { index: 3, name: "n".into() }, 100);
        let elements = ElementKind::Vertex;
        let failing = schema.begin_task(TaskWork::VerifyType { elements, label: "t".into() }, 5);
        schema.begin_task(TaskWork::DropType { elements, label: "t".into() }, 5);
        schema.end_task(failing, TaskState::Failed { reason: "because".into() });
        schema.tasks[0].next = 9;
        let mut bytes = Vec::new();
        put_schema(&schema, &indexes, &mut bytes);
        let (read, read_indexes) = read_schema(&mut ByteReader::new(&bytes), &words).unwrap();
        assert_eq!(read, schema);
        let parts = |index: &Index| (index.shape.clone(), index.state);
        assert_eq!(read_indexes.iter().map(parts).collect::<Vec<_>>(), indexes.each_ref().map(parts));
        for place in 0..bytes.len() {
            let _ = read_schema(&mut ByteReader::new(&bytes[..place]), &words);
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x55;
            let _ = read_schema(&mut ByteReader::new(&damaged), &words);
        }
    }
}
