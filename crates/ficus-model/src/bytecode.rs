//! The traversal tree: what both gremlin-lang text and wire bytecode become before planning.

use std::sync::Arc;

use crate::{P, Value};

/// A traversal as source instructions (`withStrategies`, `withSack`, …) and step instructions (`V`, `out`, …).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytecode {
    /// Configuration of the traversal source, in order.
    pub source: Vec<Instruction>,
    /// Spawn step and steps, in order.
    pub steps: Vec<Instruction>,
}

/// One word of Gremlin with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// The step's name as in gremlin-lang, e.g. `hasLabel`, `in`, `not`.
    pub name: Arc<str>,
    /// Arguments in order.
    pub args: Vec<Argument>,
    /// Byte offset of the name in the text it was parsed from; `None` when it came as bytecode.
    pub offset: Option<u32>,
}

/// An argument of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// A literal, token, collection or bound parameter.
    Value(Value),
    /// A predicate.
    Predicate(P),
    /// An anonymous traversal (`__.out()`), or a spawned one inside `repeat` and friends.
    Traversal(Arc<Bytecode>),
    /// A strategy with its configuration, for `withStrategies` and `withoutStrategies`.
    Strategy {
        /// Simple class name, e.g. `SubgraphStrategy`.
        name: Arc<str>,
        /// Options in the order given.
        options: Vec<(Arc<str>, Argument)>,
    },
    /// A list that holds something other than plain values (predicates, traversals).
    List(Vec<Argument>),
    /// A map literal that holds traversals (such as `mergeV` option maps may).
    Map(Vec<(Argument, Argument)>),
    /// A cardinality with its value, `Cardinality.set("x")`, as `property` and `mergeV` maps accept.
    CardinalityValue(crate::Cardinality, Box<Argument>),
}
