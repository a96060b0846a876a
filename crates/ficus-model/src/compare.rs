//! How values compare: for predicates (where two values may have no order) and for `order()` (where all have one).
//!
//! **Comparability** ([`compare`], [`equals`]) stays within one type family: numbers of any type are one family and meet
//! in a common type (`1 == 1L == 1.0`), NaN compares with nothing, collections compare member by member and only if all
//! members do. **Orderability** ([`order`]) ranks the families, puts NaN after infinity and never fails.
//!
//! Numbers in `order()` compare by exact value rather than in the promoted type, because promotion is no order:
//! 16777216, 16777216f and 16777217 would be "equal, equal, less". Zero and negative zero are equal in both, text
//! compares by code point, UUIDs as text, dates by instant and then by local time.
//!
//! Who compares collections of very many members asks now and then whether somebody still wants to know ([`ElementResolver::is_stopped`]), and says
//! anything if not.
//!
//! Elements compare by the user's id. Values nested deeper than [`DEPTH_MAX`] count as equal below that depth, which
//! keeps both relations consistent and the stack bounded.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::Tree;
use crate::number::{self, Width, to_integer};
use crate::sorting::sort_in_steps;
use crate::value::BulkSet;
use crate::{Element, ElementResolver, MEMBERS_BETWEEN_LOOKS, Value, ValueMap, decimal};

/// Nesting levels that comparisons follow.
pub const DEPTH_MAX: usize = crate::NESTING_MAX;

/// Compares within one type family; `None` if the two cannot be compared. What `lt`, `lte`, `gt` and `gte` go by.
pub fn compare(a: &Value, b: &Value, resolver: &dyn ElementResolver) -> Option<Ordering> {
    Comparer { resolver, total: false }.compare(a, b, 0)
}

/// Whether two values are equal in the sense of `eq`, `neq`, `within` and `without`; never fails.
pub fn equals(a: &Value, b: &Value, resolver: &dyn ElementResolver) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Long(a), Value::Long(b)) => a == b,
        // One graph gives one internal id to one element.
        (Value::Vertex(a), Value::Vertex(b)) => a == b,
        (Value::Edge(a), Value::Edge(b)) => a == b,
        _ => !sizes_differ(a, b) && compare(a, b, resolver) == Some(Ordering::Equal),
    }
}

/// The total order of `order()`: null, booleans, numbers, dates, text, UUIDs, vertices, edges, vertex properties,
/// properties, paths, sets, lists, maps, entries, everything else. Tokens order as their names.
pub fn order(a: &Value, b: &Value, resolver: &dyn ElementResolver) -> Ordering {
    let comparer = Comparer { resolver, total: true };
    match (sort_text(a), sort_text(b)) {
        (Some(a), Some(b)) => a.cmp(b),
        (Some(_), None) => Family::Text.cmp(&Family::of(b)),
        (None, Some(_)) => Family::of(a).cmp(&Family::Text),
        (None, None) => comparer.order(a, b, 0),
    }
}

/// A string, or the name of a token, which sorts like one.
fn sort_text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        _ => token_name(value),
    }
}

/// The name of an enumeration value.
pub(crate) fn token_name(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::T(token) => token.name(),
        Value::Direction(token) => token.name(),
        Value::Order(token) => token.name(),
        Value::Scope(token) => token.name(),
        Value::Pop(token) => token.name(),
        Value::Column(token) => token.name(),
        Value::Cardinality(token) => token.name(),
        Value::Merge(token) => token.name(),
        Value::Pick(token) => token.name(),
        Value::Operator(token) => token.name(),
        Value::DateUnit(token) => token.name(),
        Value::GType(token) => token.name(),
        _ => return None,
    })
}

/// Type families in their order. The last ones are Gremlin's single family "unknown", by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    Null,
    Boolean,
    Number,
    Date,
    Text,
    Uuid,
    Vertex,
    Edge,
    VertexProperty,
    Property,
    Path,
    Set,
    List,
    Map,
    Entry,
    Char,
    Binary,
    Duration,
    Token,
    Predicate,
    Bytecode,
    Graph,
    Metrics,
    Explanation,
}

