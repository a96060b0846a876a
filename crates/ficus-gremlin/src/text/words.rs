//! The words that stand for a value: tokens such as `T.id` and `desc`, and the option constants of `with()`.

use ficus_model::{
    Argument, Cardinality, Column, DateUnit, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope, T, Value,
};

use super::signature::{ClassSet, class};

/// A token as written, before it is known whether its place accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    T(T),
    Cardinality(Cardinality),
    Direction(Direction),
    Merge(Merge),
    Pick(Pick),
    DateUnit(DateUnit),
    GType(GType),
    Scope(Scope),
    Order(Order),
    Column(Column),
    Pop(Pop),
    Operator(Operator),
    NormSack,
}

impl Token {
    /// The class it belongs to.
    pub(crate) fn class(self) -> ClassSet {
        match self {
            Token::T(_) => class::T,
            Token::Cardinality(_) => class::CARDINALITY,
            Token::Direction(_) => class::DIRECTION,
            Token::Merge(_) => class::MERGE,
            Token::Pick(_) => class::PICK,
            Token::DateUnit(_) => class::DATE_UNIT,
            Token::GType(_) => class::GTYPE,
            Token::Scope(_) => class::SCOPE,
            Token::Order(_) => class::ORDER,
            Token::Column(_) => class::COLUMN,
            Token::Pop(_) => class::POP,
            Token::Operator(_) => class::OPERATOR,
            Token::NormSack => class::BARRIER,
        }
    }

    /// The value it stands for. The barrier `normSack` has no enumeration of its own and travels as a string.
    pub(crate) fn value(self) -> Value {
        match self {
            Token::T(token) => Value::T(token),
            Token::Cardinality(token) => Value::Cardinality(token),
            Token::Direction(token) => Value::Direction(token),
            Token::Merge(token) => Value::Merge(token),
            Token::Pick(token) => Value::Pick(token),
            Token::DateUnit(token) => Value::DateUnit(token),
            Token::GType(token) => Value::GType(token),
            Token::Scope(token) => Value::Scope(token),
            Token::Order(token) => Value::Order(token),
            Token::Column(token) => Value::Column(token),
            Token::Pop(token) => Value::Pop(token),
            Token::Operator(token) => Value::Operator(token),
            Token::NormSack => Value::String("normSack".into()),
        }
    }

    /// The argument it stands for.
    pub(crate) fn argument(self) -> Argument {
        Argument::Value(self.value())
    }
}

/// The class a qualifier such as the `T` of `T.id` stands for.
pub(crate) fn qualifier(word: &str) -> Option<ClassSet> {
    Some(match word {
        "T" => class::T,
        "Scope" => class::SCOPE,
        "Order" => class::ORDER,
        "Direction" => class::DIRECTION,
        "Cardinality" => class::CARDINALITY,
        "Column" => class::COLUMN,
        "Pop" => class::POP,
        "Operator" => class::OPERATOR,
        "Pick" => class::PICK,
        "DT" => class::DATE_UNIT,
        "GType" => class::GTYPE,
        "Merge" => class::MERGE,
        "Barrier" => class::BARRIER,
        _ => return None,
    })
}

/// The words that may follow a qualifier of `class`, for messages.
pub(crate) fn members(class: ClassSet) -> Vec<&'static str> {
    fn names<E: Copy>(all: &[E], name: impl Fn(E) -> &'static str) -> Vec<&'static str> {
        all.iter().map(|token| name(*token)).collect()
    }
    match class {
        class::T => names(T::ALL, T::name),
        class::SCOPE => names(Scope::ALL, Scope::name),
        class::ORDER => names(Order::ALL, Order::name),
        class::DIRECTION => vec!["OUT", "IN", "BOTH", "from", "to"],
        class::CARDINALITY => names(Cardinality::ALL, Cardinality::name),
        class::COLUMN => names(Column::ALL, Column::name),
        class::POP => names(Pop::ALL, Pop::name),
        class::OPERATOR => names(Operator::ALL, Operator::name),
        class::PICK => names(Pick::ALL, Pick::name),
        class::DATE_UNIT => names(DateUnit::ALL, DateUnit::name),
        class::GTYPE => names(GType::ALL, GType::name),
        class::MERGE => names(Merge::ALL, Merge::name),
        class::BARRIER => vec!["normSack"],
        _ => Vec::new(),
    }
}

