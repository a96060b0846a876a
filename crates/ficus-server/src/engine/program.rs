//! Programs: what a request asks for, as statements ready to run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{self, ParseOptions, Statement, Terminal, TransactionOperation};
use ficus_model::{Bytecode, Value, ValueMap};
use ficus_query::engine::Prepared;
use ficus_query::logical::{LogicalPlan, Node};
use ficus_query::options;

use crate::backend::{Failure, Program};

use super::failure::{self, Form};

/// One statement, ready to run.
#[derive(Clone)]
pub enum Ready {
    /// A traversal; its rows are the answer.
    Query {
        /// The plan.
        prepared: Arc<Prepared>,
        /// What is made of the rows.
        answer: Answer,
    },
    /// Ends the transaction, or begins one (which a session always has).
    Transaction(TransactionOperation),
    /// How a traversal would run.
    Explain(Arc<Prepared>),
    /// A value without a traversal.
    Value(Value),
}

/// What is made of the rows of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// They are the answer.
    Rows,
    /// There has to be one.
    Required,
    /// Whether there is one.
    Exists,
    /// Nothing.
    Nothing,
}

/// Plans of texts without parameters, by text; drivers repeat themselves.
///
/// Holds at most [`PROGRAMS_MAX`] texts of at most [`PROGRAM_BYTES_MAX`]; when full it starts over, which costs less than
/// keeping an order of use.
#[derive(Default)]
pub struct ProgramCache {
    /// Protects the map; held for one look-up or insertion.
    programs: Mutex<HashMap<Arc<str>, Arc<Vec<Ready>>>>,
    /// Whether walks of several hops are streams unless a query asks for searches.
    pub(super) streams_walks: bool,
}

const PROGRAMS_MAX: usize = 4096;
const PROGRAM_BYTES_MAX: usize = 4096;

/// A program, ready to run.
pub fn prepare(cache: &ProgramCache, program: &Program, bindings: &ValueMap) -> Result<Arc<Vec<Ready>>, Failure> {
    match program {
        Program::Bytecode(bytecode) => {
            let plan = lowered(bytecode, cache.streams_walks, Form::Bytecode)?;
            let prepared = prepare_plan(plan, Form::Bytecode)?;
            Ok(Arc::new(vec![Ready::Query { prepared: Arc::new(prepared), answer: Answer::Rows }]))
        }
        Program::Text { gremlin, .. } => {
            let cacheable = bindings.is_empty() && gremlin.len() <= PROGRAM_BYTES_MAX && !changes_by_itself(gremlin);
            if cacheable && let Some(found) = cache.get(gremlin) {
                return Ok(found);
            }
            let ready = Arc::new(prepare_text(gremlin, bindings, cache.streams_walks)?);
            if cacheable {
                cache.put(gremlin, &ready);
            }
            Ok(ready)
        }
    }
}

/// Whether a text may mean something else the next time: it makes a new id, or asks for the current time, as `datetime` does unless a text follows.
fn changes_by_itself(gremlin: &str) -> bool {
    let tells_now = |behind: &str| {
        let argument = behind.trim_start().strip_prefix('(').map(str::trim_start);
        !argument.is_some_and(|argument| argument.starts_with(['\'', '"']))
    };
    ["UUID(", "ElementIdStrategy"].iter().any(|word| gremlin.contains(word))
        || gremlin.match_indices("datetime").any(|(place, word)| tells_now(&gremlin[place + word.len()..]))
}

impl ProgramCache {
    fn get(&self, text: &str) -> Option<Arc<Vec<Ready>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned()
    }

    fn put(&self, text: &Arc<str>, ready: &Arc<Vec<Ready>>) {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if programs.len() >= PROGRAMS_MAX {
            programs.clear();
        }
        programs.insert(text.clone(), ready.clone());
    }
}

fn prepare_text(gremlin: &str, bindings: &ValueMap, streams_walks: bool) -> Result<Vec<Ready>, Failure> {
    let options = ParseOptions { bindings, ..ParseOptions::default() };
    let script = text::parse(gremlin, &options).map_err(|error| failure::syntax(&error))?;
    script.statements.into_iter().map(|statement| prepare_statement(statement, streams_walks)).collect()
}

