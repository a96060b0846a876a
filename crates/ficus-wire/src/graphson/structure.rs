//! Reads graph elements, paths, trees, graphs, metrics and bytecode in typed GraphSON.

use std::sync::Arc;

use ficus_model::{
    Argument, Bytecode, DetachedEdge, DetachedProperty, DetachedVertex, DetachedVertexProperty, Element, Instruction,
    Metrics, Path, Shared, Subgraph, TraversalMetrics, Tree, Value, ValueMap,
};

use super::json_reader::Result;
use super::reader::Reader;
use crate::DecodeErrorKind;
use crate::argument::{instruction, lift, path_labels};
use crate::strategy::{simple_name, wrap_strategy};

impl Reader<'_> {
    pub(super) fn structure(&mut self, type_name: &str) -> Result<Value> {
        match type_name {
            "g:Vertex" => self.vertex(),
            "g:Edge" => self.edge(),
            "g:VertexProperty" => self.vertex_property("").map(vertex_property_value),
            "g:Property" => self.property(),
            "g:Path" => self.path(),
            "g:Tree" => self.tree().map(|tree| Value::Tree(Shared::new(tree))),
            "tinker:graph" => self.graph(),
            "g:Traverser" => self.traverser(),
            "g:Metrics" => self.metrics().map(|metrics| {
                let duration_ns = metrics.duration_ns;
                Value::Metrics(Arc::new(TraversalMetrics { duration_ns, metrics: vec![metrics] }))
            }),
            "g:TraversalMetrics" => self.traversal_metrics(),
            "g:TraversalExplanation" => self.value(),
            "g:Bytecode" => self.bytecode(),
            "g:Binding" => self.binding(),
            strategy if strategy.starts_with("g:") && strategy.ends_with("Strategy") => {
                self.strategy(&strategy["g:".len()..])
            }
            "gx:InetAddress" | "gx:LocalTime" | "gx:MonthDay" | "gx:OffsetTime" | "gx:Period" | "gx:Year"
            | "gx:YearMonth" | "gx:ZoneOffset" => {
                let advice = "send it as a string or a number";
                self.json.fail(DecodeErrorKind::Unsupported, advice, format!("a value of type {type_name}"))
            }
            unknown => self.json.fail(DecodeErrorKind::UnknownType, "a type of GraphSON", format!("{unknown:?}")),
        }
    }

    fn shared_text(&mut self, what: &'static str) -> Result<Arc<str>> {
        self.json.string(what).map(Arc::from)
    }

    /// The value of a field that must be there.
    pub(super) fn required<T>(&self, field: Option<T>, what: &'static str) -> Result<T> {
        match field {
            Some(field) => Ok(field),
            None => self.json.fail(DecodeErrorKind::MissingField, what, ""),
        }
    }

    fn vertex(&mut self) -> Result<Value> {
        let mut id = None;
        let mut label = None;
        let mut properties = Vec::new();
        self.members(|reader, key| {
            match &*key {
                "id" => id = Some(reader.value()?),
                "label" => label = Some(reader.shared_text("a label")?),
                "properties" => properties = reader.vertex_properties()?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        let id = self.required(id, "a vertex's id")?;
        let label = label.unwrap_or_else(|| "vertex".into());
        Ok(element(Element::Vertex(DetachedVertex { id, label, properties })))
    }

    /// `{"name":[…],"age":[…]}`, each property typed or bare.
    pub(super) fn vertex_properties(&mut self) -> Result<Vec<DetachedVertexProperty>> {
        let mut properties = Vec::new();
        self.members(|reader, key| {
            if &*key == "@class" {
                return reader.json.skip_value();
            }
            reader.list_elements(|reader| {
                properties.push(reader.vertex_property(&key)?);
                Ok(())
            })
        })?;
        Ok(properties)
    }

    /// A vertex property as `{"id":…,"value":…,"label":…,"properties":{…}}`, with or without a type around it.
    fn vertex_property(&mut self, key: &str) -> Result<DetachedVertexProperty> {
        let mut property = None;
        let mut id = None;
        let mut value = None;
        let mut name: Option<Arc<str>> = None;
        let mut properties = Vec::new();
        self.json.count_item()?;
        self.members(|reader, member| {
            match &*member {
                "@type" | "@class" => drop(reader.json.string("the name of a type")?),
                "@value" => property = Some(reader.nested(|reader| reader.vertex_property(key))?),
                "id" => id = Some(reader.value()?),
                "value" => value = Some(reader.value()?),
                "label" => name = Some(reader.shared_text("a key")?),
                "properties" => properties = reader.properties()?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        if let Some(property) = property {
            return Ok(property);
        }
        let id = id.unwrap_or(Value::Null);
        let value = self.required(value, "a vertex property's value")?;
        let key = name.unwrap_or_else(|| key.into());
        Ok(DetachedVertexProperty { id, key, value, properties, owner: None })
    }

    /// `{"weight":0.5}` or `{"weight":{"@type":"g:Property",…}}`.
    pub(super) fn properties(&mut self) -> Result<Vec<DetachedProperty>> {
        let mut properties = Vec::new();
        self.members(|reader, key| {
            if &*key == "@class" {
                return reader.json.skip_value();
            }
            let property = match reader.value()? {
                Value::Element(element) => match Arc::unwrap_or_clone(element) {
                    Element::Property(property) => property,
                    other => plain_property(&key, Value::Element(Arc::new(other))),
                },
                value => plain_property(&key, value),
            };
            properties.push(property);
            Ok(())
        })?;
        Ok(properties)
    }

    fn edge(&mut self) -> Result<Value> {
        let (mut id, mut out_id, mut in_id) = (None, None, None);
        let (mut label, mut out_label, mut in_label) = (None, None, None);
        let mut properties = Vec::new();
        self.members(|reader, key| {
            match &*key {
                "id" => id = Some(reader.value()?),
                "outV" => out_id = Some(reader.value()?),
                "inV" => in_id = Some(reader.value()?),
                "label" => label = Some(reader.shared_text("a label")?),
                "outVLabel" => out_label = Some(reader.shared_text("a label")?),
                "inVLabel" => in_label = Some(reader.shared_text("a label")?),
                "properties" => properties = reader.properties()?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        let id = self.required(id, "an edge's id")?;
        let out_id = out_id.unwrap_or(Value::Null);
        let in_id = in_id.unwrap_or(Value::Null);
        let label = label.unwrap_or_else(|| "edge".into());
        let out_label = out_label.unwrap_or_else(|| "vertex".into());
        let in_label = in_label.unwrap_or_else(|| "vertex".into());
        Ok(element(Element::Edge(DetachedEdge { id, label, out_id, out_label, in_id, in_label, properties })))
    }

    fn property(&mut self) -> Result<Value> {
        let (mut key, mut value) = (None, None);
        self.members(|reader, member| {
            match &*member {
                "key" => key = Some(reader.shared_text("a key")?),
                "value" => value = Some(reader.value()?),
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        let key = self.required(key, "a property's key")?;
        let value = self.required(value, "a property's value")?;
        Ok(element(Element::Property(DetachedProperty { key, value, owner: None })))
    }

    fn path(&mut self) -> Result<Value> {
        let (mut labels, mut objects) = (Value::Null, Value::Null);
        self.members(|reader, key| {
            match &*key {
                "labels" => labels = reader.value()?,
                "objects" => objects = reader.value()?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        let malformed = |expected: &'static str| self.json.fail(DecodeErrorKind::Malformed, expected, "other values");
        let (Value::List(labels), Value::List(objects)) = (labels, objects) else {
            return malformed("a path's labels and objects as lists");
        };
        if labels.len() != objects.len() {
            return malformed("as many sets of labels as objects in a path");
        }
        match labels.iter().map(path_labels).collect::<Option<_>>() {
            Some(labels) => Ok(Value::Path(Shared::new(Path::labelled(Shared::unwrap_or_clone(objects), labels)))),
            None => malformed("sets of strings as labels of a path"),
        }
    }

    fn tree(&mut self) -> Result<Tree> {
        let mut tree = Tree::default();
        self.elements(|reader| {
            let (mut node, mut children) = (None, Tree::default());
            reader.members(|reader, key| {
                match &*key {
                    "key" => node = Some(reader.value()?),
                    "value" => match reader.value()? {
                        Value::Tree(below) => children = Shared::unwrap_or_clone(below),
                        _ => return reader.json.fail(DecodeErrorKind::Malformed, "a tree", "another value"),
                    },
                    _ => reader.json.skip_value()?,
                }
                Ok(())
            })?;
            let node = reader.required(node, "the key of a tree's branch")?;
            tree.children.insert(node, children);
            Ok(())
        })?;
        Ok(tree)
    }

    fn graph(&mut self) -> Result<Value> {
        let mut graph = Subgraph::default();
        self.members(|reader, key| {
            let elements = match &*key {
                "vertices" => &mut graph.vertices,
                "edges" => &mut graph.edges,
                _ => return reader.json.skip_value(),
            };
            let is_wanted = |element: &Element| match element {
                Element::Vertex(_) => &*key == "vertices",
                Element::Edge(_) => &*key == "edges",
                _ => false,
            };
            match reader.value()? {
                Value::List(values) => {
                    for value in values.iter() {
                        match value {
                            Value::Element(element) if is_wanted(element) => elements.push(element.clone()),
                            _ => {
                                return reader.json.fail(
                                    DecodeErrorKind::Malformed,
                                    "vertices, edges",
                                    "another value",
                                );
                            }
                        }
                    }
                    Ok(())
                }
                _ => reader.json.fail(DecodeErrorKind::Malformed, "a list of vertices or edges", "another value"),
            }
        })?;
        Ok(Value::Graph(Arc::new(graph)))
    }

    /// A traverser becomes an entry of value and bulk; response data makes traversers of these again.
    fn traverser(&mut self) -> Result<Value> {
        let (mut value, mut bulk) = (Value::Null, 1);
        self.members(|reader, key| {
            match &*key {
                "bulk" => bulk = reader.bulk()?,
                "value" => value = reader.value()?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        Ok(Value::Entry(Shared::new((value, Value::Long(bulk)))))
    }

    /// Metrics as a map: `dur` in milliseconds, `counts`, `annotations` and nested `metrics`.
    fn metrics(&mut self) -> Result<Metrics> {
        let mut metrics = Metrics::default();
        for (key, value) in self.string_map()? {
            match (&*key, value) {
                ("id", Value::String(id)) => metrics.id = id,
                ("name", Value::String(name)) => metrics.name = name,
                ("dur", value) => metrics.duration_ns = self.nanoseconds(&value)?,
                ("counts", Value::Map(counts)) => {
                    metrics.counts = self.required(counts.iter().map(count).collect(), "counts as longs by name")?;
                }
                ("annotations", Value::Map(entries)) => {
                    let annotation = |(key, value): (&Value, &Value)| match key {
                        Value::String(key) => Some((key.clone(), value.clone())),
                        _ => None,
                    };
                    metrics.annotations =
                        self.required(entries.iter().map(annotation).collect(), "named annotations")?;
                }
                ("metrics", value) => metrics.nested = self.metrics_list(value)?,
                _ => {}
            }
        }
        Ok(metrics)
    }

    /// A map with string keys, typed or plain.
    fn string_map(&mut self) -> Result<Vec<(Arc<str>, Value)>> {
        let entries = match self.value()? {
            Value::Map(entries) => Shared::unwrap_or_clone(entries),
            _ => return self.json.fail(DecodeErrorKind::Malformed, "a map", "another value"),
        };
        let entries = entries.into_iter().map(|(key, value)| match key {
            Value::String(key) => Some((key, value)),
            _ => None,
        });
        self.required(entries.collect(), "strings as keys of a map")
    }

    fn nanoseconds(&self, milliseconds: &Value) -> Result<u64> {
        let milliseconds = match milliseconds {
            Value::Double(value) => *value,
            Value::Int(value) => f64::from(*value),
            Value::Long(value) => *value as f64,
            _ => -1.0,
        };
        if milliseconds >= 0.0 {
            // Saturates at the largest duration.
            return Ok((milliseconds * 1e6).round() as u64);
        }
        self.json.fail(DecodeErrorKind::Malformed, "a duration in milliseconds", "another value")
    }

    fn metrics_list(&self, value: Value) -> Result<Vec<Metrics>> {
        let Value::List(values) = value else {
            return self.json.fail(DecodeErrorKind::Malformed, "a list of metrics", "another value");
        };
        let mut metrics = Vec::new();
        for value in values.iter() {
            match value {
                Value::Metrics(one) => metrics.extend(one.metrics.iter().cloned()),
                _ => return self.json.fail(DecodeErrorKind::Malformed, "metrics", "another value"),
            }
        }
        Ok(metrics)
    }

    fn traversal_metrics(&mut self) -> Result<Value> {
        let mut metrics = TraversalMetrics::default();
        for (key, value) in self.string_map()? {
            match &*key {
                "dur" => metrics.duration_ns = self.nanoseconds(&value)?,
                "metrics" => metrics.metrics = self.metrics_list(value)?,
                _ => {}
            }
        }
        Ok(Value::Metrics(Arc::new(metrics)))
    }

    fn bytecode(&mut self) -> Result<Value> {
        let mut bytecode = Bytecode::default();
        self.members(|reader, key| {
            match &*key {
                "source" => bytecode.source = reader.instructions()?,
                "step" => bytecode.steps = reader.instructions()?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        Ok(Value::Bytecode(Arc::new(bytecode)))
    }

    /// `[["V"],["has","age",{…}]]`.
    fn instructions(&mut self) -> Result<Vec<Instruction>> {
        let mut instructions = Vec::new();
        self.elements(|reader| {
            reader.json.count_item()?;
            let mut name = None;
            let mut values = Vec::new();
            reader.elements(|reader| {
                match name {
                    None => name = Some(reader.shared_text("an instruction's name")?),
                    Some(_) => values.push(reader.value()?),
                }
                Ok(())
            })?;
            let name = reader.required(name, "an instruction's name")?;
            instructions.push(instruction(name, values));
            Ok(())
        })?;
        Ok(instructions)
    }

    /// A binding is the value bound.
    fn binding(&mut self) -> Result<Value> {
        let mut value = None;
        self.members(|reader, key| {
            match &*key {
                "value" => value = Some(reader.value()?),
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        self.required(value, "a binding's value")
    }

    /// `{"fqcn":…,"conf":{…}}`; without `conf`, the other members are the options, as older drivers have them.
    fn strategy(&mut self, type_name: &str) -> Result<Value> {
        let mut class = None;
        let mut configuration: Option<ValueMap> = None;
        let mut options: Vec<(Arc<str>, Argument)> = Vec::new();
        for (key, value) in self.string_map()? {
            match (&*key, value) {
                ("fqcn", Value::String(name)) => class = Some(name),
                ("conf", Value::Map(entries)) => configuration = Some(Shared::unwrap_or_clone(entries)),
                (_, value) => options.push((key, lift(value))),
            }
        }
        for (key, value) in configuration.unwrap_or_default() {
            match key {
                Value::String(key) => options.push((key, lift(value))),
                _ => return self.json.fail(DecodeErrorKind::Malformed, "strings as names of options", "another value"),
            }
        }
        let name = class.as_deref().map_or(type_name, simple_name);
        Ok(wrap_strategy(name, options))
    }
}

fn element(element: Element) -> Value {
    Value::Element(Arc::new(element))
}

fn vertex_property_value(property: DetachedVertexProperty) -> Value {
    element(Element::VertexProperty(property))
}

fn plain_property(key: &str, value: Value) -> DetachedProperty {
    DetachedProperty { key: key.into(), value, owner: None }
}

fn count((key, value): (&Value, &Value)) -> Option<(Arc<str>, i64)> {
    match (key, value) {
        (Value::String(key), Value::Long(count)) => Some((key.clone(), *count)),
        (Value::String(key), Value::Int(count)) => Some((key.clone(), i64::from(*count))),
        _ => None,
    }
}
