//! The text of a value, as the Gremlin Console and `-stringd` responses show it: `v[1]`, `[a, b]`, `{k=v}`.

use std::sync::Arc;

use ficus_model::{
    Argument, Bytecode, Element, Explanation, Instruction, Metrics, P, TraversalMetrics, Tree, Value, ValueMap,
};

use crate::error::NESTING_MAX;
use crate::number_text::{append_decimal, append_double, append_float};
use crate::predicate::{Operands, parts};
use crate::temporal_text::{append_datetime, append_duration};

/// Characters of a property's value that are shown inside `vp[…]` and `p[…]`.
const PROPERTY_VALUE_CHARACTERS: usize = 20;

/// The text of `value` as TinkerPop's Java classes print it. Values nested deeper than 256 levels end in `…`.
pub fn value_text(value: &Value) -> String {
    let mut text = Text { out: String::new(), depth: 0 };
    text.value(value);
    text.out
}

/// An explanation as the map that all formats send: `original`, `intermediate`, `final`.
pub(crate) fn explanation_map(explanation: &Explanation) -> ValueMap {
    let string = |text: &Arc<str>| Value::String(text.clone());
    let entry = |key: &str, value: Value| (Value::String(key.into()), value);
    let intermediate = explanation.intermediate.iter().map(|(strategy, category, traversal)| {
        let entries = [
            entry("strategy", string(strategy)),
            entry("category", string(category)),
            entry("traversal", string(traversal)),
        ];
        Value::Map(Arc::new(entries.into_iter().collect()))
    });
    let entries = [
        entry("original", string(&explanation.original)),
        entry("intermediate", Value::List(Arc::new(intermediate.collect()))),
        entry("final", string(&explanation.final_plan)),
    ];
    entries.into_iter().collect()
}

struct Text {
    out: String,
    depth: usize,
}

impl Text {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn shown(&mut self, value: impl std::fmt::Display) {
        self.push(&value.to_string());
    }

    /// Appends what a byte-oriented formatter of numbers writes.
    fn number(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        append(&mut bytes);
        self.push(&String::from_utf8_lossy(&bytes));
    }

