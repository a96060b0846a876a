//! Programs: what a request asks for, as statements ready to run.

use std::sync::Arc;

use ficus_dataflow::CancelToken;
use ficus_gremlin::lower::lower_in_time;
use ficus_gremlin::text::{self, ParseOptions, Statement, Terminal, TransactionOperation};
use ficus_model::{Bytecode, Value, ValueMap};
use ficus_query::engine::Prepared;
use ficus_query::logical::{LogicalPlan, Node};
use ficus_query::options;
use ficus_query::planning::Planning;

use crate::backend::{Failure, Program};

use super::failure::{self, Form};
use super::program_cache::{Known, ProgramCache, TEXT_BYTES_MAX};
use super::time_limit::TimeLimit;

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

/// A program, ready to run, as long as it has not to stop.
pub fn prepare(
    cache: &ProgramCache,
    program: &Program,
    bindings: &ValueMap,
    time: &TimeLimit,
    cancel: &CancelToken,
) -> Result<Arc<Vec<Ready>>, Failure> {
    let planner = Planner {
        streams_walks: cache.streams_walks,
        form: Form::of(program),
        planning: time.planning(time.of_request(), cancel),
        time,
        cancel,
    };
    match program {
        Program::Bytecode(bytecode) => {
            let (plan, planning) = planner.lowered(bytecode)?;
            let prepared = Arc::new(planner.prepared(plan, false, &planning)?);
            Ok(Arc::new(vec![Ready::Query { prepared, answer: Answer::Rows }]))
        }
        Program::Text { gremlin, .. } => {
            let cacheable = bindings.is_empty() && may_be_kept(gremlin);
            let known = if cacheable { cache.get(gremlin) } else { Known::New };
            if let Known::Kept(ready) = known {
                return Ok(ready);
            }
            let ready = Arc::new(planner.text(gremlin, bindings)?);
            if matches!(known, Known::Seen) {
                cache.put(gremlin, &ready);
            }
            Ok(ready)
        }
    }
}

/// Whether the plan of a text may be used again, and is no larger than the text makes it look: the ranges in `inject(1..1000000)` are written out.
fn may_be_kept(gremlin: &str) -> bool {
    gremlin.len() <= TEXT_BYTES_MAX && !gremlin.contains("..") && !changes_by_itself(gremlin)
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

/// Makes plans of one program.
struct Planner<'p> {
    streams_walks: bool,
    form: Form,
    /// What may end it before it is known what a statement asks for.
    planning: Planning,
    time: &'p TimeLimit,
    cancel: &'p CancelToken,
}