impl Family {
    fn of(value: &Value) -> Family {
        use Value::*;
        match value {
            Null => Family::Null,
            Bool(_) => Family::Boolean,
            Byte(_) | Short(_) | Int(_) | Long(_) | BigInteger(_) | Float(_) | Double(_) | BigDecimal(_) => {
                Family::Number
            }
            DateTime(_) => Family::Date,
            String(_) => Family::Text,
            Uuid(_) => Family::Uuid,
            Vertex(_) => Family::Vertex,
            Edge(_) => Family::Edge,
            VertexProperty(_) => Family::VertexProperty,
            Property(_) => Family::Property,
            Element(element) => match **element {
                crate::Element::Vertex(_) => Family::Vertex,
                crate::Element::Edge(_) => Family::Edge,
                crate::Element::VertexProperty(_) => Family::VertexProperty,
                crate::Element::Property(_) => Family::Property,
            },
            Path(_) => Family::Path,
            Set(_) | BulkSet(_) => Family::Set,
            List(_) => Family::List,
            Map(_) | Tree(_) => Family::Map,
            Entry(_) => Family::Entry,
            Char(_) => Family::Char,
            Binary(_) => Family::Binary,
            Duration(_) => Family::Duration,
            T(_) | Direction(_) | Order(_) | Scope(_) | Pop(_) | Column(_) | Cardinality(_) | Merge(_) | Pick(_)
            | Operator(_) | DateUnit(_) | GType(_) => Family::Token,
            P(_) => Family::Predicate,
            Bytecode(_) => Family::Bytecode,
            Graph(_) => Family::Graph,
            Metrics(_) => Family::Metrics,
            Explanation(_) => Family::Explanation,
        }
    }
}

/// Cheap proof that two collections are unequal, before going through their members.
fn sizes_differ(a: &Value, b: &Value) -> bool {
    let size = |value: &Value| match value {
        Value::List(list) => Some(list.len() as u64),
        Value::Set(set) => Some(set.len() as u64),
        Value::BulkSet(set) => Some(bulk_count(set)),
        Value::Map(map) => Some(map.len() as u64),
        Value::Path(path) => Some(path.objects.len() as u64),
        _ => None,
    };
    matches!((size(a), size(b)), (Some(a), Some(b)) if a != b)
}

fn bulk_count(set: &BulkSet) -> u64 {
    set.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
}

/// One of the two relations over one store.
struct Comparer<'r> {
    resolver: &'r dyn ElementResolver,
    /// Orderability rather than comparability.
    total: bool,
}

/// A member of a sorted collection with its multiplicity.
type Run<'a> = (&'a Value, u64);

