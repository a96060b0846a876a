//! Trees to canonical text: qualified tokens, single quotes, suffixes wherever a number is not an int or a double.
//!
//! For every tree that a text can express, parsing the printed text gives the tree again. Values without a literal
//! (durations, bytes, elements, paths and other results) are written so that a reader of a log recognises them.

use std::fmt::Write;
use std::sync::Arc;

use ficus_model::{Argument, Bytecode, Cardinality, Comparison, Element, Instruction, P, TextComparison, Value};

use super::Terminal;
use super::datetime;
use super::steps::spawn_index;

/// Most bytes of a binary value that are written.
const BINARY_BYTES_SHOWN: usize = 32;

/// Writes a traversal as gremlin-lang, from `g` if it has a source or begins with a step that a source has, else from
/// `__`.
pub fn print(bytecode: &Bytecode) -> String {
    let mut printer = Printer { text: String::with_capacity(64) };
    let spawned = bytecode.steps.first().is_none_or(|step| spawn_index(&step.name).is_some());
    if spawned || !bytecode.source.is_empty() {
        printer.rooted(bytecode);
    } else {
        printer.anonymous(bytecode);
    }
    printer.text
}

/// Writes a value as a literal, where it has one.
pub fn print_value(value: &Value) -> String {
    let mut printer = Printer { text: String::new() };
    printer.value(value);
    printer.text
}

/// Writes a predicate.
pub fn print_predicate(predicate: &P) -> String {
    let mut printer = Printer { text: String::new() };
    printer.predicate(predicate);
    printer.text
}

struct Printer {
    text: String,
}

