//! Writes GraphBinary values straight into the output buffer.

use ficus_model::{
    Argument, BulkSet, Bytecode, Cardinality, DetachedEdge, DetachedProperty, DetachedVertex, DetachedVertexProperty,
    Element, Instruction, Metrics, P, Path, Subgraph, TraversalMetrics, Tree, Value, ValueMap,
};

use super::{code, flag};
use crate::argument::{CARDINALITY_VALUE, NORM_SACK};
use crate::error::NESTING_MAX;
use crate::explanation::explanation_map;
use crate::predicate::{Operands, parts};
use crate::room::{Bound, Room};
use crate::strategy::{class_name, unwrap_strategy};
use crate::{EncodeError, Format};

type Result = std::result::Result<(), EncodeError>;

/// Appends values to a buffer.
pub(crate) struct Writer<'a> {
    pub(super) out: &'a mut Vec<u8>,
    depth: usize,
    bound: Bound<'a>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { out, depth: 0, bound: Bound::none() }
    }

    /// A writer that gives up once there is no more room.
    pub(crate) fn within(self, room: &'a mut dyn Room) -> Writer<'a> {
        Writer { bound: Bound::of(room), ..self }
    }

    pub(super) fn count(&mut self, count: usize) -> Result {
        let count = i32::try_from(count).map_err(|_| EncodeError::TooLong { length: count })?;
        self.out.extend_from_slice(&count.to_be_bytes());
        Ok(())
    }

    /// A string without code and flag.
    pub(super) fn text(&mut self, text: &str) -> Result {
        self.count(text.len())?;
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn head(&mut self, type_code: u8) {
        self.out.extend_from_slice(&[type_code, flag::NONE]);
    }

    pub(super) fn null(&mut self) {
        self.out.extend_from_slice(&[code::UNSPECIFIED_NULL, flag::NULL]);
    }

    fn fixed<const N: usize>(&mut self, type_code: u8, bytes: [u8; N]) -> Result {
        self.head(type_code);
        self.out.extend_from_slice(&bytes);
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result {
        self.head(code::STRING);
        self.text(text)
    }

    fn token(&mut self, type_code: u8, name: &str) -> Result {
        self.head(type_code);
        self.string(name)
    }

    /// A list's or bulked list's head.
    pub(super) fn list_head(&mut self, count: usize) -> Result {
        self.head(code::LIST);
        self.count(count)
    }

    fn nested(&mut self, inside: impl FnOnce(&mut Self) -> Result) -> Result {
        if self.depth == NESTING_MAX {
            return Err(EncodeError::TooDeep { limit: NESTING_MAX });
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// A fully qualified value.
    pub(crate) fn value(&mut self, value: &Value) -> Result {
        self.bound.check(self.out)?;
        match value {
            Value::Null => {
                self.null();
                Ok(())
            }
            Value::Bool(value) => self.fixed(code::BOOLEAN, [u8::from(*value)]),
            Value::Byte(value) => self.fixed(code::BYTE, value.to_be_bytes()),
            Value::Short(value) => self.fixed(code::SHORT, value.to_be_bytes()),
            Value::Int(value) => self.fixed(code::INT, value.to_be_bytes()),
            Value::Long(value) => self.fixed(code::LONG, value.to_be_bytes()),
            Value::Float(value) => self.fixed(code::FLOAT, value.to_be_bytes()),
            Value::Double(value) => self.fixed(code::DOUBLE, value.to_be_bytes()),
            Value::Uuid(value) => self.fixed(code::UUID, value.into_bytes()),
            Value::String(value) => self.string(value),
            Value::Char(value) => {
                self.head(code::CHAR);
                self.out.extend_from_slice(value.encode_utf8(&mut [0; 4]).as_bytes());
                Ok(())
            }
            Value::BigInteger(value) => {
                self.head(code::BIG_INTEGER);
                self.bytes(&value.to_signed_bytes_be())
            }
            Value::BigDecimal(value) => {
                let (unscaled, scale) = value.as_bigint_and_exponent();
                let scale = i32::try_from(scale).map_err(|_| EncodeError::NotExpressible {
                    what: "a decimal with a scale beyond 32 bits".into(),
                    format: Format::GraphBinary1,
                })?;
                self.fixed(code::BIG_DECIMAL, scale.to_be_bytes())?;
                self.bytes(&unscaled.to_signed_bytes_be())
            }
            Value::Binary(value) => {
                self.head(code::BYTE_BUFFER);
                self.bytes(value)
            }
            Value::DateTime(value) => {
                self.head(code::OFFSET_DATE_TIME);
                self.datetime(value);
                Ok(())
            }
            Value::Duration(value) => {
                self.head(code::DURATION);
                self.duration(value);
                Ok(())
            }
            Value::T(token) => self.token(code::T, token.name()),
            Value::Direction(token) => self.token(code::DIRECTION, token.name()),
            Value::Order(token) => self.token(code::ORDER, token.name()),
            Value::Scope(token) => self.token(code::SCOPE, token.name()),
            Value::Pop(token) => self.token(code::POP, token.name()),
            Value::Column(token) => self.token(code::COLUMN, token.name()),
            Value::Cardinality(token) => self.token(code::CARDINALITY, token.name()),
            Value::Merge(token) => self.token(code::MERGE, token.name()),
            Value::Pick(token) => self.token(code::PICK, token.name()),
            Value::Operator(token) => self.token(code::OPERATOR, token.name()),
            Value::DateUnit(token) => self.token(code::DATE_UNIT, token.name()),
            Value::GType(token) => self.token(code::GTYPE, token.name()),
            compound => self.nested(|writer| writer.compound(compound)),
        }
    }

    /// A value that holds others.
    fn compound(&mut self, value: &Value) -> Result {
        match value {
            Value::List(members) => self.members(code::LIST, members.len(), members.iter()),
            Value::Set(members) => self.members(code::SET, members.len(), members.iter()),
            Value::Map(entries) => {
                self.head(code::MAP);
                self.map(entries)
            }
            Value::Entry(entry) => {
                self.head(code::MAP);
                self.count(1)?;
                self.value(&entry.0)?;
                self.value(&entry.1)
            }
            Value::BulkSet(set) => self.bulk_set(set),
            Value::Path(path) => self.path(path),
            Value::Tree(tree) => {
                self.head(code::TREE);
                self.tree(tree)
            }
            Value::Graph(graph) => self.graph(graph),
            Value::Element(element) => self.element(element),
            Value::P(predicate) => self.predicate(predicate),
            Value::Bytecode(bytecode) => match unwrap_strategy(bytecode) {
                Some(strategy) => self.argument(strategy),
                None => self.bytecode(bytecode),
            },
            Value::Metrics(metrics) => self.traversal_metrics(metrics),
            Value::Explanation(explanation) => {
                self.head(code::MAP);
                self.map(&explanation_map(explanation))
            }
            Value::Vertex(_) => Err(EncodeError::NotDetached { kind: "vertex" }),
            Value::Edge(_) => Err(EncodeError::NotDetached { kind: "edge" }),
            Value::VertexProperty(_) => Err(EncodeError::NotDetached { kind: "vertex property" }),
            Value::Property(_) => Err(EncodeError::NotDetached { kind: "property" }),
            scalar => self.value(scalar),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result {
        self.count(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn members<'v>(&mut self, type_code: u8, count: usize, members: impl Iterator<Item = &'v Value>) -> Result {
        self.head(type_code);
        self.count(count)?;
        for member in members {
            self.value(member)?;
        }
        Ok(())
    }

    /// A map without code and flag.
    pub(super) fn map(&mut self, entries: &ValueMap) -> Result {
        self.count(entries.len())?;
        for (key, value) in entries {
            self.value(key)?;
            self.value(value)?;
        }
        Ok(())
    }

    fn bulk_set(&mut self, set: &BulkSet) -> Result {
        self.head(code::BULK_SET);
        self.count(set.counts.len())?;
        for (value, bulk) in &set.counts {
            self.value(value)?;
            self.bulk(*bulk);
        }
        Ok(())
    }

    /// A bulk beyond a Java long is cut to the largest one.
    fn bulk(&mut self, bulk: u64) {
        let bulk = i64::try_from(bulk).unwrap_or(i64::MAX);
        self.out.extend_from_slice(&bulk.to_be_bytes());
    }

    pub(super) fn traverser(&mut self, value: &Value, bulk: u64) -> Result {
        self.head(code::TRAVERSER);
        self.bulk(bulk);
        self.value(value)
    }

    fn path(&mut self, path: &Path) -> Result {
        self.head(code::PATH);
        self.list_head(path.objects.len())?;
        for labels in path.labels() {
            self.head(code::SET);
            self.count(labels.len())?;
            for label in labels.iter() {
                self.string(label)?;
            }
        }
        self.members(code::LIST, path.objects.len(), path.objects.iter())
    }

    fn tree(&mut self, tree: &Tree) -> Result {
        self.count(tree.children.len())?;
        for (key, children) in &tree.children {
            self.value(key)?;
            self.nested(|writer| writer.tree(children))?;
        }
        Ok(())
    }

    fn element(&mut self, element: &Element) -> Result {
        match element {
            Element::Vertex(vertex) => self.vertex(vertex),
            Element::Edge(edge) => self.edge(edge),
            Element::VertexProperty(property) => self.vertex_property(property),
            Element::Property(property) => self.property(property),
        }
    }

    fn vertex(&mut self, vertex: &DetachedVertex) -> Result {
        self.head(code::VERTEX);
        self.value(&vertex.id)?;
        self.text(&vertex.label)?;
        self.list_head(vertex.properties.len())?;
        for property in &vertex.properties {
            self.vertex_property(property)?;
        }
        Ok(())
    }

    fn edge(&mut self, edge: &DetachedEdge) -> Result {
        self.head(code::EDGE);
        self.value(&edge.id)?;
        self.text(&edge.label)?;
        self.value(&edge.in_id)?;
        self.text(&edge.in_label)?;
        self.value(&edge.out_id)?;
        self.text(&edge.out_label)?;
        self.null();
        self.list_head(edge.properties.len())?;
        self.properties(&edge.properties)
    }

    fn vertex_property(&mut self, property: &DetachedVertexProperty) -> Result {
        self.head(code::VERTEX_PROPERTY);
        self.value(&property.id)?;
        self.text(&property.key)?;
        self.value(&property.value)?;
        self.null();
        self.list_head(property.properties.len())?;
        self.properties(&property.properties)
    }

    fn properties(&mut self, properties: &[DetachedProperty]) -> Result {
        for property in properties {
            self.property(property)?;
        }
        Ok(())
    }

    fn property(&mut self, property: &DetachedProperty) -> Result {
        self.head(code::PROPERTY);
        self.text(&property.key)?;
        self.value(&property.value)?;
        self.null();
        Ok(())
    }

    fn graph(&mut self, graph: &Subgraph) -> Result {
        self.head(code::GRAPH);
        self.count(graph.vertices.len())?;
        for vertex in &graph.vertices {
            let Element::Vertex(vertex) = &**vertex else {
                return Err(EncodeError::NotDetached { kind: "vertex of a graph" });
            };
            self.value(&vertex.id)?;
            self.text(&vertex.label)?;
            self.count(vertex.properties.len())?;
            for property in &vertex.properties {
                self.value(&property.id)?;
                self.text(&property.key)?;
                self.value(&property.value)?;
                self.null();
                self.count(property.properties.len())?;
                self.properties(&property.properties)?;
            }
        }
        self.count(graph.edges.len())?;
        for edge in &graph.edges {
            let Element::Edge(edge) = &**edge else {
                return Err(EncodeError::NotDetached { kind: "edge of a graph" });
            };
            self.value(&edge.id)?;
            self.text(&edge.label)?;
            self.value(&edge.in_id)?;
            self.null();
            self.value(&edge.out_id)?;
            self.null();
            self.null();
            self.count(edge.properties.len())?;
            self.properties(&edge.properties)?;
        }
        Ok(())
    }

    fn traversal_metrics(&mut self, metrics: &TraversalMetrics) -> Result {
        self.head(code::TRAVERSAL_METRICS);
        self.duration_ns(metrics.duration_ns);
        self.metrics_list(&metrics.metrics)
    }

    fn duration_ns(&mut self, duration_ns: u64) {
        let duration = i64::try_from(duration_ns).unwrap_or(i64::MAX);
        self.out.extend_from_slice(&duration.to_be_bytes());
    }

    fn metrics_list(&mut self, metrics: &[Metrics]) -> Result {
        self.count(metrics.len())?;
        for one in metrics {
            self.nested(|writer| writer.metrics(one))?;
        }
        Ok(())
    }

    fn metrics(&mut self, metrics: &Metrics) -> Result {
        self.head(code::METRICS);
        self.text(&metrics.id)?;
        self.text(&metrics.name)?;
        self.duration_ns(metrics.duration_ns);
        self.count(metrics.counts.len())?;
        for (name, count) in &metrics.counts {
            self.string(name)?;
            self.fixed(code::LONG, count.to_be_bytes())?;
        }
        self.count(metrics.annotations.len())?;
        for (name, value) in &metrics.annotations {
            self.string(name)?;
            self.value(value)?;
        }
        self.metrics_list(&metrics.nested)
    }

    fn predicate(&mut self, predicate: &P) -> Result {
        let (name, operands) = parts(predicate);
        self.head(if matches!(operands, Operands::Text(_)) { code::TEXT_P } else { code::P });
        self.text(name)?;
        match operands {
            // The flat operands of the format make a list of one look like its member; two or more survive.
            Operands::One(Value::List(members)) if members.len() != 1 => self.operands(members),
            Operands::One(value) => {
                self.count(1)?;
                self.value(value)
            }
            Operands::Text(pattern) => {
                self.count(1)?;
                self.string(pattern)
            }
            Operands::Type(name) => {
                self.count(1)?;
                self.token(code::GTYPE, name.name())
            }
            Operands::Many(values) => self.operands(values),
            Operands::Joined(predicates) => {
                self.count(predicates.len())?;
                for predicate in predicates {
                    self.nested(|writer| writer.predicate(predicate))?;
                }
                Ok(())
            }
            Operands::Negated(inner) => {
                self.count(1)?;
                self.nested(|writer| writer.predicate(inner))
            }
        }
    }

    fn operands(&mut self, values: &[Value]) -> Result {
        self.count(values.len())?;
        for value in values {
            self.value(value)?;
        }
        Ok(())
    }

    fn bytecode(&mut self, bytecode: &Bytecode) -> Result {
        self.head(code::BYTECODE);
        self.instructions(&bytecode.steps)?;
        self.instructions(&bytecode.source)
    }

    fn instructions(&mut self, instructions: &[Instruction]) -> Result {
        self.count(instructions.len())?;
        for instruction in instructions {
            self.text(&instruction.name)?;
            self.count(instruction.args.len())?;
            for argument in &instruction.args {
                self.instruction_argument(&instruction.name, argument)?;
            }
        }
        Ok(())
    }

    /// Two instructions take tokens that are not values: strategies by class, and the sack's barrier.
    fn instruction_argument(&mut self, instruction: &str, argument: &Argument) -> Result {
        match (instruction, argument) {
            ("withoutStrategies", Argument::Strategy { name, .. }) => {
                self.head(code::CLASS);
                self.text(&class_name(name))
            }
            ("barrier", Argument::Value(Value::String(name))) if &**name == NORM_SACK => {
                self.token(code::BARRIER, name)
            }
            _ => self.argument(argument),
        }
    }

    fn argument(&mut self, argument: &Argument) -> Result {
        self.nested(|writer| match argument {
            Argument::Value(value) => writer.value(value),
            Argument::Predicate(predicate) => writer.predicate(predicate),
            Argument::Traversal(bytecode) => writer.bytecode(bytecode),
            Argument::Strategy { name, options } => {
                writer.head(code::TRAVERSAL_STRATEGY);
                writer.text(&class_name(name))?;
                writer.count(options.len())?;
                for (key, value) in options {
                    writer.string(key)?;
                    writer.argument(value)?;
                }
                Ok(())
            }
            Argument::List(members) => {
                writer.list_head(members.len())?;
                for member in members {
                    writer.argument(member)?;
                }
                Ok(())
            }
            Argument::Map(entries) => {
                writer.head(code::MAP);
                writer.count(entries.len())?;
                for (key, value) in entries {
                    writer.argument(key)?;
                    writer.argument(value)?;
                }
                Ok(())
            }
            Argument::CardinalityValue(cardinality, value) => writer.cardinality_value(*cardinality, value),
        })
    }

    /// A traversal without steps whose only source instruction holds cardinality and value.
    fn cardinality_value(&mut self, cardinality: Cardinality, value: &Argument) -> Result {
        self.head(code::BYTECODE);
        self.count(0)?;
        self.count(1)?;
        self.text(CARDINALITY_VALUE)?;
        self.count(2)?;
        self.string(cardinality.name())?;
        self.argument(value)
    }
}
