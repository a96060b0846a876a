//! Equality and hash of values as collection members: what a Java `equals` would say of the same objects.
//!
//! Numbers of different types differ (`1` is not `1L`), doubles go by bits with one NaN, collections by content, sets and
//! maps regardless of order, elements by kind and id.

use std::hash::{Hash, Hasher};
use std::mem::discriminant;

use indexmap::IndexSet;

use crate::value::{BulkSet, StoredProperty, StoredVertexProperty, Subgraph, TraversalMetrics, Value};
use crate::{Element, ValueSet};
use crate::{Path, Tree};

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        use Value::*;
        match (self, other) {
            (Null, Null) => true,
            (Bool(a), Bool(b)) => a == b,
            (Byte(a), Byte(b)) => a == b,
            (Short(a), Short(b)) => a == b,
            (Int(a), Int(b)) => a == b,
            (Long(a), Long(b)) => a == b,
            (BigInteger(a), BigInteger(b)) => a == b,
            (Float(a), Float(b)) => float_bits(*a) == float_bits(*b),
            (Double(a), Double(b)) => double_bits(*a) == double_bits(*b),
            // Scale counts, as in Java: 1.0 is not 1.00 as a key.
            (BigDecimal(a), BigDecimal(b)) => a.as_bigint_and_exponent() == b.as_bigint_and_exponent(),
            (Char(a), Char(b)) => a == b,
            (String(a), String(b)) => a == b,
            (Uuid(a), Uuid(b)) => a == b,
            (DateTime(a), DateTime(b)) => a == b,
            (Duration(a), Duration(b)) => a == b,
            (Binary(a), Binary(b)) => a == b,
            (List(a), List(b)) => a == b,
            (Set(a), Set(b)) => a == b,
            (Map(a), Map(b)) => a == b,
            (Entry(a), Entry(b)) => a == b,
            (BulkSet(a), BulkSet(b)) => a == b,
            (Path(a), Path(b)) => a == b,
            (Tree(a), Tree(b)) => a == b,
            (Graph(a), Graph(b)) => a == b,
            (Vertex(a), Vertex(b)) => a == b,
            (Edge(a), Edge(b)) => a == b,
            (VertexProperty(a), VertexProperty(b)) => a == b,
            (Property(a), Property(b)) => a == b,
            (Element(a), Element(b)) => a == b,
            (T(a), T(b)) => a == b,
            (Direction(a), Direction(b)) => a == b,
            (Order(a), Order(b)) => a == b,
            (Scope(a), Scope(b)) => a == b,
            (Pop(a), Pop(b)) => a == b,
            (Column(a), Column(b)) => a == b,
            (Cardinality(a), Cardinality(b)) => a == b,
            (Merge(a), Merge(b)) => a == b,
            (Pick(a), Pick(b)) => a == b,
            (Operator(a), Operator(b)) => a == b,
            (DateUnit(a), DateUnit(b)) => a == b,
            (GType(a), GType(b)) => a == b,
            (P(a), P(b)) => a == b,
            (Bytecode(a), Bytecode(b)) => a == b,
            (Metrics(a), Metrics(b)) => a == b,
            (Explanation(a), Explanation(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        use Value::*;
        discriminant(self).hash(state);
        match self {
            Null => {}
            Bool(a) => a.hash(state),
            Byte(a) => a.hash(state),
            Short(a) => a.hash(state),
            Int(a) => a.hash(state),
            Long(a) => a.hash(state),
            BigInteger(a) => a.hash(state),
            Float(a) => float_bits(*a).hash(state),
            Double(a) => double_bits(*a).hash(state),
            BigDecimal(a) => a.as_bigint_and_exponent().hash(state),
            Char(a) => a.hash(state),
            String(a) => a.hash(state),
            Uuid(a) => a.hash(state),
            DateTime(a) => a.hash(state),
            Duration(a) => a.hash(state),
            Binary(a) => a.hash(state),
            List(a) => a.hash(state),
            Set(a) => a.hash_once(state, |set, state| hash_unordered(set.iter(), state)),
            Map(a) => a.hash_once(state, |map, state| hash_unordered(map.iter(), state)),
            Entry(a) => a.hash(state),
            BulkSet(a) => a.hash_once(state, |set, state| hash_unordered(set.counts.iter(), state)),
            Path(a) => a.hash_once(state, |path, state| path.objects.hash(state)),
            Tree(a) => a.hash_once(state, hash_tree),
            Graph(a) => {
                // Equal as sets, so each element counts once.
                hash_unordered(a.vertices.iter().collect::<IndexSet<_>>().into_iter(), state);
                hash_unordered(a.edges.iter().collect::<IndexSet<_>>().into_iter(), state);
            }
            Vertex(a) => a.hash(state),
            Edge(a) => a.hash(state),
            VertexProperty(a) => a.hash(state),
            Property(a) => (&a.key_name, &a.value).hash(state),
            Element(a) => a.hash(state),
            T(a) => a.hash(state),
            Direction(a) => a.hash(state),
            Order(a) => a.hash(state),
            Scope(a) => a.hash(state),
            Pop(a) => a.hash(state),
            Column(a) => a.hash(state),
            Cardinality(a) => a.hash(state),
            Merge(a) => a.hash(state),
            Pick(a) => a.hash(state),
            Operator(a) => a.hash(state),
            DateUnit(a) => a.hash(state),
            GType(a) => a.hash(state),
            P(a) => a.hash(state),
            Bytecode(a) => a.hash(state),
            Metrics(a) => hash_metrics(a, state),
            Explanation(a) => a.original.hash(state),
        }
    }
}

fn float_bits(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }
}