impl Planner<'_> {
    fn text(&self, gremlin: &str, bindings: &ValueMap) -> Result<Vec<Ready>, Failure> {
        let options = ParseOptions { bindings, planning: &self.planning, ..ParseOptions::default() };
        let script = text::parse(gremlin, &options)
            .map_err(|error| self.stopped(&self.planning).unwrap_or_else(|| failure::syntax(&error)))?;
        script.statements.into_iter().map(|statement| self.statement(statement)).collect()
    }

    /// Why what `planning` looks after has to stop, if it has.
    fn stopped(&self, planning: &Planning) -> Option<Failure> {
        planning.check().err().map(|error| failure::query(&error, self.form))
    }

    fn statement(&self, statement: Statement) -> Result<Ready, Failure> {
        match statement {
            Statement::Traversal { bytecode, terminal, .. } => self.traversal(&bytecode, terminal),
            Statement::Transaction { operation, .. } => Ok(Ready::Transaction(operation)),
            Statement::SourceOnly { .. } => Err(Failure::new(
                &crate::catalogue::NOT_ENCODABLE,
                "a traversal source is not a result that can be sent; add a step such as V()",
            )),
            Statement::Empty => Ok(Ready::Value(Value::String(Arc::from("")))),
            Statement::ToString(inner) => match *inner {
                // The text of a traversal is its steps, as the reference prints them.
                Statement::Traversal { bytecode, terminal: None, .. } => {
                    let plan = self.plan(&bytecode)?;
                    Ok(Ready::Value(Value::String(Arc::from(plan.to_string()))))
                }
                Statement::Empty => self.statement(Statement::Empty),
                _ => Err(Failure::new(
                    &crate::catalogue::INVALID_TRAVERSAL,
                    "toString() is understood after a traversal only; drop it and format the results in the client",
                )),
            },
        }
    }

    fn plan(&self, bytecode: &Bytecode) -> Result<LogicalPlan, Failure> {
        lower_in_time(bytecode, &self.planning)
            .map_err(|error| self.stopped(&self.planning).unwrap_or_else(|| failure::lowering(&error, self.form)))
    }

    /// The plan of a traversal, with the settings of the server before those of its source; and what may end it from now on.
    fn lowered(&self, bytecode: &Bytecode) -> Result<(LogicalPlan, Planning), Failure> {
        let mut plan = self.plan(bytecode)?;
        let planning = self.time.planning(self.time.of_statement(&plan.source), self.cancel);
        if self.streams_walks {
            plan.source.options.insert(0, (options::K_HOP.into(), Value::Bool(false)));
        }
        Ok((plan, planning))
    }

    fn prepared(&self, plan: LogicalPlan, keep_texts: bool, planning: &Planning) -> Result<Prepared, Failure> {
        let prepared =
            Prepared::in_time(plan, keep_texts, planning).map_err(|error| failure::query(&error, self.form))?;
        self.stopped(planning).map_or(Ok(prepared), Err)
    }

    fn traversal(&self, bytecode: &Bytecode, terminal: Option<Terminal>) -> Result<Ready, Failure> {
        let (mut plan, planning) = self.lowered(bytecode)?;
        if terminal == Some(Terminal::Explain) {
            return Ok(Ready::Explain(Arc::new(self.prepared(plan, true, &planning)?)));
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
        let prepared = Arc::new(self.prepared(plan, false, &planning)?);
        Ok(Ready::Query { prepared, answer })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ficus_dataflow::Interrupt;
    use ficus_model::Instruction;

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

    #[test]
    fn texts_that_are_short_for_their_plans_are_not_kept() {
        assert!(!may_be_kept("g.inject(1..1000000)"));
        assert!(!may_be_kept(&format!("g.inject({}1)", "1,".repeat(TEXT_BYTES_MAX / 2))));
        assert!(may_be_kept("g.inject(1, 1000000)"));
    }

    #[test]
    fn programs_that_have_to_stop_are_not_planned() {
        let time = |timeout| TimeLimit::from_now(timeout, None);
        let text = |gremlin: &str| Program::Text { gremlin: gremlin.into(), language: None };
        let prepare = |program: &Program, time: &TimeLimit, cancel: &CancelToken| {
            let prepared = prepare(&ProgramCache::default(), program, &ValueMap::default(), time, cancel);
            prepared.map(|statements| statements.len()).map_err(|failure| failure.code)
        };
        let bytecode = Bytecode {
            source: Vec::new(),
            steps: vec![Instruction { name: "V".into(), args: Vec::new(), offset: None }],
        };
        let programs = [
            text("g.V().count()"),
            text(&format!("g.inject({}1)", "1,".repeat(100_000))),
            text("g.V().explain()"),
            text("g.V().toString()"),
            Program::Bytecode(Arc::new(bytecode)),
        ];
        for program in &programs {
            assert_eq!(prepare(program, &time(None), &CancelToken::default()), Ok(1));
            let killed = CancelToken::default();
            killed.stop(Interrupt::Killed);
            assert_eq!(prepare(program, &time(None), &killed), Err("FICUS-2014"));
            assert_eq!(prepare(program, &time(Some(Duration::ZERO)), &CancelToken::default()), Err("FICUS-1401"));
        }
        // What a statement asks for counts as soon as it is known.
        let hurried = text("g.with('evaluationTimeout', 1).V().out()");
        let late = time(Some(Duration::from_secs(600)));
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(prepare(&hurried, &late, &CancelToken::default()), Err("FICUS-1401"));
    }
}