impl Comparer<'_> {
    /// `order` or `compare`; never `None` for the total order.
    fn compare(&self, a: &Value, b: &Value, depth: usize) -> Option<Ordering> {
        let family = Family::of(a);
        let families = family.cmp(&Family::of(b));
        if families != Ordering::Equal {
            return self.total.then_some(families);
        }
        if depth > DEPTH_MAX {
            return Some(Ordering::Equal);
        }
        match family {
            Family::Null => Some(Ordering::Equal),
            Family::Number if self.total => Some(order_numbers(a, b)),
            Family::Number => compare_numbers(a, b),
            Family::Vertex | Family::Edge | Family::VertexProperty => match same_internal_id(a, b) {
                true => Some(Ordering::Equal),
                false => self.compare(&element_id(a, self.resolver), &element_id(b, self.resolver), depth + 1),
            },
            Family::Property => {
                let ((a_key, a_value), (b_key, b_value)) = (property_parts(a)?, property_parts(b)?);
                self.both(Some(a_key.cmp(b_key)), || self.compare(a_value, b_value, depth + 1))
            }
            Family::Path | Family::List => self.compare_members(members(a), members(b), depth),
            Family::Set => self.compare_runs(&self.sorted_runs(a)?, &self.sorted_runs(b)?, depth),
            Family::Map => self.compare_maps(&*map_of(a)?, &*map_of(b)?, depth),
            Family::Entry => match (a, b) {
                (Value::Entry(a), Value::Entry(b)) => self.compare_entries((&a.0, &a.1), (&b.0, &b.1), depth),
                _ => None,
            },
            _ => match compare_plain(a, b) {
                None if a == b => Some(Ordering::Equal),
                None if self.total => Some(a.to_string().cmp(&b.to_string())),
                ordering => ordering,
            },
        }
    }

    fn order(&self, a: &Value, b: &Value, depth: usize) -> Ordering {
        debug_assert!(self.total);
        self.compare(a, b, depth).unwrap_or(Ordering::Equal)
    }

    /// The first comparison unless it is equal; incomparable if either is. The total order skips the second if it can.
    fn both(&self, first: Option<Ordering>, second: impl FnOnce() -> Option<Ordering>) -> Option<Ordering> {
        match first {
            Some(decided) if decided != Ordering::Equal && self.total => first,
            Some(first) => second().map(|second| first.then(second)),
            None => None,
        }
    }

    /// To be called for each member: none now and then, once nobody wants to know any more.
    fn look(&self, index: usize) -> Option<()> {
        let is_over = index % MEMBERS_BETWEEN_LOOKS == MEMBERS_BETWEEN_LOOKS - 1 && self.resolver.is_stopped();
        (!is_over).then_some(())
    }

    fn compare_members(&self, a: &[Value], b: &[Value], depth: usize) -> Option<Ordering> {
        let mut result = Ordering::Equal;
        for (index, (a, b)) in a.iter().zip(b).enumerate() {
            self.look(index)?;
            result = self.both(Some(result), || self.compare(a, b, depth + 1))?;
            if self.total && result != Ordering::Equal {
                return Some(result);
            }
        }
        Some(result.then(a.len().cmp(&b.len())))
    }

    /// The members of a set in total order, equal neighbours apart; none if nobody wants to know any more.
    fn sorted_runs<'a>(&self, set: &'a Value) -> Option<Vec<Run<'a>>> {
        let mut runs: Vec<Run<'a>> = match set {
            Value::Set(set) => set.iter().map(|member| (member, 1)).collect(),
            Value::BulkSet(set) => set.counts.iter().map(|(member, count)| (member, *count)).collect(),
            _ => Vec::new(),
        };
        let total = Comparer { resolver: self.resolver, total: true };
        let compare = |a: &Run<'a>, b: &Run<'a>| total.order(a.0, b.0, 1);
        sort_in_steps(&mut runs, compare, || !self.resolver.is_stopped()).then_some(runs)
    }

    /// Compares two sorted collections as if every member stood as often as its count says.
    fn compare_runs(&self, a: &[Run], b: &[Run], depth: usize) -> Option<Ordering> {
        let mut result = Ordering::Equal;
        let (mut a_rest, mut b_rest) = (a.iter().copied_runs(), b.iter().copied_runs());
        let (mut a_run, mut b_run) = (a_rest.next(), b_rest.next());
        for index in 0.. {
            self.look(index)?;
            match (&mut a_run, &mut b_run) {
                (Some((a_value, a_count)), Some((b_value, b_count))) => {
                    result = self.both(Some(result), || self.compare(a_value, b_value, depth + 1))?;
                    if self.total && result != Ordering::Equal {
                        return Some(result);
                    }
                    let step = (*a_count).min(*b_count);
                    *a_count -= step;
                    *b_count -= step;
                    if *a_count == 0 {
                        a_run = a_rest.next();
                    }
                    if let Some((_, 0)) = b_run {
                        b_run = b_rest.next();
                    }
                }
                (a_run, b_run) => return Some(result.then(a_run.is_some().cmp(&b_run.is_some()))),
            }
        }
        None
    }

    fn compare_maps(&self, a: &ValueMap, b: &ValueMap, depth: usize) -> Option<Ordering> {
        let total = Comparer { resolver: self.resolver, total: true };
        let sorted = |map: &'_ ValueMap| -> Option<Vec<u32>> {
            let mut places: Vec<u32> = (0..u32::try_from(map.len()).ok()?).collect();
            let compare = |a: &u32, b: &u32| match (map.get_index(*a as usize), map.get_index(*b as usize)) {
                (Some(a), Some(b)) => total.compare_entries(a, b, 1).unwrap_or(Ordering::Equal),
                _ => Ordering::Equal,
            };
            sort_in_steps(&mut places, compare, || !self.resolver.is_stopped()).then_some(places)
        };
        let mut result = Ordering::Equal;
        for (index, (a_place, b_place)) in sorted(a)?.into_iter().zip(sorted(b)?).enumerate() {
            self.look(index)?;
            let (a, b) = (a.get_index(a_place as usize)?, b.get_index(b_place as usize)?);
            result = self.both(Some(result), || self.compare_entries(a, b, depth + 1))?;
            if self.total && result != Ordering::Equal {
                return Some(result);
            }
        }
        Some(result.then(a.len().cmp(&b.len())))
    }

    fn compare_entries(&self, a: (&Value, &Value), b: (&Value, &Value), depth: usize) -> Option<Ordering> {
        self.both(self.compare(a.0, b.0, depth + 1), || self.compare(a.1, b.1, depth + 1))
    }
}

