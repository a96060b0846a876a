//! What kind of thing a value is, how large, and how deep.

use crate::Tree;
use crate::{Children, Element, Extent, GType, NESTING_MAX, Path, StepLabels, Value, ValueMap, ValueSet};

// Batches of traversers are arrays of values; a wider value would cost every one of them.
const _: () = assert!(size_of::<Value>() == 24);

/// Members of a collection that [`Value::size_hint_bytes`] looks at; the rest is taken to be alike.
const SAMPLE_MAX: usize = 32;

/// Nesting levels that [`Value::size_hint_bytes`] follows.
const SIZE_DEPTH_MAX: u32 = 4;

impl Value {
    /// The name of the type in messages: the one a Java client knows.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "Boolean",
            Value::Byte(_) => "Byte",
            Value::Short(_) => "Short",
            Value::Int(_) => "Integer",
            Value::Long(_) => "Long",
            Value::BigInteger(_) => "BigInteger",
            Value::Float(_) => "Float",
            Value::Double(_) => "Double",
            Value::BigDecimal(_) => "BigDecimal",
            Value::Char(_) => "Character",
            Value::String(_) => "String",
            Value::Uuid(_) => "UUID",
            Value::DateTime(_) => "OffsetDateTime",
            Value::Duration(_) => "Duration",
            Value::Binary(_) => "ByteBuffer",
            Value::List(_) => "ArrayList",
            Value::Set(_) => "LinkedHashSet",
            Value::Map(_) => "LinkedHashMap",
            Value::Entry(_) => "Entry",
            Value::BulkSet(_) => "BulkSet",
            Value::Path(_) => "Path",
            Value::Tree(_) => "Tree",
            Value::Graph(_) => "Graph",
            Value::Vertex(_) => "Vertex",
            Value::Edge(_) => "Edge",
            Value::VertexProperty(_) => "VertexProperty",
            Value::Property(_) => "Property",
            Value::Element(element) => match **element {
                Element::Vertex(_) => "Vertex",
                Element::Edge(_) => "Edge",
                Element::VertexProperty(_) => "VertexProperty",
                Element::Property(_) => "Property",
            },
            Value::T(_) => "T",
            Value::Direction(_) => "Direction",
            Value::Order(_) => "Order",
            Value::Scope(_) => "Scope",
            Value::Pop(_) => "Pop",
            Value::Column(_) => "Column",
            Value::Cardinality(_) => "Cardinality",
            Value::Merge(_) => "Merge",
            Value::Pick(_) => "Pick",
            Value::Operator(_) => "Operator",
            Value::DateUnit(_) => "DT",
            Value::GType(_) => "GType",
            Value::P(_) => "P",
            Value::Bytecode(_) => "Bytecode",
            Value::Metrics(_) => "TraversalMetrics",
            Value::Explanation(_) => "TraversalExplanation",
        }
    }

    /// The token of the value's own type; `None` for what has none, such as tokens and map entries.
    pub fn gtype(&self) -> Option<GType> {
        Some(match self {
            Value::Null => GType::Null,
            Value::Bool(_) => GType::Boolean,
            Value::Byte(_) => GType::Byte,
            Value::Short(_) => GType::Short,
            Value::Int(_) => GType::Int,
            Value::Long(_) => GType::Long,
            Value::BigInteger(_) => GType::BigInt,
            Value::Float(_) => GType::Float,
            Value::Double(_) => GType::Double,
            Value::BigDecimal(_) => GType::BigDecimal,
            Value::Char(_) => GType::Char,
            Value::String(_) => GType::String,
            Value::Uuid(_) => GType::Uuid,
            Value::DateTime(_) => GType::DateTime,
            Value::Duration(_) => GType::Duration,
            Value::Binary(_) => GType::Binary,
            Value::List(_) => GType::List,
            Value::Set(_) | Value::BulkSet(_) => GType::Set,
            Value::Map(_) => GType::Map,
            Value::Path(_) => GType::Path,
            Value::Tree(_) => GType::Tree,
            Value::Graph(_) => GType::Graph,
            Value::Vertex(_) => GType::Vertex,
            Value::Edge(_) => GType::Edge,
            Value::VertexProperty(_) => GType::VProperty,
            Value::Property(_) => GType::Property,
            Value::Element(element) => match **element {
                Element::Vertex(_) => GType::Vertex,
                Element::Edge(_) => GType::Edge,
                Element::VertexProperty(_) => GType::VProperty,
                Element::Property(_) => GType::Property,
            },
            _ => return None,
        })
    }

    /// Whether `typeOf()` of this token holds: the value has this type or one below it.
    pub fn has_gtype(&self, token: GType) -> bool {
        let own = self.gtype();
        match token {
            GType::Number => crate::number::is_number(self),
            GType::Map => matches!(own, Some(GType::Map | GType::Tree)),
            GType::Property => matches!(own, Some(GType::Property | GType::VProperty)),
            token => own == Some(token),
        }
    }

    /// About how many bytes the value holds, itself included. Shared parts count wherever they are referred to. Large
    /// collections are extrapolated from their first members, deep ones cut off, so that the cost is bounded.
    pub fn size_hint_bytes(&self) -> usize {
        size_of::<Value>() + heap_bytes(self, 0)
    }

    /// Whether it is of a kind that holds other values.
    #[inline]
    pub fn holds_others(&self) -> bool {
        matches!(
            self,
            Value::List(_)
                | Value::Set(_)
                | Value::Map(_)
                | Value::Entry(_)
                | Value::BulkSet(_)
                | Value::Path(_)
                | Value::Tree(_)
        )
    }

    /// Whether it is all there is of it: it holds no memory beside itself and shares none, so that its drop does nothing.
    #[inline]
    pub fn is_flat(&self) -> bool {
        match self {
            Value::Null
            | Value::Bool(_)
            | Value::Byte(_)
            | Value::Short(_)
            | Value::Int(_)
            | Value::Long(_)
            | Value::Float(_)
            | Value::Double(_)
            | Value::Char(_)
            | Value::Uuid(_)
            | Value::DateTime(_)
            | Value::Duration(_)
            | Value::Vertex(_)
            | Value::Edge(_)
            | Value::T(_)
            | Value::Direction(_)
            | Value::Order(_)
            | Value::Scope(_)
            | Value::Pop(_)
            | Value::Column(_)
            | Value::Cardinality(_)
            | Value::Merge(_)
            | Value::Pick(_)
            | Value::Operator(_)
            | Value::DateUnit(_)
            | Value::GType(_) => true,
            Value::BigInteger(_)
            | Value::BigDecimal(_)
            | Value::String(_)
            | Value::Binary(_)
            | Value::List(_)
            | Value::Set(_)
            | Value::Map(_)
            | Value::Entry(_)
            | Value::BulkSet(_)
            | Value::Path(_)
            | Value::Tree(_)
            | Value::Graph(_)
            | Value::VertexProperty(_)
            | Value::Property(_)
            | Value::Element(_)
            | Value::P(_)
            | Value::Bytecode(_)
            | Value::Metrics(_)
            | Value::Explanation(_) => false,
        }
    }

    /// How deep the value is nested, and how many values it is. Cost: what has been put together since it was asked last.
    #[inline]
    pub fn extent(&self) -> Extent {
        /// Deeper is too deep, whatever it is.
        const LEVELS: usize = 2 * NESTING_MAX;
        Extent::within(self, LEVELS)
    }
}