    /// Runs `one` for each item with `, ` between them.
    fn joined<T>(&mut self, items: impl IntoIterator<Item = T>, mut one: impl FnMut(&mut Self, T)) {
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            one(self, item);
        }
    }

    fn nested(&mut self, inside: impl FnOnce(&mut Self)) {
        if self.depth == NESTING_MAX {
            return self.push("…");
        }
        self.depth += 1;
        inside(self);
        self.depth -= 1;
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.push("null"),
            Value::Bool(value) => self.shown(value),
            Value::Byte(value) => self.shown(value),
            Value::Short(value) => self.shown(value),
            Value::Int(value) => self.shown(value),
            Value::Long(value) => self.shown(value),
            Value::BigInteger(value) => self.shown(value),
            Value::Float(value) => self.number(|out| append_float(*value, out)),
            Value::Double(value) => self.number(|out| append_double(*value, out)),
            Value::BigDecimal(value) => self.number(|out| append_decimal(value, out)),
            Value::Char(value) => self.out.push(*value),
            Value::String(value) => self.push(value),
            Value::Uuid(value) => self.shown(value),
            Value::DateTime(value) => append_datetime(value, &mut self.out),
            Value::Duration(value) => append_duration(value, &mut self.out),
            Value::Binary(bytes) => {
                self.push(&format!("java.nio.HeapByteBuffer[pos=0 lim={0} cap={0}]", bytes.len()));
            }
            Value::T(token) => self.shown(token),
            Value::Direction(token) => self.shown(token),
            Value::Order(token) => self.shown(token),
            Value::Scope(token) => self.shown(token),
            Value::Pop(token) => self.shown(token),
            Value::Column(token) => self.shown(token),
            Value::Cardinality(token) => self.shown(token),
            Value::Merge(token) => self.shown(token),
            Value::Pick(token) => self.shown(token),
            Value::Operator(token) => self.shown(token),
            Value::DateUnit(token) => self.shown(token),
            Value::GType(token) => self.shown(token),
            Value::Vertex(id) => self.push(&format!("v[{}]", id.0)),
            Value::Edge(id) => self.push(&format!("e[{}]", id.0)),
            compound => self.nested(|text| text.compound(compound)),
        }
    }

    fn compound(&mut self, value: &Value) {
        match value {
            Value::List(members) => self.list(members.iter()),
            Value::Set(members) => self.list(members.iter()),
            Value::Map(entries) => self.map(entries.iter()),
            Value::Entry(entry) => self.entry(&entry.0, &entry.1),
            Value::BulkSet(set) => {
                self.push("{");
                self.joined(&set.counts, |text, (value, bulk)| {
                    text.value(value);
                    text.push(&format!("={bulk}"));
                });
                self.push("}");
            }
            Value::Path(path) => {
                self.push("path");
                self.list(path.objects.iter());
            }
            Value::Tree(tree) => self.tree(tree),
            Value::Graph(graph) => {
                let (vertices, edges) = (graph.vertices.len(), graph.edges.len());
                self.push(&format!("tinkergraph[vertices:{vertices} edges:{edges}]"));
            }
            Value::Element(element) => self.element(element),
            Value::VertexProperty(property) => self.property("vp", &property.key_name, &property.value),
            Value::Property(property) => self.property("p", &property.key_name, &property.value),
            Value::P(predicate) => self.predicate(predicate),
            Value::Bytecode(bytecode) => self.bytecode(bytecode),
            Value::Metrics(metrics) => self.metrics(metrics),
            Value::Explanation(explanation) => self.explanation(explanation),
            scalar => self.value(scalar),
        }
    }

    fn list<'v>(&mut self, members: impl Iterator<Item = &'v Value>) {
        self.push("[");
        self.joined(members, Text::value);
        self.push("]");
    }

    fn map<'v>(&mut self, entries: impl Iterator<Item = (&'v Value, &'v Value)>) {
        self.push("{");
        self.joined(entries, |text, (key, value)| text.entry(key, value));
        self.push("}");
    }

    fn entry(&mut self, key: &Value, value: &Value) {
        self.value(key);
        self.push("=");
        self.value(value);
    }

    fn tree(&mut self, tree: &Tree) {
        self.push("{");
        self.joined(&tree.children, |text, (key, children)| {
            text.value(key);
            text.push("=");
            text.nested(|text| text.tree(children));
        });
        self.push("}");
    }

    fn element(&mut self, element: &Element) {
        match element {
            Element::Vertex(vertex) => {
                self.push("v[");
                self.value(&vertex.id);
                self.push("]");
            }
            Element::Edge(edge) => {
                self.push("e[");
                self.value(&edge.id);
                self.push("][");
                self.value(&edge.out_id);
                self.push(&format!("-{}->", edge.label));
                self.value(&edge.in_id);
                self.push("]");
            }
            Element::VertexProperty(property) => self.property("vp", &property.key, &property.value),
            Element::Property(property) => self.property("p", &property.key, &property.value),
        }
    }

    fn property(&mut self, kind: &str, key: &str, value: &Value) {
        self.push(&format!("{kind}[{key}->"));
        let start = self.out.len();
        self.value(value);
        let shown = &self.out[start..];
        if shown.chars().count() > PROPERTY_VALUE_CHARACTERS {
            let kept: String = shown.chars().take(PROPERTY_VALUE_CHARACTERS - 3).collect();
            self.out.truncate(start);
            self.push(&kept);
            self.push("...");
        }
        self.push("]");
    }

    fn predicate(&mut self, predicate: &P) {
        let (name, operands) = parts(predicate);
        self.push(name);
        self.push("(");
        match operands {
            Operands::One(value) => self.value(value),
            Operands::Text(pattern) => self.push(pattern),
            Operands::Type(name) => self.shown(name),
            Operands::Many(values) => self.list(values.iter()),
            Operands::Joined(predicates) => {
                self.joined(predicates, |text, inner| text.nested(|text| text.predicate(inner)));
            }
            Operands::Negated(inner) => self.nested(|text| text.predicate(inner)),
        }
        self.push(")");
    }

    fn bytecode(&mut self, bytecode: &Bytecode) {
        self.push("[");
        self.instructions(&bytecode.source);
        self.push(", ");
        self.instructions(&bytecode.steps);
        self.push("]");
    }

    fn instructions(&mut self, instructions: &[Instruction]) {
        self.push("[");
        self.joined(instructions, |text, instruction| {
            text.push(&instruction.name);
            text.push("(");
            text.joined(&instruction.args, Text::argument);
            text.push(")");
        });
        self.push("]");
    }

    fn argument(&mut self, argument: &Argument) {
        self.nested(|text| match argument {
            Argument::Value(value) => text.value(value),
            Argument::Predicate(predicate) => text.predicate(predicate),
            Argument::Traversal(bytecode) => text.bytecode(bytecode),
            Argument::Strategy { name, .. } => text.push(name),
            Argument::List(members) => {
                text.push("[");
                text.joined(members, Text::argument);
                text.push("]");
            }
            Argument::Map(entries) => {
                text.push("{");
                text.joined(entries, |text, (key, value)| {
                    text.argument(key);
                    text.push("=");
                    text.argument(value);
                });
                text.push("}");
            }
            Argument::CardinalityValue(cardinality, value) => {
                text.shown(cardinality);
                text.push("(");
                text.argument(value);
                text.push(")");
            }
        });
    }

    /// A table: step, counts, milliseconds, share of the total.
    fn metrics(&mut self, metrics: &TraversalMetrics) {
        self.push("Traversal Metrics\n");
        let header = ("Step", "Count", "Traversers", "Time (ms)", "% Dur");
        let (step, count, traversers, time, share) = header;
        self.push(&format!("{step:<60} {count:>11} {traversers:>11} {time:>15} {share:>8}\n"));
        self.push(&format!("{}\n", "=".repeat(109)));
        for one in &metrics.metrics {
            self.metrics_row(one, 0);
        }
        let total = metrics.duration_ns as f64 / 1e6;
        self.push(&format!("{:<60} {:>11} {:>11} {total:>15.3} {:>8}", ">TOTAL", "-", "-", "-"));
    }

    fn metrics_row(&mut self, metrics: &Metrics, indent: usize) {
        let name: String = format!("{}{}", " ".repeat(indent * 2), metrics.name).chars().take(60).collect();
        let count_of = |wanted: &str| {
            let found = metrics.counts.iter().find(|(name, _)| &**name == wanted);
            found.map_or_else(String::new, |(_, count)| count.to_string())
        };
        let (elements, traversers) = (count_of("elementCount"), count_of("traverserCount"));
        let time = metrics.duration_ns as f64 / 1e6;
        let share = metrics.annotations.iter().find_map(|(name, value)| match value {
            Value::Double(share) if &**name == "percentDur" => Some(format!("{share:.2}")),
            _ => None,
        });
        let share = share.unwrap_or_default();
        self.push(&format!("{name:<60} {elements:>11} {traversers:>11} {time:>15.3} {share:>8}\n"));
        self.nested(|text| {
            for nested in &metrics.nested {
                text.metrics_row(nested, indent + 1);
            }
        });
    }

    fn explanation(&mut self, explanation: &Explanation) {
        self.push("Traversal Explanation\n");
        self.push(&format!("Original Traversal  {}\n", explanation.original));
        for (strategy, category, traversal) in &explanation.intermediate {
            self.push(&format!("{strategy}  [{category}]  {traversal}\n"));
        }
        self.push(&format!("Final Traversal  {}", explanation.final_plan));
    }
}