/// Runs as an iterator of owned counts over borrowed values, skipping empty ones.
trait CopiedRuns<'a> {
    fn copied_runs(self) -> impl Iterator<Item = (&'a Value, u64)>;
}

impl<'a, 'v: 'a, I: Iterator<Item = &'a Run<'v>>> CopiedRuns<'a> for I {
    fn copied_runs(self) -> impl Iterator<Item = (&'a Value, u64)> {
        self.filter(|(_, count)| *count > 0).map(|(value, count)| (*value, *count))
    }
}

/// Families whose members have an order of their own.
fn compare_plain(a: &Value, b: &Value) -> Option<Ordering> {
    use Value::*;
    Some(match (a, b) {
        (Bool(a), Bool(b)) => a.cmp(b),
        (String(a), String(b)) => a.cmp(b),
        (Char(a), Char(b)) => a.cmp(b),
        (Uuid(a), Uuid(b)) => a.cmp(b),
        (DateTime(a), DateTime(b)) => a.cmp(b),
        (Duration(a), Duration(b)) => a.cmp(b),
        (Binary(a), Binary(b)) => a.cmp(b),
        (T(a), T(b)) => a.cmp(b),
        (Direction(a), Direction(b)) => a.cmp(b),
        (Order(a), Order(b)) => a.cmp(b),
        (Scope(a), Scope(b)) => a.cmp(b),
        (Pop(a), Pop(b)) => a.cmp(b),
        (Column(a), Column(b)) => a.cmp(b),
        (Cardinality(a), Cardinality(b)) => a.cmp(b),
        (Merge(a), Merge(b)) => a.cmp(b),
        (Pick(a), Pick(b)) => a.cmp(b),
        (Operator(a), Operator(b)) => a.cmp(b),
        (DateUnit(a), DateUnit(b)) => a.cmp(b),
        (GType(a), GType(b)) => a.cmp(b),
        _ => return None,
    })
}

fn members(value: &Value) -> &[Value] {
    match value {
        Value::List(list) => list,
        Value::Path(path) => &path.objects,
        _ => &[],
    }
}

fn map_of(value: &Value) -> Option<Cow<'_, ValueMap>> {
    match value {
        Value::Map(map) => Some(Cow::Borrowed(map)),
        Value::Tree(tree) => Some(Cow::Owned(tree_as_map(tree, 0))),
        _ => None,
    }
}

/// A tree as the map of maps it is.
fn tree_as_map(tree: &Tree, depth: usize) -> ValueMap {
    if depth > DEPTH_MAX {
        return ValueMap::default();
    }
    let child = |(key, child): (&Value, &Tree)| (key.clone(), Value::Map(tree_as_map(child, depth + 1).into()));
    tree.children.iter().map(child).collect()
}

fn same_internal_id(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Vertex(a), Value::Vertex(b)) => a == b,
        (Value::Edge(a), Value::Edge(b)) => a == b,
        (Value::VertexProperty(a), Value::VertexProperty(b)) => a.id == b.id,
        _ => false,
    }
}

