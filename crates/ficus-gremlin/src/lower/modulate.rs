//! Modulators: words that change the step before them, `as`, `by`, `with`, `option`, `from` and `to`.

use std::sync::Arc;

use ficus_model::{Merge, Order, Pick, Value};
use ficus_query::logical::{
    By, Endpoint, Node, PickToken, ScalarFunction, SortKey, TokenFlags, Traversal, ValueOrTraversal,
};

use super::arguments::{Given, Step, given, to_integer, to_value};
use super::branch;
use super::builder::Builder;
use super::error::Lowered;
use super::{analytics, merge, navigation, sources};

/// `as(labels…)`: labels the last node; at the beginning of a traversal, what comes in.
pub(super) fn label(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let names = step.some_names(0)?;
    if builder.is_empty() {
        builder.push(step, Node::Identity)?;
    }
    builder.label_last(names);
    Ok(())
}

// ---- by --------------------------------------------------------------------------------------------------------

/// `by()` in all its forms.
pub(super) fn by(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (by, order) = read_by(builder, step)?;
    let position = builder.bys;
    let name = builder.last_name();
    let only_one = |what: &str| {
        if position == 0 { Ok(()) } else { Err(step.illegal(format!("{what} step can only have one by modulator"))) }
    };
    let Some(node) = builder.last() else {
        return Err(step.illegal("by() has no step before it to modulate"));
    };
    if let Node::Order { keys, .. } = node {
        keys.push(SortKey { by, order: order.unwrap_or(Order::Asc) });
        return Ok(());
    }
    if order.is_some() {
        return Err(step.illegal(format!(
            "The by()-modulating step does not support traversal/comparator-based modulation: {name}() takes no Order"
        )));
    }
    match node {
        Node::PropertyMap { by: slot, .. } => {
            only_one("valueMap()/propertyMap()")?;
            *slot = Some(by);
        }
        Node::Sample { by: slot, .. } => {
            only_one("Sample")?;
            *slot = by;
        }
        Node::Dedup { by: slot, .. } => {
            only_one("Dedup")?;
            *slot = Some(by);
        }
        Node::SackWith { by: slot, .. } => {
            only_one("Sack")?;
            *slot = by;
        }
        Node::Aggregate { by: slot, .. } => {
            only_one("Aggregate")?;
            *slot = by;
        }
        Node::GroupCount { key, .. } => {
            only_one("GroupCount")?;
            *key = by;
        }
        Node::Group { key, value, .. } => match position {
            0 => *key = by,
            1 => *value = by,
            _ => {
                return Err(step.illegal("The key and value traversals for group()-step have already been set"));
            }
        },
        // A selection of one label has one by(), the last.
        Node::Select { labels, bys, .. } if labels.len() == 1 => *bys = vec![by],
        Node::SelectTraversal { by: slot, .. } => *slot = Some(by),
        Node::WherePredicate { bys, .. }
        | Node::PathFilter { bys, .. }
        | Node::Path { bys, .. }
        | Node::Project { bys, .. }
        | Node::Select { bys, .. }
        | Node::Tree { bys, .. }
        | Node::Math { bys, .. }
        | Node::Format { bys, .. } => bys.push(by),
        _ => return Err(step.illegal(format!("by() cannot modulate the {name}() step"))),
    }
    builder.bys = position + 1;
    Ok(())
}

fn read_by(builder: &Builder<'_>, step: Step<'_>) -> Lowered<(By, Option<Order>)> {
    step.at_most(2)?;
    let order = |index: usize| match step.given(index) {
        Some(Given::Value(Value::Order(order))) => Some(*order),
        _ => None,
    };
    if step.count() == 0 {
        return Ok((By::Identity, None));
    }
    if step.count() == 1
        && let Some(order) = order(0)
    {
        return Ok((By::Identity, Some(order)));
    }
    let by = match step.given(0) {
        Some(Given::Value(Value::String(key))) => By::Key(key.clone()),
        Some(Given::Value(Value::T(token))) => By::Token(*token),
        Some(Given::Value(Value::Column(column))) => By::Column(*column),
        Some(Given::Traversal(bytecode)) => By::Traversal(builder.child(bytecode)?),
        _ => return Err(step.expected(0, "a property key, a T, a Column, an Order or a traversal")),
    };
    match step.count() {
        1 => Ok((by, None)),
        _ => Ok((by, Some(order(1).ok_or_else(|| step.expected(1, "an Order"))?))),
    }
}