/// Finds the token that `word` spells among the classes in `accepted`; generic literals prefer the earlier class.
pub(crate) fn token(word: &str, accepted: ClassSet) -> Option<Token> {
    let accepts = |class: ClassSet| accepted & class != 0;
    if accepts(class::T)
        && let Some(token) = T::from_name(word)
    {
        return Some(Token::T(token));
    }
    if accepts(class::CARDINALITY)
        && let Some(token) = Cardinality::from_name(word)
    {
        return Some(Token::Cardinality(token));
    }
    if accepts(class::DIRECTION)
        && let Some(token) = direction(word)
    {
        return Some(Token::Direction(token));
    }
    if accepts(class::MERGE)
        && let Some(token) = Merge::from_name(word)
    {
        return Some(Token::Merge(token));
    }
    if accepts(class::PICK)
        && let Some(token) = Pick::from_name(word)
    {
        return Some(Token::Pick(token));
    }
    if accepts(class::DATE_UNIT)
        && let Some(token) = DateUnit::from_name(word)
    {
        return Some(Token::DateUnit(token));
    }
    if accepts(class::GTYPE)
        && let Some(token) = gtype(word)
    {
        return Some(Token::GType(token));
    }
    if accepts(class::SCOPE)
        && let Some(token) = Scope::from_name(word)
    {
        return Some(Token::Scope(token));
    }
    if accepts(class::ORDER)
        && let Some(token) = order(word)
    {
        return Some(Token::Order(token));
    }
    if accepts(class::COLUMN)
        && let Some(token) = Column::from_name(word)
    {
        return Some(Token::Column(token));
    }
    if accepts(class::POP)
        && let Some(token) = Pop::from_name(word)
    {
        return Some(Token::Pop(token));
    }
    if accepts(class::OPERATOR)
        && let Some(token) = Operator::from_name(word)
    {
        return Some(Token::Operator(token));
    }
    (accepts(class::BARRIER) && word == "normSack").then_some(Token::NormSack)
}

/// The grammar's spellings only: `out` and `in` are steps, not directions.
fn direction(word: &str) -> Option<Direction> {
    match word {
        "OUT" | "from" => Some(Direction::Out),
        "IN" | "to" => Some(Direction::In),
        "BOTH" => Some(Direction::Both),
        _ => None,
    }
}

/// The grammar's spellings only: `incr` and `decr` are gone.
fn order(word: &str) -> Option<Order> {
    match word {
        "asc" => Some(Order::Asc),
        "desc" => Some(Order::Desc),
        "shuffle" => Some(Order::Shuffle),
        _ => None,
    }
}

/// A type name in capitals, or in the camel case the grammar also takes.
fn gtype(word: &str) -> Option<GType> {
    if let Some(found) = GType::from_name(word) {
        return Some(found);
    }
    Some(match word {
        "bigDecimal" => GType::BigDecimal,
        "bigInt" => GType::BigInt,
        "binary" => GType::Binary,
        "boolean" => GType::Boolean,
        "byte" => GType::Byte,
        "char" => GType::Char,
        "datetime" => GType::DateTime,
        "double" => GType::Double,
        "duration" => GType::Duration,
        "edge" => GType::Edge,
        "float" => GType::Float,
        "graph" => GType::Graph,
        "int" => GType::Int,
        "list" => GType::List,
        "long" => GType::Long,
        "map" => GType::Map,
        "null" => GType::Null,
        "number" => GType::Number,
        "path" => GType::Path,
        "property" => GType::Property,
        "set" => GType::Set,
        "short" => GType::Short,
        "string" => GType::String,
        "tree" => GType::Tree,
        "uuid" => GType::Uuid,
        "vertex" => GType::Vertex,
        "vproperty" => GType::VProperty,
        _ => return None,
    })
}

