//! `ficus.schema.…`: looking at and changing declared types, indexes and tasks.
//!
//! A change is a transaction of its own and takes effect at once, whatever becomes of the traversal that asked for it. A
//! change over many elements goes on as a task: the answer has its number, and `wait` waits for it.

use std::sync::Arc;

use ficus_model::{Cardinality, Shared, Value, ValueMap};
use ficus_storage::{
    Attribute, ElementKind, Graph, IndexDefinition, IndexInfo, IndexKind, Multiplicity, Snapshot, SortKey, Task,
    TaskState, TypeDefinition, TypeMode, TypeState, ValueType,
};

use super::parameters::Parameters;
use super::{Reply, Service};
use crate::context::{Cx, Result};

/// A procedure of this family.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Procedure {
    List,
    Describe,
    CreateVertexType,
    CreateEdgeType,
    CreateIndex,
    DropIndex,
    DropType,
    Tasks,
    CancelTask,
}

/// One service of this family.
pub struct SchemaService(Procedure);

/// All services of this family.
pub fn services() -> impl Iterator<Item = SchemaService> {
    use Procedure::*;
    [List, Describe, CreateVertexType, CreateEdgeType, CreateIndex, DropIndex, DropType, Tasks, CancelTask]
        .into_iter()
        .map(SchemaService)
}

const LABEL: (&str, &str) = ("label", "The label.");
const ELEMENTS: (&str, &str) = ("elements", "vertex or edge (default = vertex).");
const MODE: (&str, &str) = ("mode", "open takes undeclared properties, strict does not (default = open).");
const ATTRIBUTES: (&str, &str) =
    ("attributes", "Map from key to type, or to a map of type, nullable, default and cardinality.");
const WAIT: (&str, &str) = ("wait", "Whether to wait until it is done (default = true).");

impl Service for SchemaService {
    fn name(&self) -> &str {
        match self.0 {
            Procedure::List => "ficus.schema.list",
            Procedure::Describe => "ficus.schema.describe",
            Procedure::CreateVertexType => "ficus.schema.createVertexType",
            Procedure::CreateEdgeType => "ficus.schema.createEdgeType",
            Procedure::CreateIndex => "ficus.schema.createIndex",
            Procedure::DropIndex => "ficus.schema.dropIndex",
            Procedure::DropType => "ficus.schema.dropType",
            Procedure::Tasks => "ficus.schema.tasks",
            Procedure::CancelTask => "ficus.schema.cancelTask",
        }
    }

    fn is_listed(&self) -> bool {
        false
    }

    fn parameters(&self) -> Vec<(&'static str, &'static str)> {
        match self.0 {
            Procedure::List | Procedure::Tasks => vec![],
            Procedure::Describe => vec![LABEL, ELEMENTS],
            Procedure::CreateVertexType => {
                vec![
                    LABEL,
                    MODE,
                    ATTRIBUTES,
                    ("primaryKey", "A key, or a list of keys, that is unique and never missing."),
                    WAIT,
                ]
            }
            Procedure::CreateEdgeType => vec![
                LABEL,
                MODE,
                ATTRIBUTES,
                ("multiplicity", "multi, simple, one-to-many, many-to-one or one-to-one (default = multi)."),
                ("sortKeys", "A key, or a list of keys, each with ' desc' behind it for descending order."),
                WAIT,
            ],
            Procedure::CreateIndex => vec![
                ("label", "Only elements of this label (default = all)."),
                ("keys", "A key, or a list of keys."),
                ELEMENTS,
                ("kind", "hash or ordered (default = hash for one key, else ordered)."),
                ("unique", "Whether equal values are refused (default = false)."),
                ("name", "Its name (default = made of the rest)."),
                WAIT,
            ],
            Procedure::DropIndex => vec![("name", "The name of the index.")],
            Procedure::DropType => vec![
                LABEL,
                ELEMENTS,
                ("keepElements", "Whether the elements stay and only the declaration goes (default = false)."),
                WAIT,
            ],
            Procedure::CancelTask => vec![("task", "The number of the task.")],
        }
    }