// ---- with ------------------------------------------------------------------------------------------------------

const TOKENS_OPTION: &str = "~tinkerpop.valueMap.tokens";
const INDEXER_OPTION: &str = "~tinkerpop.index.indexer";

/// `with(key)`, `with(key, value)`.
pub(super) fn with(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(2)?;
    let key = step.name_at(0)?;
    let value = match step.arguments().get(1) {
        None => ValueOrTraversal::Value(Value::Bool(true)),
        Some(argument) => sources::value_or_traversal(builder, step, argument, 1)?,
    };
    let name = builder.last_name();
    let Some(node) = builder.last() else {
        return Err(step.illegal("with() has no step before it to modulate"));
    };
    match node {
        Node::PropertyMap { tokens, .. } if &*key == TOKENS_OPTION => add_tokens(step, tokens, &value),
        Node::Scalar { function: ScalarFunction::Index { as_map } } if &*key == INDEXER_OPTION => {
            *as_map = match &value {
                ValueOrTraversal::Value(value) if to_integer(value) == Some(0) => false,
                ValueOrTraversal::Value(value) if to_integer(value) == Some(1) => true,
                _ => {
                    return Err(step.wrong(
                        "WithOptions.indexer requires a single Integer argument (possible values are: \
                         WithOptions.[list|map])",
                    ));
                }
            };
            Ok(())
        }
        Node::Call { settings, .. } => {
            settings.push((key, value));
            Ok(())
        }
        Node::Io { options, .. } => {
            options.push((key, value));
            Ok(())
        }
        Node::VertexProgram(program) => analytics::with(step, program, &key, value),
        // Hints to the graph provider in TinkerPop; they never change results, and there are none here to be taken.
        Node::Vertices { .. }
        | Node::Edges { .. }
        | Node::Adjacent { .. }
        | Node::EdgeVertex { .. }
        | Node::OtherVertex
        | Node::Properties { .. }
        | Node::PropertyMap { .. }
        | Node::Scalar { function: ScalarFunction::Index { .. } }
        | Node::Has { .. }
        | Node::HasProperty { .. }
        | Node::Filter { .. }
        | Node::AddVertex { .. }
        | Node::AddEdge { .. }
        | Node::AddProperty { .. }
        | Node::MergeVertex { .. }
        | Node::MergeEdge { .. } => Ok(()),
        _ => Err(step.illegal(format!("with() cannot modulate the {name}() step"))),
    }
}

/// `with(WithOptions.tokens)` and its values: a boolean, or the sum of the tokens' bits.
fn add_tokens(step: Step<'_>, tokens: &mut TokenFlags, value: &ValueOrTraversal) -> Lowered {
    let bits = match value {
        ValueOrTraversal::Value(Value::Bool(all)) => {
            *tokens = if *all { navigation::ALL_TOKENS } else { TokenFlags::default() };
            return Ok(());
        }
        ValueOrTraversal::Value(value) => to_integer(value).filter(|bits| (0..=15).contains(bits)),
        ValueOrTraversal::Traversal(_) => None,
    };
    let Some(bits) = bits else {
        return Err(step.wrong(
            "WithOptions.tokens requires Integer arguments (possible values are: \
             WithOptions.[none|ids|labels|keys|values|all])",
        ));
    };
    tokens.ids |= bits & 1 != 0;
    tokens.labels |= bits & 2 != 0;
    tokens.keys |= bits & 4 != 0;
    tokens.values |= bits & 8 != 0;
    Ok(())
}

