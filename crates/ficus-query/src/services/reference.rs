//! The two services TinkerPop's own graph brings, under their names, because clients and the feature suite call them.

use std::sync::Arc;

use ficus_model::matching::CompiledPredicate;
use ficus_model::{Direction, P, TextComparison, Value, ValueMap};
use ficus_storage::ScanCursor;

use super::{Reply, Service};
use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;

/// `tinker.degree.centrality`: the number of half-edges of a vertex.
pub struct DegreeCentrality;

impl Service for DegreeCentrality {
    fn name(&self) -> &str {
        "tinker.degree.centrality"
    }

    fn can_start(&self) -> bool {
        false
    }

    fn can_stream(&self) -> bool {
        true
    }

    fn parameters(&self) -> Vec<(&'static str, &'static str)> {
        vec![("direction", "Specify the direction to use (default = IN).")]
    }

    fn call(&self, cx: &mut Cx<'_>, input: Option<&Value>, parameters: &ValueMap) -> Result<Reply> {
        let context = &*cx.context;
        let direction = match parameters.get(&text("direction")) {
            None => Direction::In,
            Some(Value::Direction(direction)) => *direction,
            Some(Value::String(name)) => Direction::from_name(name)
                .ok_or_else(|| QueryError::invalid(format!("[{name}] is no direction; use IN, OUT or BOTH")))?,
            Some(other) => {
                return Err(QueryError::invalid(format!("direction is IN, OUT or BOTH, not a {}", other.type_name())));
            }
        };
        let Some(Value::Vertex(vertex)) = input.map(|input| context.attached(input)) else {
            return Err(QueryError::invalid("tinker.degree.centrality needs a vertex"));
        };
        let degree = context.transaction.degree(vertex, direction, &[]);
        Ok(Reply::Values(vec![Value::Long(i64::try_from(degree).unwrap_or(i64::MAX))]))
    }
}

/// `tinker.search`: properties with a text in their value.
pub struct Search;

/// Whose properties a search yields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Any,
    Vertices,
    Edges,
    VertexProperties,
}

/// Elements looked at between two checks for cancellation.
const SCAN_ROWS: usize = 256;

impl Service for Search {
    fn name(&self) -> &str {
        "tinker.search"
    }

    fn can_start(&self) -> bool {
        true
    }

    fn can_stream(&self) -> bool {
        false
    }

    fn parameters(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("search", "Specify the text to look for in property values."),
            ("type", "Specify whose properties: those of a Vertex, Edge or VertexProperty (default = all)."),
        ]
    }

    fn call(&self, cx: &mut Cx<'_>, _input: Option<&Value>, parameters: &ValueMap) -> Result<Reply> {
        let context = &*cx.context;
        let Some(Value::String(search)) = parameters.get(&text("search")) else {
            return Err(QueryError::invalid("tinker.search needs the parameter [search], a string"));
        };
        let predicate = P::Text(TextComparison::Containing, search.clone()).compile()?;
        let wanted = match parameters.get(&text("type")) {
            None => Wanted::Any,
            Some(Value::String(name)) => match &**name {
                "Vertex" => Wanted::Vertices,
                "Edge" => Wanted::Edges,
                "VertexProperty" => Wanted::VertexProperties,
                other => {
                    return Err(QueryError::invalid(format!("[{other}] is not Vertex, Edge or VertexProperty")));
                }
            },
            Some(other) => {
                return Err(QueryError::invalid(format!("[type] is a string, not a {}", other.type_name())));
            }
        };
        let mut found = Vec::new();
        if wanted != Wanted::Edges {
            vertices(context, &predicate, wanted, &mut found)?;
        }
        if matches!(wanted, Wanted::Any | Wanted::Edges) {
            edges(context, &predicate, &mut found)?;
        }
        Ok(Reply::Values(found))
    }
}

fn text(text: &str) -> Value {
    Value::String(Arc::from(text))
}

fn matches(property: &Value, predicate: &CompiledPredicate, context: &QueryContext) -> Result<bool> {
    match context.token(property, ficus_model::T::Value) {
        Some(value @ Value::String(_)) => Ok(predicate.test(&value, context)?),
        _ => Ok(false),
    }
}

fn vertices(
    context: &QueryContext,
    predicate: &CompiledPredicate,
    wanted: Wanted,
    found: &mut Vec<Value>,
) -> Result<()> {
    let (mut cursor, mut batch, mut properties) = (ScanCursor::default(), Vec::new(), Vec::new());
    let mut meta = Vec::new();
    loop {
        context.check()?;
        let more = context.transaction.scan_vertices(&mut cursor, SCAN_ROWS, &mut batch);
        for vertex in batch.drain(..) {
            let vertex = Value::Vertex(vertex);
            context.properties(&vertex, &mut [], &mut properties);
            for property in properties.drain(..) {
                if wanted != Wanted::VertexProperties && matches(&property, predicate, context)? {
                    found.push(property.clone());
                }
                if wanted != Wanted::Vertices {
                    context.properties(&property, &mut [], &mut meta);
                    for property in meta.drain(..) {
                        if matches(&property, predicate, context)? {
                            found.push(property);
                        }
                    }
                }
            }
        }
        if !more {
            return Ok(());
        }
    }
}

fn edges(context: &QueryContext, predicate: &CompiledPredicate, found: &mut Vec<Value>) -> Result<()> {
    let (mut cursor, mut batch, mut properties) = (ScanCursor::default(), Vec::new(), Vec::new());
    loop {
        context.check()?;
        let more = context.transaction.scan_edges(&mut cursor, SCAN_ROWS, &mut batch);
        for edge in batch.drain(..) {
            let edge = Value::Edge(edge);
            context.properties(&edge, &mut [], &mut properties);
            for property in properties.drain(..) {
                if matches(&property, predicate, context)? {
                    found.push(property);
                }
            }
        }
        if !more {
            return Ok(());
        }
    }
}