impl Printer {
    /// Formatted text; writing to a string cannot fail.
    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.text.write_fmt(arguments).expect("a string takes any text");
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// `items` with commas between.
    fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut item: impl FnMut(&mut Self, T)) {
        for (index, one) in items.into_iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            item(self, one);
        }
    }

    fn rooted(&mut self, bytecode: &Bytecode) {
        self.push("g");
        for instruction in bytecode.source.iter().chain(&bytecode.steps) {
            self.push(".");
            self.instruction(instruction);
        }
    }

    fn anonymous(&mut self, bytecode: &Bytecode) {
        self.push("__");
        if bytecode.steps.is_empty() {
            // What an anonymous traversal without steps does.
            self.push(".identity()");
        }
        for instruction in &bytecode.steps {
            self.push(".");
            self.instruction(instruction);
        }
    }

    /// A traversal as an argument: a query with its terminal step, or an anonymous traversal.
    fn nested(&mut self, bytecode: &Bytecode) {
        let terminated = bytecode.steps.last().is_some_and(|step| Terminal::from_name(&step.name).is_some());
        if terminated { self.rooted(bytecode) } else { self.anonymous(bytecode) }
    }

    fn instruction(&mut self, instruction: &Instruction) {
        self.push(&instruction.name);
        self.push("(");
        match (&*instruction.name, instruction.args.as_slice()) {
            ("barrier", [Argument::Value(Value::String(consumer))]) if **consumer == *"normSack" => {
                self.push("Barrier.normSack");
            }
            ("withoutStrategies", names) => self.list(names, |printer, name| match name {
                Argument::Strategy { name, .. } => printer.push(name),
                other => printer.argument(other),
            }),
            (_, args) => self.list(args, Self::argument),
        }
        self.push(")");
    }

    fn argument(&mut self, argument: &Argument) {
        match argument {
            Argument::Value(value) => self.value(value),
            Argument::Predicate(predicate) => self.predicate(predicate),
            Argument::Traversal(bytecode) => self.nested(bytecode),
            Argument::Strategy { name, options } => self.strategy(name, options),
            Argument::List(elements) => {
                self.push("[");
                self.list(elements, Self::argument);
                self.push("]");
            }
            Argument::Map(entries) => {
                self.push(if entries.is_empty() { "[:" } else { "[" });
                self.list(entries, |printer, (key, value)| {
                    match key {
                        Argument::Value(key) => printer.key(key),
                        key => printer.argument(key),
                    }
                    printer.push(": ");
                    printer.argument(value);
                });
                self.push("]");
            }
            Argument::CardinalityValue(cardinality, value) => self.cardinality_value(*cardinality, value),
        }
    }

    fn cardinality_value(&mut self, cardinality: Cardinality, value: &Argument) {
        self.write(format_args!("Cardinality.{cardinality}("));
        self.argument(value);
        self.push(")");
    }

    fn strategy(&mut self, name: &str, options: &[(Arc<str>, Argument)]) {
        self.write(format_args!("new {name}"));
        if options.is_empty() {
            return;
        }
        self.push("(");
        self.list(options, |printer, (key, value)| {
            printer.write(format_args!("{key}: "));
            printer.argument(value);
        });
        self.push(")");
    }

    fn key(&mut self, key: &Value) {
        match key {
            Value::T(_) | Value::Direction(_) => {
                self.push("(");
                self.value(key);
                self.push(")");
            }
            key => self.value(key),
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.push("null"),
            Value::Bool(value) => self.write(format_args!("{value}")),
            Value::Byte(value) => self.write(format_args!("{value}B")),
            Value::Short(value) => self.write(format_args!("{value}S")),
            Value::Int(value) => self.write(format_args!("{value}")),
            Value::Long(value) => self.write(format_args!("{value}L")),
            Value::BigInteger(value) => self.write(format_args!("{value}N")),
            Value::Float(value) if value.is_finite() => self.write(format_args!("{value:?}F")),
            Value::Float(value) => self.double(f64::from(*value)),
            Value::Double(value) => self.double(*value),
            Value::BigDecimal(value) => {
                let (digits, scale) = value.as_bigint_and_exponent();
                // Plain where it is short, since 1.50M reads better than 150E-2M.
                match scale {
                    0 => self.write(format_args!("{digits}M")),
                    1..=20 => self.write(format_args!("{}M", value.to_plain_string())),
                    _ => self.write(format_args!("{digits}E{}M", -scale)),
                }
            }
            Value::Char(value) => self.string(value.encode_utf8(&mut [0; 4])),
            Value::String(value) => self.string(value),
            Value::Uuid(value) => self.write(format_args!("UUID('{value}')")),
            Value::DateTime(value) => self.write(format_args!("datetime('{}')", datetime::format(*value))),
            Value::Duration(value) => {
                let nanos = i128::from(value.seconds) * 1_000_000_000 + i128::from(value.nanos);
                self.write(format_args!("Duration('PT{}S')", nanos as f64 / 1e9));
            }
            Value::Binary(bytes) => {
                self.push("Binary('");
                for byte in bytes.iter().take(BINARY_BYTES_SHOWN) {
                    self.write(format_args!("{byte:02x}"));
                }
                self.push(if bytes.len() > BINARY_BYTES_SHOWN { "…')" } else { "')" });
            }
            Value::List(values) => {
                self.push("[");
                self.list(values.iter(), Self::value);
                self.push("]");
            }
            Value::Set(values) => {
                self.push("{");
                self.list(values.iter(), Self::value);
                self.push("}");
            }
            Value::Map(entries) => {
                self.push(if entries.is_empty() { "[:" } else { "[" });
                self.list(entries.iter(), Self::entry);
                self.push("]");
            }
            Value::P(predicate) => self.predicate(predicate),
            Value::Bytecode(bytecode) => self.nested(bytecode),
            token_or_result => self.token_or_result(token_or_result),
        }
    }

    /// Values that are tokens, and values that only results have.
    fn token_or_result(&mut self, value: &Value) {
        match value {
            Value::T(token) => self.write(format_args!("T.{token}")),
            Value::Direction(token) => self.write(format_args!("Direction.{token}")),
            Value::Order(token) => self.write(format_args!("Order.{token}")),
            Value::Scope(token) => self.write(format_args!("Scope.{token}")),
            Value::Pop(token) => self.write(format_args!("Pop.{token}")),
            Value::Column(token) => self.write(format_args!("Column.{token}")),
            Value::Cardinality(token) => self.write(format_args!("Cardinality.{token}")),
            Value::Merge(token) => self.write(format_args!("Merge.{token}")),
            Value::Pick(token) => self.write(format_args!("Pick.{token}")),
            Value::Operator(token) => self.write(format_args!("Operator.{token}")),
            Value::DateUnit(token) => self.write(format_args!("DT.{token}")),
            Value::GType(token) => self.write(format_args!("GType.{token}")),
            Value::Entry(entry) => {
                self.push("[");
                self.entry((&entry.0, &entry.1));
                self.push("]");
            }
            Value::BulkSet(set) => {
                self.push("bulkset[");
                self.list(&set.counts, |printer, (value, count)| {
                    printer.value(value);
                    printer.write(format_args!(" × {count}"));
                });
                self.push("]");
            }
            Value::Path(path) => {
                self.push("path[");
                self.list(&path.objects, Self::value);
                self.push("]");
            }
            Value::Tree(tree) => {
                self.push("tree[");
                self.list(tree.children.keys(), Self::value);
                self.push("]");
            }
            Value::Graph(graph) => {
                self.write(format_args!("graph[{} vertices, {} edges]", graph.vertices.len(), graph.edges.len()))
            }
            Value::Vertex(id) => self.write(format_args!("v[{}]", id.0)),
            Value::Edge(id) => self.write(format_args!("e[{}]", id.0)),
            Value::VertexProperty(property) => self.property("vp", &property.key_name, &property.value),
            Value::Property(property) => self.property("p", &property.key_name, &property.value),
            Value::Element(element) => self.element(element),
            Value::Metrics(_) => self.push("metrics[]"),
            Value::Explanation(_) => self.push("explanation[]"),
            // Written by `value`, which calls this for the rest.
            _ => {}
        }
    }

    fn double(&mut self, value: f64) {
        if value.is_nan() {
            self.push("NaN");
        } else if value.is_infinite() {
            self.push(if value < 0.0 { "-Infinity" } else { "Infinity" });
        } else {
            self.write(format_args!("{value:?}"));
        }
    }

    fn string(&mut self, value: &str) {
        self.push("'");
        for character in value.chars() {
            match character {
                '\'' => self.push("\\'"),
                '\\' => self.push("\\\\"),
                '\n' => self.push("\\n"),
                '\r' => self.push("\\r"),
                '\t' => self.push("\\t"),
                control if control.is_control() => self.write(format_args!("\\u{:04X}", u32::from(control))),
                other => self.text.push(other),
            }
        }
        self.push("'");
    }

    fn entry(&mut self, (key, value): (&Value, &Value)) {
        self.key(key);
        self.push(": ");
        self.value(value);
    }

    fn property(&mut self, kind: &str, key: &str, value: &Value) {
        self.write(format_args!("{kind}[{key}->"));
        self.value(value);
        self.push("]");
    }

    fn element(&mut self, element: &Element) {
        let (kind, id) = match element {
            Element::Vertex(vertex) => ("v", &vertex.id),
            Element::Edge(edge) => ("e", &edge.id),
            Element::VertexProperty(property) => return self.property("vp", &property.key, &property.value),
            Element::Property(property) => return self.property("p", &property.key, &property.value),
        };
        self.write(format_args!("{kind}["));
        self.value(id);
        self.push("]");
    }

    fn predicate(&mut self, predicate: &P) {
        match predicate {
            P::Compare(comparison, value) => {
                let name = match comparison {
                    Comparison::Eq => "eq",
                    Comparison::Neq => "neq",
                    Comparison::Lt => "lt",
                    Comparison::Lte => "lte",
                    Comparison::Gt => "gt",
                    Comparison::Gte => "gte",
                };
                self.write(format_args!("P.{name}("));
                self.value(value);
                self.push(")");
            }
            P::Text(comparison, pattern) => {
                let name = match comparison {
                    TextComparison::StartingWith => "startingWith",
                    TextComparison::NotStartingWith => "notStartingWith",
                    TextComparison::EndingWith => "endingWith",
                    TextComparison::NotEndingWith => "notEndingWith",
                    TextComparison::Containing => "containing",
                    TextComparison::NotContaining => "notContaining",
                    TextComparison::Regex => "regex",
                    TextComparison::NotRegex => "notRegex",
                };
                self.write(format_args!("TextP.{name}("));
                self.string(pattern);
                self.push(")");
            }
            P::Within(values) => self.membership("within", values),
            P::Without(values) => self.membership("without", values),
            P::TypeOf(gtype) => self.write(format_args!("P.typeOf(GType.{gtype})")),
            P::And(members) => self.chain("and", members),
            P::Or(members) => self.chain("or", members),
            P::Not(inner) => {
                self.push("P.not(");
                self.predicate(inner);
                self.push(")");
            }
        }
    }

    fn membership(&mut self, name: &str, values: &[Value]) {
        self.write(format_args!("P.{name}("));
        // A single collection would be taken for the collection of the members.
        let wrapped = matches!(values, [Value::List(_) | Value::Set(_)]);
        self.push(if wrapped { "[" } else { "" });
        self.list(values, Self::value);
        self.push(if wrapped { "])" } else { ")" });
    }

    fn chain(&mut self, operator: &str, members: &[P]) {
        match members.split_first() {
            // What a conjunction or disjunction of nothing is.
            None => self.push(if operator == "and" { "P.without()" } else { "P.within()" }),
            Some((first, rest)) => {
                self.predicate(first);
                for member in rest {
                    self.write(format_args!(".{operator}("));
                    self.predicate(member);
                    self.push(")");
                }
            }
        }
    }
}