    fn writes(&self, _parameters: &ValueMap) -> bool {
        !matches!(self.0, Procedure::List | Procedure::Describe | Procedure::Tasks)
    }

    fn call(&self, cx: &mut Cx<'_>, _input: Option<&Value>, parameters: &ValueMap) -> Result<Reply> {
        let given = Parameters::of(self, parameters)?;
        self.answer(cx.context.transaction.graph(), &given).map(Reply::Values)
    }
}

impl SchemaService {
    fn answer(&self, graph: &Arc<Graph>, given: &Parameters<'_>) -> Result<Vec<Value>> {
        match self.0 {
            Procedure::List => Ok(list(&graph.snapshot())),
            Procedure::Describe => describe(&graph.snapshot(), given.elements()?, &given.text("label")?),
            Procedure::CreateVertexType | Procedure::CreateEdgeType => {
                let definition = given.definition(self.0 == Procedure::CreateEdgeType)?;
                graph.define_type(&definition)?;
                after(graph, given.flag("wait", true)?)?;
                describe(&graph.snapshot(), definition.elements, &definition.label)
            }
            Procedure::CreateIndex => {
                let definition = given.index()?;
                graph.define_index(&definition)?;
                after(graph, given.flag("wait", true)?)?;
                let snapshot = graph.snapshot();
                Ok(snapshot
                    .indexes()
                    .iter()
                    .filter(|own| own.definition.name == definition.name)
                    .map(index_map)
                    .collect())
            }
            Procedure::DropIndex => graph.drop_index(&given.text("name")?).map(|()| Vec::new()).map_err(Into::into),
            Procedure::DropType => {
                graph.drop_type(given.elements()?, &given.text("label")?, given.flag("keepElements", false)?)?;
                after(graph, given.flag("wait", true)?)?;
                Ok(running(graph)?)
            }
            Procedure::Tasks => Ok(graph.tasks()?.iter().map(task_map).collect()),
            Procedure::CancelTask => {
                let task = given.number("task")?;
                graph.cancel_task(task)?;
                Ok(graph.tasks()?.iter().filter(|own| own.number == task).map(task_map).collect())
            }
        }
    }
}

/// Waits for what was begun; without a thread for tasks there is nobody else to do it.
fn after(graph: &Arc<Graph>, wait: bool) -> Result<()> {
    if wait || !graph.has_task_thread() {
        graph.finish_tasks()?;
    }
    Ok(())
}

fn running(graph: &Arc<Graph>) -> Result<Vec<Value>> {
    Ok(graph.tasks()?.iter().filter(|task| task.is_running()).map(task_map).collect())
}

