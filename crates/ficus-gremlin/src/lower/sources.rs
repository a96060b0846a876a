//! Steps that bring traversers in: `V`, `E`, `inject`, `call`, `io`.

use ficus_model::{Argument, Value};
use ficus_query::logical::{Node, Options, ValueOrTraversal};

use super::arguments::{Given, Step, given, to_value};
use super::builder::{Builder, Incomplete};
use super::error::Lowered;

/// The service that lists the services.
const DIRECTORY_SERVICE: &str = "--list";

pub(super) fn vertices(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (ids, all) = ids(step)?;
    builder.push(step, Node::Vertices { ids, all })
}

pub(super) fn edges(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (ids, all) = ids(step)?;
    builder.push(step, Node::Edges { ids, all })
}

/// The ids, and whether there are none at all. A single collection stands for its members; an empty one for everything, as
/// in TinkerPop.
///
/// Errors: beside others, a collection is no id.
fn ids(step: Step<'_>) -> Lowered<(Vec<Value>, bool)> {
    if step.count() == 0 {
        return Ok((Vec::new(), true));
    }
    let ids = step.values_or_members()?;
    if let Some(index) = ids.iter().position(|id| matches!(id, Value::List(_) | Value::Set(_) | Value::Map(_))) {
        return Err(step.illegal(format!("{}() takes ids, or one list of ids: {} is none", step.name(), ids[index])));
    }
    let all = ids.is_empty();
    Ok((ids, all))
}

pub(super) fn inject(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    if builder.context.repeated {
        return Err(
            step.illegal("The parent of inject()-step can not be repeat()-step: inject before the loop instead")
        );
    }
    let values = (0..step.count()).map(|index| step.value(index)).collect::<Lowered<Vec<Value>>>()?;
    builder.push(step, Node::Inject { values })
}

/// `call()`, `call(service)`, `call(service, map)`, `call(service, traversal)`, `call(service, map, traversal)`.
pub(super) fn call(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(3)?;
    let start = builder.is_start();
    let service = match step.given(0) {
        None | Some(Given::Value(Value::Null)) => None,
        Some(_) => Some(step.name_at(0)?).filter(|name| &**name != DIRECTORY_SERVICE),
    };
    let mut parameters = Options::new();
    let mut parameter_traversal = None;
    for index in 1..step.count() {
        match step.given(index) {
            Some(Given::Value(Value::Null)) => {}
            Some(Given::Value(Value::Map(entries))) => {
                for (key, value) in entries.iter() {
                    let Value::String(key) = key else {
                        return Err(step.expected(index, "a map with strings as keys"));
                    };
                    parameters.push((key.clone(), ValueOrTraversal::Value(value.clone())));
                }
            }
            Some(Given::Map(entries)) => {
                for (key, value) in entries {
                    let Some(Value::String(key)) = to_value(key) else {
                        return Err(step.expected(index, "a map with strings as keys"));
                    };
                    let value = value_or_traversal(builder, step, value, index)?;
                    parameters.push((key, value));
                }
            }
            Some(Given::Traversal(bytecode)) => parameter_traversal = Some(builder.child(bytecode)?),
            _ => return Err(step.expected(index, "a map or a traversal")),
        }
    }
    builder.push(step, Node::Call { service, parameters, parameter_traversal, settings: Options::new(), start })
}

/// The argument as it is, or as a traversal that computes it.
pub(super) fn value_or_traversal(
    builder: &Builder<'_>,
    step: Step<'_>,
    argument: &Argument,
    index: usize,
) -> Lowered<ValueOrTraversal> {
    match given(argument) {
        Given::Traversal(bytecode) => builder.child(bytecode).map(ValueOrTraversal::Traversal),
        _ => match to_value(argument) {
            Some(value) => Ok(ValueOrTraversal::Value(value)),
            None => Err(step.expected(index, "a value or a traversal")),
        },
    }
}

pub(super) fn io(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    if !builder.is_start() {
        return Err(step.illegal("io() can only begin a traversal"));
    }
    let file = step.name_at(0)?;
    if file.is_empty() {
        return Err(step.wrong("file cannot be null or empty"));
    }
    let node = Node::Io { file: Value::String(file), write: false, options: Options::new() };
    builder.push_incomplete(step, node, Incomplete::IoMode)
}

pub(super) fn read(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    set_mode(builder, step, false)
}

pub(super) fn write(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    set_mode(builder, step, true)
}

fn set_mode(builder: &mut Builder<'_>, step: Step<'_>, writes: bool) -> Lowered {
    step.no_arguments()?;
    match builder.last() {
        Some(Node::Io { write, .. }) => *write = writes,
        _ => return Err(step.illegal(format!("{}() can only follow io()", step.name()))),
    }
    builder.completed();
    Ok(())
}