// ---- option ----------------------------------------------------------------------------------------------------

/// `option(traversal)`, `option(token, traversal)`, `option(merge, map[, cardinality])`.
pub(super) fn option(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    if !(1..=3).contains(&step.count()) {
        return Err(step.misused("option() takes (traversal), (token, traversal) or (merge token, map[, cardinality])"));
    }
    let name = builder.last_name();
    match builder.last() {
        Some(Node::MergeVertex { .. } | Node::MergeEdge { .. }) => merge::option(builder, step),
        Some(Node::Choose { .. }) => {
            step.at_most(2)?;
            let (token, traversal) = read_option(builder, step)?;
            match builder.last() {
                Some(Node::Choose { options, pass_unmatched, .. }) => {
                    branch::add_option(step, *pass_unmatched, options, token, traversal)
                }
                _ => Ok(()),
            }
        }
        _ => Err(step.illegal(format!(
            "option() cannot follow {name}(): it belongs to choose(), branch(), mergeV() or mergeE()"
        ))),
    }
}

fn read_option(builder: &Builder<'_>, step: Step<'_>) -> Lowered<(PickToken, Arc<Traversal>)> {
    if step.count() == 1 {
        return Ok((PickToken::Pick(Pick::Any), builder.child(step.traversal(0)?)?));
    }
    let traversal = match step.given(1) {
        Some(Given::Value(Value::Null)) => branch::single(Node::Constant { value: Value::Null }),
        _ => builder.child(step.traversal(1)?)?,
    };
    let token = match step.given(0) {
        Some(Given::Value(Value::Pick(pick))) => PickToken::Pick(*pick),
        Some(Given::Value(Value::Merge(merge))) => return Err(merge_option_elsewhere(step, *merge)),
        Some(Given::Predicate(predicate)) => PickToken::Predicate(predicate.clone()),
        Some(Given::Traversal(bytecode)) => PickToken::Traversal(builder.child(bytecode)?),
        _ => PickToken::Value(step.value(0)?),
    };
    Ok((token, traversal))
}

fn merge_option_elsewhere(step: Step<'_>, merge: Merge) -> super::LowerError {
    step.illegal(format!("option({merge}, …) belongs to mergeV() or mergeE()"))
}

// ---- from and to -----------------------------------------------------------------------------------------------

pub(super) fn from(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    set_end(builder, step, End::From)
}

/// `to(label)`, `to(vertex)`, `to(traversal)`; `to(direction, labels…)` is a step of its own.
pub(super) fn to(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    match step.given(0) {
        Some(Given::Value(Value::Direction(_))) => navigation::to_vertices(builder, step),
        _ => set_end(builder, step, End::To),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    From,
    To,
}

fn set_end(builder: &mut Builder<'_>, step: Step<'_>, end: End) -> Lowered {
    step.at_most(1)?;
    let argument = step.arguments().first().ok_or_else(|| step.expected(0, "a step label, a vertex or a traversal"))?;
    let endpoint = match given(argument) {
        Given::Value(Value::String(label)) => Endpoint::Label(label.clone()),
        Given::Traversal(bytecode) => Endpoint::Traversal(builder.child(bytecode)?),
        _ => match to_value(argument) {
            Some(value) => Endpoint::Value(value),
            None => return Err(step.expected(0, "a step label, a vertex or a traversal")),
        },
    };
    let name = builder.last_name();
    match builder.last() {
        Some(Node::AddEdge { from, to, .. }) => {
            *(if end == End::From { from } else { to }) = Some(endpoint);
            Ok(())
        }
        Some(Node::Path { from, to, .. } | Node::PathFilter { from, to, .. }) => match endpoint {
            Endpoint::Label(label) => {
                *(if end == End::From { from } else { to }) = Some(label);
                Ok(())
            }
            _ => Err(step.expected(0, "a step label")),
        },
        _ => Err(step.illegal(format!("The {}() step cannot follow {name}()", step.name()))),
    }
}
