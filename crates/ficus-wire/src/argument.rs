//! Instruction arguments: what a decoded value means inside bytecode, and the tokens that only bytecode has.

use std::sync::Arc;

use ficus_model::{Argument, Bytecode, Cardinality, Instruction, Shared, StepLabels, Value};

use crate::strategy::{simple_name, unwrap_strategy};

/// The source instruction by which drivers send `Cardinality.set("x")`.
pub(crate) const CARDINALITY_VALUE: &str = "CardinalityValueTraversal";

/// The only value of `SackFunctions.Barrier`, the argument of `barrier(normSack)`; a string on our side.
pub(crate) const NORM_SACK: &str = "normSack";

/// An instruction as it came from the wire.
pub(crate) fn instruction(name: Arc<str>, values: Vec<Value>) -> Instruction {
    let is_exclusion = &*name == "withoutStrategies";
    let args = values.into_iter().map(|value| if is_exclusion { excluded_strategy(value) } else { lift(value) });
    Instruction { args: args.collect(), name, offset: None }
}

/// `withoutStrategies` names classes.
fn excluded_strategy(value: Value) -> Argument {
    match value {
        Value::String(class) => Argument::Strategy { name: simple_name(&class).into(), options: Vec::new() },
        other => lift(other),
    }
}

/// Turns a value into the argument it means: predicates, traversals, strategies and cardinality values, also inside
/// lists and maps, become arguments of their own kind.
///
/// Recursion follows the value, whose depth the decoder bounded.
pub(crate) fn lift(value: Value) -> Argument {
    match value {
        Value::P(predicate) => Argument::Predicate(Arc::unwrap_or_clone(predicate)),
        Value::Bytecode(bytecode) => lift_bytecode(bytecode),
        Value::List(members) if members.iter().any(is_lifted) => {
            Argument::List(Shared::unwrap_or_clone(members).into_iter().map(lift).collect())
        }
        Value::Map(entries) if entries.iter().any(|(key, value)| is_lifted(key) || is_lifted(value)) => {
            let entries = Shared::unwrap_or_clone(entries);
            Argument::Map(entries.into_iter().map(|(key, value)| (lift(key), lift(value))).collect())
        }
        other => Argument::Value(other),
    }
}

fn is_lifted(value: &Value) -> bool {
    match value {
        Value::P(_) | Value::Bytecode(_) => true,
        Value::List(members) => members.iter().any(is_lifted),
        Value::Map(entries) => entries.iter().any(|(key, value)| is_lifted(key) || is_lifted(value)),
        _ => false,
    }
}

fn lift_bytecode(bytecode: Arc<Bytecode>) -> Argument {
    if let Some(strategy) = unwrap_strategy(&bytecode) {
        return strategy.clone();
    }
    if let ([instruction], true) = (bytecode.source.as_slice(), bytecode.steps.is_empty())
        && &*instruction.name == CARDINALITY_VALUE
        && let [cardinality, value] = instruction.args.as_slice()
        && let Some(cardinality) = cardinality_of(cardinality)
    {
        return Argument::CardinalityValue(cardinality, Box::new(value.clone()));
    }
    Argument::Traversal(bytecode)
}

/// Java sends the cardinality's name, the other drivers the token.
fn cardinality_of(argument: &Argument) -> Option<Cardinality> {
    match argument {
        Argument::Value(Value::Cardinality(cardinality)) => Some(*cardinality),
        Argument::Value(Value::String(name)) => Cardinality::from_name(name),
        _ => None,
    }
}

/// Reads the name of `SackFunctions.Barrier`.
pub(crate) fn barrier(name: &str) -> Option<Value> {
    (name == NORM_SACK).then(|| Value::String(NORM_SACK.into()))
}

/// The labels given at one object of a path, if there are any; `None` if it is no collection of labels.
pub(crate) fn path_labels(value: &Value) -> Option<Option<StepLabels>> {
    let label = |value: &Value| match value {
        Value::String(label) => Some(label.clone()),
        _ => None,
    };
    let labels: StepLabels = match value {
        Value::Set(labels) => labels.iter().map(label).collect::<Option<_>>()?,
        Value::List(labels) => labels.iter().map(label).collect::<Option<_>>()?,
        _ => return None,
    };
    Some((!labels.is_empty()).then_some(labels))
}