fn prepare_statement(statement: Statement, streams_walks: bool) -> Result<Ready, Failure> {
    match statement {
        Statement::Traversal { bytecode, terminal, .. } => prepare_traversal(&bytecode, terminal, streams_walks),
        Statement::Transaction { operation, .. } => Ok(Ready::Transaction(operation)),
        Statement::SourceOnly { .. } => Err(Failure::new(
            &crate::catalogue::NOT_ENCODABLE,
            "a traversal source is not a result that can be sent; add a step such as V()",
        )),
        Statement::Empty => Ok(Ready::Value(Value::String(Arc::from("")))),
        Statement::ToString(inner) => match *inner {
            // The text of a traversal is its steps, as the reference prints them.
            Statement::Traversal { bytecode, terminal: None, .. } => {
                let plan = lower(&bytecode).map_err(|error| failure::lowering(&error, Form::Text))?;
                Ok(Ready::Value(Value::String(Arc::from(plan.to_string()))))
            }
            Statement::Empty => prepare_statement(Statement::Empty, streams_walks),
            _ => Err(Failure::new(
                &crate::catalogue::INVALID_TRAVERSAL,
                "toString() is understood after a traversal only; drop it and format the results in the client",
            )),
        },
    }
}

/// The plan of a traversal, with the settings of the server before those of its source.
fn lowered(bytecode: &Bytecode, streams_walks: bool, form: Form) -> Result<LogicalPlan, Failure> {
    let mut plan = lower(bytecode).map_err(|error| failure::lowering(&error, form))?;
    if streams_walks {
        plan.source.options.insert(0, (options::K_HOP.into(), Value::Bool(false)));
    }
    Ok(plan)
}

fn prepare_traversal(bytecode: &Bytecode, terminal: Option<Terminal>, streams_walks: bool) -> Result<Ready, Failure> {
    let mut plan = lowered(bytecode, streams_walks, Form::Text)?;
    if terminal == Some(Terminal::Explain) {
        let prepared = Prepared::explained(plan).map_err(|error| failure::query(&error, Form::Text))?;
        return Ok(Ready::Explain(Arc::new(prepared)));
    }
    let mut add = |node: Node| plan.root.nodes.push(node.into());
    let answer = match terminal {
        None | Some(Terminal::ToList | Terminal::ToBulkSet | Terminal::Explain) => Answer::Rows,
        Some(Terminal::ToSet) => {
            add(Node::Dedup { labels: Vec::new(), by: None });
            Answer::Rows
        }
        Some(Terminal::Next) => {
            add(Node::Range { low: 0, high: 1 });
            Answer::Required
        }
        Some(Terminal::NextMany(count)) => {
            add(Node::Range { low: 0, high: count.max(0) });
            Answer::Rows
        }
        Some(Terminal::TryNext) => {
            add(Node::Range { low: 0, high: 1 });
            Answer::Rows
        }
        Some(Terminal::HasNext) => {
            add(Node::Range { low: 0, high: 1 });
            Answer::Exists
        }
        Some(Terminal::Iterate) => {
            add(Node::Discard);
            Answer::Nothing
        }
    };
    let prepared = prepare_plan(plan, Form::Text)?;
    Ok(Ready::Query { prepared: Arc::new(prepared), answer })
}

fn prepare_plan(plan: LogicalPlan, form: Form) -> Result<Prepared, Failure> {
    Prepared::new(plan).map_err(|error| failure::query(&error, form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_mean_something_else_each_time_are_not_kept() {
        for text in [
            "g.V().has('date', lt(datetime()))",
            "g.V().has('date', between(datetime('2020-01-01T00:00Z'), datetime ( )))",
            "g.inject(datetime(/* now */))",
            "g.inject(UUID())",
            "g.withStrategies(ElementIdStrategy).addV()",
        ] {
            assert!(changes_by_itself(text), "{text}");
        }
        for text in ["g.V().has('date', lt(datetime('2020-01-01T00:00Z')))", "g.inject(datetime( \"2020\" ))", "g.V()"]
        {
            assert!(!changes_by_itself(text), "{text}");
        }
    }
}