/// What an allocator hands out for so many bytes: it has four sizes between a power of two and the next, and none below 16.
pub fn allocated_bytes(bytes: usize) -> usize {
    /// Large pieces are rounded to this.
    const LARGEST_STEP: usize = 64 << 10;
    let step = (bytes.next_power_of_two() / 8).clamp(16, LARGEST_STEP);
    bytes.next_multiple_of(step)
}

/// Bytes behind the pointers of a value.
fn heap_bytes(value: &Value, depth: u32) -> usize {
    const COUNTERS: usize = 16;
    /// The hash that an index map keeps with an entry.
    const HASH: usize = 8;
    let sampled = |count: usize, members: &mut dyn Iterator<Item = usize>| {
        let looked_at = count.min(SAMPLE_MAX);
        let bytes: usize = members.take(looked_at).sum();
        (bytes * count).checked_div(looked_at).unwrap_or(0)
    };
    let member =
        |value: &Value| size_of::<Value>() + if depth < SIZE_DEPTH_MAX { heap_bytes(value, depth + 1) } else { 0 };
    match value {
        Value::String(text) => allocated_bytes(COUNTERS + text.len()),
        Value::Binary(bytes) => allocated_bytes(COUNTERS + bytes.len()),
        Value::BigInteger(integer) => COUNTERS + 32 + integer.bits() as usize / 8,
        Value::BigDecimal(decimal) => COUNTERS + 40 + crate::decimal::parts(decimal).0.bits() as usize / 8,
        Value::List(list) => {
            let rest = list.capacity() * size_of::<Value>() - list.len() * size_of::<Value>();
            let own = SHARED + size_of::<Vec<Value>>();
            let members = sampled(list.len(), &mut list.iter().map(member));
            allocated_bytes(own) + in_pieces(list.capacity(), size_of::<Value>()) + rest + members
        }
        Value::Set(set) => {
            let entry = HASH + size_of::<Value>();
            let table = table_bytes(set.capacity(), set.len(), entry);
            table + sampled(set.len(), &mut set.iter().map(|value| HASH + member(value)))
        }
        Value::Map(map) => {
            let own = SHARED + size_of::<ValueMap>();
            // Shared keys are nobody's.
            let (counted, members) = match map.shares_keys() {
                true => (1, sampled(map.len(), &mut map.values().map(member))),
                false => (2, sampled(map.len(), &mut map.iter().map(|(key, value)| member(key) + member(value)))),
            };
            let rest = map.heap_bytes() - map.len() * counted * size_of::<Value>();
            allocated_bytes(own) + rest + members
        }
        Value::Entry(entry) => {
            let own = SHARED + 2 * size_of::<Value>();
            allocated_bytes(own) - 2 * size_of::<Value>() + member(&entry.0) + member(&entry.1)
        }
        Value::BulkSet(set) => {
            let table = table_bytes(set.counts.capacity(), set.counts.len(), HASH + 8 + size_of::<Value>());
            table + sampled(set.counts.len(), &mut set.counts.keys().map(|key| HASH + 8 + member(key)))
        }
        Value::Path(path) => {
            let count = path.objects.len();
            allocated_bytes(SHARED + size_of::<Path>())
                + allocated_bytes(path.places_of_labels() * size_of::<Option<StepLabels>>())
                + in_pieces(count, size_of::<Value>())
                + sampled(count, &mut path.objects.iter().map(member))
        }
        Value::Tree(tree) => COUNTERS + tree_bytes(tree, depth),
        Value::Graph(graph) => COUNTERS + 256 * (graph.vertices.len() + graph.edges.len()),
        Value::VertexProperty(property) => COUNTERS + 64 + member(&property.value),
        Value::Property(property) => COUNTERS + 64 + member(&property.value),
        Value::Element(element) => COUNTERS + 128 + element_bytes(element, &member),
        Value::P(_) | Value::Bytecode(_) | Value::Metrics(_) | Value::Explanation(_) => COUNTERS + 256,
        _ => 0,
    }
}

