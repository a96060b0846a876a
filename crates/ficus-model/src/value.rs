//! The TinkerPop value set, and the compound values a traversal makes (paths, trees, bulk sets).
//!
//! A [`Value`] is 24 bytes: numbers, dates and UUIDs inline, everything larger behind an [`Arc`], and what holds other values
//! behind a [`Shared`], so that a clone is a counter. `Eq` and `Hash` are those of a Java collection (`1` and `1L` are different map keys); the comparisons that
//! predicates and `order()` use are in [`crate::compare`].

use std::sync::Arc;

use bigdecimal::BigDecimal;
use indexmap::{IndexMap, IndexSet};
use num_bigint::BigInt;
use uuid::Uuid;

use crate::{
    Bytecode, Cardinality, Column, DateUnit, Direction, Duration, EdgeId, Element, GType, KeyId, Merge, OffsetDateTime,
    Operator, Order, P, Path, Pick, Pop, Scope, Shared, T, Tree, ValueMap, VertexId,
};

/// A set that keeps insertion order, as Gremlin's sets do.
pub type ValueSet = IndexSet<Value, ValueHashing>;
/// How maps and sets hash values: fast, and seeded anew in every process.
pub type ValueHashing = hashbrown::DefaultHashBuilder;

/// Any value a traversal, property or message can hold.
#[derive(Clone, Debug)]
pub enum Value {
    /// The absent value.
    Null,
    /// True or false.
    Bool(bool),
    /// Signed 8 bit.
    Byte(i8),
    /// Signed 16 bit.
    Short(i16),
    /// Signed 32 bit; what a bare integer literal is.
    Int(i32),
    /// Signed 64 bit.
    Long(i64),
    /// Unbounded integer.
    BigInteger(Arc<BigInt>),
    /// Single precision.
    Float(f32),
    /// Double precision; what a bare decimal literal is.
    Double(f64),
    /// Unbounded decimal.
    BigDecimal(Arc<BigDecimal>),
    /// One character.
    Char(char),
    /// Text.
    String(Arc<str>),
    /// A UUID.
    Uuid(Uuid),
    /// A point in time.
    DateTime(OffsetDateTime),
    /// A length of time.
    Duration(Duration),
    /// Bytes.
    Binary(Arc<[u8]>),
    /// An ordered collection.
    List(Shared<Vec<Value>>),
    /// A collection of different values.
    Set(Shared<ValueSet>),
    /// Keys and values.
    Map(Shared<ValueMap>),
    /// One entry of a map, as `unfold()` yields it.
    Entry(Shared<(Value, Value)>),
    /// A collection with multiplicities, as `cap()` of `aggregate()` yields it.
    BulkSet(Shared<BulkSet>),
    /// The way a traverser came.
    Path(Shared<Path>),
    /// A tree of paths.
    Tree(Shared<Tree>),
    /// A graph cut out by `subgraph()`.
    Graph(Arc<Subgraph>),
    /// A vertex of the query's graph.
    Vertex(VertexId),
    /// An edge of the query's graph.
    Edge(EdgeId),
    /// A vertex property of the query's graph.
    VertexProperty(Arc<StoredVertexProperty>),
    /// An edge property or meta-property of the query's graph.
    Property(Arc<StoredProperty>),
    /// An element outside the graph: sent by a client, or on its way to one.
    Element(Arc<Element>),
    /// A structural token.
    T(T),
    /// A direction.
    Direction(Direction),
    /// A sort direction.
    Order(Order),
    /// A scope.
    Scope(Scope),
    /// A pop.
    Pop(Pop),
    /// A column.
    Column(Column),
    /// A cardinality.
    Cardinality(Cardinality),
    /// A merge option.
    Merge(Merge),
    /// A branch option.
    Pick(Pick),
    /// A binary operator.
    Operator(Operator),
    /// A unit of time.
    DateUnit(DateUnit),
    /// A type name.
    GType(GType),
    /// A predicate as a value (inside a list argument, or bound as a parameter).
    P(Arc<P>),
    /// A traversal as a value (bound as a parameter, or inside wire bytecode).
    Bytecode(Arc<Bytecode>),
    /// Counters of one `profile()`d traversal.
    Metrics(Arc<TraversalMetrics>),
    /// The text of an `explain()`, in its three parts.
    Explanation(Arc<Explanation>),
}

/// A vertex property of the query's graph.
#[derive(Clone, Debug)]
pub struct StoredVertexProperty {
    /// The vertex it belongs to.
    pub vertex: VertexId,
    /// The key.
    pub key: KeyId,
    /// The key's text, so that reading it needs no lookup.
    pub key_name: Arc<str>,
    /// Its own id, unique in the graph.
    pub id: u64,
    /// The value when it was read.
    pub value: Value,
}

/// The element a stored property belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PropertyOwner {
    /// An edge.
    Edge(EdgeId),
    /// A vertex property.
    VertexProperty(Arc<StoredVertexProperty>),
}

/// An edge property or meta-property of the query's graph.
#[derive(Clone, Debug)]
pub struct StoredProperty {
    /// The element it belongs to.
    pub owner: PropertyOwner,
    /// The key's text.
    pub key_name: Arc<str>,
    /// The value when it was read.
    pub value: Value,
}

/// Values with multiplicities, in the order of first appearance.
#[derive(Clone, Debug, Default)]
pub struct BulkSet {
    /// Each different value with its count.
    pub counts: IndexMap<Value, u64, ValueHashing>,
}

/// A graph as a value: detached vertices and edges.
#[derive(Clone, Debug, Default)]
pub struct Subgraph {
    /// The vertices.
    pub vertices: Vec<Arc<Element>>,
    /// The edges.
    pub edges: Vec<Arc<Element>>,
}

/// What `profile()` yields: one entry per step, nested for sub-traversals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraversalMetrics {
    /// Total time in nanoseconds.
    pub duration_ns: u64,
    /// Per step.
    pub metrics: Vec<Metrics>,
}

/// Counters of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Stable id within the traversal.
    pub id: Arc<str>,
    /// Readable name.
    pub name: Arc<str>,
    /// Time in nanoseconds.
    pub duration_ns: u64,
    /// Named counts such as `traverserCount` and `elementCount`.
    pub counts: Vec<(Arc<str>, i64)>,
    /// Named annotations such as `percentDur`.
    pub annotations: Vec<(Arc<str>, Value)>,
    /// Steps of sub-traversals.
    pub nested: Vec<Metrics>,
}

/// What `explain()` yields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The traversal as written.
    pub original: Arc<str>,
    /// Each rule with its category and the plan after it.
    pub intermediate: Vec<(Arc<str>, Arc<str>, Arc<str>)>,
    /// The plan that runs.
    pub final_plan: Arc<str>,
}
