//! The nodes of a logical plan, one per meaning; several steps of Gremlin may share a node.

use std::sync::Arc;

use ficus_dataflow::NodeName;
use ficus_model::{
    Cardinality, Column, Comparison, DateUnit, Direction, GType, Operator, Order, P, Pick, Pop, Scope, T, Value,
};

use super::{KHop, SourceOptions, VertexProgram};

/// A name given in the query: a step label, side-effect key or property key.
pub type Name = Arc<str>;

/// A whole query: configuration of its source and the traversal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogicalPlan {
    /// `g.with…()`.
    pub source: SourceOptions,
    /// The traversal.
    pub root: Traversal,
}

/// A line of nodes. Empty: the identity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traversal {
    /// First to last.
    pub nodes: Vec<LabelledNode>,
}

/// A node with the step labels given to it by `as()`.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledNode {
    /// The node.
    pub node: Node,
    /// Its labels, in order.
    pub labels: Vec<Name>,
}

impl From<&Node> for NodeName {
    fn from(node: &Node) -> NodeName {
        NodeName::new(node.clone())
    }
}

impl From<Node> for LabelledNode {
    fn from(node: Node) -> Self {
        LabelledNode { node, labels: Vec::new() }
    }
}

/// A `by()` modulator without its order.
#[derive(Clone, Debug, PartialEq)]
pub enum By {
    /// The object itself.
    Identity,
    /// A property value of an element, or the value of a map under this key.
    Key(Name),
    /// A structural token.
    Token(T),
    /// Keys or values of a map or map entry.
    Column(Column),
    /// The first result of a traversal; no result filters the traverser (or is null, as the step defines).
    Traversal(Arc<Traversal>),
}

/// An argument given as a value or as a traversal that computes it.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueOrTraversal {
    /// A literal or bound parameter.
    Value(Value),
    /// The first result of this.
    Traversal(Arc<Traversal>),
}

/// One end of a new edge.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// The object under a step label.
    Label(Name),
    /// A vertex (or its id).
    Value(Value),
    /// The first result of this.
    Traversal(Arc<Traversal>),
}

/// What a [`HasContainer`] looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum HasKey {
    /// Values under a property key.
    Key(Name),
    /// The element's id.
    Id,
    /// The element's label.
    Label,
    /// A property's key (`hasKey`).
    PropertyKey,
    /// A property's value (`hasValue`).
    PropertyValue,
}

/// One condition of a [`Node::Has`].
#[derive(Clone, Debug, PartialEq)]
pub struct HasContainer {
    /// What is looked at.
    pub key: HasKey,
    /// What it must satisfy; for multi-properties: at least one value.
    pub predicate: P,
}

/// A predicate of `where()` whose right-hand sides are step labels (or side-effect keys).
#[derive(Clone, Debug, PartialEq)]
pub enum WherePredicate {
    /// Compare with the object under a label.
    Compare(Comparison, Name),
    /// Is one of the objects (or members of the collections) under these labels.
    Within(Vec<Name>),
    /// Is none of them.
    Without(Vec<Name>),
    /// A text predicate against the string under a label.
    Text(ficus_model::TextComparison, Name),
    /// All.
    And(Vec<WherePredicate>),
    /// Any.
    Or(Vec<WherePredicate>),
    /// Not.
    Not(Box<WherePredicate>),
}

/// How often [`Node::AdjacentFrom`] passes a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// Once for each edge.
    EachEdge,
    /// Once if there is an edge.
    AnyEdge,
    /// Once if there is none.
    NoEdge,
}

impl Passes {
    /// How often it is with so many edges.
    pub fn times(self, edges: u64) -> u64 {
        match self {
            Passes::EachEdge => edges,
            Passes::AnyEdge => edges.min(1),
            Passes::NoEdge => u64::from(edges == 0),
        }
    }
}

/// What a navigation from a vertex yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Neighbours.
    Vertex,
    /// Incident edges.
    Edge,
}

/// What reading properties yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyForm {
    /// The property itself.
    Property,
    /// Its value.
    Value,
}