fn double_bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

/// A sum of member hashes: equal whatever the order.
fn hash_unordered<T: Hash, H: Hasher>(members: impl Iterator<Item = T>, state: &mut H) {
    let mut sum = 0u64;
    for member in members {
        // Fixed keys, so that equal collections hash equally within and across processes.
        let mut hasher = std::hash::DefaultHasher::new();
        member.hash(&mut hasher);
        sum = sum.wrapping_add(hasher.finish());
    }
    sum.hash(state);
}

/// All of a tree, lest trees that differ far below their roots fill one bucket of a client's set.
fn hash_tree<H: Hasher>(tree: &Tree, state: &mut H) {
    let mut sum = 0u64;
    for (key, children) in &tree.children {
        let mut hasher = std::hash::DefaultHasher::new();
        key.hash(&mut hasher);
        hash_tree(children, &mut hasher);
        sum = sum.wrapping_add(hasher.finish());
    }
    sum.hash(state);
}

fn hash_metrics<H: Hasher>(metrics: &TraversalMetrics, state: &mut H) {
    metrics.duration_ns.hash(state);
    for one in &metrics.metrics {
        (&one.id, &one.name, one.duration_ns, &one.counts, &one.annotations, one.nested.len()).hash(state);
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.objects == other.objects
            && self
                .labels()
                .zip(other.labels())
                .all(|(a, b)| a.len() == b.len() && a.iter().all(|label| b.contains(label)))
    }
}

impl PartialEq for BulkSet {
    fn eq(&self, other: &BulkSet) -> bool {
        self.counts == other.counts
    }
}

impl PartialEq for Subgraph {
    fn eq(&self, other: &Subgraph) -> bool {
        let set = |elements: &[std::sync::Arc<Element>]| -> ValueSet {
            elements.iter().map(|element| Value::Element(element.clone())).collect()
        };
        set(&self.vertices) == set(&other.vertices) && set(&self.edges) == set(&other.edges)
    }
}

impl PartialEq for StoredVertexProperty {
    fn eq(&self, other: &StoredVertexProperty) -> bool {
        self.id == other.id
    }
}

impl Eq for StoredVertexProperty {}

impl Hash for StoredVertexProperty {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl PartialEq for StoredProperty {
    /// TinkerPop compares plain properties by key and value, whatever element they belong to.
    fn eq(&self, other: &StoredProperty) -> bool {
        self.key_name == other.key_name && self.value == other.value
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Element) -> bool {
        match (self, other) {
            (Element::Vertex(a), Element::Vertex(b)) => a.id == b.id,
            (Element::Edge(a), Element::Edge(b)) => a.id == b.id,
            (Element::VertexProperty(a), Element::VertexProperty(b)) => a.id == b.id,
            (Element::Property(a), Element::Property(b)) => a.key == b.key && a.value == b.value,
            _ => false,
        }
    }
}

impl Eq for Element {}

impl Hash for Element {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Element::Vertex(a) => a.id.hash(state),
            Element::Edge(a) => a.id.hash(state),
            Element::VertexProperty(a) => a.id.hash(state),
            Element::Property(a) => (&a.key, &a.value).hash(state),
        }
    }
}