/// What lies before a [`crate::Shared`] value: two counters of owners, its extent and its hash.
const SHARED: usize = 32;

/// What an allocator adds to so many things of this size in one piece.
fn in_pieces(count: usize, size: usize) -> usize {
    allocated_bytes(count * size) - count * size
}

/// What a shared index map or set has beside its entries: itself, its table of positions, and the room that is free, `entry` bytes each.
fn table_bytes(capacity: usize, len: usize, entry: usize) -> usize {
    allocated_bytes(SHARED + size_of::<ValueSet>()) + index_map_bytes(capacity, entry) - len * entry
}

/// What an index map of this capacity has allocated: its entries, `entry` bytes each, and their table of positions.
pub(crate) fn index_map_bytes(capacity: usize, entry: usize) -> usize {
    if capacity == 0 {
        return 0;
    }
    // One in eight positions stays free; each has a byte of the table's own, and there are some more.
    let positions = (capacity * 8 / 7).next_power_of_two().max(4);
    allocated_bytes(capacity * entry) + allocated_bytes(positions * (size_of::<usize>() + 1) + 16)
}

fn tree_bytes(tree: &Tree, depth: u32) -> usize {
    if depth > SIZE_DEPTH_MAX {
        return 0;
    }
    let count = tree.children.len();
    let looked_at = count.min(SAMPLE_MAX);
    let below = |(key, child)| heap_bytes(key, depth + 1) + tree_bytes(child, depth + 1);
    let bytes: usize = tree.children.iter().take(looked_at).map(below).sum();
    let own = match count {
        0 => 0,
        _ => {
            let entry = size_of::<u64>() + size_of::<(Value, Tree)>();
            allocated_bytes(Children::FIRST_BYTES) + index_map_bytes(tree.children.capacity(), entry)
        }
    };
    own + (bytes * count).checked_div(looked_at).unwrap_or(0)
}

fn element_bytes(element: &Element, member: &dyn Fn(&Value) -> usize) -> usize {
    match element {
        Element::Vertex(vertex) => vertex.properties.iter().map(|property| 96 + member(&property.value)).sum(),
        Element::Edge(edge) => edge.properties.iter().map(|property| 64 + member(&property.value)).sum(),
        Element::VertexProperty(property) => member(&property.value),
        Element::Property(property) => member(&property.value),
    }
}

