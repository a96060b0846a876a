//! Writes GraphSON values straight into the output buffer.

use data_encoding::BASE64;
use ficus_model::{Argument, BulkSet, Bytecode, Instruction, P, Tree, Value, ValueMap, decimal};

use super::json_writer::append_string;
use super::{Style, Version};
use crate::EncodeError;
use crate::argument::{CARDINALITY_VALUE, NORM_SACK};
use crate::error::NESTING_MAX;
use crate::explanation::explanation_map;
use crate::number_text::{append_double, append_float, append_integer};
use crate::predicate::{Operands, parts};
use crate::room::{Bound, Room};
use crate::strategy::{class_name, unwrap_strategy};

pub(super) type Result = std::result::Result<(), EncodeError>;

/// Appends values to a buffer.
pub(crate) struct Writer<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) style: Style,
    depth: usize,
    bound: Bound<'a>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(style: Style, out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { out, style, depth: 0, bound: Bound::none() }
    }

    /// A writer that gives up once there is no more room.
    pub(crate) fn within(self, room: &'a mut dyn Room) -> Writer<'a> {
        Writer { bound: Bound::of(room), ..self }
    }

    pub(super) fn raw(&mut self, json: &str) {
        self.out.extend_from_slice(json.as_bytes());
    }

    pub(super) fn string(&mut self, text: &str) {
        append_string(text, self.out);
    }

    /// `"key":`, after a comma if `first` is not set.
    pub(super) fn key(&mut self, key: &str, first: &mut bool) {
        self.comma(first);
        self.string(key);
        self.out.push(b':');
    }

    pub(super) fn comma(&mut self, first: &mut bool) {
        if !std::mem::replace(first, false) {
            self.out.push(b',');
        }
    }

    pub(super) fn not_expressible(&self, what: &'static str) -> Result {
        Err(EncodeError::NotExpressible { what: what.into(), format: self.style.format() })
    }

    pub(super) fn nested(&mut self, inside: impl FnOnce(&mut Self) -> Result) -> Result {
        if self.depth == NESTING_MAX {
            return Err(EncodeError::TooDeep { limit: NESTING_MAX });
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// Whether values carry `@type`.
    pub(super) fn has_type_names(&self) -> bool {
        self.style.typed && self.style.version >= Version::V2
    }

    /// Whether values carry Java classes.
    pub(super) fn has_java_classes(&self) -> bool {
        self.style.typed && self.style.version == Version::V1
    }

    /// Opens an object, naming its class in GraphSON 1.0. False, for [`Writer::key`], when a comma has to follow.
    pub(super) fn open_object(&mut self, class: &str) -> bool {
        self.out.push(b'{');
        if self.has_java_classes() {
            self.raw("\"@class\":");
            self.string(class);
        }
        !self.has_java_classes()
    }

    /// Runs `inside` between what opens and closes a typed value. The class is for GraphSON 1.0, `""` for types that
    /// JSON has itself and that need none there.
    pub(super) fn typed(&mut self, type_name: &str, class: &str, inside: impl FnOnce(&mut Self) -> Result) -> Result {
        if self.has_type_names() {
            self.raw("{\"@type\":\"");
            self.raw(type_name);
            self.raw("\",\"@value\":");
            inside(self)?;
            self.out.push(b'}');
            Ok(())
        } else if self.has_java_classes() && !class.is_empty() {
            self.raw("[\"");
            self.raw(class);
            self.raw("\",");
            inside(self)?;
            self.out.push(b']');
            Ok(())
        } else {
            inside(self)
        }
    }

    fn number(&mut self, type_name: &str, class: &str, append: impl FnOnce(&mut Vec<u8>)) -> Result {
        self.typed(type_name, class, |writer| {
            append(writer.out);
            Ok(())
        })
    }

    /// A double or float; what JSON has no number for goes in quotes.
    fn floating(&mut self, type_name: &str, class: &str, finite: bool, append: impl FnOnce(&mut Vec<u8>)) -> Result {
        self.number(type_name, class, |out| {
            if finite {
                return append(out);
            }
            out.push(b'"');
            append(out);
            out.push(b'"');
        })
    }

    fn typed_text(&mut self, type_name: &str, class: &str, text: &str) -> Result {
        self.typed(type_name, class, |writer| {
            writer.string(text);
            Ok(())
        })
    }

    /// A date or duration: an object in GraphSON 1.0.
    fn time(&mut self, class: &str, text: &str) -> Result {
        if self.has_java_classes() {
            let mut first = self.open_object(&format!("java.time.{class}"));
            self.key("value", &mut first);
            self.string(text);
            self.out.push(b'}');
            return Ok(());
        }
        self.typed_text(&format!("gx:{class}"), "", text)
    }

    fn token(&mut self, token: &str, package: &str, name: &str) -> Result {
        let class = format!("org.apache.tinkerpop.gremlin.{package}");
        self.typed_text(&format!("g:{token}"), &class, name)
    }

    /// One value.
    pub(crate) fn value(&mut self, value: &Value) -> Result {
        self.bound.check(self.out)?;
        match value {
            Value::Null => {
                self.raw("null");
                Ok(())
            }
            Value::Bool(value) => {
                self.raw(if *value { "true" } else { "false" });
                Ok(())
            }
            Value::String(text) => {
                self.string(text);
                Ok(())
            }
            Value::Int(value) => self.number("g:Int32", "", |out| append_integer(*value, out)),
            Value::Long(value) => self.number("g:Int64", "java.lang.Long", |out| append_integer(*value, out)),
            Value::Short(value) => self.number("gx:Int16", "java.lang.Short", |out| append_integer(*value, out)),
            Value::Byte(value) => self.number("gx:Byte", "java.lang.Byte", |out| append_integer(*value, out)),
            Value::Double(value) => {
                let class = if value.is_finite() { "" } else { "java.lang.Double" };
                self.floating("g:Double", class, value.is_finite(), |out| append_double(*value, out))
            }
            Value::Float(value) => {
                self.floating("g:Float", "java.lang.Float", value.is_finite(), |out| append_float(*value, out))
            }
            Value::BigInteger(value) => self.number("gx:BigInteger", "java.math.BigInteger", |out| {
                out.extend_from_slice(value.to_string().as_bytes());
            }),
            Value::BigDecimal(value) => self.number("gx:BigDecimal", "java.math.BigDecimal", |out| {
                out.extend_from_slice(decimal::text(value).as_bytes());
            }),
            Value::Char(value) => self.typed_text("gx:Char", "java.lang.Character", value.encode_utf8(&mut [0; 4])),
            Value::Uuid(value) => {
                let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
                self.typed_text("g:UUID", "java.util.UUID", value.hyphenated().encode_lower(&mut buffer))
            }
            Value::DateTime(value) => self.time("OffsetDateTime", &value.to_string()),
            Value::Duration(value) => self.time("Duration", &value.to_string()),
            Value::Binary(bytes) => self.typed_text("gx:ByteBuffer", "java.nio.HeapByteBuffer", &BASE64.encode(bytes)),
            Value::T(token) => self.token("T", "structure.T", token.name()),
            Value::Direction(token) => self.token("Direction", "structure.Direction", token.name()),
            Value::Column(token) => self.token("Column", "structure.Column", token.name()),
            Value::Cardinality(token) => {
                self.token("Cardinality", "structure.VertexProperty$Cardinality", token.name())
            }
            Value::Order(token) => self.token("Order", "process.traversal.Order", token.name()),
            Value::Scope(token) => self.token("Scope", "process.traversal.Scope", token.name()),
            Value::Pop(token) => self.token("Pop", "process.traversal.Pop", token.name()),
            Value::Merge(token) => self.token("Merge", "process.traversal.Merge", token.name()),
            Value::Pick(token) => self.token("Pick", "process.traversal.Pick", token.name()),
            Value::Operator(token) => self.token("Operator", "process.traversal.Operator", token.name()),
            Value::DateUnit(token) => self.token("DT", "process.traversal.DT", token.name()),
            Value::GType(token) => self.token("GType", "process.traversal.GType", token.name()),
            compound => self.nested(|writer| writer.compound(compound)),
        }
    }

    /// A value that holds others.
    fn compound(&mut self, value: &Value) -> Result {
        match value {
            Value::List(members) => self.list(members.iter()),
            Value::Set(members) => self.collection("g:Set", "java.util.LinkedHashSet", members.iter()),
            Value::Map(entries) => self.map(entries),
            Value::Entry(entry) => self.entries("java.util.HashMap", std::iter::once((&entry.0, &entry.1))),
            Value::BulkSet(set) => self.bulk_set(set),
            Value::Path(path) => self.path(path),
            Value::Tree(tree) => self.tree(tree),
            Value::Graph(graph) => self.graph(graph),
            Value::Element(element) => self.element(element),
            Value::P(predicate) => self.predicate(predicate),
            Value::Bytecode(bytecode) => match unwrap_strategy(bytecode) {
                Some(strategy) => self.argument(strategy),
                None => self.bytecode(bytecode),
            },
            Value::Metrics(metrics) => self.traversal_metrics(metrics),
            Value::Explanation(explanation) => {
                let entries = explanation_map(explanation);
                self.typed("g:TraversalExplanation", "", |writer| writer.map(&entries))
            }
            Value::Vertex(_) => Err(EncodeError::NotDetached { kind: "vertex" }),
            Value::Edge(_) => Err(EncodeError::NotDetached { kind: "edge" }),
            Value::VertexProperty(_) => Err(EncodeError::NotDetached { kind: "vertex property" }),
            Value::Property(_) => Err(EncodeError::NotDetached { kind: "property" }),
            scalar => self.value(scalar),
        }
    }

    /// An array, each item written by `one`.
    pub(super) fn array<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut one: impl FnMut(&mut Self, T) -> Result,
    ) -> Result {
        self.out.push(b'[');
        let mut first = true;
        for item in items {
            self.comma(&mut first);
            one(self, item)?;
        }
        self.out.push(b']');
        Ok(())
    }

    /// A collection; GraphSON 2.0 has plain arrays.
    pub(super) fn collection<'v>(
        &mut self,
        type_name: &str,
        class: &str,
        members: impl Iterator<Item = &'v Value>,
    ) -> Result {
        self.typed_collection(type_name, class, |writer| writer.array(members, Writer::value))
    }

    pub(super) fn typed_collection(
        &mut self,
        type_name: &str,
        class: &str,
        inside: impl FnOnce(&mut Self) -> Result,
    ) -> Result {
        match self.style.version {
            Version::V2 => inside(self),
            Version::V1 | Version::V3 => self.typed(type_name, class, inside),
        }
    }

    pub(super) fn list<'v>(&mut self, members: impl Iterator<Item = &'v Value>) -> Result {
        self.collection("g:List", "java.util.ArrayList", members)
    }

    pub(super) fn map(&mut self, entries: &ValueMap) -> Result {
        self.entries("java.util.LinkedHashMap", entries.iter())
    }

    /// A map: keys and values in turn in typed GraphSON 3.0, else an object whose keys are text.
    fn entries<'v>(&mut self, class: &str, entries: impl Iterator<Item = (&'v Value, &'v Value)>) -> Result {
        if self.style.typed && self.style.version == Version::V3 {
            return self.typed("g:Map", "", |writer| {
                writer.out.push(b'[');
                let mut first = true;
                for (key, value) in entries {
                    writer.comma(&mut first);
                    writer.value(key)?;
                    writer.out.push(b',');
                    writer.value(value)?;
                }
                writer.out.push(b']');
                Ok(())
            });
        }
        let mut first = self.open_object(class);
        for (key, value) in entries {
            match key {
                Value::String(text) => self.key(text, &mut first),
                Value::Null => return self.not_expressible("a map with null as a key"),
                other => self.key(&key_text(other), &mut first),
            }
            self.value(value)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Members and bulks in turn in typed GraphSON 3.0, else each member as often as its bulk says.
    fn bulk_set(&mut self, set: &BulkSet) -> Result {
        if self.style.typed && self.style.version == Version::V3 {
            return self.typed("g:BulkSet", "", |writer| {
                writer.array(&set.counts, |writer, (value, bulk)| {
                    writer.value(value)?;
                    writer.out.push(b',');
                    writer.bulk(*bulk)
                })
            });
        }
        let total = set.counts.values().fold(0_u64, |sum, bulk| sum.saturating_add(*bulk));
        let length = usize::try_from(total).unwrap_or(usize::MAX);
        if i32::try_from(length).is_err() {
            return Err(EncodeError::TooLong { length });
        }
        let class = "org.apache.tinkerpop.gremlin.process.traversal.step.util.BulkSet";
        let members = set.counts.iter().flat_map(|(value, bulk)| std::iter::repeat_n(value, *bulk as usize));
        self.collection("g:List", class, members)
    }

    /// A bulk beyond a Java long is cut to the largest one.
    fn bulk(&mut self, bulk: u64) -> Result {
        self.value(&Value::Long(i64::try_from(bulk).unwrap_or(i64::MAX)))
    }

    pub(super) fn traverser(&mut self, value: &Value, bulk: u64) -> Result {
        self.typed("g:Traverser", "", |writer| {
            writer.raw("{\"bulk\":");
            writer.bulk(bulk)?;
            writer.raw(",\"value\":");
            writer.value(value)?;
            writer.out.push(b'}');
            Ok(())
        })
    }

    fn tree(&mut self, tree: &Tree) -> Result {
        if self.style.version == Version::V1 {
            return self.tree_by_key(tree);
        }
        self.typed("g:Tree", "", |writer| {
            writer.array(&tree.children, |writer, (key, children)| {
                writer.raw("{\"key\":");
                writer.value(key)?;
                writer.raw(",\"value\":");
                writer.nested(|writer| writer.tree(children))?;
                writer.out.push(b'}');
                Ok(())
            })
        })
    }

    /// GraphSON 1.0: each branch under the text of its key.
    fn tree_by_key(&mut self, tree: &Tree) -> Result {
        let mut first = self.open_object("java.util.HashMap");
        for (key, children) in &tree.children {
            self.key(&key_text(key), &mut first);
            let mut first_part = self.open_object("java.util.HashMap");
            self.key("key", &mut first_part);
            self.value(key)?;
            self.key("value", &mut first_part);
            self.nested(|writer| writer.tree_by_key(children))?;
            self.out.push(b'}');
        }
        self.out.push(b'}');
        Ok(())
    }

    fn predicate(&mut self, predicate: &P) -> Result {
        if self.style.version == Version::V1 {
            return self.not_expressible("a predicate");
        }
        let (name, operands) = parts(predicate);
        let type_name = if matches!(operands, Operands::Text(_)) { "g:TextP" } else { "g:P" };
        self.typed(type_name, "", |writer| {
            writer.raw("{\"predicate\":");
            writer.string(name);
            writer.raw(",\"value\":");
            match operands {
                Operands::One(value) => writer.value(value)?,
                Operands::Text(pattern) => writer.string(pattern),
                Operands::Type(name) => writer.value(&Value::GType(name))?,
                Operands::Many(values) => writer.list(values.iter())?,
                Operands::Joined(predicates) => {
                    writer.array(predicates, |writer, inner| writer.nested(|writer| writer.predicate(inner)))?
                }
                Operands::Negated(inner) => writer.nested(|writer| writer.predicate(inner))?,
            }
            writer.out.push(b'}');
            Ok(())
        })
    }

    fn bytecode(&mut self, bytecode: &Bytecode) -> Result {
        if self.style.version == Version::V1 {
            return self.not_expressible("bytecode");
        }
        self.typed("g:Bytecode", "", |writer| {
            writer.out.push(b'{');
            let mut first = true;
            for (key, instructions) in [("source", &bytecode.source), ("step", &bytecode.steps)] {
                if !instructions.is_empty() {
                    writer.key(key, &mut first);
                    writer.array(instructions, Writer::instruction)?;
                }
            }
            writer.out.push(b'}');
            Ok(())
        })
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result {
        self.out.push(b'[');
        self.string(&instruction.name);
        for argument in &instruction.args {
            self.out.push(b',');
            match (&*instruction.name, argument) {
                // Two instructions take tokens that are not values: strategies by class, and the sack's barrier.
                ("withoutStrategies", Argument::Strategy { name, .. }) => {
                    self.typed_text("g:Class", "", &class_name(name))?;
                }
                ("barrier", Argument::Value(Value::String(name))) if &**name == NORM_SACK => {
                    self.typed_text("g:Barrier", "", name)?;
                }
                _ => self.argument(argument)?,
            }
        }
        self.out.push(b']');
        Ok(())
    }

    fn argument(&mut self, argument: &Argument) -> Result {
        self.nested(|writer| match argument {
            Argument::Value(value) => writer.value(value),
            Argument::Predicate(predicate) => writer.predicate(predicate),
            Argument::Traversal(bytecode) => writer.bytecode(bytecode),
            Argument::Strategy { name, options } => writer.typed(&strategy_type(name), "", |writer| {
                writer.raw("{\"fqcn\":");
                writer.string(&class_name(name));
                writer.raw(",\"conf\":{");
                let mut first = true;
                for (key, value) in options {
                    writer.key(key, &mut first);
                    writer.argument(value)?;
                }
                writer.raw("}}");
                Ok(())
            }),
            Argument::List(members) => {
                writer.typed_collection("g:List", "", |writer| writer.array(members, Writer::argument))
            }
            Argument::Map(entries) => writer.argument_map(entries),
            Argument::CardinalityValue(cardinality, value) => writer.typed("g:Bytecode", "", |writer| {
                writer.raw("{\"source\":[[");
                writer.string(CARDINALITY_VALUE);
                writer.out.push(b',');
                writer.string(cardinality.name());
                writer.out.push(b',');
                writer.argument(value)?;
                writer.raw("]]}");
                Ok(())
            }),
        })
    }

    fn argument_map(&mut self, entries: &[(Argument, Argument)]) -> Result {
        if self.style.typed && self.style.version == Version::V3 {
            return self.typed("g:Map", "", |writer| {
                writer.array(entries, |writer, (key, value)| {
                    writer.argument(key)?;
                    writer.out.push(b',');
                    writer.argument(value)
                })
            });
        }
        self.out.push(b'{');
        let mut first = true;
        for (key, value) in entries {
            match key {
                Argument::Value(Value::Null) => return self.not_expressible("a map with null as a key"),
                Argument::Value(key) => self.key(&key_text(key), &mut first),
                _ => return self.not_expressible("a map with a traversal as a key"),
            }
            self.argument(value)?;
        }
        self.out.push(b'}');
        Ok(())
    }
}

/// The type of a strategy is its name, as far as that can be one.
fn strategy_type(name: &str) -> String {
    let is_type = name.ends_with("Strategy") && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    format!("g:{}", if is_type { name } else { "TraversalStrategy" })
}

/// The text of a map's key: an element's is that of its id.
fn key_text(key: &Value) -> String {
    use ficus_model::Element;
    match key {
        Value::Element(element) => match &**element {
            Element::Vertex(vertex) => vertex.id.to_string(),
            Element::Edge(edge) => edge.id.to_string(),
            Element::VertexProperty(property) => property.id.to_string(),
            Element::Property(_) => key.to_string(),
        },
        _ => key.to_string(),
    }
}