/// Which tokens `valueMap().with(WithOptions.tokens, …)` adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenFlags {
    /// `T.id`.
    pub ids: bool,
    /// `T.label`.
    pub labels: bool,
    /// `T.key` (of vertex properties).
    pub keys: bool,
    /// `T.value` (of vertex properties).
    pub values: bool,
}

/// A reduction of a stream or of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Number of rows.
    Count,
    /// Sum.
    Sum,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Mean.
    Mean,
}

/// A function of the current value (and constants, or values computed by child traversals).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // each is the step of its name, with the step's arguments
pub enum ScalarFunction {
    AsString {
        scope: Scope,
    },
    AsNumber {
        gtype: Option<GType>,
    },
    AsBool,
    AsDate,
    DateAdd {
        unit: DateUnit,
        amount: i64,
    },
    DateDiff {
        other: ValueOrTraversal,
    },
    ToLower {
        scope: Scope,
    },
    ToUpper {
        scope: Scope,
    },
    Trim {
        scope: Scope,
    },
    LTrim {
        scope: Scope,
    },
    RTrim {
        scope: Scope,
    },
    Length {
        scope: Scope,
    },
    Reverse,
    Replace {
        scope: Scope,
        from: Value,
        to: Value,
    },
    Split {
        scope: Scope,
        separator: Value,
    },
    Substring {
        scope: Scope,
        start: i32,
        end: Option<i32>,
    },
    /// Strings: appended. `None` in a part stands for the traverser's value.
    Concat {
        parts: Vec<ValueOrTraversal>,
    },
    Conjoin {
        delimiter: Value,
    },
    Combine {
        other: ValueOrTraversal,
    },
    Difference {
        other: ValueOrTraversal,
    },
    Disjunct {
        other: ValueOrTraversal,
    },
    Intersect {
        other: ValueOrTraversal,
    },
    Merge {
        other: ValueOrTraversal,
    },
    Product {
        other: ValueOrTraversal,
    },
    /// `index()`; with indexer list (0) or map (1).
    Index {
        as_map: bool,
    },
    CountLocal,
    SumLocal,
    MinLocal,
    MaxLocal,
    MeanLocal,
    RangeLocal {
        low: i64,
        high: i64,
    },
    TailLocal {
        count: i64,
    },
    SampleLocal {
        amount: i64,
    },
    /// `dedup(local)`.
    DedupLocal,
}

/// When an option of `choose()` is taken.
#[derive(Clone, Debug, PartialEq)]
pub enum PickToken {
    /// The choice equals this value.
    Value(Value),
    /// The choice satisfies this predicate.
    Predicate(P),
    /// The choice makes this traversal yield something.
    Traversal(Arc<Traversal>),
    /// Any, none, unproductive.
    Pick(Pick),
}

/// One sort key of `order()`.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// What is compared.
    pub by: By,
    /// In which direction.
    pub order: Order,
}

/// `repeat()` with its modulators.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// What is repeated.
    pub body: Arc<Traversal>,
    /// `until(traversal)`; `times(n)` is [`Node::LoopsAtLeast`] as its only node.
    pub until: Option<Arc<Traversal>>,
    /// Whether `until` stands before `repeat` (tested first: while-do).
    pub until_first: bool,
    /// `emit(traversal)`; `emit()` is the empty traversal.
    pub emit: Option<Arc<Traversal>>,
    /// Whether `emit` stands before `repeat`.
    pub emit_first: bool,
    /// Name of the loop counter.
    pub name: Option<Name>,
    /// How many of equal rows are enough. Set by a rule.
    pub distinct: OfEqual,
}

/// How many of equal rows that come to the end of a loop's body go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfEqual {
    /// All.
    #[default]
    All,
    /// One of each iteration.
    OneOfIteration,
    /// One.
    One,
}

/// One pattern of `match()`.
#[derive(Clone, Debug, PartialEq)]
pub enum MatchPattern {
    /// `as(start) … as(end)`: walks from a bound label to bind or check another.
    Path {
        /// Where it starts.
        start: Name,
        /// The steps between.
        traversal: Arc<Traversal>,
        /// What it binds or checks; `None`: it only has to yield something.
        end: Option<Name>,
    },
    /// `where(predicate)` / `where(traversal)` over bound labels.
    Where(Arc<Traversal>, Vec<Name>),
    /// `not(pattern)`.
    Not(Box<MatchPattern>),
    /// `and(patterns)`.
    And(Vec<MatchPattern>),
    /// `or(patterns)`.
    Or(Vec<MatchPattern>),
}