/// The user's id of a vertex, edge or vertex property; null for anything else.
pub fn element_id(value: &Value, resolver: &dyn ElementResolver) -> Value {
    match value {
        Value::Vertex(id) => resolver.vertex_id(*id),
        Value::Edge(id) => resolver.edge_id(*id),
        Value::VertexProperty(property) => crate::resolver::internal(property.id),
        Value::Element(element) => match &**element {
            Element::Vertex(vertex) => vertex.id.clone(),
            Element::Edge(edge) => edge.id.clone(),
            Element::VertexProperty(property) => property.id.clone(),
            Element::Property(_) => Value::Null,
        },
        _ => Value::Null,
    }
}

fn property_parts(value: &Value) -> Option<(&str, &Value)> {
    match value {
        Value::Property(property) => Some((&property.key_name, &property.value)),
        Value::Element(element) => match &**element {
            Element::Property(property) => Some((&property.key, &property.value)),
            _ => None,
        },
        _ => None,
    }
}

/// Compares two numbers in the type they meet in; `None` if either is NaN.
fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    if number::is_nan(a) || number::is_nan(b) {
        return None;
    }
    let width = Width::of(a)?.common(Width::of(b)?);
    match width {
        Width { bits: 128, .. } => Some(compare_unbounded(a, b)),
        Width { floating: false, .. } => Some(to_integer(a).cmp(&to_integer(b))),
        Width { bits: 64, floating: true } => number::to_double(a).partial_cmp(&number::to_double(b)),
        Width { floating: true, .. } => number::to_float(a).partial_cmp(&number::to_float(b)),
    }
}

/// 1 or -1 for infinities, 0 for all else.
fn infinity_sign(value: &Value) -> i8 {
    let double = match value {
        Value::Float(float) => f64::from(*float),
        Value::Double(double) => *double,
        _ => return 0,
    };
    if double == f64::INFINITY {
        1
    } else if double == f64::NEG_INFINITY {
        -1
    } else {
        0
    }
}

/// Compares by exact value, an infinity beyond all; neither is NaN.
fn compare_unbounded(a: &Value, b: &Value) -> Ordering {
    if let (Value::BigInteger(a), Value::BigInteger(b)) = (a, b) {
        return a.cmp(b);
    }
    let (a_infinity, b_infinity) = (infinity_sign(a), infinity_sign(b));
    if a_infinity != 0 || b_infinity != 0 {
        return a_infinity.cmp(&b_infinity);
    }
    match (number::to_decimal(a), number::to_decimal(b)) {
        (Ok(a), Ok(b)) => decimal::compare(&a, &b),
        _ => Ordering::Equal,
    }
}

/// Integers up to this size are doubles too.
const EXACT_DOUBLE_MAX: u64 = 1 << 53;

/// The total order of numbers: by exact value (of doubles: of the decimal they are written as), NaN last.
fn order_numbers(a: &Value, b: &Value) -> Ordering {
    let (a_nan, b_nan) = (number::is_nan(a), number::is_nan(b));
    if a_nan || b_nan {
        return a_nan.cmp(&b_nan);
    }
    let (Some(a_width), Some(b_width)) = (Width::of(a), Width::of(b)) else {
        return Ordering::Equal;
    };
    let small = |value: &Value, width: Width| {
        width.bits < 128 && (width.floating || to_integer(value).unsigned_abs() <= EXACT_DOUBLE_MAX)
    };
    if a_width.bits < 128 && b_width.bits < 128 && !a_width.floating && !b_width.floating {
        return to_integer(a).cmp(&to_integer(b));
    }
    if small(a, a_width) && small(b, b_width) {
        return number::to_double(a).partial_cmp(&number::to_double(b)).unwrap_or(Ordering::Equal);
    }
    // A float beside a decimal counts as the double it widens to, else 0.1f would equal both 0.1 and what it is as a double.
    let widened = |value: &Value| match value {
        Value::Float(float) => Value::Double(f64::from(*float)),
        other => other.clone(),
    };
    compare_unbounded(&widened(a), &widened(b))
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