/// The value of an option constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    /// A hidden key or a format's name.
    Text(&'static str),
    /// A number, as the token and indexer settings are.
    Number(i32),
}

impl Constant {
    /// The argument it stands for.
    pub(crate) fn argument(self) -> Argument {
        Argument::Value(match self {
            Constant::Text(text) => Value::String(text.into()),
            Constant::Number(number) => Value::Int(number),
        })
    }
}

/// An option constant with its owner, its name, where it may stand and what it is.
pub(crate) struct OptionConstant {
    pub(crate) owner: &'static str,
    pub(crate) name: &'static str,
    pub(crate) classes: ClassSet,
    pub(crate) value: Constant,
}

const fn key(owner: &'static str, name: &'static str, text: &'static str) -> OptionConstant {
    OptionConstant { owner, name, classes: class::OPTION_KEY, value: Constant::Text(text) }
}

const fn setting(owner: &'static str, name: &'static str, value: Constant) -> OptionConstant {
    OptionConstant { owner, name, classes: class::OPTION_VALUE, value }
}

/// Every constant that `with()` takes.
pub(crate) static OPTION_CONSTANTS: &[OptionConstant] = &[
    key("ShortestPath", "target", "~tinkerpop.shortestPath.target"),
    key("ShortestPath", "edges", "~tinkerpop.shortestPath.edges"),
    key("ShortestPath", "distance", "~tinkerpop.shortestPath.distance"),
    key("ShortestPath", "maxDistance", "~tinkerpop.shortestPath.maxDistance"),
    key("ShortestPath", "includeEdges", "~tinkerpop.shortestPath.includeEdges"),
    key("ConnectedComponent", "component", "gremlin.connectedComponentVertexProgram.component"),
    key("ConnectedComponent", "edges", "~tinkerpop.connectedComponent.edges"),
    key("ConnectedComponent", "propertyName", "~tinkerpop.connectedComponent.propertyName"),
    key("PageRank", "edges", "~tinkerpop.pageRank.edges"),
    key("PageRank", "times", "~tinkerpop.pageRank.times"),
    key("PageRank", "propertyName", "~tinkerpop.pageRank.propertyName"),
    key("PeerPressure", "edges", "~tinkerpop.peerPressure.edges"),
    key("PeerPressure", "times", "~tinkerpop.peerPressure.times"),
    key("PeerPressure", "propertyName", "~tinkerpop.peerPressure.propertyName"),
    key("IO", "reader", "~tinkerpop.io.reader"),
    key("IO", "writer", "~tinkerpop.io.writer"),
    setting("IO", "gryo", Constant::Text("gryo")),
    setting("IO", "graphson", Constant::Text("graphson")),
    setting("IO", "graphml", Constant::Text("graphml")),
    OptionConstant {
        owner: "WithOptions",
        name: "tokens",
        classes: class::OPTION_KEY | class::OPTION_VALUE,
        value: Constant::Text("~tinkerpop.valueMap.tokens"),
    },
    key("WithOptions", "indexer", "~tinkerpop.index.indexer"),
    setting("WithOptions", "none", Constant::Number(0)),
    setting("WithOptions", "ids", Constant::Number(1)),
    setting("WithOptions", "labels", Constant::Number(2)),
    setting("WithOptions", "keys", Constant::Number(4)),
    setting("WithOptions", "values", Constant::Number(8)),
    setting("WithOptions", "all", Constant::Number(15)),
    setting("WithOptions", "list", Constant::Number(0)),
    setting("WithOptions", "map", Constant::Number(1)),
];

/// Whether `word` owns option constants.
pub(crate) fn owns_options(word: &str) -> bool {
    matches!(word, "WithOptions" | "IO" | "ShortestPath" | "ConnectedComponent" | "PageRank" | "PeerPressure")
}

/// The option constant `owner.name`.
pub(crate) fn option_constant(owner: &str, name: &str) -> Option<&'static OptionConstant> {
    OPTION_CONSTANTS.iter().find(|constant| constant.owner == owner && constant.name == name)
}