impl Parameters<'_> {
    fn elements(&self) -> Result<ElementKind> {
        match self.optional_text("elements")?.as_deref() {
            None | Some("vertex") => Ok(ElementKind::Vertex),
            Some("edge") => Ok(ElementKind::Edge),
            Some(other) => Err(self.invalid(format!("[elements] is vertex or edge, not {other}"))),
        }
    }

    fn index(&self) -> Result<IndexDefinition> {
        let keys = self.texts("keys")?;
        let kind = match self.optional_text("kind")?.as_deref() {
            Some("hash") => IndexKind::Hash,
            Some("ordered") => IndexKind::Ordered,
            None if keys.len() <= 1 => IndexKind::Hash,
            None => IndexKind::Ordered,
            Some(other) => return Err(self.invalid(format!("[kind] is hash or ordered, not {other}"))),
        };
        let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
        let mut definition =
            IndexDefinition::new(self.elements()?, self.optional_text("label")?.as_deref(), &keys, kind);
        if let Some(name) = self.optional_text("name")? {
            definition = definition.named(&name);
        }
        Ok(if self.flag("unique", false)? { definition.unique() } else { definition })
    }

    fn definition(&self, edge: bool) -> Result<TypeDefinition> {
        let elements = if edge { ElementKind::Edge } else { ElementKind::Vertex };
        let mut definition = TypeDefinition::new(elements, &self.text("label")?);
        definition.mode = match self.optional_text("mode")?.as_deref() {
            None | Some("open") => TypeMode::Open,
            Some("strict") => TypeMode::Strict,
            Some(other) => return Err(self.invalid(format!("[mode] is open or strict, not {other}"))),
        };
        match self.get("attributes") {
            None => {}
            Some(Value::Map(attributes)) => {
                for (key, declared) in attributes.iter() {
                    definition.attributes.push(self.attribute(key, declared)?);
                }
            }
            Some(other) => return Err(self.invalid(format!("[attributes] is a Map, not a {}", other.type_name()))),
        }
        definition.primary_key = self.texts("primaryKey")?;
        if let Some(name) = self.optional_text("multiplicity")? {
            definition.multiplicity = Multiplicity::from_name(&name).ok_or_else(|| {
                let names = Multiplicity::ALL.map(Multiplicity::name).join(", ");
                self.invalid(format!("[multiplicity] is one of {names}, not {name}"))
            })?;
        }
        definition.sort_keys = self.texts("sortKeys")?.iter().map(|text| sort_key(text)).collect();
        Ok(definition)
    }

    fn attribute(&self, key: &Value, declared: &Value) -> Result<Attribute> {
        let Value::String(key) = key else {
            return Err(self.invalid(format!("a key of [attributes] is a string, not a {}", key.type_name())));
        };
        let value_type = |value: &Value| match value {
            Value::String(name) => ValueType::from_name(name),
            _ => None,
        };
        let unknown = |value: &Value| {
            let names: Vec<&str> = ValueType::ALL.iter().map(|own| own.name()).collect();
            self.invalid(format!("the type of '{key}' is one of {}, not {value}", names.join(", ")))
        };
        let Value::Map(parts) = declared else {
            return Ok(Attribute::new(key, value_type(declared).ok_or_else(|| unknown(declared))?));
        };
        let mut attribute = Attribute::new(key, ValueType::Any);
        for (part, value) in parts.iter() {
            let Value::String(part) = part else {
                return Err(self.invalid(format!("the attribute '{key}' has a part that is no string")));
            };
            match (&**part, value) {
                ("type", value) => attribute.value_type = value_type(value).ok_or_else(|| unknown(value))?,
                ("nullable", Value::Bool(nullable)) => attribute.nullable = *nullable,
                ("default", value) => attribute.default = Some(value.clone()),
                ("cardinality", Value::Cardinality(cardinality)) => attribute.cardinality = *cardinality,
                ("cardinality", Value::String(name)) => {
                    let cardinality = Cardinality::ALL.iter().find(|own| own.name() == &**name);
                    attribute.cardinality = *cardinality.ok_or_else(|| {
                        self.invalid(format!("the cardinality of '{key}' is single, list or set, not {name}"))
                    })?;
                }
                (part, value) => {
                    let given = value.type_name();
                    return Err(self.invalid(format!(
                        "the attribute '{key}' has no part [{part}] of type {given}; it has type, nullable, default and cardinality"
                    )));
                }
            }
        }
        // A default need not be written in the declared type.
        attribute.default = match attribute.default {
            Some(default) => Some(attribute.value_type.take(default.clone()).unwrap_or(default)),
            None => None,
        };
        Ok(attribute)
    }
}

fn sort_key(text: &str) -> SortKey {
    match text.strip_suffix(" desc") {
        Some(key) => SortKey { key: Arc::from(key), descending: true },
        None => SortKey { key: Arc::from(text.strip_suffix(" asc").unwrap_or(text)), descending: false },
    }
}

fn text(text: &str) -> Value {
    Value::String(Arc::from(text))
}

fn count(count: u64) -> Value {
    Value::Long(i64::try_from(count).unwrap_or(i64::MAX))
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> ValueMap {
    entries.into_iter().map(|(key, value)| (text(key), value)).collect()
}

fn texts<'a>(list: impl Iterator<Item = &'a str>) -> Value {
    Value::List(Shared::new(list.map(text).collect()))
}

fn list(snapshot: &Snapshot) -> Vec<Value> {
    let types = snapshot.types();
    let types = types.iter().map(|(definition, state)| Value::Map(Shared::new(type_map(snapshot, definition, *state))));
    types.chain(snapshot.indexes().iter().map(index_map)).collect()
}

