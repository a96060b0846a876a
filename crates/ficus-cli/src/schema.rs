//! `ficus admin schema`: the services `ficus.schema.…` over a data directory that no server uses.

use std::sync::Arc;

use ficus_model::{Shared, Value, ValueMap};
use ficus_query::engine::{Prepared, RunOptions};
use ficus_query::logical::{LogicalPlan, Node, ValueOrTraversal};

use crate::Outcome;
use crate::failure::Failure;
use crate::output::{OutputFormat, result};
use crate::serve::start_executors;

/// Flags of `ficus admin schema`.
#[derive(Debug, clap::Args)]
pub struct SchemaArguments {
    /// The data directory.
    #[arg(long, value_name = "DIR", env = "FICUS_STORE__DATA_DIR")]
    data_dir: std::path::PathBuf,
    /// The graph.
    #[arg(long, default_value = "g")]
    graph: String,
    /// list, describe, createVertexType, createEdgeType, createIndex, dropIndex, dropType, tasks or cancelTask.
    procedure: String,
    /// Parameters as key=value; a value that is JSON counts as such, all others are strings.
    #[arg(value_name = "KEY=VALUE")]
    parameters: Vec<String>,
}

/// Runs the verb.
pub fn run(arguments: SchemaArguments, format: OutputFormat) -> Outcome {
    let mut parameters = Vec::with_capacity(arguments.parameters.len());
    for parameter in &arguments.parameters {
        let (key, value) = parameter
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("{parameter}: write parameters as key=value")))?;
        let value = match serde_json::from_str(value) {
            Ok(json) => from_json(json),
            Err(_) => Value::String(Arc::from(value)),
        };
        parameters.push((Arc::from(key), ValueOrTraversal::Value(value)));
    }
    let call = Node::Call {
        service: Some(Arc::from(format!("ficus.schema.{}", arguments.procedure))),
        parameters,
        parameter_traversal: None,
        settings: Vec::new(),
        start: true,
    };
    let mut plan = LogicalPlan::default();
    plan.root.nodes.push(call.into());
    let prepared = Prepared::new(plan).map_err(Failure::failed)?;
    let store = crate::store::open(&arguments.data_dir, false)?;
    let graph = crate::store::graph(&store, &arguments.graph)?;
    let engine = start_executors(&Default::default())?;
    let (outcome, transaction) = engine.collect(&prepared, graph.begin(), &RunOptions::default());
    drop(transaction);
    let rows: Vec<Value> = outcome.map_err(Failure::failed)?.into_iter().map(|(value, _)| value).collect();
    for row in &rows {
        result(&if format == OutputFormat::Json { crate::render::json(row) } else { crate::render::text(row) })?;
    }
    store.close()?;
    Ok(())
}

/// Plain JSON as a value.
pub fn from_json(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(flag),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(integer) => i32::try_from(integer).map_or(Value::Long(integer), Value::Int),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::String(Arc::from(text)),
        serde_json::Value::Array(list) => Value::List(Shared::new(list.into_iter().map(from_json).collect())),
        serde_json::Value::Object(map) => {
            let entries = map.into_iter().map(|(key, value)| (Value::String(Arc::from(key)), from_json(value)));
            Value::Map(Shared::new(entries.collect::<ValueMap>()))
        }
    }
}
