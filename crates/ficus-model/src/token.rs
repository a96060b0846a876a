//! The enumerations a traversal can name: `T.id`, `Scope.local`, `Order.desc` and so on.

macro_rules! tokens {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal $(| $alias:literal)*),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            /// The name on the wire and in gremlin-lang, without the enumeration's own name.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
            /// Finds a token by its name or one of its aliases; case matters.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text $(| $alias)* => Some($name::$variant),)+ _ => None }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.name()) }
        }
    };
}

tokens!(
    /// Structural parts of an element.
    T { /// The element's id.
        Id = "id", /// The element's label.
        Label = "label", /// A property's key.
        Key = "key", /// A property's value.
        Value = "value" });
tokens!(
    /// The way an edge is followed.
    Direction { /// Along the edge.
        Out = "OUT" | "from" | "out", /// Against the edge.
        In = "IN" | "to" | "in", /// Both ways.
        Both = "BOTH" | "both" });
impl Direction {
    /// The way back.
    pub const fn reversed(self) -> Direction {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        }
    }
}

tokens!(
    /// Sort directions.
    Order { /// Ascending.
        Asc = "asc" | "incr", /// Descending.
        Desc = "desc" | "decr", /// Random.
        Shuffle = "shuffle" });
tokens!(
    /// Whether a step works on the stream or inside its current value.
    Scope { /// The whole stream.
        Global = "global", /// The current value.
        Local = "local" });
tokens!(
    /// Which of several path values a `select` takes.
    Pop { /// The first.
        First = "first", /// The last.
        Last = "last", /// All, as a list.
        All = "all", /// One as a value, several as a list.
        Mixed = "mixed" });
tokens!(
    /// Half of a map.
    Column { /// The keys.
        Keys = "keys", /// The values.
        Values = "values" });
tokens!(
    /// How a vertex keeps several values under one key.
    Cardinality { /// One value; a new one replaces it.
        Single = "single", /// Any number.
        List = "list", /// Any number of different ones.
        Set = "set" });
tokens!(
    /// Options of `mergeV()` and `mergeE()`.
    Merge { /// When nothing matched.
        OnCreate = "onCreate", /// When something matched.
        OnMatch = "onMatch", /// The out-vertex of the edge.
        OutV = "outV", /// The in-vertex of the edge.
        InV = "inV" });
tokens!(
    /// Options of `branch()` and `choose()` that are not values.
    Pick { /// For every traverser.
        Any = "any", /// When no other option matched.
        None = "none", /// When the choice yielded nothing.
        Unproductive = "unproductive" });
tokens!(
    /// Binary functions for sacks and side effects.
    Operator { /// Addition.
        Sum = "sum", /// Subtraction.
        Minus = "minus", /// Multiplication.
        Mult = "mult", /// Division.
        Div = "div", /// The smaller.
        Min = "min", /// The larger.
        Max = "max", /// The new value.
        Assign = "assign", /// Logical and.
        And = "and", /// Logical or.
        Or = "or", /// Adds all of a collection.
        AddAll = "addAll", /// Adds the counts of two maps.
        SumLong = "sumLong" });
tokens!(
    /// Units of `dateAdd()`.
    DateUnit { /// Seconds.
        Second = "second", /// Minutes.
        Minute = "minute", /// Hours.
        Hour = "hour", /// Days.
        Day = "day" });
tokens!(
    /// Type names for `asNumber()` and `typeOf()`.
    GType { /// BigDecimal.
        BigDecimal = "BIGDECIMAL", /// BigInteger.
        BigInt = "BIGINT", /// Bytes.
        Binary = "BINARY", /// Boolean.
        Boolean = "BOOLEAN", /// Signed 8 bit.
        Byte = "BYTE", /// Character.
        Char = "CHAR", /// Date and time with offset.
        DateTime = "DATETIME", /// Double precision.
        Double = "DOUBLE", /// Duration.
        Duration = "DURATION", /// Edge.
        Edge = "EDGE", /// Single precision.
        Float = "FLOAT", /// A graph.
        Graph = "GRAPH", /// Signed 32 bit.
        Int = "INT", /// List.
        List = "LIST", /// Signed 64 bit.
        Long = "LONG", /// Map.
        Map = "MAP", /// Null.
        Null = "NULL", /// Any number.
        Number = "NUMBER", /// Path.
        Path = "PATH", /// Property.
        Property = "PROPERTY", /// Set.
        Set = "SET", /// Signed 16 bit.
        Short = "SHORT", /// String.
        String = "STRING", /// Tree.
        Tree = "TREE", /// UUID.
        Uuid = "UUID", /// Vertex.
        Vertex = "VERTEX", /// Vertex property.
        VProperty = "VPROPERTY" });
