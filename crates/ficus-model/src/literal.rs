//! Values and traversals as gremlin-lang text that can be pasted into a query.
//!
//! Everything the grammar has a literal for reads back as the same value. What it has none for is written as the nearest
//! thing: a vertex as the traversal that finds it (`__.V(1)`), paths and sets with counts as collections, characters,
//! bytes and durations as strings.

use std::fmt::Write;

use crate::compare::{DEPTH_MAX, element_id, token_name};
use crate::text::{double_text, float_text};
use crate::{Argument, Bytecode, Element, ElementResolver, Instruction, P, Tree, Value};

/// The literal of a value.
pub fn literal(value: &Value, resolver: &dyn ElementResolver) -> String {
    let mut writer = Writer { out: String::new(), resolver, depth: 0 };
    writer.value(value);
    writer.out
}

/// The text of a traversal, spawned from `root` (`g`, or `__` if it is anonymous).
pub fn bytecode_literal(bytecode: &Bytecode, root: &str, resolver: &dyn ElementResolver) -> String {
    let mut writer = Writer { out: String::new(), resolver, depth: 0 };
    writer.bytecode(bytecode, root);
    writer.out
}

/// A string with its quotes and escapes.
pub fn string_literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            // Writing to a string cannot fail.
            c if (c as u32) < 0x20 || c as u32 == 0x7f => drop(write!(out, "\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

struct Writer<'r> {
    out: String,
    resolver: &'r dyn ElementResolver,
    depth: usize,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Writes between brackets, with commas.
    fn all<T>(
        &mut self,
        open: &str,
        items: impl IntoIterator<Item = T>,
        close: &str,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.push(open);
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.push(",");
            }
            write(self, item);
        }
        self.push(close);
    }

    fn value(&mut self, value: &Value) {
        if self.depth > DEPTH_MAX {
            return self.push("null");
        }
        self.depth += 1;
        self.value_within_depth(value);
        self.depth -= 1;
    }

    fn value_within_depth(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Int(_) => self.push(&value.to_string()),
            Value::Byte(byte) => self.push(&format!("{byte}b")),
            Value::Short(short) => self.push(&format!("{short}s")),
            Value::Long(long) => self.push(&format!("{long}L")),
            Value::BigInteger(integer) => self.push(&format!("{integer}n")),
            Value::Float(float) if float.is_finite() => self.push(&format!("{}f", float_text(*float))),
            Value::Float(float) => self.push(&float_text(*float)),
            Value::Double(double) => self.push(&double_text(*double)),
            Value::BigDecimal(decimal) => self.push(&format!("{}m", crate::decimal::text(decimal))),
            Value::String(text) => write_string(&mut self.out, text),
            Value::Uuid(uuid) => self.push(&format!("UUID(\"{uuid}\")")),
            Value::DateTime(date) => self.push(&format!("datetime(\"{date}\")")),
            Value::Char(_) | Value::Duration(_) | Value::Binary(_) => {
                let text = value.to_string();
                write_string(&mut self.out, &text);
            }
            Value::List(list) => self.all("[", list.iter(), "]", Self::value),
            Value::Set(set) => self.all("{", set.iter(), "}", Self::value),
            Value::Path(path) => self.all("[", &path.objects, "]", Self::value),
            Value::Map(map) if map.is_empty() => self.push("[:]"),
            Value::Map(map) => self.all("[", map.iter(), "]", |writer, (key, value)| {
                writer.key(key);
                writer.value(value);
            }),
            Value::BulkSet(set) if set.counts.is_empty() => self.push("[:]"),
            Value::BulkSet(set) => self.all("[", set.counts.iter(), "]", |writer, (member, count)| {
                writer.key(member);
                writer.push(&format!("{count}L"));
            }),
            Value::Tree(tree) => self.tree(tree),
            Value::Entry(entry) => {
                self.push("[");
                self.key(&entry.0);
                self.value(&entry.1);
                self.push("]");
            }
            Value::Graph(graph) => {
                self.all("[vertices:[", &graph.vertices, "],", |writer, element| writer.element(element));
                self.all("edges:[", &graph.edges, "]]", |writer, element| writer.element(element));
            }
            Value::Vertex(_) | Value::Edge(_) => {
                let kind = if matches!(value, Value::Vertex(_)) { "V" } else { "E" };
                self.by_id(kind, &element_id(value, self.resolver));
            }
            Value::VertexProperty(property) => {
                self.by_id("V", &self.resolver.vertex_id(property.vertex));
                self.push(&format!(".properties({})", string_literal(&property.key_name)));
            }
            Value::Property(property) => self.pair(&property.key_name, &property.value),
            Value::Element(element) => self.element(element),
            Value::P(predicate) => self.predicate(predicate),
            Value::Bytecode(bytecode) => self.bytecode(bytecode, "__"),
            Value::Metrics(_) | Value::Explanation(_) => {
                let text = value.to_string();
                write_string(&mut self.out, &text);
            }
            token => {
                self.push(token.type_name());
                self.push(".");
                self.push(token_name(token).unwrap_or("?"));
            }
        }
    }

    /// A key of a map with its colon; all but strings and plain numbers need parentheses.
    fn key(&mut self, key: &Value) {
        if matches!(key, Value::String(_)) {
            self.value(key);
        } else {
            self.push("(");
            self.value(key);
            self.push(")");
        }
        self.push(":");
    }

    fn pair(&mut self, key: &str, value: &Value) {
        self.push("[");
        write_string(&mut self.out, key);
        self.push(":");
        self.value(value);
        self.push("]");
    }

    fn tree(&mut self, tree: &Tree) {
        if tree.children.is_empty() || self.depth > DEPTH_MAX {
            return self.push("[:]");
        }
        self.depth += 1;
        self.all("[", &tree.children, "]", |writer, (key, child)| {
            writer.key(key);
            writer.tree(child);
        });
        self.depth -= 1;
    }

    fn by_id(&mut self, step: &str, id: &Value) {
        self.push("__.");
        self.push(step);
        self.push("(");
        self.value(id);
        self.push(")");
    }

    fn element(&mut self, element: &Element) {
        match element {
            Element::Vertex(vertex) => self.by_id("V", &vertex.id),
            Element::Edge(edge) => self.by_id("E", &edge.id),
            Element::VertexProperty(property) => match &property.owner {
                Some((owner, _)) => {
                    self.by_id("V", owner);
                    self.push(&format!(".properties({})", string_literal(&property.key)));
                }
                None => self.pair(&property.key, &property.value),
            },
            Element::Property(property) => self.pair(&property.key, &property.value),
        }
    }

    fn predicate(&mut self, predicate: &P) {
        if self.depth > DEPTH_MAX {
            return self.push("eq(null)");
        }
        self.depth += 1;
        match predicate {
            P::Compare(comparison, literal) => {
                self.all(&format!("{}(", comparison.name()), [literal], ")", Self::value)
            }
            P::Text(comparison, pattern) => self.push(&format!("{}({})", comparison.name(), string_literal(pattern))),
            P::Within(literals) => self.all("within(", literals.iter(), ")", Self::value),
            P::Without(literals) => self.all("without(", literals.iter(), ")", Self::value),
            P::TypeOf(token) => self.push(&format!("typeOf(GType.{token})")),
            P::And(predicates) => self.connected("and", predicates),
            P::Or(predicates) => self.connected("or", predicates),
            P::Not(inner) => self.all("not(", [&**inner], ")", Self::predicate),
        }
        self.depth -= 1;
    }

    /// `a.and(b).and(c)`.
    fn connected(&mut self, name: &str, predicates: &[P]) {
        for (index, predicate) in predicates.iter().enumerate() {
            if index == 0 {
                self.predicate(predicate);
            } else {
                self.all(&format!(".{name}("), [predicate], ")", Self::predicate);
            }
        }
    }

    fn bytecode(&mut self, bytecode: &Bytecode, root: &str) {
        if self.depth > DEPTH_MAX {
            return self.push("__.identity()");
        }
        self.depth += 1;
        self.push(root);
        for instruction in bytecode.source.iter().chain(&bytecode.steps) {
            self.instruction(instruction);
        }
        self.depth -= 1;
    }

    fn instruction(&mut self, instruction: &Instruction) {
        self.push(".");
        self.push(&instruction.name);
        self.all("(", &instruction.args, ")", Self::argument);
    }

    fn argument(&mut self, argument: &Argument) {
        match argument {
            Argument::Value(value) => self.value(value),
            Argument::Predicate(predicate) => self.predicate(predicate),
            Argument::Traversal(bytecode) => self.bytecode(bytecode, "__"),
            Argument::Strategy { name, options } if options.is_empty() => self.push(name),
            Argument::Strategy { name, options } => {
                self.all(&format!("new {name}("), options, ")", |writer, (key, option)| {
                    writer.push(key);
                    writer.push(":");
                    writer.argument(option);
                });
            }
            Argument::List(arguments) => self.all("[", arguments, "]", Self::argument),
            Argument::Map(entries) => self.all("[", entries, "]", |writer, (key, value)| {
                match key {
                    Argument::Value(key) => writer.key(key),
                    other => {
                        writer.argument(other);
                        writer.push(":");
                    }
                }
                writer.argument(value);
            }),
            Argument::CardinalityValue(cardinality, value) => {
                self.all(&format!("Cardinality.{cardinality}("), [&**value], ")", Self::argument);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Comparison, Duration, GType, InternalIds, OffsetDateTime, Order, Shared, T, VertexId};

    #[test]
    fn literals_read_back_as_the_same_value() {
        let dec = |text: &str| Value::from(crate::decimal::parse(text).unwrap());
        let map: crate::ValueMap =
            [(Value::from("a"), Value::Int(1)), (Value::T(T::Id), Value::Long(2)), (Value::Int(3), Value::Null)]
                .into_iter()
                .collect();
        for (value, expected) in [
            (Value::Null, "null"),
            (Value::Bool(true), "true"),
            (Value::Byte(1), "1b"),
            (Value::Short(-1), "-1s"),
            (Value::Int(1), "1"),
            (Value::Long(1), "1L"),
            (Value::from(num_bigint::BigInt::from(1)), "1n"),
            (Value::Float(1.5), "1.5f"),
            (Value::Double(1.5), "1.5"),
            (Value::Double(1e-10), "1.0E-10"),
            (Value::Double(f64::NAN), "NaN"),
            (Value::Double(f64::NEG_INFINITY), "-Infinity"),
            (dec("1.50"), "1.50m"),
            (Value::from("it's \"x\" \\ \n\u{1} é"), "\"it's \\\"x\\\" \\\\ \\n\\u0001 é\""),
            (Value::DateTime(OffsetDateTime::from_epoch_millis(0)), "datetime(\"1970-01-01T00:00Z\")"),
            (Value::Duration(Duration::from_seconds(60)), "\"PT1M\""),
            (Value::from(vec![Value::Int(1), Value::from("a")]), "[1,\"a\"]"),
            (Value::Set(Shared::new([Value::Int(1)].into_iter().collect())), "{1}"),
            (Value::from(map), "[\"a\":1,(T.id):2L,(3):null]"),
            (Value::from(crate::ValueMap::default()), "[:]"),
            (Value::Order(Order::Desc), "Order.desc"),
            (Value::GType(GType::Int), "GType.INT"),
            (Value::Vertex(VertexId(1)), "__.V(1L)"),
            (
                Value::from(P::And(vec![P::Compare(Comparison::Gt, Value::Int(1)), P::eq(Value::Int(3)).negate()])),
                "gt(1).and(not(eq(3)))",
            ),
        ] {
            assert_eq!(literal(&value, &InternalIds), expected);
        }
    }

    #[test]
    fn traversals_read_back() {
        let step = |name: &str, args| Instruction { name: name.into(), args, offset: None };
        let inner = Bytecode { source: vec![], steps: vec![step("out", vec![Argument::Value(Value::from("knows"))])] };
        let strategy = Argument::Strategy { name: "ReadOnlyStrategy".into(), options: vec![] };
        let bytecode = Bytecode {
            source: vec![step("withStrategies", vec![strategy])],
            steps: vec![
                step("V", vec![Argument::Value(Value::Int(1))]),
                step("where", vec![Argument::Traversal(Arc::new(inner))]),
                step(
                    "has",
                    vec![
                        Argument::Value(Value::from("age")),
                        Argument::Predicate(P::Within(Shared::new(vec![Value::Int(1), Value::Int(2)]))),
                    ],
                ),
            ],
        };
        let expected = "g.withStrategies(ReadOnlyStrategy).V(1).where(__.out(\"knows\")).has(\"age\",within(1,2))";
        assert_eq!(bytecode_literal(&bytecode, "g", &InternalIds), expected);
    }
}