impl GType {
    /// The token whose Java class has this simple name, as `typeOf("Integer")` names types.
    pub fn from_class_name(name: &str) -> Option<GType> {
        Some(match name {
            "BigDecimal" => GType::BigDecimal,
            "BigInteger" => GType::BigInt,
            "ByteBuffer" => GType::Binary,
            "Boolean" => GType::Boolean,
            "Byte" => GType::Byte,
            "Character" => GType::Char,
            "OffsetDateTime" => GType::DateTime,
            "Double" => GType::Double,
            "Duration" => GType::Duration,
            "Edge" => GType::Edge,
            "Float" => GType::Float,
            "Graph" => GType::Graph,
            "Integer" => GType::Int,
            "List" => GType::List,
            "Long" => GType::Long,
            "Map" => GType::Map,
            "Number" => GType::Number,
            "Path" => GType::Path,
            "Property" => GType::Property,
            "Set" => GType::Set,
            "Short" => GType::Short,
            "String" => GType::String,
            "Tree" => GType::Tree,
            "UUID" => GType::Uuid,
            "Vertex" => GType::Vertex,
            "VertexProperty" => GType::VProperty,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Shared;

    use std::sync::Arc;

    use super::*;

    #[test]
    fn sizes_are_those_of_what_is_allocated() {
        for (bytes, expected) in [(0, 0), (1, 16), (16, 16), (17, 32), (64, 64), (65, 80), (128, 128), (129, 160)] {
            assert_eq!(allocated_bytes(bytes), expected, "{bytes}");
        }
        assert_eq!(allocated_bytes(1 << 20), 1 << 20);
        assert_eq!(allocated_bytes((1 << 20) + 1), (1 << 20) + (64 << 10));
        // A map: counters, extent and hash before the map itself, and its entries.
        let of_map = |map: ValueMap| Value::Map(Shared::new(map)).size_hint_bytes() - size_of::<Value>();
        let entries = |count| (0..count).map(|key| (Value::Int(key), Value::Null));
        assert_eq!(of_map(entries(2).collect()), allocated_bytes(32 + 24) + allocated_bytes(2 * 48));
        // Of many entries: the index map, as many of 56 bytes, and 16 positions.
        let index = allocated_bytes(size_of::<ValueSet>()) + allocated_bytes(9 * 56) + allocated_bytes(16 * 9 + 16);
        assert_eq!(of_map(entries(9).collect()), allocated_bytes(32 + 24) + index);
        // A set of two has room for three members of 32 bytes, and four positions.
        let set: ValueSet = (0..2).map(Value::Int).collect();
        let parts = [32 + size_of::<ValueSet>(), set.capacity() * 32, 4 * 9 + 16].map(allocated_bytes);
        assert_eq!(Value::from(set).size_hint_bytes() - size_of::<Value>(), parts.iter().sum());
        // One of one member: before the list, and the member.
        let list = Value::from(vec![Value::Null]);
        assert_eq!(list.size_hint_bytes() - size_of::<Value>(), allocated_bytes(32 + 24) + allocated_bytes(24));
        // What a list has room for counts, whether it is used or not.
        let mut list = Vec::with_capacity(1000);
        list.push(Value::Int(1));
        assert!(Value::List(Shared::new(list)).size_hint_bytes() >= 24_000);
    }

    #[test]
    fn types_include_those_below_them() {
        let vertex_property = Value::Element(Arc::new(Element::VertexProperty(crate::DetachedVertexProperty {
            id: Value::Long(1),
            key: "k".into(),
            value: Value::Int(1),
            properties: Vec::new(),
            owner: None,
        })));
        for (value, token, expected) in [
            (Value::Int(1), GType::Int, true),
            (Value::Int(1), GType::Number, true),
            (Value::Int(1), GType::Long, false),
            (Value::Null, GType::Null, true),
            (Value::Null, GType::String, false),
            (Value::Int(1), GType::Null, false),
            (Value::Tree(Shared::default()), GType::Map, true),
            (Value::BulkSet(Shared::default()), GType::Set, true),
            (vertex_property.clone(), GType::Property, true),
            (vertex_property, GType::VProperty, true),
            (Value::T(crate::T::Id), GType::String, false),
        ] {
            assert_eq!(value.has_gtype(token), expected, "{value:?} {token}");
        }
        assert_eq!(GType::from_class_name("Integer"), Some(GType::Int));
        assert_eq!(GType::from_class_name("integer"), None);
    }

    #[test]
    fn size_grows_with_content_and_stays_cheap() {
        assert_eq!(Value::Int(1).size_hint_bytes(), 24);
        assert!(Value::from("x".repeat(1000)).size_hint_bytes() >= 1000);
        let list = Value::from(vec![Value::from("0123456789"); 100_000]);
        let bytes = list.size_hint_bytes();
        assert!((4_000_000..8_000_000).contains(&bytes), "{bytes}");
    }
}
