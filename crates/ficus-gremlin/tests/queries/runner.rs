//! Runs a query under given circumstances and shows its rows as text.

use std::sync::Arc;

use ficus_dataflow::ExecutorOptions;
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Bytecode, Value};
use ficus_query::engine::{Engine, EngineOptions, Prepared, RunOptions};
use ficus_query::error::QueryErrorKind;
use ficus_query::services::ServiceRegistry;
use ficus_storage::Graph;

/// How a query is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// Rows in a batch; none: the engine's choice.
    pub batch_rows_limit: Option<usize>,
    /// Whether the optimiser's rules are applied.
    pub with_rules: bool,
}

/// As the engine runs it.
pub const USUAL: Circumstances = Circumstances { batch_rows_limit: None, with_rules: true };

/// Ways to run a query that give the same rows.
pub const ALL: [Circumstances; 7] = [
    USUAL,
    Circumstances { batch_rows_limit: Some(1), with_rules: true },
    Circumstances { batch_rows_limit: Some(2), with_rules: true },
    Circumstances { batch_rows_limit: Some(256), with_rules: true },
    Circumstances { batch_rows_limit: Some(1), with_rules: false },
    Circumstances { batch_rows_limit: Some(2), with_rules: false },
    Circumstances { batch_rows_limit: Some(256), with_rules: false },
];

/// What came of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its rows, each as often as its bulk says.
    Rows(Vec<String>),
    /// Why there is no plan for it.
    Refused(String),
    /// How it failed.
    Failed(QueryErrorKind, String),
}

/// A graph with an engine.
pub struct Runner {
    graph: Arc<Graph>,
    engine: Engine,
}

impl Runner {
    /// An engine over `graph`; queries run on the calling thread.
    pub fn new(graph: Arc<Graph>) -> Runner {
        let options = EngineOptions {
            executors: ExecutorOptions { executors: 1, ..ExecutorOptions::default() },
            services: ServiceRegistry::standard(),
            analytics: None,
            io_root: None,
            files: None,
            random_seed: 1,
            queries_memory_bytes: usize::MAX,
        };
        Runner { graph, engine: Engine::start(options).expect("one thread can be started") }
    }

    /// Runs a text; what it writes is rolled back.
    pub fn text(&self, text: &str, circumstances: Circumstances, options: &RunOptions, show: Show) -> Answer {
        match parse_traversal(text, &ParseOptions::default()) {
            Ok(bytecode) => self.bytecode(&bytecode, circumstances, options, show),
            Err(error) => Answer::Refused(error.to_string()),
        }
    }

    /// Runs a tree; what it writes is rolled back.
    pub fn bytecode(
        &self,
        bytecode: &Bytecode,
        circumstances: Circumstances,
        options: &RunOptions,
        show: Show,
    ) -> Answer {
        let plan = match lower(bytecode) {
            Ok(plan) => plan,
            Err(error) => return Answer::Refused(error.to_string()),
        };
        let prepared = if circumstances.with_rules { Prepared::new(plan) } else { Prepared::without_rules(plan) };
        let mut prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Answer::Failed(error.kind, error.message.to_string()),
        };
        if let Some(limit) = circumstances.batch_rows_limit {
            let plan = Arc::get_mut(&mut prepared.physical.plan).expect("a new plan has one owner");
            plan.batch_rows_limit = limit;
        }
        // As a server does: what only reads has nothing recorded, and may remember what it has read.
        let transaction = if prepared.writes() { self.graph.begin() } else { self.graph.begin_reading() };
        let (outcome, transaction) = self.engine.collect(&prepared, transaction, options);
        drop(transaction);
        match outcome {
            Ok(rows) => Answer::Rows(
                rows.iter().flat_map(|(value, bulk)| std::iter::repeat_n(shown(value, show), *bulk as usize)).collect(),
            ),
            Err(error) => Answer::Failed(error.kind, error.message.to_string()),
        }
    }
}

/// How collections without an order of their own are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// As they are.
    AsIs,
    /// Entries of maps, sets and bags sorted.
    Sorted,
}

/// The text of a value. Numbers that are not Integer or Double carry a letter: `6L`, `1.5f`.
pub fn shown(value: &Value, show: Show) -> String {
    let joined = |mut texts: Vec<String>, has_order: bool| {
        if show == Show::Sorted && !has_order {
            texts.sort();
        }
        texts.join(", ")
    };
    let all = |values: &mut dyn Iterator<Item = &Value>| values.map(|value| shown(value, show)).collect::<Vec<_>>();
    let pair = |(key, value): (&Value, &Value)| format!("{}={}", shown(key, show), shown(value, show));
    match value {
        Value::Byte(_) => format!("{value}b"),
        Value::Short(_) => format!("{value}s"),
        Value::Long(_) => format!("{value}L"),
        Value::Float(_) => format!("{value}f"),
        Value::BigInteger(_) => format!("{value}n"),
        Value::BigDecimal(_) => format!("{value}m"),
        Value::List(values) => format!("[{}]", joined(all(&mut values.iter()), true)),
        Value::Set(values) => format!("{{{}}}", joined(all(&mut values.iter()), false)),
        Value::Map(map) => format!("{{{}}}", joined(map.iter().map(pair).collect(), false)),
        Value::Entry(entry) => format!("{{{}}}", pair((&entry.0, &entry.1))),
        Value::BulkSet(bag) => {
            let counted = bag.counts.iter().map(|(value, count)| format!("{}×{count}", shown(value, show)));
            format!("bag[{}]", joined(counted.collect(), false))
        }
        Value::Path(path) => format!("path[{}]", joined(all(&mut path.objects.iter()), true)),
        other => other.to_string(),
    }
}
