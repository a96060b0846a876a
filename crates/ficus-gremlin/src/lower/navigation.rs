//! Steps from element to element, and to what an element holds.

use std::collections::HashSet;

use ficus_model::{Direction, Value};
use ficus_query::logical::{Name, Node, PropertyForm, Reach, TokenFlags};

use super::arguments::{Given, Step};
use super::builder::Builder;
use super::error::Lowered;

pub(super) fn out(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    adjacent(builder, step, Direction::Out, Reach::Vertex, 0)
}

pub(super) fn in_(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    adjacent(builder, step, Direction::In, Reach::Vertex, 0)
}

pub(super) fn both(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    adjacent(builder, step, Direction::Both, Reach::Vertex, 0)
}

pub(super) fn out_edges(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    adjacent(builder, step, Direction::Out, Reach::Edge, 0)
}

pub(super) fn in_edges(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    adjacent(builder, step, Direction::In, Reach::Edge, 0)
}

pub(super) fn both_edges(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    adjacent(builder, step, Direction::Both, Reach::Edge, 0)
}

/// `toE(direction, labels…)`.
pub(super) fn to_edges(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    adjacent(builder, step, direction(step)?, Reach::Edge, 1)
}

/// `to(direction, labels…)`, the form of `to()` that is a step of its own.
pub(super) fn to_vertices(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    adjacent(builder, step, direction(step)?, Reach::Vertex, 1)
}

fn adjacent(builder: &mut Builder<'_>, step: Step<'_>, direction: Direction, reach: Reach, from: usize) -> Lowered {
    let labels = step.names(from)?;
    builder.push(step, Node::Adjacent { direction, labels, reach })
}

fn direction(step: Step<'_>) -> Lowered<Direction> {
    match step.given(0) {
        Some(Given::Value(Value::Direction(direction))) => Ok(*direction),
        _ => Err(step.expected(0, "a Direction")),
    }
}

pub(super) fn to_vertex_of_edge(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    builder.push(step, Node::EdgeVertex { direction: direction(step)? })
}

pub(super) fn out_vertex(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::EdgeVertex { direction: Direction::Out })
}

pub(super) fn in_vertex(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::EdgeVertex { direction: Direction::In })
}

pub(super) fn both_vertices(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::EdgeVertex { direction: Direction::Both })
}

pub(super) fn other_vertex(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::OtherVertex)
}

pub(super) fn id(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::Id)
}

pub(super) fn label(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::Label)
}

pub(super) fn key(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::Key)
}

pub(super) fn value(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::ValueOf)
}

pub(super) fn element(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::Element)
}

/// Keys of properties, each once: who asks for a key twice gets its properties once. Cost: no more than a hash table for keys without end.
fn different(keys: Vec<Name>) -> Vec<Name> {
    let mut seen = HashSet::with_capacity(keys.len());
    keys.into_iter().filter(|key| seen.insert(key.clone())).collect()
}

pub(super) fn values(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    builder.push(step, Node::Properties { keys: different(step.names(0)?), form: PropertyForm::Value })
}

pub(super) fn properties(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    builder.push(step, Node::Properties { keys: different(step.names(0)?), form: PropertyForm::Property })
}

/// `valueMap(keys…)`, or `valueMap(true, keys…)` as it was before `with(WithOptions.tokens)`.
pub(super) fn value_map(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (tokens, from) = match step.given(0) {
        Some(Given::Value(Value::Bool(tokens))) => (*tokens, 1),
        _ => (false, 0),
    };
    let tokens = if tokens { ALL_TOKENS } else { TokenFlags::default() };
    builder.push(step, property_map(different(step.names(from)?), PropertyForm::Value, tokens))
}

pub(super) fn property_map_step(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    builder.push(step, property_map(different(step.names(0)?), PropertyForm::Property, TokenFlags::default()))
}

fn property_map(keys: Vec<Name>, form: PropertyForm, tokens: TokenFlags) -> Node {
    Node::PropertyMap { keys, form, tokens, by: None, filter: None }
}

/// What `WithOptions.all` stands for.
pub(super) const ALL_TOKENS: TokenFlags = TokenFlags { ids: true, labels: true, keys: true, values: true };

pub(super) fn element_map(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    builder.push(step, Node::ElementMap { keys: different(step.names(0)?), filter: None })
}
