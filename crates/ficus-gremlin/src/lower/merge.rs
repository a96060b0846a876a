//! `mergeV` and `mergeE` with their options, and what their maps may hold.
//!
//! A literal map is checked here, before anything runs; one that a traversal yields is checked by who runs it. In a literal
//! map a value with its own cardinality becomes an entry of the cardinality and the value.

use ficus_model::{Cardinality, Direction, Merge, T, Value, ValueMap};
use ficus_query::logical::{Node, ValueOrTraversal};

use super::arguments::{Given, Step, describe, to_value};
use super::builder::Builder;
use super::error::{LowerError, Lowered};

/// Which of the two steps a map belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Vertex,
    Edge,
}

impl Kind {
    fn step_name(self) -> &'static str {
        match self {
            Kind::Vertex => "mergeV",
            Kind::Edge => "mergeE",
        }
    }

    fn allows(self, key: &Value) -> bool {
        match key {
            Value::T(T::Id | T::Label) => true,
            Value::Direction(Direction::In | Direction::Out) => self == Kind::Edge,
            _ => false,
        }
    }

    fn allowed(self) -> &'static str {
        match self {
            Kind::Vertex => "[id, label]",
            Kind::Edge => "[id, label, IN, OUT]",
        }
    }
}

pub(super) fn merge_vertex(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let start = builder.is_start();
    let search = search(builder, step, Kind::Vertex)?;
    let node = Node::MergeVertex {
        search,
        on_create: None,
        on_match: None,
        match_cardinality: None,
        create_cardinality: None,
        start,
    };
    builder.push(step, node)
}

pub(super) fn merge_edge(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let start = builder.is_start();
    let search = search(builder, step, Kind::Edge)?;
    let node = Node::MergeEdge { search, on_create: None, on_match: None, out_vertex: None, in_vertex: None, start };
    builder.push(step, node)
}

/// The search map; without one, what comes in is it.
fn search(builder: &Builder<'_>, step: Step<'_>, kind: Kind) -> Lowered<Option<ValueOrTraversal>> {
    step.at_most(1)?;
    if step.count() == 0 {
        return Ok(None);
    }
    let map = map_argument(builder, step, 0)?;
    if let ValueOrTraversal::Value(Value::Map(map)) = &map {
        check_map(step, kind, map)?;
    }
    Ok(Some(map))
}

/// A map, null or a traversal that yields one.
fn map_argument(builder: &Builder<'_>, step: Step<'_>, index: usize) -> Lowered<ValueOrTraversal> {
    match step.given(index) {
        Some(Given::Traversal(bytecode)) => builder.child(bytecode).map(ValueOrTraversal::Traversal),
        Some(Given::Value(Value::Null)) => Ok(ValueOrTraversal::Value(Value::Null)),
        Some(Given::Value(Value::Map(_)) | Given::Map(_)) => {
            let map = step.arguments().get(index).and_then(to_value);
            map.map(ValueOrTraversal::Value).ok_or_else(|| step.expected(index, "a map of plain values"))
        }
        _ => Err(step.expected(index, "a map or a traversal")),
    }
}

/// `option(token, map or traversal[, cardinality])` behind `mergeV()` or `mergeE()`.
pub(super) fn option(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let Some(Given::Value(Value::Merge(token))) = step.given(0) else {
        return Err(step.expected(0, "a Merge token"));
    };
    let kind = if matches!(builder.last(), Some(Node::MergeVertex { .. })) { Kind::Vertex } else { Kind::Edge };
    match (kind, *token) {
        (Kind::Vertex, Merge::OutV | Merge::InV) => {
            return Err(step.illegal(format!("Option {token} for Merge is not supported by mergeV()")));
        }
        (Kind::Edge, Merge::OutV | Merge::InV) => return end_vertex(builder, step, *token),
        _ => {}
    }
    let argument = map_argument(builder, step, 1)?;
    let cardinality = cardinality(step, kind, &argument)?;
    if let ValueOrTraversal::Value(Value::Map(map)) = &argument {
        if *token == Merge::OnCreate { check_map(step, kind, map)? } else { check_match_map(step, map)? }
    }
    match builder.last() {
        Some(
            Node::MergeVertex { search, on_create, on_match, .. } | Node::MergeEdge { search, on_create, on_match, .. },
        ) => {
            if *token == Merge::OnCreate {
                check_overrides(step, search.as_ref(), &argument)?;
                *on_create = Some(argument);
            } else {
                *on_match = Some(argument);
            }
        }
        _ => return Ok(()),
    }
    if let Some(Node::MergeVertex { match_cardinality, create_cardinality, .. }) = builder.last() {
        *(if *token == Merge::OnCreate { create_cardinality } else { match_cardinality }) = cardinality;
    }
    Ok(())
}

