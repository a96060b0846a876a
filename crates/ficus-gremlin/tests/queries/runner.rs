//! Runs a query under given circumstances and shows its rows as text.

use std::sync::Arc;

use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Bytecode, Value};
use ficus_query::engine::{Engine, EngineOptions, Prepared, RunOptions};
use ficus_query::error::QueryErrorKind;
use ficus_query::logical::{LogicalPlan, Node, visit};
use ficus_query::options::ScopePolicy;
use ficus_query::rules::Rule;
use ficus_storage::Graph;

/// How a query is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// Rows in a batch; none: the engine's choice.
    pub batch_rows_limit: Option<usize>,
    /// Which of the optimiser's rules are applied.
    pub rules: Rules,
    /// How sub-queries run.
    pub scopes: Scopes,
}

/// Which rules of the optimiser are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// All.
    All,
    /// None: the query runs as it is written.
    None,
    /// All but this one.
    Without(Rule),
    /// This one and no other.
    Only(Rule),
}

impl Rules {
    fn options(self) -> Vec<(Arc<str>, Value)> {
        let one = |rule: Rule, on| (format!("ficus.rule.{rule}").into(), Value::Bool(on));
        let none = ("ficus.rules".into(), Value::Bool(false));
        match self {
            Rules::All => Vec::new(),
            Rules::None => vec![none],
            Rules::Without(rule) => vec![one(rule, false)],
            Rules::Only(rule) => vec![none, one(rule, true)],
        }
    }
}

/// How sub-queries run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scopes {
    /// As the planner has it.
    Planned,
    /// In pipelines that all rows share, where they can be.
    Off,
    /// With this policy and so many instances at once, wherever the query lets them.
    With(ScopePolicy, usize),
    /// With this policy inside instances, the query's own included.
    Inside(ScopePolicy),
}

/// As the engine runs it.
pub const USUAL: Circumstances = Circumstances { batch_rows_limit: None, rules: Rules::All, scopes: Scopes::Planned };

/// Ways to run a query that give the same rows.
pub const ALL: [Circumstances; 7] = [
    USUAL,
    Circumstances { batch_rows_limit: Some(1), ..USUAL },
    Circumstances { batch_rows_limit: Some(2), ..USUAL },
    Circumstances { batch_rows_limit: Some(256), ..USUAL },
    Circumstances { batch_rows_limit: Some(1), rules: Rules::None, ..USUAL },
    Circumstances { batch_rows_limit: Some(2), rules: Rules::None, ..USUAL },
    Circumstances { batch_rows_limit: Some(256), rules: Rules::None, ..USUAL },
];

/// Other ways, for queries of which all rows are wanted: without scopes, or with other policies, what a sub-query does behind its answer is done or left
/// out, and rows come in another order.
pub const OTHER_SCOPES: [Circumstances; 8] = [
    Circumstances { scopes: Scopes::Off, ..USUAL },
    Circumstances { scopes: Scopes::Off, batch_rows_limit: Some(2), ..USUAL },
    Circumstances { scopes: Scopes::Off, rules: Rules::None, ..USUAL },
    Circumstances { scopes: Scopes::With(ScopePolicy::Bfs, 3), ..USUAL },
    Circumstances { scopes: Scopes::With(ScopePolicy::Dfs, 256), ..USUAL },
    Circumstances { scopes: Scopes::With(ScopePolicy::Fifo, 1), batch_rows_limit: Some(2), ..USUAL },
    Circumstances { scopes: Scopes::Inside(ScopePolicy::Bfs), ..USUAL },
    Circumstances { scopes: Scopes::Inside(ScopePolicy::Fifo), batch_rows_limit: Some(3), ..USUAL },
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
        let options = EngineOptions::with_executors(1);
        Runner { graph, engine: Engine::start(options).expect("one thread can be started") }
    }

    /// The rules that the optimiser applies to a query, if there is a plan for it.
    pub fn applied(bytecode: &Bytecode) -> Vec<Rule> {
        let prepared = lower(bytecode).ok().and_then(|plan| Prepared::new(plan).ok());
        prepared.map(|prepared| prepared.rules().map(|(rule, _)| *rule).collect()).unwrap_or_default()
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
        let mut plan = match lower(bytecode) {
            Ok(plan) => plan,
            Err(error) => return Answer::Refused(error.to_string()),
        };
        match circumstances.scopes {
            Scopes::Planned => {}
            Scopes::Off => plan.source.options.push(("ficus.scopes".into(), Value::Bool(false))),
            Scopes::With(policy, instances) => name_scopes(
                &mut plan,
                &[("policy", Value::from(policy.name())), ("maxInstances", Value::Int(instances as i32))],
            ),
            Scopes::Inside(policy) => {
                plan.source.options.push(("ficus.intraPolicy".into(), Value::from(policy.name())));
                name_scopes(&mut plan, &[("intraPolicy", Value::from(policy.name()))]);
            }
        }
        plan.source.options.extend(circumstances.rules.options());
        let mut prepared = match Prepared::new(plan) {
            Ok(prepared) => prepared,
            Err(error) => return Answer::Failed(error.kind, error.message.to_string()),
        };
        if let Some(limit) = circumstances.batch_rows_limit {
            let plan = Arc::get_mut(&mut prepared.physical.plan).expect("a new plan has one owner");
            // A plan that goes row by row, because rows see each other's effects, still does.
            plan.batch_rows_limit = plan.batch_rows_limit.min(limit);
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

/// Gives every step with sub-queries of its own, loops aside, a label, and says how their scopes are to run.
fn name_scopes(plan: &mut LogicalPlan, settings: &[(&str, Value)]) {
    let mut count = 0;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        for own in &mut traversal.nodes {
            let has_scope = matches!(
                own.node,
                Node::Filter { .. }
                    | Node::Not { .. }
                    | Node::And { .. }
                    | Node::Or { .. }
                    | Node::Map { .. }
                    | Node::FlatMap { .. }
                    | Node::Optional { .. }
                    | Node::Coalesce { .. }
            );
            if has_scope && !visit::children(&own.node).is_empty() {
                own.labels.push(format!("scope {count}").into());
                count += 1;
            }
        }
    });
    for number in 0..count {
        for (setting, value) in settings {
            plan.source.options.push((format!("ficus.scope.scope {number}.{setting}").into(), value.clone()));
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
