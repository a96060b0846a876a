//! The text of values as TinkerPop shows them: `v[1]`, `e[7][1-knows->2]`, `[a, b]`, `{a=1}`, `path[v[1], v[3]]`.
//!
//! This is what `asString()`, `format()` and `conjoin()` give to users, so numbers and dates read as Java writes them.

use std::fmt::{self, Display, Write};

use crate::Path;
use crate::Tree;
use crate::compare::{DEPTH_MAX, element_id, token_name};
use crate::value::StoredProperty;
use crate::{Element, ElementResolver, InternalIds, MEMBERS_BETWEEN_LOOKS, P, Value};

/// Characters of a property's value that its text shows at most.
const PROPERTY_TEXT_MAX: usize = 20;

/// The text of a value, stored elements by the user's ids.
pub fn text(value: &Value, resolver: &dyn ElementResolver) -> String {
    shown(value, resolver).to_string()
}

/// The text of a value as something to print.
pub fn shown<'a>(value: &'a Value, resolver: &'a dyn ElementResolver) -> impl Display + 'a {
    Shown { value, resolver, depth: 0 }
}

impl Display for Value {
    /// The text with internal ids for stored elements; see [`text`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown { value: self, resolver: &InternalIds, depth: 0 }.fmt(f)
    }
}

/// A double as Java writes it: plain between 10⁻³ and 10⁷, else with `E`, always with a point, in the fewest digits that
/// read back as the same double.
pub fn double_text(value: f64) -> String {
    let shortest = format!("{value:e}");
    // Of the forms with two digits Java takes the nearest, even if one digit would do: 4.9E-324.
    let nearest = format!("{value:.1e}");
    let one_digit = !shortest.contains('.');
    let scientific = if one_digit && nearest.parse() == Ok(value) { nearest } else { shortest };
    java_text(value, value.abs(), scientific)
}

/// A float as Java writes it; see [`double_text`].
pub fn float_text(value: f32) -> String {
    let shortest = format!("{value:e}");
    let nearest = format!("{value:.1e}");
    let one_digit = !shortest.contains('.');
    let scientific = if one_digit && nearest.parse() == Ok(value) { nearest } else { shortest };
    java_text(f64::from(value), f64::from(value.abs()), scientific)
}

/// `scientific` has the digits wanted, `-1.25e-7`.
fn java_text(value: f64, magnitude: f64, scientific: String) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let (mantissa, exponent) = scientific.split_once('e').expect("scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("exponents are integers");
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let digits = digits.strip_suffix('0').filter(|rest| !rest.is_empty()).unwrap_or(&digits);
    if magnitude != 0.0 && !(1e-3..1e7).contains(&magnitude) {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        return format!("{sign}{first}.{rest}E{exponent}");
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1));
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        format!("{sign}{digits}{}.0", "0".repeat(whole - digits.len()))
    } else {
        format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
    }
}

struct Shown<'a> {
    value: &'a Value,
    resolver: &'a dyn ElementResolver,
    depth: usize,
}

impl<'a> Shown<'a> {
    fn inner(&self, value: &'a Value) -> Shown<'a> {
        Shown { value, resolver: self.resolver, depth: self.depth + 1 }
    }

    fn members(&self, f: &mut fmt::Formatter<'_>, members: impl Iterator<Item = &'a Value>) -> fmt::Result {
        for (index, member) in members.enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            if self.is_over(index) {
                break;
            }
            self.inner(member).fmt(f)?;
        }
        Ok(())
    }

    /// Whether the text is not wanted any more, asked now and then; it ends there.
    fn is_over(&self, index: usize) -> bool {
        index % MEMBERS_BETWEEN_LOOKS == MEMBERS_BETWEEN_LOOKS - 1 && self.resolver.is_stopped()
    }

    fn path(&self, f: &mut fmt::Formatter<'_>, path: &'a Path) -> fmt::Result {
        f.write_str("path[")?;
        self.members(f, path.objects.iter())?;
        f.write_str("]")
    }