fn index_map(index: &IndexInfo) -> Value {
    let definition = &index.definition;
    Value::Map(Shared::new(map([
        ("what", text("index")),
        ("name", Value::String(definition.name.clone())),
        ("elements", text(definition.elements.name())),
        ("label", definition.label.as_ref().map_or(Value::Null, |label| Value::String(label.clone()))),
        ("keys", texts(definition.keys.iter().map(|key| &**key))),
        ("kind", text(definition.kind.name())),
        ("unique", Value::Bool(definition.unique)),
        ("state", text(index.state.name())),
        ("entries", count(index.entries)),
    ])))
}

fn type_map(snapshot: &Snapshot, definition: &TypeDefinition, state: TypeState) -> ValueMap {
    let attribute = |own: &Attribute| {
        let mut parts = map([
            ("type", text(own.value_type.name())),
            ("nullable", Value::Bool(own.nullable)),
            ("cardinality", text(own.cardinality.name())),
        ]);
        if let Some(default) = &own.default {
            parts.insert(text("default"), default.clone());
        }
        (Value::String(own.key.clone()), Value::Map(Shared::new(parts)))
    };
    let attributes: ValueMap = definition.attributes.iter().map(attribute).collect();
    let what = format!("{} type", definition.elements.name());
    let mut shown = map([
        ("what", text(&what)),
        ("label", Value::String(definition.label.clone())),
        ("mode", text(definition.mode.name())),
        ("state", text(state.name())),
        ("attributes", Value::Map(Shared::new(attributes))),
    ]);
    if definition.elements == ElementKind::Vertex {
        shown.insert(text("primaryKey"), texts(definition.primary_key.iter().map(|key| &**key)));
    } else {
        let sort_keys: Vec<String> = definition
            .sort_keys
            .iter()
            .map(|own| format!("{}{}", own.key, if own.descending { " desc" } else { "" }))
            .collect();
        shown.insert(text("multiplicity"), text(definition.multiplicity.name()));
        shown.insert(text("sortKeys"), texts(sort_keys.iter().map(|key| &**key)));
    }
    shown.extend(statistics(snapshot, definition.elements, &definition.label));
    shown
}

/// What is known of the elements of a label without looking at any.
fn statistics(snapshot: &Snapshot, elements: ElementKind, label: &str) -> ValueMap {
    let number = snapshot.label_id(label);
    match elements {
        ElementKind::Vertex => map([("count", count(number.map_or(0, |own| snapshot.vertex_count_with_label(own))))]),
        ElementKind::Edge => {
            let edges = number.map_or(0, |own| snapshot.edge_count_with_label(own));
            let vertices = snapshot.vertex_count().max(1);
            map([("count", count(edges)), ("averageDegree", Value::Double(edges as f64 / vertices as f64))])
        }
    }
}

fn describe(snapshot: &Snapshot, elements: ElementKind, label: &str) -> Result<Vec<Value>> {
    let types = snapshot.types();
    let declared = types.iter().find(|(own, _)| own.elements == elements && &*own.label == label);
    let mut shown = match declared {
        Some((definition, state)) => type_map(snapshot, definition, *state),
        None => {
            let what = format!("{} type", elements.name());
            let mut shown = map([("what", text(&what)), ("label", text(label)), ("state", text("undeclared"))]);
            shown.extend(statistics(snapshot, elements, label));
            shown
        }
    };
    let covers = |index: &&IndexInfo| {
        let own = &index.definition;
        own.elements == elements && own.label.as_deref().is_none_or(|own| own == label)
    };
    let indexes = snapshot.indexes();
    shown.insert(text("indexes"), texts(indexes.iter().filter(covers).map(|index| &*index.definition.name)));
    Ok(vec![Value::Map(Shared::new(shown))])
}

fn task_map(task: &Task) -> Value {
    let mut shown = map([
        ("task", count(task.number)),
        ("work", text(&task.work.describe())),
        ("state", text(task.state.name())),
        ("done", count(task.done)),
        ("total", count(task.total)),
    ]);
    if let TaskState::Failed { reason } = &task.state {
        shown.insert(text("reason"), Value::String(reason.clone()));
    }
    Value::Map(Shared::new(shown))
}
