//! `repeat()` inside a walk: the frontier of a loop scope as a queue, in the same order.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use ficus_model::Value;
use hashbrown::HashSet;

use super::walk::{Sink, Walk};
use super::{Halt, Probe, Surroundings};
use crate::logical::{Node, OfEqual, Repeat, Traversal};

/// A `repeat()` whose body and tests can be evaluated in place.
#[derive(Clone)]
pub(super) struct Loop {
    body: Probe,
    until: Test,
    until_first: bool,
    emit: Test,
    emit_first: bool,
    distinct: OfEqual,
}

/// How a condition of a loop is decided.
#[derive(Clone)]
enum Test {
    Never,
    Always,
    /// After so many iterations.
    Times(i64),
    Probe(Box<Probe>),
}

impl Test {
    fn compile(traversal: Option<&Traversal>) -> Option<Test> {
        Some(match traversal.map(|traversal| traversal.nodes.as_slice()) {
            None => Test::Never,
            Some([]) => Test::Always,
            Some([only]) if matches!(only.node, Node::LoopsAtLeast { .. }) => match only.node {
                Node::LoopsAtLeast { times } => Test::Times(times),
                _ => return None,
            },
            Some(_) => Test::Probe(Box::new(Probe::compile_test(traversal?)?)),
        })
    }

    fn holds(&mut self, value: &Value, iterations: u32, around: &mut Surroundings<'_>) -> Result<bool, Halt> {
        match self {
            Test::Never => Ok(false),
            Test::Always => Ok(true),
            Test::Times(times) => Ok(i64::from(iterations) >= *times),
            Test::Probe(probe) => probe.exists(value, around),
        }
    }
}

/// A row that waits to enter the body.
struct Waiting {
    value: Value,
    bulk: u64,
    iterations: u32,
}

impl Loop {
    /// The body and the tests.
    pub(super) fn probes(&self) -> impl Iterator<Item = &Probe> {
        let tests = [&self.until, &self.emit].into_iter().filter_map(|test| match test {
            Test::Probe(probe) => Some(&**probe),
            _ => None,
        });
        std::iter::once(&self.body).chain(tests)
    }

    /// The body and the tests, to be changed.
    pub(super) fn probes_mut(&mut self) -> impl Iterator<Item = &mut Probe> {
        let tests = [&mut self.until, &mut self.emit].into_iter().filter_map(|test| match test {
            Test::Probe(probe) => Some(&mut **probe),
            _ => None,
        });
        std::iter::once(&mut self.body).chain(tests)
    }

    pub(super) fn compile(repeat: &Repeat) -> Option<Loop> {
        let body = Probe::compile(&repeat.body)?;
        // What remembers rows in the body remembers them over all iterations.
        if body.is_gathering() {
            return None;
        }
        Some(Loop {
            body,
            until: Test::compile(repeat.until.as_deref())?,
            until_first: repeat.until_first,
            emit: Test::compile(repeat.emit.as_deref())?,
            emit_first: repeat.emit_first,
            distinct: repeat.distinct,
        })
    }

    /// Hands out the rows that leave the loop, for one that comes in.
    pub(super) fn run(&mut self, value: Value, bulk: u64, around: &mut Surroundings<'_>, exit: &mut Sink<'_>) -> Walk {
        let mut frontier = VecDeque::from([Waiting { value, bulk, iterations: 0 }]);
        let mut seen: HashSet<(u32, Value)> = HashSet::new();
        // Tests that stand before `repeat()` are made before every iteration.
        while let Some(Waiting { value, bulk, iterations }) = frontier.pop_front() {
            around.pay(1)?;
            if self.until_first && self.until.holds(&value, iterations, around)? {
                if exit(value, bulk, around)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                continue;
            }
            if self.emit_first
                && self.emit.holds(&value, iterations, around)?
                && exit(value.clone(), bulk, around)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            let Loop { body, until, until_first, emit, emit_first, distinct } = self;
            let iterations = iterations.saturating_add(1);
            let flow = body.rows(value, bulk, around, &mut |value, bulk, around| {
                let is_new = match *distinct {
                    OfEqual::All => true,
                    OfEqual::OneOfIteration => seen.insert((iterations, value.clone())),
                    OfEqual::One => seen.insert((0, value.clone())),
                };
                if !is_new {
                    return Ok(ControlFlow::Continue(()));
                }
                if !*until_first && until.holds(&value, iterations, around)? {
                    return exit(value, bulk, around);
                }
                if !*emit_first
                    && emit.holds(&value, iterations, around)?
                    && exit(value.clone(), bulk, around)?.is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
                frontier.push_back(Waiting { value, bulk, iterations });
                Ok(ControlFlow::Continue(()))
            })?;
            if flow.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