    fn tree(&self, f: &mut fmt::Formatter<'_>, tree: &'a Tree, depth: usize) -> fmt::Result {
        if depth > DEPTH_MAX {
            return f.write_str("{…}");
        }
        f.write_str("{")?;
        for (index, (key, child)) in tree.children.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            if self.is_over(index) {
                break;
            }
            self.inner(key).fmt(f)?;
            f.write_str("=")?;
            self.tree(f, child, depth + 1)?;
        }
        f.write_str("}")
    }

    fn property(&self, f: &mut fmt::Formatter<'_>, kind: &str, key: &str, value: &'a Value) -> fmt::Result {
        let value = self.inner(value).to_string();
        if value.chars().count() <= PROPERTY_TEXT_MAX {
            return write!(f, "{kind}[{key}->{value}]");
        }
        let start: String = value.chars().take(PROPERTY_TEXT_MAX - 3).collect();
        write!(f, "{kind}[{key}->{start}...]")
    }

    fn element(&self, f: &mut fmt::Formatter<'_>, element: &'a Element) -> fmt::Result {
        match element {
            Element::Vertex(vertex) => write!(f, "v[{}]", self.inner(&vertex.id)),
            Element::Edge(edge) => write!(
                f,
                "e[{}][{}-{}->{}]",
                self.inner(&edge.id),
                self.inner(&edge.out_id),
                edge.label,
                self.inner(&edge.in_id)
            ),
            Element::VertexProperty(property) => self.property(f, "vp", &property.key, &property.value),
            Element::Property(property) => self.property(f, "p", &property.key, &property.value),
        }
    }
}

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.depth > DEPTH_MAX {
            return f.write_str("…");
        }
        match self.value {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Byte(value) => write!(f, "{value}"),
            Value::Short(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Long(value) => write!(f, "{value}"),
            Value::BigInteger(value) => write!(f, "{value}"),
            Value::Float(value) => f.write_str(&float_text(*value)),
            Value::Double(value) => f.write_str(&double_text(*value)),
            Value::BigDecimal(value) => f.write_str(&crate::decimal::text(value)),
            Value::Char(value) => f.write_char(*value),
            Value::String(value) => f.write_str(value),
            Value::Uuid(value) => write!(f, "{value}"),
            Value::DateTime(value) => write!(f, "{value}"),
            Value::Duration(value) => write!(f, "{value}"),
            Value::Binary(bytes) => write_hex(f, bytes),
            Value::List(list) => {
                f.write_str("[")?;
                self.members(f, list.iter())?;
                f.write_str("]")
            }
            Value::Set(set) => {
                f.write_str("[")?;
                self.members(f, set.iter())?;
                f.write_str("]")
            }
            Value::Map(map) => {
                f.write_str("{")?;
                for (index, (key, value)) in map.iter().enumerate() {
                    if self.is_over(index) {
                        break;
                    }
                    let separator = if index > 0 { ", " } else { "" };
                    write!(f, "{separator}{}={}", self.inner(key), self.inner(value))?;
                }
                f.write_str("}")
            }
            Value::Entry(entry) => write!(f, "{}={}", self.inner(&entry.0), self.inner(&entry.1)),
            Value::BulkSet(set) => {
                f.write_str("{")?;
                for (index, (member, count)) in set.counts.iter().enumerate() {
                    if self.is_over(index) {
                        break;
                    }
                    let separator = if index > 0 { ", " } else { "" };
                    write!(f, "{separator}{}={count}", self.inner(member))?;
                }
                f.write_str("}")
            }
            Value::Path(path) => self.path(f, path),
            Value::Tree(tree) => self.tree(f, tree, self.depth),
            Value::Graph(graph) => write!(f, "graph[vertices:{} edges:{}]", graph.vertices.len(), graph.edges.len()),
            Value::Vertex(_) => write!(f, "v[{}]", Shown { value: &element_id(self.value, self.resolver), ..*self }),
            Value::Edge(edge) => {
                write!(f, "e[{}]", Shown { value: &element_id(self.value, self.resolver), ..*self })?;
                match self.resolver.edge_ends(*edge) {
                    Some(ends) => {
                        let show = |value| text(value, self.resolver);
                        write!(f, "[{}-{}->{}]", show(&ends.out_id), ends.label, show(&ends.in_id))
                    }
                    None => Ok(()),
                }
            }
            Value::VertexProperty(property) => self.property(f, "vp", &property.key_name, &property.value),
            Value::Property(property) => {
                let StoredProperty { key_name, value, .. } = &**property;
                self.property(f, "p", key_name, value)
            }
            Value::Element(element) => self.element(f, element),
            Value::P(predicate) => write_predicate(f, predicate, self.resolver, self.depth + 1),
            Value::Bytecode(bytecode) => f.write_str(&crate::literal::bytecode_literal(bytecode, "__", self.resolver)),
            Value::Metrics(metrics) => {
                for metric in &metrics.metrics {
                    writeln!(f, "{}: {:.3} ms", metric.name, metric.duration_ns as f64 / 1e6)?;
                }
                write!(f, "total: {:.3} ms", metrics.duration_ns as f64 / 1e6)
            }
            Value::Explanation(explanation) => {
                writeln!(f, "Original Traversal: {}", explanation.original)?;
                for (rule, category, plan) in &explanation.intermediate {
                    writeln!(f, "{rule} [{category}] {plan}")?;
                }
                write!(f, "Final Traversal: {}", explanation.final_plan)
            }
            token => f.write_str(token_name(token).unwrap_or("?")),
        }
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl Display for P {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_predicate(f, self, &InternalIds, 0)
    }
}

