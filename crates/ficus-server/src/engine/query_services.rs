//! `call('ficus.queries')` and `call('ficus.kill')`: looking at the queries of the server, and ending one.
//!
//! They run past the line and the limit on the number of queries, so that they answer when nothing else does.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ficus_model::{Value, ValueMap};
use ficus_query::QueryError;
use ficus_query::context::{Cx, Result};
use ficus_query::logical::{LogicalPlan, Node};
use ficus_query::services::{Reply, Service, ServiceRegistry};
use uuid::Uuid;

use super::queries::{Entry, Queries};

/// Names of the services.
const LIST: &str = "ficus.queries";
const KILL: &str = "ficus.kill";

/// Adds the services to those of the server.
pub fn register(services: &mut ServiceRegistry, queries: &Arc<Queries>) {
    services.register(Arc::new(ListQueries(queries.clone())));
    services.register(Arc::new(KillQuery(queries.clone())));
}

/// Whether a plan does nothing but look after queries.
pub(super) fn looks_after_queries(plan: &LogicalPlan) -> bool {
    let is_own = |node: &Node| match node {
        Node::Call { service: Some(service), .. } => matches!(&**service, LIST | KILL),
        _ => false,
    };
    matches!(plan.root.nodes.as_slice(), [only] if is_own(&only.node))
}

fn text(text: impl AsRef<str>) -> Value {
    Value::String(Arc::from(text.as_ref()))
}

struct ListQueries(Arc<Queries>);

fn described(entry: &Entry) -> Value {
    let long = |number: usize| Value::Long(i64::try_from(number).unwrap_or(i64::MAX));
    let ms = |time: std::time::Duration| Value::Long(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
    let optional = |value: Option<Arc<str>>| value.map_or(Value::Null, Value::String);
    let progress = entry.cancel.progress();
    let percent = |share: f64| Value::Double((share.clamp(0.0, 1.0) * 1000.0).round() / 10.0);
    let is_running = entry.queued.get().is_some();
    let fields = [
        ("id", text(entry.id.to_string())),
        ("user", optional(entry.user.clone())),
        ("source", Value::String(entry.source.clone())),
        ("text", Value::String(entry.text())),
        ("state", text(if is_running { "running" } else { "queued" })),
        ("age_ms", ms(entry.arrived.elapsed())),
        ("queued_ms", ms(entry.waited())),
        ("memory_bytes", long(entry.memory.used_bytes())),
        ("rows", Value::Long(i64::try_from(entry.rows.load(Ordering::Relaxed)).unwrap_or(i64::MAX))),
        ("operator", optional(entry.operator())),
        ("stage", progress.map_or(Value::Null, |progress| text(progress.stage))),
        ("round", progress.and_then(|progress| progress.round).map_or(Value::Null, |round| Value::Long(round.into()))),
        ("percent", progress.map_or(Value::Null, |progress| percent(progress.share))),
    ];
    Value::Map(Arc::new(fields.into_iter().map(|(key, value)| (text(key), value)).collect::<ValueMap>()))
}

impl Service for ListQueries {
    fn name(&self) -> &str {
        LIST
    }

    fn is_listed(&self) -> bool {
        false
    }

    fn parameters(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    fn call(&self, _cx: &mut Cx<'_>, _input: Option<&Value>, _parameters: &ValueMap) -> Result<Reply> {
        Ok(Reply::Values(self.0.list().iter().map(|entry| described(entry)).collect()))
    }
}

struct KillQuery(Arc<Queries>);

impl Service for KillQuery {
    fn name(&self) -> &str {
        KILL
    }

    fn is_listed(&self) -> bool {
        false
    }

    fn parameters(&self) -> Vec<(&'static str, &'static str)> {
        vec![("id", "The id of the query to end, as ficus.queries tells it.")]
    }

    fn call(&self, _cx: &mut Cx<'_>, _input: Option<&Value>, parameters: &ValueMap) -> Result<Reply> {
        let id = match parameters.get(&text("id")) {
            Some(Value::String(id)) => Uuid::parse_str(id).ok(),
            Some(Value::Uuid(id)) => Some(*id),
            _ => None,
        };
        let Some(id) = id else {
            return Err(QueryError::invalid(format!(
                "{KILL} needs the parameter [id], the id of a query as call('{LIST}') tells it"
            )));
        };
        if !self.0.kill(id) {
            return Err(QueryError::invalid(format!("there is no query {id}; it has ended, or never was")));
        }
        let mut killed = ValueMap::default();
        killed.insert(text("killed"), text(id.to_string()));
        Ok(Reply::Values(vec![Value::Map(Arc::new(killed))]))
    }
}
