//! Steps that write: `addV`, `addE`, `property`, `drop`.
//!
//! `property()` directly behind `addV()` or `addE()` becomes part of it, so that an element is written in one go. Exactly as
//! in TinkerPop, a traversal in such a `property()` sees what came into the step; one that does not qualify (it has a
//! cardinality or meta-properties) sees the new element, and stays a node of its own.

use std::collections::HashSet;

use ficus_model::{Argument, Cardinality, T, Value};
use ficus_query::logical::{Node, PropertyWrite, ValueOrTraversal};

use super::arguments::{Given, Step, given};
use super::builder::Builder;
use super::error::Lowered;
use super::sources::value_or_traversal;

/// `addV()`, `addV(label)`, `addV(traversal)`.
pub(super) fn add_vertex(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let start = builder.is_start();
    let label = if step.count() == 0 { None } else { Some(element_label(builder, step, "vertexLabel")?) };
    builder.push(step, Node::AddVertex { label, properties: Vec::new(), start })
}

/// `addE(label)`, `addE(traversal)`; its ends come with `from()` and `to()`.
pub(super) fn add_edge(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let start = builder.is_start();
    let label = element_label(builder, step, "edgeLabel")?;
    builder.push(step, Node::AddEdge { label, from: None, to: None, properties: Vec::new(), start })
}

fn element_label(builder: &Builder<'_>, step: Step<'_>, what: &str) -> Lowered<ValueOrTraversal> {
    match step.given(0) {
        Some(Given::Value(label @ Value::String(_))) => Ok(ValueOrTraversal::Value(label.clone())),
        Some(Given::Traversal(bytecode)) => builder.child(bytecode).map(ValueOrTraversal::Traversal),
        Some(Given::Value(Value::Null)) => Err(step.wrong(format!("{what} cannot be null"))),
        _ => Err(step.expected(0, "a label or a traversal")),
    }
}

pub(super) fn drop(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::Drop)
}

/// `property([cardinality,] key, value, meta…)`, `property([cardinality,] map)`; a null map writes nothing.
pub(super) fn property(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (cardinality, at) = match step.given(0) {
        Some(Given::Value(Value::Cardinality(cardinality))) => (Some(*cardinality), 1),
        _ => (None, 0),
    };
    let arguments = &step.arguments()[at..];
    match arguments {
        [] => Err(step.expected(at, "a key or a map")),
        [only] => match given(only) {
            Given::Value(Value::Null) => Ok(()),
            Given::Value(Value::Map(entries)) => {
                for (key, value) in entries.iter() {
                    let (key, value) = (Argument::Value(key.clone()), Argument::Value(value.clone()));
                    write(builder, step, cardinality, &key, &value, &[])?;
                }
                Ok(())
            }
            Given::Map(entries) => {
                for (key, value) in entries {
                    write(builder, step, cardinality, key, value, &[])?;
                }
                Ok(())
            }
            _ => Err(step.misused("property() takes ([cardinality,] key, value, …) or ([cardinality,] map)")),
        },
        [_, _, meta @ ..] if !meta.len().is_multiple_of(2) => {
            Err(step.wrong("keyValues must contain key/value pairs, found key without matching value"))
        }
        [key, value, meta @ ..] => write(builder, step, cardinality, key, value, meta),
    }
}

fn write(
    builder: &mut Builder<'_>,
    step: Step<'_>,
    cardinality: Option<Cardinality>,
    key: &Argument,
    value: &Argument,
    meta: &[Argument],
) -> Lowered {
    // A value may bring its own cardinality.
    let (cardinality, value) = match given(value) {
        Given::Cardinality(own, value) => (Some(own), value),
        _ => (cardinality, value),
    };
    let key = property_key(builder, step, key)?;
    let value = value_or_traversal(builder, step, value, 1)?;
    if is_token(&key) && matches!(value, ValueOrTraversal::Value(Value::Null)) {
        return Err(step.wrong("Value of T cannot be null"));
    }
    let mut pairs = Vec::with_capacity(meta.len() / 2);
    let mut given_keys = HashSet::new();
    for pair in meta.chunks_exact(2) {
        let key = property_key(builder, step, &pair[0])?;
        if let ValueOrTraversal::Value(Value::String(key)) = &key
            && !given_keys.insert(key.clone())
        {
            return Err(step.wrong(format!(
                "Only single value meta-properties are supported: property() is given the key '{key}' twice"
            )));
        }
        pairs.push((key, value_or_traversal(builder, step, &pair[1], 3)?));
    }
    place(builder, step, PropertyWrite { cardinality, key, value, meta: pairs })
}