/// The cardinality for the whole map; only vertices have such a thing.
fn cardinality(step: Step<'_>, kind: Kind, argument: &ValueOrTraversal) -> Lowered<Option<Cardinality>> {
    let cardinality = match step.given(2) {
        None => None,
        Some(Given::Value(Value::Cardinality(cardinality))) => Some(*cardinality),
        Some(_) => return Err(step.expected(2, "a Cardinality")),
    };
    if kind == Kind::Edge && (cardinality.is_some() || has_cardinalities(argument)) {
        return Err(no_cardinality(step));
    }
    Ok(cardinality)
}

/// Whether a literal map has values with their own cardinality.
fn has_cardinalities(argument: &ValueOrTraversal) -> bool {
    match argument {
        ValueOrTraversal::Value(Value::Map(map)) => map.values().any(|value| matches!(value, Value::Entry(_))),
        _ => false,
    }
}

fn no_cardinality(step: Step<'_>) -> LowerError {
    step.illegal("option() with the Cardinality argument can only be used following mergeV()")
}

/// `option(outV, …)`, `option(inV, …)`: a traversal, a map to search the vertex with, or the vertex itself.
fn end_vertex(builder: &mut Builder<'_>, step: Step<'_>, token: Merge) -> Lowered {
    step.at_most(2)?;
    let vertex = match step.given(1) {
        Some(Given::Traversal(_) | Given::Map(_)) => map_argument(builder, step, 1)?,
        _ => ValueOrTraversal::Value(step.value(1)?),
    };
    if has_cardinalities(&vertex) {
        return Err(no_cardinality(step));
    }
    if let ValueOrTraversal::Value(Value::Map(map)) = &vertex {
        check_map(step, Kind::Vertex, map)?;
    }
    if let Some(Node::MergeEdge { out_vertex, in_vertex, .. }) = builder.last() {
        *(if token == Merge::OutV { out_vertex } else { in_vertex }) = Some(vertex);
    }
    Ok(())
}

// ---- what maps may hold ----------------------------------------------------------------------------------------

/// The rules for the search map and for `option(onCreate, …)`.
fn check_map(step: Step<'_>, kind: Kind, map: &ValueMap) -> Lowered {
    let name = kind.step_name();
    for (key, value) in map {
        let is_token = matches!(key, Value::T(_) | Value::Direction(_) | Value::Merge(_));
        if is_token && matches!(value, Value::Null) {
            return Err(step.wrong(format!("{name}() does not allow null Map values - check: {}", describe(key))));
        }
        match (key, value) {
            (Value::String(key), _) => check_property_key(step, key)?,
            (key, _) if !kind.allows(key) => {
                return Err(step.wrong(format!(
                    "{name}() and option(onCreate) args expect keys in Map to be either String or {} - check: {}",
                    kind.allowed(),
                    describe(key)
                )));
            }
            (Value::T(T::Label), Value::String(label)) => check_label(step, label)?,
            (Value::T(T::Label), other) => {
                return Err(step.wrong(format!(
                    "{name}() and option(onCreate) args expect T.label value to be of String - found: {}",
                    describe(other)
                )));
            }
            (Value::Direction(Direction::Out), Value::Merge(merge)) if *merge != Merge::OutV => {
                return Err(step.wrong(format!("Only Merge.outV token may be used for Direction.OUT, found: {merge}")));
            }
            (Value::Direction(Direction::In), Value::Merge(merge)) if *merge != Merge::InV => {
                return Err(step.wrong(format!("Only Merge.inV token may be used for Direction.IN, found: {merge}")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The rules for `option(onMatch, …)`: ids, labels and ends of what exists cannot change.
fn check_match_map(step: Step<'_>, map: &ValueMap) -> Lowered {
    for key in map.keys() {
        match key {
            Value::String(key) => check_property_key(step, key)?,
            other => {
                return Err(step.wrong(format!(
                    "option(onMatch) expects keys in Map to be of String - check: {}",
                    describe(other)
                )));
            }
        }
    }
    Ok(())
}

fn check_property_key(step: Step<'_>, key: &str) -> Lowered {
    if key.is_empty() {
        return Err(step.wrong("Property key can not be the empty string"));
    }
    if key.starts_with('~') {
        return Err(step.wrong(format!("Property key can not be a hidden key: {key}")));
    }
    Ok(())
}

fn check_label(step: Step<'_>, label: &str) -> Lowered {
    if label.is_empty() {
        return Err(step.wrong("Label can not be empty"));
    }
    if label.starts_with('~') {
        return Err(step.wrong(format!("Label can not be a hidden key: {label}")));
    }
    Ok(())
}

/// What is created must still be found by the search map.
fn check_overrides(step: Step<'_>, search: Option<&ValueOrTraversal>, create: &ValueOrTraversal) -> Lowered {
    let (Some(ValueOrTraversal::Value(Value::Map(search))), ValueOrTraversal::Value(Value::Map(create))) =
        (search, create)
    else {
        return Ok(());
    };
    for (key, value) in create.iter() {
        if let Some(searched) = search.get(key)
            && searched != value
        {
            return Err(step.wrong(format!(
                "option(onCreate) cannot override values from merge() argument: {} differs",
                ValueOrTraversal::Value(key.clone())
            )));
        }
    }
    Ok(())
}
