//! Programs over the whole graph: `pageRank`, `connectedComponent`, `peerPressure`, `shortestPath`, and their `with()` options.

use std::sync::Arc;

use ficus_model::{Direction, Value, number};
use ficus_query::logical::{
    LabelledNode, Name, Node, PropertyForm, Reach, Traversal, ValueOrTraversal, VertexProgram, VertexProgramKind,
};

use super::arguments::{Step, to_integer};
use super::branch::single;
use super::builder::Builder;
use super::error::{LowerErrorKind, Lowered};

const DEFAULT_ALPHA: f64 = 0.85;
const DEFAULT_RANK_TIMES: u32 = 20;
const DEFAULT_PRESSURE_TIMES: u32 = 30;

/// `pageRank()`, `pageRank(alpha)`.
pub(super) fn page_rank(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let alpha = match step.count() {
        0 => DEFAULT_ALPHA,
        _ => match step.value(0)? {
            value if number::is_number(&value) => number::to_double(&value),
            _ => return Err(step.expected(0, "a number")),
        },
    };
    let kind = VertexProgramKind::PageRank { alpha, times: DEFAULT_RANK_TIMES };
    push(builder, step, kind, "gremlin.pageRankVertexProgram.pageRank", Direction::Out)
}

/// `connectedComponent()`.
pub(super) fn connected_component(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    let property = "gremlin.connectedComponentVertexProgram.component";
    push(builder, step, VertexProgramKind::ConnectedComponent, property, Direction::Both)
}

/// `peerPressure()`.
pub(super) fn peer_pressure(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    let kind = VertexProgramKind::PeerPressure { times: DEFAULT_PRESSURE_TIMES };
    push(builder, step, kind, "gremlin.peerPressureVertexProgram.cluster", Direction::Out)
}

/// `shortestPath()`.
pub(super) fn shortest_path(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    let kind = VertexProgramKind::ShortestPath {
        target: Arc::default(),
        distance: None,
        distance_limit: None,
        include_edges: false,
    };
    push(builder, step, kind, "", Direction::Both)
}

/// `program(…)`.
pub(super) fn program(_: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    Err(step.error(
        LowerErrorKind::UnsupportedAnalytics,
        "program() takes an object of a JVM; use pageRank(), connectedComponent(), peerPressure(), shortestPath() or a service through call()",
    ))
}

fn push(
    builder: &mut Builder<'_>,
    step: Step<'_>,
    kind: VertexProgramKind,
    property: &str,
    direction: Direction,
) -> Lowered {
    if !builder.context.is_root() {
        return Err(step.illegal(format!("{}() stands in the outermost traversal only", step.name())));
    }
    if builder.is_empty() {
        return Err(step.illegal(format!("{}() cannot begin a traversal: put V() in front of it", step.name())));
    }
    let chooses = |(position, own): (usize, &LabelledNode)| match own.node {
        Node::Vertices { .. } => position > 0,
        Node::VertexProgram(_) => false,
        _ => true,
    };
    let is_behind_steps = builder.nodes().iter().enumerate().any(chooses);
    let edges = edges_to(direction);
    let program = VertexProgram { kind, property: property.into(), edges, is_behind_steps };
    builder.push(step, Node::VertexProgram(program))
}

fn edges_to(direction: Direction) -> Arc<Traversal> {
    single(Node::Adjacent { direction, labels: Vec::new(), reach: Reach::Edge })
}

/// `with(key, value)` behind one of them.
pub(super) fn with(step: Step<'_>, program: &mut VertexProgram, key: &str, value: ValueOrTraversal) -> Lowered {
    let (family, option) = match key.strip_prefix("~tinkerpop.").and_then(|key| key.split_once('.')) {
        Some((family, option)) => (family, option),
        None => ("", ""),
    };
    let own = match program.kind {
        VertexProgramKind::PageRank { .. } => "pageRank",
        VertexProgramKind::ConnectedComponent => "connectedComponent",
        VertexProgramKind::PeerPressure { .. } => "peerPressure",
        VertexProgramKind::ShortestPath { .. } => "shortestPath",
    };
    let mut class = own.to_owned();
    class[..1].make_ascii_uppercase();
    let wrong = |what: &str| Err(step.wrong(format!("{class}.{option} requires {what} as its argument")));
    let unknown = || Err(step.wrong(format!("{own}() has no option {key}: see {class} for those it has")));
    if family != own {
        return unknown();
    }
    match (option, &mut program.kind, value) {
        ("edges", _, ValueOrTraversal::Traversal(edges)) => {
            let is_hop = matches!(
                edges.nodes.first(),
                Some(LabelledNode { node: Node::Adjacent { reach: Reach::Edge, .. }, .. })
            );
            if !is_hop {
                return Err(
                    step.wrong(format!("{class}.edges begins with outE(), inE() or bothE(), and filters may follow"))
                );
            }
            program.edges = edges;
        }
        ("edges", VertexProgramKind::ShortestPath { .. }, ValueOrTraversal::Value(Value::Direction(direction))) => {
            program.edges = edges_to(direction);
        }
        ("edges", VertexProgramKind::ShortestPath { .. }, _) => return wrong("a Traversal or a Direction"),
        ("edges", ..) => return wrong("a Traversal"),
        ("target", VertexProgramKind::ShortestPath { target, .. }, given) => match given {
            ValueOrTraversal::Traversal(given) => *target = given,
            ValueOrTraversal::Value(_) => return wrong("a Traversal"),
        },
        ("distance", VertexProgramKind::ShortestPath { distance, .. }, given) => match given {
            ValueOrTraversal::Traversal(given) => *distance = Some(given),
            ValueOrTraversal::Value(Value::String(key)) => {
                *distance = Some(single(Node::Properties { keys: vec![key], form: PropertyForm::Value }));
            }
            ValueOrTraversal::Value(_) => return wrong("a property key or a Traversal"),
        },
        ("maxDistance", VertexProgramKind::ShortestPath { distance_limit, .. }, given) => match given {
            ValueOrTraversal::Value(limit) if number::is_number(&limit) => {
                *distance_limit = Some(number::to_double(&limit));
            }
            _ => return wrong("a Number"),
        },
        ("includeEdges", VertexProgramKind::ShortestPath { include_edges, .. }, given) => match given {
            ValueOrTraversal::Value(Value::Bool(include)) => *include_edges = include,
            _ => return wrong("a boolean"),
        },
        (_, VertexProgramKind::ShortestPath { .. }, _) => return unknown(),
        ("propertyName", _, given) => match given {
            ValueOrTraversal::Value(Value::String(name)) if !name.is_empty() => program.property = Name::clone(&name),
            _ => return wrong("a String"),
        },
        ("times", VertexProgramKind::PageRank { times, .. } | VertexProgramKind::PeerPressure { times }, given) => {
            let number = match &given {
                ValueOrTraversal::Value(value) => to_integer(value).and_then(|number| u32::try_from(number).ok()),
                ValueOrTraversal::Traversal(_) => None,
            };
            let Some(number) = number else { return wrong("an Integer of 0 or more") };
            *times = number;
        }
        _ => return unknown(),
    }
    Ok(())
}