fn write_predicate(
    f: &mut fmt::Formatter<'_>,
    predicate: &P,
    resolver: &dyn ElementResolver,
    depth: usize,
) -> fmt::Result {
    if depth > DEPTH_MAX {
        return f.write_str("…");
    }
    let show = |value| Shown { value, resolver, depth };
    let mut all = |name: &str, predicates: &[P]| {
        write!(f, "{name}(")?;
        for (index, predicate) in predicates.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write_predicate(f, predicate, resolver, depth + 1)?;
        }
        f.write_str(")")
    };
    match predicate {
        P::And(predicates) => all("and", predicates),
        P::Or(predicates) => all("or", predicates),
        P::Not(inner) => all("not", std::slice::from_ref(inner)),
        P::Compare(comparison, Value::Null) => f.write_str(comparison.name()),
        P::Compare(comparison, literal) => write!(f, "{}({})", comparison.name(), show(literal)),
        P::Text(comparison, pattern) => write!(f, "{}({pattern})", comparison.name()),
        P::TypeOf(token) => write!(f, "typeOf({token})"),
        P::Within(literals) | P::Without(literals) => {
            let name = if matches!(predicate, P::Within(_)) { "within" } else { "without" };
            write!(f, "{name}([")?;
            show(&Value::Null).members(f, literals.iter())?;
            f.write_str("])")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::value::BulkSet;
    use crate::{
        Comparison, DetachedEdge, DetachedProperty, DetachedVertex, DetachedVertexProperty, EdgeEnds, EdgeId, GType,
        Shared, T, TextComparison, VertexId,
    };

    struct Modern;

    impl ElementResolver for Modern {
        fn vertex_id(&self, vertex: VertexId) -> Value {
            Value::from(format!("user-{}", vertex.0))
        }
        fn edge_ends(&self, _edge: EdgeId) -> Option<EdgeEnds> {
            Some(EdgeEnds { label: "knows".into(), out_id: Value::Int(1), in_id: Value::Int(2) })
        }
    }

    #[test]
    fn floating_point_reads_as_in_java() {
        for (value, expected) in [
            (1.0, "1.0"),
            (1e7, "1.0E7"),
            (1e-3, "0.001"),
            (0.00099, "9.9E-4"),
            (123456789.5, "1.234567895E8"),
            (1e21, "1.0E21"),
            (1.0 / 3.0, "0.3333333333333333"),
            (9999999.0, "9999999.0"),
            (-100.25, "-100.25"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (5e-324, "4.9E-324"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(double_text(value), expected);
        }
        for (value, expected) in
            [(0.1f32, "0.1"), (3.4e38, "3.4E38"), (1e-45, "1.4E-45"), (16777216.0, "1.6777216E7"), (1e7, "1.0E7")]
        {
            assert_eq!(float_text(value), expected);
        }
    }

    #[test]
    fn values_read_as_in_tinkerpop() {
        let vertex =
            |id| Value::from(Element::Vertex(DetachedVertex { id, label: "person".into(), properties: vec![] }));
        let edge = Value::from(Element::Edge(DetachedEdge {
            id: Value::Int(7),
            label: "knows".into(),
            out_id: Value::Int(1),
            out_label: "person".into(),
            in_id: Value::Int(2),
            in_label: "person".into(),
            properties: vec![],
        }));
        let vertex_property = |value| {
            Value::from(Element::VertexProperty(DetachedVertexProperty {
                id: Value::Long(0),
                key: "name".into(),
                value,
                properties: vec![],
                owner: None,
            }))
        };
        let property = Value::from(Element::Property(DetachedProperty {
            key: "weight".into(),
            value: Value::Double(0.5),
            owner: None,
        }));
        let list = Value::from(vec![Value::Int(1), Value::Null, Value::from("a")]);
        let map: crate::ValueMap =
            [(Value::from("a"), Value::Int(1)), (Value::T(T::Id), list.clone())].into_iter().collect();
        let path = Path::unlabelled(vec![vertex(Value::Int(1)), Value::from("x")]);
        let mut tree = Tree::default();
        tree.children
            .insert(Value::Int(1), Tree { children: [(Value::Int(2), Tree::default())].into_iter().collect() });
        let bulk = BulkSet { counts: [(Value::from("a"), 2)].into_iter().collect() };
        for (value, expected) in [
            (vertex(Value::Int(1)), "v[1]"),
            (edge, "e[7][1-knows->2]"),
            (vertex_property(Value::from("marko")), "vp[name->marko]"),
            (vertex_property(Value::from("12345678901234567890")), "vp[name->12345678901234567890]"),
            (vertex_property(Value::from("123456789012345678901")), "vp[name->12345678901234567...]"),
            (property, "p[weight->0.5]"),
            (list, "[1, null, a]"),
            (Value::from(map), "{a=1, id=[1, null, a]}"),
            (Value::Path(Shared::new(path)), "path[v[1], x]"),
            (Value::Tree(Shared::new(tree)), "{1={2={}}}"),
            (Value::BulkSet(Shared::new(bulk)), "{a=2}"),
            (Value::Entry(Shared::new((Value::from("a"), Value::Int(1)))), "a=1"),
            (Value::Vertex(VertexId(3)), "v[user-3]"),
            (Value::Edge(EdgeId(7)), "e[7][1-knows->2]"),
            (Value::Bool(true), "true"),
            (Value::Char('x'), "x"),
            (Value::GType(GType::Int), "INT"),
            (Value::Binary(Arc::from([1u8, 255])), "0x01ff"),
        ] {
            assert_eq!(text(&value, &Modern), expected);
        }
    }

    #[test]
    fn predicates_read_as_in_tinkerpop() {
        let eq = P::eq(Value::Int(1));
        let within = P::Within(Shared::new(vec![Value::Int(1), Value::Int(2)]));
        let gt = P::Compare(Comparison::Gt, Value::Int(2));
        for (predicate, expected) in [
            (
                P::Or(vec![P::And(vec![eq.clone(), within]), P::Text(TextComparison::StartingWith, "a".into())]),
                "or(and(eq(1), within([1, 2])), startingWith(a))",
            ),
            (P::And(vec![eq.clone(), gt]).negate(), "or(not(eq(1)), not(gt(2)))"),
            (eq.negate(), "not(eq(1))"),
            (P::TypeOf(GType::Int), "typeOf(INT)"),
            (P::eq(Value::Null), "eq"),
        ] {
            assert_eq!(predicate.to_string(), expected);
        }
    }
}
