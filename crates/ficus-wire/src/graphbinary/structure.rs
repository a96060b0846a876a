//! Reads graph elements, paths, trees, graphs, metrics and bytecode in GraphBinary.

use std::sync::Arc;

use ficus_model::{
    Argument, Bytecode, DetachedEdge, DetachedProperty, DetachedVertex, DetachedVertexProperty, Element, Instruction,
    Metrics, Path, Shared, Subgraph, TraversalMetrics, Tree, Value,
};
use indexmap::IndexMap;

use super::code;
use super::reader::{Reader, Result};
use crate::DecodeErrorKind;
use crate::argument::{instruction, lift, path_labels};
use crate::strategy::{simple_name, wrap_strategy};

impl Reader<'_> {
    pub(super) fn structure(&mut self, type_code: u8) -> Result<Value> {
        match type_code {
            code::VERTEX => self.vertex(),
            code::EDGE => self.edge(),
            code::VERTEX_PROPERTY => self.vertex_property(),
            code::PROPERTY => self.property().map(|property| element(Element::Property(property))),
            code::PATH => self.path(),
            code::TREE => self.tree().map(|tree| Value::Tree(Shared::new(tree))),
            code::GRAPH => self.graph(),
            code::TRAVERSER => self.traverser(),
            code::METRICS => self.metrics().map(|metrics| {
                let duration_ns = metrics.duration_ns;
                Value::Metrics(Arc::new(TraversalMetrics { duration_ns, metrics: vec![metrics] }))
            }),
            code::TRAVERSAL_METRICS => self.traversal_metrics(),
            code::BYTECODE => self.bytecode().map(|bytecode| Value::Bytecode(Arc::new(bytecode))),
            code::BINDING => {
                self.text("a binding's name")?;
                self.value()
            }
            code::TRAVERSAL_STRATEGY => self.strategy(),
            other => self.fail(DecodeErrorKind::UnknownType, "a type code", format!("0x{other:02x}")),
        }
    }

    fn vertex(&mut self) -> Result<Value> {
        let id = self.value()?;
        let label = self.shared_text("a vertex's label")?;
        let properties = self.members("vertex properties", |value| match value {
            Element::VertexProperty(property) => Some(property),
            _ => None,
        })?;
        Ok(element(Element::Vertex(DetachedVertex { id, label, properties })))
    }

    fn edge(&mut self) -> Result<Value> {
        let id = self.value()?;
        let label = self.shared_text("an edge's label")?;
        let in_id = self.value()?;
        let in_label = self.shared_text("a vertex's label")?;
        let out_id = self.value()?;
        let out_label = self.shared_text("a vertex's label")?;
        self.value()?; // The parent, a placeholder.
        let properties = self.property_list()?;
        Ok(element(Element::Edge(DetachedEdge { id, label, out_id, out_label, in_id, in_label, properties })))
    }

    fn vertex_property(&mut self) -> Result<Value> {
        let id = self.value()?;
        let key = self.shared_text("a property's key")?;
        let value = self.value()?;
        let owner = match self.value()? {
            Value::Element(parent) => match &*parent {
                Element::Vertex(vertex) => Some((vertex.id.clone(), vertex.label.clone())),
                _ => None,
            },
            _ => None,
        };
        let properties = self.property_list()?;
        Ok(element(Element::VertexProperty(DetachedVertexProperty { id, key, value, properties, owner })))
    }

    fn property(&mut self) -> Result<DetachedProperty> {
        let key = self.shared_text("a property's key")?;
        let value = self.value()?;
        let owner = match self.value()? {
            Value::Element(parent) => Some(parent),
            _ => None,
        };
        Ok(DetachedProperty { key, value, owner })
    }

    /// A nullable list of elements of one kind.
    fn members<M>(&mut self, what: &'static str, select: impl Fn(Element) -> Option<M>) -> Result<Vec<M>> {
        let members = match self.value()? {
            Value::Null => return Ok(Vec::new()),
            Value::List(members) => members,
            _ => return self.malformed(format!("a list of {what}"), "another value"),
        };
        let mut selected = Vec::with_capacity(members.len());
        for member in Shared::unwrap_or_clone(members) {
            let found = match member {
                Value::Element(element) => select(Arc::unwrap_or_clone(element)),
                _ => None,
            };
            match found {
                Some(found) => selected.push(found),
                None => return self.malformed(what, "another value in their list"),
            }
        }
        Ok(selected)
    }

    fn property_list(&mut self) -> Result<Vec<DetachedProperty>> {
        self.members("properties", |value| match value {
            Element::Property(property) => Some(property),
            _ => None,
        })
    }

    fn path(&mut self) -> Result<Value> {
        let labels = self.value()?;
        let objects = self.value()?;
        let (Value::List(labels), Value::List(objects)) = (labels, objects) else {
            return self.malformed("a path's labels and objects as lists", "other values");
        };
        if labels.len() != objects.len() {
            let found = format!("{} and {}", labels.len(), objects.len());
            return self.malformed("as many sets of labels as objects in a path", found);
        }
        match labels.iter().map(path_labels).collect::<Option<_>>() {
            Some(labels) => Ok(Value::Path(Shared::new(Path::labelled(Shared::unwrap_or_clone(objects), labels)))),
            None => self.malformed("sets of strings as labels of a path", "another value"),
        }
    }

    fn tree(&mut self) -> Result<Tree> {
        let count = self.count(6, "a tree's length")?;
        let mut tree = Tree::default();
        for _ in 0..count {
            let key = self.value()?;
            let children = self.nested(Self::tree)?;
            tree.children.insert(key, children);
        }
        Ok(tree)
    }

    fn graph(&mut self) -> Result<Value> {
        let mut graph = Subgraph::default();
        let mut labels = IndexMap::new();
        for _ in 0..self.count(10, "a graph's number of vertices")? {
            let id = self.value()?;
            let label = self.shared_text("a vertex's label")?;
            let mut properties = Vec::new();
            for _ in 0..self.count(14, "a vertex's number of properties")? {
                properties.push(self.graph_vertex_property()?);
            }
            labels.insert(id.clone(), label.clone());
            graph.vertices.push(Arc::new(Element::Vertex(DetachedVertex { id, label, properties })));
        }
        for _ in 0..self.count(20, "a graph's number of edges")? {
            let edge = self.graph_edge(&labels)?;
            graph.edges.push(Arc::new(Element::Edge(edge)));
        }
        Ok(Value::Graph(Arc::new(graph)))
    }

    fn graph_vertex_property(&mut self) -> Result<DetachedVertexProperty> {
        let id = self.value()?;
        let key = self.shared_text("a property's key")?;
        let value = self.value()?;
        self.value()?; // The parent, a placeholder.
        let properties = self.graph_properties()?;
        Ok(DetachedVertexProperty { id, key, value, properties, owner: None })
    }

    /// A list of properties without code and flag.
    fn graph_properties(&mut self) -> Result<Vec<DetachedProperty>> {
        let mut properties = Vec::new();
        for value in self.values("a number of properties")? {
            match value {
                Value::Element(element) => match Arc::unwrap_or_clone(element) {
                    Element::Property(property) => properties.push(property),
                    _ => return self.malformed("properties", "another element in their list"),
                },
                _ => return self.malformed("properties", "another value in their list"),
            }
        }
        Ok(properties)
    }

    /// An edge of a graph, whose ends' labels are those of its vertices.
    fn graph_edge(&mut self, labels: &IndexMap<Value, Arc<str>>) -> Result<DetachedEdge> {
        let id = self.value()?;
        let label = self.shared_text("an edge's label")?;
        let in_id = self.value()?;
        let in_label = self.value()?;
        let out_id = self.value()?;
        let out_label = self.value()?;
        self.value()?; // The parent, a placeholder.
        let properties = self.graph_properties()?;
        let label_of = |given: Value, id: &Value| match given {
            Value::String(label) => label,
            _ => labels.get(id).cloned().unwrap_or_else(|| "vertex".into()),
        };
        let (in_label, out_label) = (label_of(in_label, &in_id), label_of(out_label, &out_id));
        Ok(DetachedEdge { id, label, out_id, out_label, in_id, in_label, properties })
    }

    /// A traverser becomes an entry of value and bulk; response data makes traversers of these again.
    fn traverser(&mut self) -> Result<Value> {
        let bulk = self.bulk()?;
        let value = self.value()?;
        Ok(Value::Entry(Shared::new((value, Value::Long(i64::try_from(bulk).expect("it was read from an i64"))))))
    }

    fn metrics(&mut self) -> Result<Metrics> {
        let id = self.shared_text("a metric's id")?;
        let name = self.shared_text("a metric's name")?;
        let duration_ns = self.duration_ns()?;
        let counts = self.map()?.into_iter().map(|(key, value)| match (key, value) {
            (Value::String(key), Value::Long(count)) => Some((key, count)),
            (Value::String(key), Value::Int(count)) => Some((key, i64::from(count))),
            _ => None,
        });
        let Some(counts) = counts.collect() else {
            return self.malformed("counts as longs by name", "another value");
        };
        let annotations = self.map()?.into_iter().map(|(key, value)| match key {
            Value::String(key) => Some((key, value)),
            _ => None,
        });
        let Some(annotations) = annotations.collect() else {
            return self.malformed("annotations by name", "another key");
        };
        let nested = self.metrics_list()?;
        Ok(Metrics { id, name, duration_ns, counts, annotations, nested })
    }

    fn metrics_list(&mut self) -> Result<Vec<Metrics>> {
        let mut metrics = Vec::new();
        for value in self.values("a number of metrics")? {
            match value {
                Value::Metrics(one) => metrics.extend(Arc::unwrap_or_clone(one).metrics),
                _ => return self.malformed("metrics", "another value in their list"),
            }
        }
        Ok(metrics)
    }

    fn duration_ns(&mut self) -> Result<u64> {
        let duration = self.i64("a duration in nanoseconds")?;
        match u64::try_from(duration) {
            Ok(duration) => Ok(duration),
            Err(_) => self.malformed("a duration in nanoseconds", duration.to_string()),
        }
    }

    fn traversal_metrics(&mut self) -> Result<Value> {
        let duration_ns = self.duration_ns()?;
        let metrics = self.metrics_list()?;
        Ok(Value::Metrics(Arc::new(TraversalMetrics { duration_ns, metrics })))
    }

    fn bytecode(&mut self) -> Result<Bytecode> {
        let steps = self.instructions()?;
        let source = self.instructions()?;
        Ok(Bytecode { source, steps })
    }

    fn instructions(&mut self) -> Result<Vec<Instruction>> {
        let count = self.count(8, "a number of instructions")?;
        let mut instructions = Vec::new();
        for _ in 0..count {
            let name = self.shared_text("an instruction's name")?;
            let values = self.values("a number of arguments")?;
            instructions.push(instruction(name, values));
        }
        Ok(instructions)
    }

    fn strategy(&mut self) -> Result<Value> {
        let name = simple_name(self.text("a strategy's class")?);
        let mut options: Vec<(Arc<str>, Argument)> = Vec::new();
        for (key, value) in self.map()? {
            match key {
                Value::String(key) => options.push((key, lift(value))),
                _ => return self.malformed("a string as the name of a strategy's option", "another value"),
            }
        }
        Ok(wrap_strategy(name, options))
    }
}

fn element(element: Element) -> Value {
    Value::Element(Arc::new(element))
}
