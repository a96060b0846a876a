//! `call('ficus.queries')`, `call('ficus.tenants')` and `call('ficus.kill')`: looking at the queries of the server and at those for whom they run,
//! and ending one.
//!
//! Where users have names, they see the texts of their own queries and end those; administrators see and end all.
//!
//! They run past the line and the limit on the number of queries, so that they answer when nothing else does.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ficus_model::{Shared, Value, ValueMap};
use ficus_query::caller::Caller;
use ficus_query::context::{Cx, Result};
use ficus_query::logical::{LogicalPlan, Node};
use ficus_query::services::{Reply, Service, ServiceRegistry};
use ficus_query::{QueryError, QueryErrorKind};
use uuid::Uuid;

use crate::tenants::{Load, Tenant};

use super::queries::{Entry, KillRefusal, Queries};

/// Names of the services.
const LIST: &str = "ficus.queries";
const TENANTS: &str = "ficus.tenants";
const KILL: &str = "ficus.kill";

/// Adds the services to those of the server.
pub fn register(services: &mut ServiceRegistry, queries: &Arc<Queries>) {
    services.register(Arc::new(ListQueries(queries.clone())));
    services.register(Arc::new(ListTenants(queries.clone())));
    services.register(Arc::new(KillQuery(queries.clone())));
}

/// Whether a plan does nothing but look after queries.
pub(super) fn looks_after_queries(plan: &LogicalPlan) -> bool {
    let is_own = |node: &Node| match node {
        Node::Call { service: Some(service), .. } => matches!(&**service, LIST | TENANTS | KILL),
        _ => false,
    };
    matches!(plan.root.nodes.as_slice(), [only] if is_own(&only.node))
}

fn text(text: impl AsRef<str>) -> Value {
    Value::String(Arc::from(text.as_ref()))
}

fn long(number: impl TryInto<i64>) -> Value {
    Value::Long(number.try_into().unwrap_or(i64::MAX))
}

fn map<const COUNT: usize>(fields: [(&str, Value); COUNT]) -> Value {
    Value::Map(Shared::new(fields.into_iter().map(|(key, value)| (text(key), value)).collect::<ValueMap>()))
}

struct ListQueries(Arc<Queries>);

fn described(entry: &Entry, caller: Option<&Caller>) -> Value {
    let ms = |time: std::time::Duration| long(time.as_millis());
    let optional = |value: Option<Arc<str>>| value.map_or(Value::Null, Value::String);
    let progress = entry.cancel.progress();
    let percent = |share: f64| Value::Double((share.clamp(0.0, 1.0) * 1000.0).round() / 10.0);
    let state = match entry.planned.get() {
        None => "planning",
        Some(_) if entry.is_in_line() => "queued",
        Some(_) => "running",
    };
    map([
        ("id", text(entry.id.to_string())),
        ("user", optional(entry.asker.user().cloned())),
        ("tenant", Value::String(entry.asker.tenant.name().clone())),
        ("source", Value::String(entry.source.clone())),
        ("text", if entry.is_open_to(caller) { Value::String(entry.text()) } else { Value::Null }),
        ("state", text(state)),
        ("age_ms", ms(entry.arrived.elapsed())),
        ("queued_ms", ms(entry.waited())),
        ("memory_bytes", long(entry.memory.used_bytes())),
        ("rows", long(entry.rows.load(Ordering::Relaxed))),
        ("helpers", long(entry.cancel.times_helped())),
        ("operator", optional(entry.operator())),
        ("stage", progress.map_or(Value::Null, |progress| text(progress.stage))),
        ("round", progress.and_then(|progress| progress.round).map_or(Value::Null, |round| Value::Long(round.into()))),
        ("percent", progress.map_or(Value::Null, |progress| percent(progress.share))),
    ])
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

    fn call(&self, cx: &mut Cx<'_>, _input: Option<&Value>, _parameters: &ValueMap) -> Result<Reply> {
        let caller = cx.context.caller.as_deref();
        Ok(Reply::Values(self.0.list().iter().map(|entry| described(entry, caller)).collect()))
    }
}

struct ListTenants(Arc<Queries>);

impl Service for ListTenants {
    fn name(&self) -> &str {
        TENANTS
    }

    fn is_listed(&self) -> bool {
        false
    }

    fn parameters(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    fn call(&self, cx: &mut Cx<'_>, _input: Option<&Value>, _parameters: &ValueMap) -> Result<Reply> {
        if let Some(caller) = cx.context.caller.as_ref().filter(|caller| !caller.is_administrator) {
            return Err(not_allowed(format!("{TENANTS} is for administrators, and {} is none", caller.user)));
        }
        let described = |tenant: &Arc<Tenant>, load: Load| {
            map([
                ("tenant", Value::String(tenant.name().clone())),
                ("weight", long(tenant.share().weight.get())),
                ("running", long(load.running)),
                ("waiting", long(load.waiting)),
                ("queries", long(tenant.queries())),
                ("work_units", long(tenant.work_units())),
            ])
        };
        Ok(Reply::Values(self.0.tenants().iter().map(|(tenant, load)| described(tenant, *load)).collect()))
    }
}

fn not_allowed(message: String) -> QueryError {
    QueryError::new(QueryErrorKind::NotAllowed, message)
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

    fn call(&self, cx: &mut Cx<'_>, _input: Option<&Value>, parameters: &ValueMap) -> Result<Reply> {
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
        let caller = cx.context.caller.as_deref();
        self.0.kill(id, caller).map_err(|refusal| match refusal {
            KillRefusal::NoQuery => QueryError::invalid(format!("there is no query {id}; it has ended, or never was")),
            KillRefusal::NotAllowed => {
                let user = caller.map_or("", |caller| &caller.user);
                not_allowed(format!("query {id} is of another user, and {user} is no administrator; it goes on"))
            }
        })?;
        let mut killed = ValueMap::default();
        killed.insert(text("killed"), text(id.to_string()));
        Ok(Reply::Values(vec![Value::Map(Shared::new(killed))]))
    }
}