/// How a string or number option of `io()`/`call()` was given.
pub type Options = Vec<(Name, ValueOrTraversal)>;

/// A property written by `property()`, `addV(...)…`.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyWrite {
    /// Cardinality, if given; the store's default otherwise.
    pub cardinality: Option<Cardinality>,
    /// The key: a name or `T.id`/`T.label` (as [`Value::T`]), or computed.
    pub key: ValueOrTraversal,
    /// The value; a null removes or is refused as the store decides.
    pub value: ValueOrTraversal,
    /// Meta-properties (on vertices) given with it.
    pub meta: Vec<(ValueOrTraversal, ValueOrTraversal)>,
}

/// One meaning.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    // ---- sources -----------------------------------------------------------------------------------------------
    /// All vertices, or those with these ids (or that are these vertices); per incoming traverser.
    Vertices {
        /** Ids or elements; empty and `all`: all. */
        ids: Vec<Value>,
        /** Whether no ids were given. */
        all: bool,
    },
    /// All edges, or those with these ids.
    Edges {
        /** Ids or elements. */
        ids: Vec<Value>,
        /** Whether no ids were given. */
        all: bool,
    },
    /// Values put in front of (mid-traversal) or as the stream.
    Inject {
        /** The values. */
        values: Vec<Value>,
    },
    /// A registered service; `start` if it begins the traversal.
    Call {
        /** Its name; none: lists the services. */
        service: Option<Name>,
        /** Static parameters. */
        parameters: Options,
        /** Computes a map of parameters that replace static ones of the same name. */
        parameter_traversal: Option<Arc<Traversal>>,
        /** Parameters given by `with()`; they replace all others of the same name. */
        settings: Options,
        /** Whether it begins the traversal. */
        start: bool,
    },
    /// `io(file)` with read or write.
    Io {
        /** The file. */
        file: Value,
        /** `true` for `write()`. */
        write: bool,
        /** `with()` options. */
        options: Options,
    },

    // ---- navigation --------------------------------------------------------------------------------------------
    /// `out`, `in`, `both`, `outE`, `inE`, `bothE`.
    Adjacent {
        /** Way. */
        direction: Direction,
        /** Edge labels; empty: all. */
        labels: Vec<Name>,
        /** What it yields. */
        reach: Reach,
    },
    /// Passes a row by the edges from the vertex under a label to the vertex it is at: a pattern of `match()` that closes a cycle, or a test. Made by a
    /// rule.
    AdjacentFrom {
        /** The label. */
        label: Name,
        /** Way from there. */
        direction: Direction,
        /** Edge labels; empty: all. */
        labels: Vec<Name>,
        /** How often. */
        passes: Passes,
    },
    /// Takes all other labels from the path, and the objects that have none then. No step: what `PathRetractionStrategy` does where that can be seen.
    KeepLabels {
        /** Those that stay. */
        labels: Vec<Name>,
    },
    /// Goes back to the object under a label of the path. Made by a rule.
    Recall {
        /** The label. */
        label: Name,
    },
    /// `outV`, `inV`, `bothV`.
    EdgeVertex {
        /** Which end. */
        direction: Direction,
    },
    /// `otherV`: the end of the edge the traverser did not come from.
    OtherVertex,
    /// `values(keys)`, `properties(keys)`.
    Properties {
        /** Keys; empty: all. */
        keys: Vec<Name>,
        /** What it yields. */
        form: PropertyForm,
    },
    /// `valueMap(keys)`, `propertyMap(keys)`.
    PropertyMap {
        /** Keys; empty: all. */
        keys: Vec<Name>,
        /** Values or properties. */
        form: PropertyForm,
        /** Tokens to add. */
        tokens: TokenFlags,
        /** At most one `by()` for the values. */
        by: Option<By>,
        /** Only properties for which this yields something (strategies restrict what is visible). */
        filter: Option<Arc<Traversal>>,
    },
    /// `elementMap(keys)`.
    ElementMap {
        /** Keys; empty: all. */
        keys: Vec<Name>,
        /** Only properties for which this yields something (strategies restrict what is visible). */
        filter: Option<Arc<Traversal>>,
    },
    /// `id()`.
    Id,
    /// `label()`.
    Label,
    /// `key()` of a property.
    Key,
    /// `value()` of a property.
    ValueOf,
    /// `element()` a property belongs to.
    Element,

    // ---- filters -----------------------------------------------------------------------------------------------
    /// `has(…)`, `hasLabel`, `hasId`, `hasKey`, `hasValue`: all must hold.
    Has {
        /** Conditions. */
        containers: Vec<HasContainer>,
    },
    /// `has(key)`: the element has such a property; `hasNot(key)` with `negated`.
    HasProperty {
        /** The key. */
        key: Name,
        /** Whether it must not have it. */
        negated: bool,
    },
    /// `is(P)`.
    Is {
        /** The predicate. */
        predicate: P,
    },
    /// `where(P)` / `where(startKey, P)` with labels as right-hand sides.
    WherePredicate {
        /** Left-hand side; none: the current object. */
        start: Option<Name>,
        /** The predicate. */
        predicate: WherePredicate,
        /** Applied in turn to left and right sides. */
        bys: Vec<By>,
    },
    /// `where(traversal)` whose ends are `as()` labels bound outside: `start` is selected first, `end` must equal.
    WhereTraversal {
        /** Label the traversal starts from. */
        start: Option<Name>,
        /** The steps. */
        traversal: Arc<Traversal>,
        /** Label its result must equal. */
        end: Option<Name>,
    },
    /// `filter(traversal)` and `where(traversal)` without labels: yields something.
    Filter {
        /** The traversal. */
        traversal: Arc<Traversal>,
    },
    /// `not(traversal)`.
    Not {
        /** The traversal. */
        traversal: Arc<Traversal>,
    },
    /// `and(…)`.
    And {
        /** Each must yield something. */
        traversals: Vec<Arc<Traversal>>,
    },
    /// `or(…)`.
    Or {
        /** One must yield something. */
        traversals: Vec<Arc<Traversal>>,
    },
    /// `all(P)`, `any(P)`, `none(P)` over the members of a collection.
    Collection {
        /** Which. */
        quantifier: Quantifier,
        /** The predicate. */
        predicate: P,
    },
    /// `coin(p)`.
    Coin {
        /** Probability. */
        probability: f64,
    },
    /// `sample(n).by(weight)`.
    Sample {
        /** How many. */
        amount: i64,
        /** The weight. */
        by: By,
    },
    /// `dedup()`, `dedup('a','b')`.
    Dedup {
        /** Step labels; empty: the object. */
        labels: Vec<Name>,
        /** What is compared. */
        by: Option<By>,
    },
    /// `range`, `limit`, `skip` of the stream; `high` −1: no end.
    Range {
        /** First row. */
        low: i64,
        /** Row after the last. */
        high: i64,
    },
    /// `tail(n)` of the stream.
    Tail {
        /** How many. */
        count: i64,
    },
    /// `simplePath()`, `cyclicPath()`.
    PathFilter {
        /** Whether paths must be simple. */
        simple: bool,
        /** First label. */
        from: Option<Name>,
        /** Last label. */
        to: Option<Name>,
        /** What is compared. */
        bys: Vec<By>,
    },
    /// `timeLimit(ms)`.
    TimeLimit {
        /** Milliseconds. */
        milliseconds: i64,
    },
    /// `discard()`.
    Discard,
    /// What `times(n)` stands for as an until condition: the loop counter reached `n`.
    LoopsAtLeast {
        /** The count. */
        times: i64,
    },

    // ---- maps --------------------------------------------------------------------------------------------------
    /// `identity()`.
    Identity,
    /// `constant(x)`.
    Constant {
        /** The value. */
        value: Value,
    },
    /// A function of the current value.
    Scalar {
        /** Which. */
        function: ScalarFunction,
    },
    /// `format("… %{key} … %{_}")`.
    Format {
        /** The template. */
        template: Name,
        /** For `%{_}`. */
        bys: Vec<By>,
    },
    /// `math("_ + a")`.
    Math {
        /** The expression. */
        expression: Name,
        /** Applied in turn to its variables. */
        bys: Vec<By>,
    },
    /// `map(traversal)`.
    Map {
        /** First result replaces the object; none filters. */
        traversal: Arc<Traversal>,
    },
    /// `flatMap(traversal)`.
    FlatMap {
        /** All results. */
        traversal: Arc<Traversal>,
    },
    /// `local(traversal)`.
    Local {
        /** Runs per traverser, bulk 1. */
        traversal: Arc<Traversal>,
    },
    /// `sideEffect(traversal)`.
    SideEffect {
        /** Run for its effects. */
        traversal: Arc<Traversal>,
    },
    /// `unfold()`.
    Unfold,
    /// `path()`.
    Path {
        /** First label. */
        from: Option<Name>,
        /** Last label. */
        to: Option<Name>,
        /** Applied in turn. */
        bys: Vec<By>,
    },
    /// `project(keys)`.
    Project {
        /** Keys of the map. */
        keys: Vec<Name>,
        /** Applied in turn. */
        bys: Vec<By>,
    },
    /// `select(labels)`: one gives the object, several a map.
    Select {
        /** Which of several values; none: last. */
        pop: Option<Pop>,
        /** Labels. */
        labels: Vec<Name>,
        /** Applied in turn. */
        bys: Vec<By>,
    },
    /// `select(keys)` / `select(values)` of a map.
    SelectColumn {
        /** Which half. */
        column: Column,
    },
    /// `select(traversal)`: the traversal computes the key.
    SelectTraversal {
        /** Pop. */
        pop: Option<Pop>,
        /** Computes the key. */
        traversal: Arc<Traversal>,
        /** Applied to the result. */
        by: Option<By>,
    },
    /// `sack()`.
    Sack,
    /// `sack(operator).by()`.
    SackWith {
        /** Combines sack and value. */
        operator: Operator,
        /** The value. */
        by: By,
    },
    /// `loops()`, `loops('name')`.
    Loops {
        /** Loop name. */
        name: Option<Name>,
    },
    /// `match(…)`.
    Match {
        /** Patterns. */
        patterns: Vec<MatchPattern>,
        /** Whether they are joined by and (or: or). */
        conjunctive: bool,
    },
    /// `order().by(…)` of the stream or (local) of a collection.
    Order {
        /** Of what. */
        scope: Scope,
        /** Sort keys, most significant first; empty: the object ascending. */
        keys: Vec<SortKey>,
    },

    // ---- reductions and barriers -------------------------------------------------------------------------------
    /// `count()`, `sum()`, `min()`, `max()`, `mean()` of the stream.
    Reduce {
        /** Which. */
        reduction: Reduction,
    },
    /// `fold()`; with a seed and operator: `fold(seed, op)`.
    Fold {
        /** Seed and operator. */
        seed: Option<(Value, Operator)>,
    },
    /// `group()`, or `group('x')` when `key` is a side-effect key.
    Group {
        /** Side effect. */
        side_effect: Option<Name>,
        /** Group key. */
        key: By,
        /** What is made of each group's members. */
        value: By,
    },
    /// `groupCount()`, `groupCount('x')`.
    GroupCount {
        /** Side effect. */
        side_effect: Option<Name>,
        /** Group key. */
        key: By,
    },
    /// `tree()`, `tree('x')`.
    Tree {
        /** Side effect. */
        side_effect: Option<Name>,
        /** Applied in turn. */
        bys: Vec<By>,
    },
    /// `barrier()`, `barrier(n)`, `barrier(normSack)`.
    Barrier {
        /** Largest size. */
        size: Option<i64>,
        /** Whether sacks are normalised. */
        norm_sack: bool,
    },
    /// `profile()` at the end, or `profile('x')`.
    Profile {
        /** Side effect. */
        side_effect: Option<Name>,
    },

    // ---- side effects ------------------------------------------------------------------------------------------
    /// `aggregate('x')`: eager barrier; inside `local()` it is per traverser.
    Aggregate {
        /** Key. */
        key: Name,
        /** What is collected. */
        by: By,
    },
    /// `cap('x', …)`.
    Cap {
        /** Keys; several give a map. */
        keys: Vec<Name>,
    },
    /// `subgraph('x')`.
    Subgraph {
        /** Key. */
        key: Name,
    },
    /// `fail(message)`.
    Fail {
        /** The message. */
        message: Option<Name>,
    },

    // ---- branches ----------------------------------------------------------------------------------------------
    /// `union(…)`; at the start of a traversal each branch spawns for itself.
    Union {
        /** Branches. */
        branches: Vec<Arc<Traversal>>,
        /** Whether it begins the traversal. */
        start: bool,
    },
    /// `choose(…)`, `branch(…)` with their options.
    Choose {
        /** Computes the choice; for `choose(predicate-traversal, t, f)` its productivity is the choice: see `boolean`. */
        choice: Arc<Traversal>,
        /** Whether the choice is whether `choice` yields something. */
        boolean: bool,
        /** Options in order. */
        options: Vec<(PickToken, Arc<Traversal>)>,
        /** Whether a traverser without option passes through (`choose`) or ends (`branch`). */
        pass_unmatched: bool,
    },
    /// `coalesce(…)`.
    Coalesce {
        /** Tried in order. */
        branches: Vec<Arc<Traversal>>,
    },
    /// `optional(…)`.
    Optional {
        /** The traversal. */
        traversal: Arc<Traversal>,
    },
    /// `repeat(…)`.
    Repeat(Repeat),
    /// Several hops at once, instead of a `repeat()`.
    KHop(KHop),
    /// A program over the whole graph.
    VertexProgram(VertexProgram),

    // ---- writes ------------------------------------------------------------------------------------------------
    /// `addV(label)` with the `property()` steps that follow it directly.
    AddVertex {
        /** Label; none: the default label. */
        label: Option<ValueOrTraversal>,
        /** Properties, ids included. */
        properties: Vec<PropertyWrite>,
        /** Whether it begins the traversal. */
        start: bool,
    },
    /// `addE(label).from(…).to(…)` with the `property()` steps that follow it directly.
    AddEdge {
        /** Label. */
        label: ValueOrTraversal,
        /** Out-vertex; none: the current vertex. */
        from: Option<Endpoint>,
        /** In-vertex; none: the current vertex. */
        to: Option<Endpoint>,
        /** Properties, ids included. */
        properties: Vec<PropertyWrite>,
        /** Whether it begins the traversal. */
        start: bool,
    },
    /// `property(…)` on an existing element.
    AddProperty {
        /** What is written. */
        property: PropertyWrite,
    },
    /// `mergeV(map).option(…)`. In literal maps, a value with a cardinality of its own is a [`Value::Entry`] of the
    /// [`Value::Cardinality`] and the value.
    MergeVertex {
        /** Search map; none: the incoming map. */
        search: Option<ValueOrTraversal>,
        /** Map for creation. */
        on_create: Option<ValueOrTraversal>,
        /** Map for updates; keys may carry cardinalities. */
        on_match: Option<ValueOrTraversal>,
        /** `property(…)`-like default cardinality given by `option(onMatch, map, cardinality)`. */
        match_cardinality: Option<Cardinality>,
        /** Likewise for creation. */
        create_cardinality: Option<Cardinality>,
        /** Whether it begins the traversal. */
        start: bool,
    },
    /// `mergeE(map).option(…)`.
    MergeEdge {
        /** Search map; none: the incoming map. */
        search: Option<ValueOrTraversal>,
        /** Map for creation. */
        on_create: Option<ValueOrTraversal>,
        /** Map for updates. */
        on_match: Option<ValueOrTraversal>,
        /** Resolves `Merge.outV`. */
        out_vertex: Option<ValueOrTraversal>,
        /** Resolves `Merge.inV`. */
        in_vertex: Option<ValueOrTraversal>,
        /** Whether it begins the traversal. */
        start: bool,
    },
    /// `drop()`.
    Drop,
}

/// Quantifier of [`Node::Collection`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Every member.
    All,
    /// At least one.
    Any,
    /// Not one.
    None,
}