fn property_key(builder: &Builder<'_>, step: Step<'_>, key: &Argument) -> Lowered<ValueOrTraversal> {
    match given(key) {
        Given::Value(key @ (Value::String(_) | Value::T(T::Id | T::Label))) => Ok(ValueOrTraversal::Value(key.clone())),
        Given::Traversal(bytecode) => builder.child(bytecode).map(ValueOrTraversal::Traversal),
        Given::Value(Value::Null) => Err(step.wrong("Property key can not be null")),
        other => Err(step.wrong(format!(
            "property() takes a string, T.id, T.label or a traversal as key, but got {}",
            other.describe()
        ))),
    }
}

fn is_token(key: &ValueOrTraversal) -> bool {
    matches!(key, ValueOrTraversal::Value(Value::T(_)))
}

fn holds_traversal(property: &PropertyWrite) -> bool {
    let is_traversal = |value: &ValueOrTraversal| matches!(value, ValueOrTraversal::Traversal(_));
    is_traversal(&property.key)
        || is_traversal(&property.value)
        || property.meta.iter().any(|(key, value)| is_traversal(key) || is_traversal(value))
}

/// Whether it has neither a cardinality nor meta-properties.
fn is_plain(property: &PropertyWrite) -> bool {
    property.meta.is_empty() && property.cardinality.is_none()
}

/// Adds what is written of a new element: what is plain is written first, as in TinkerPop, wherever it stands.
fn insert(properties: &mut Vec<PropertyWrite>, property: PropertyWrite) {
    let others = properties.iter().rev().take_while(|other| !is_plain(other)).count();
    let behind = if is_plain(&property) { others } else { 0 };
    properties.insert(properties.len() - behind, property);
}

/// Puts the property into the `addV()` or `addE()` it follows, or makes a node of it.
fn place(builder: &mut Builder<'_>, step: Step<'_>, property: PropertyWrite) -> Lowered {
    let nodes = builder.nodes();
    let behind = nodes.iter().rev().take_while(|labelled| matches!(labelled.node, Node::AddProperty { .. })).count();
    let element = nodes.len().checked_sub(behind + 1).map(|index| &mut nodes[index].node);
    match element {
        Some(Node::AddEdge { properties, .. }) => {
            if let Some(cardinality @ (Cardinality::List | Cardinality::Set)) = property.cardinality {
                return Err(step.illegal(format!(
                    "Multi-property cardinality of [{cardinality}] can only be set for a Vertex but is being used for \
                     addE() with key: {}",
                    property.key
                )));
            }
            // As where property() changes an edge, which has no place for them.
            let property = PropertyWrite { meta: Vec::new(), ..property };
            check_token(step, "Edge", properties, &property)?;
            if is_plain(&property) && properties.iter().any(|other| is_plain(other) && other.key == property.key) {
                return Err(step.wrong("Multi-properties are not supported by this step"));
            }
            insert(properties, property);
            return Ok(());
        }
        Some(Node::AddVertex { label, properties, .. }) => {
            if is_token(&property.key) && property.meta.is_empty() {
                if matches!(property.key, ValueOrTraversal::Value(Value::T(T::Label))) {
                    if let Some(label) = label {
                        return Err(step.wrong(format!(
                            "Vertex T.label has already been set to [{label}] and cannot be overridden with [{}]",
                            property.value
                        )));
                    }
                    *label = Some(property.value);
                    return Ok(());
                }
                check_token(step, "Vertex", properties, &property)?;
                properties.push(property);
                return Ok(());
            }
            // With meta-properties alone it replaces what is there under the key, as one that stands for itself does.
            let adds = behind == 0 && property.cardinality.is_some() && !holds_traversal(&property);
            if is_plain(&property) || adds {
                insert(properties, property);
                return Ok(());
            }
        }
        _ => {}
    }
    if let ValueOrTraversal::Value(Value::T(token)) = &property.key {
        return Err(step.illegal(format!(
            "T.{token} is immutable on existing elements: it can only be given directly behind addV() or addE()"
        )));
    }
    builder.push(step, Node::AddProperty { property })
}

/// An id is given once; an edge has its label already.
fn check_token(step: Step<'_>, element: &str, properties: &[PropertyWrite], new: &PropertyWrite) -> Lowered {
    let ValueOrTraversal::Value(Value::T(token)) = &new.key else { return Ok(()) };
    if element == "Edge" && *token == T::Label {
        return Err(
            step.wrong(format!("Edge T.label has already been set and cannot be overridden with [{}]", new.value))
        );
    }
    match properties.iter().find(|property| property.key == new.key) {
        None => Ok(()),
        Some(property) => Err(step.wrong(format!(
            "{element} T.{token} has already been set to [{}] and cannot be overridden with [{}]",
            property.value, new.value
        ))),
    }
}
