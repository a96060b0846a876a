//! `by()` modulators and other arguments that may be traversals.
//!
//! A step that is modulated implements [`ModulatedLogic`]: it lists what has to be evaluated for a traverser and is called
//! again with the results. Keys, tokens and constants are evaluated on the spot; traversals are arms of a branch scope, so
//! each evaluation is a scope instance that is scheduled, budgeted and cancelled (after its first result) like any other,
//! unless a [probe](crate::probe) finds the result first.

use ficus_dataflow::{BranchLogic, Flow, Operator, Queue, Remains, Turn};
use ficus_model::{Column, Direction, Shared, T, Value};

use crate::context::{Cx, Graphs, QueryContext, Result};
use crate::elements::{KeyRef, LabelSet};
use crate::error::QueryError;
use crate::functions::members;
use crate::logical::Reach;
use crate::operators::adjacent::vertex_of;
use crate::operators::source::resolve_vertex;
use crate::probe::Probe;
use crate::traverser::{Labels, Traverser, work_of};

/// A compiled `by()`, or another argument that is a value or a traversal.
#[derive(Clone)]
pub enum Modulator {
    /// The object itself.
    Identity,
    /// The value of a property, of which there is to be one, or a map's value under the key.
    Key(KeyRef),
    /// The first value of an element that `values(key)` yields, at the end of a walk.
    First(KeyRef),
    /// A structural token.
    Token(T),
    /// Keys or values.
    Column(Column),
    /// Always this.
    Constant(Value),
    /// How many half-edges a vertex has: `out('knows').count()` and the like.
    Degree {
        /// The direction of the hop.
        direction: Direction,
        /// Its labels.
        labels: LabelSet,
    },
    /// The vertex with this id, or that is this element, if there is one.
    Vertex(Value),
    /// The first result of an arm of the scope, or of its probe where that finds it sooner.
    Arm {
        /// Index of the arm.
        arm: usize,
        /// The arm for evaluation in place.
        probe: Option<Box<Probe>>,
    },
}

impl Modulator {
    /// Evaluates on `value`; `None` is "unproductive". Arms cannot be evaluated here.
    pub fn evaluate(&mut self, value: &Value, context: &QueryContext) -> Result<Option<Value>> {
        match self {
            Modulator::Identity => Ok(Some(value.clone())),
            Modulator::Constant(constant) => Ok(Some(constant.clone())),
            Modulator::Vertex(id) => Ok(resolve_vertex(context, id).map(Value::Vertex)),
            Modulator::Key(key) => match value {
                Value::Map(_) | Value::Tree(_) => {
                    Ok(Some(members::under(value, &Value::String(key.name.clone())).unwrap_or(Value::Null)))
                }
                Value::Null | Value::Entry(_) => Err(cannot_read(key, value)),
                _ if QueryContext::is_element(value) => context.only_value(value, key),
                _ => Err(cannot_read(key, value)),
            },
            Modulator::First(key) => Ok(context.property_value(value, key)),
            Modulator::Token(token) => match context.token(value, *token) {
                Some(found) => Ok(Some(found)),
                None => Err(QueryError::invalid(format!(
                    "by({}) needs an element or property, but the traverser holds a {}",
                    token.name(),
                    value.type_name()
                ))),
            },
            Modulator::Column(column) => column_of(value, *column, context).map(Some),
            Modulator::Degree { direction, labels } => {
                let vertex = vertex_of(context, value, *direction, Reach::Vertex)?;
                let degree = match (vertex, labels.ids(context)) {
                    (Some(vertex), Some(labels)) => context.transaction.degree(vertex, *direction, labels),
                    _ => 0,
                };
                Ok(Some(Value::Long(i64::try_from(degree).unwrap_or(i64::MAX))))
            }
            Modulator::Arm { .. } => unreachable!("arms are evaluated by the scope"),
        }
    }
}

fn cannot_read(key: &KeyRef, value: &Value) -> QueryError {
    QueryError::invalid(format!(
        "The by(\"{}\") modulator can only be applied to a traverser that is an Element or a Map - it is being applied \
         to a {}",
        key.name,
        value.type_name()
    ))
}

/// Keys or values of a map, entry or path.
///
/// Errors: `Invalid` if the value has none; the query must stop.
pub fn column_of(value: &Value, column: Column, context: &QueryContext) -> Result<Value> {
    if work_of(value) == 0 {
        return column_here(value, column);
    }
    let found = members::watched(&context.control, || column_here(value, column));
    // Of very many, some may be missing.
    context.check()?;
    found
}

fn column_here(value: &Value, column: Column) -> Result<Value> {
    Ok(match (value, column) {
        (Value::Map(map), Column::Keys) => members::set_of(map.keys().cloned(), map.len()),
        (Value::Map(map), Column::Values) => members::list_of(map.values().cloned(), map.len()),
        (Value::Tree(tree), Column::Keys) => members::set_of(tree.children.keys().cloned(), tree.children.len()),
        (Value::Tree(tree), Column::Values) => {
            let children = tree.children.values().cloned().map(|child| Value::Tree(Shared::new(child)));
            members::list_of(children, tree.children.len())
        }
        (Value::Entry(entry), Column::Keys) => entry.0.clone(),
        (Value::Entry(entry), Column::Values) => entry.1.clone(),
        (Value::Path(path), Column::Keys) => Value::List(Shared::new(
            path.labels()
                .map(|labels| Value::Set(Shared::new(labels.iter().cloned().map(Value::String).collect())))
                .collect(),
        )),
        (Value::Path(path), Column::Values) => Value::List(Shared::new(path.objects.clone())),
        _ => {
            return Err(QueryError::invalid(format!(
                "The provided object does not have accessible {}: a {}",
                column.name(),
                value.type_name()
            )));
        }
    })
}

/// What a modulator is applied to.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The traverser's object; an arm sees the whole traverser with bulk 1.
    Current,
    /// Another value; an arm sees a fresh traverser.
    Value(Value),
}

/// One evaluation.
#[derive(Clone, Debug)]
pub struct Request {
    /// Index into the step's modulators.
    pub modulator: usize,
    /// What it is applied to.
    pub subject: Subject,
}

impl Request {
    /// Modulator `modulator` on the current object.
    pub fn current(modulator: usize) -> Request {
        Request { modulator, subject: Subject::Current }
    }
}

/// A step with modulators.
pub trait ModulatedLogic: Send {
    /// Lists the evaluations `traverser` needs, in order.
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()>;

    /// Whether the other evaluations matter, after these; if not, the traverser is dropped at once.
    fn wants_more(&mut self, _results: &[Option<Value>], _cx: &Cx<'_>) -> bool {
        true
    }

    /// All are evaluated: `results[i]` belongs to request `i`; `None` is "unproductive".
    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()>;

    /// Of a larger bulk, `complete` may leave something over.
    fn members_at_once(&self) -> u64 {
        u64::MAX
    }

    /// What `complete` has left over of the row that it was given, for what does something for each member of a large bulk: the row with the members
    /// that are still to come. It comes again, if it can behind the end of the turn.
    fn left_over(&mut self) -> Option<Traverser> {
        None
    }

    /// As [`ficus_dataflow::Operator::finish`].
    fn finish(&mut self, _out: &mut Queue<Traverser>, _cx: &mut Cx<'_>) -> Result<Flow> {
        Ok(Flow::Ready)
    }

    /// As [`ficus_dataflow::Operator::reopen`].
    fn reopen(&mut self) {}

    /// As [`ficus_dataflow::Operator::release`].
    fn release(&mut self, _context: &mut QueryContext) {}

    /// As [`ficus_dataflow::Operator::surrender`].
    fn surrender(&mut self, _remains: &mut Vec<Box<dyn Remains>>) {}

    /// As [`ficus_dataflow::Operator::reset`].
    fn reset(&mut self) {}
}

/// A row without what is more than `members` of its bulk, and that.
pub fn part_of(mut row: Traverser, members: u64) -> (Traverser, Option<Traverser>) {
    let Some(more) = row.bulk.checked_sub(members).filter(|more| *more > 0) else { return (row, None) };
    let mut rest = row.clone();
    (row.bulk, rest.bulk) = (members, more);
    (row, Some(rest))
}

/// Runs a [`ModulatedLogic`] as a branch scope.
pub struct Modulated<L> {
    logic: L,
    modulators: Vec<Modulator>,
    /// Rows have their whole way, which for what is no row begins with itself.
    keeps_ways: bool,
}

impl<L: ModulatedLogic> Modulated<L> {
    /// The logic with its compiled modulators, in a query in which rows have their whole way or not.
    pub fn new(logic: L, modulators: Vec<Modulator>, keeps_ways: bool) -> Modulated<L> {
        Modulated { logic, modulators, keeps_ways }
    }

    /// Evaluates requests until one needs an arm, or all are done.
    fn go_on(
        &mut self,
        state: &mut Evaluation,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        let traverser = state.traverser.as_ref().expect("set when the instance opened");
        while let Some(request) = state.requests.get(state.results.len()) {
            look(state.results.len(), cx)?;
            let modulator = &mut self.modulators[request.modulator];
            if let Modulator::Arm { arm, probe } = modulator {
                if let Some(probe) = probe {
                    let (value, way) = match &request.subject {
                        Subject::Current => (&traverser.value, Some(traverser)),
                        Subject::Value(value) => (value, None),
                    };
                    if let Some(result) = probe.first(value, way, cx)?.paid(cx) {
                        state.results.push(result);
                        if !self.logic.wants_more(&state.results, cx) {
                            return Ok(Turn::Close);
                        }
                        continue;
                    }
                }
                let message = match &request.subject {
                    Subject::Current => traverser.single(),
                    Subject::Value(value) => {
                        let mut message = cx.context.fresh(value.clone());
                        if self.keeps_ways {
                            message.extend_path(&Labels::default());
                        }
                        message
                    }
                };
                return Ok(Turn::Enter { arm: *arm, message });
            }
            let value = match &request.subject {
                Subject::Current => &traverser.value,
                Subject::Value(value) => value,
            };
            state.results.push(modulator.evaluate(value, cx.context)?);
            if !self.logic.wants_more(&state.results, cx) {
                return Ok(Turn::Close);
            }
        }
        let traverser = state.traverser.take().expect("set when the instance opened");
        let again = (traverser.bulk > self.logic.members_at_once()).then(|| state.results.clone());
        self.logic.complete(traverser, &mut state.results, out, cx)?;
        cx.context.count_changes()?;
        // What arms have yielded is there once; so all of it is done here.
        while let (Some(rest), Some(results)) = (self.logic.left_over(), &again) {
            cx.check()?;
            self.logic.complete(rest, &mut results.clone(), out, cx)?;
            cx.context.count_changes()?;
        }
        Ok(Turn::Close)
    }
}

/// To be called with the number of each evaluation: of a row there may be as many as it has members.
fn look(number: usize, cx: &Cx<'_>) -> Result<()> {
    /// Evaluations between two looks at whether the query must stop.
    const BETWEEN_LOOKS: usize = 1024;
    if number % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 { cx.check() } else { Ok(()) }
}

/// What an instance of a modulated step remembers.
#[derive(Default)]
pub struct Evaluation {
    traverser: Option<Traverser>,
    requests: Vec<Request>,
    results: Vec<Option<Value>>,
}

impl<L: ModulatedLogic> BranchLogic<Graphs> for Modulated<L> {
    type State = Evaluation;

    fn open(
        &mut self,
        input: Traverser,
        state: &mut Evaluation,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        state.requests.clear();
        state.results.clear();
        self.logic.requests(&input, cx, &mut state.requests)?;
        state.traverser = Some(input);
        self.go_on(state, out, cx)
    }

    fn receive(
        &mut self,
        message: Traverser,
        state: &mut Evaluation,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        state.results.push(Some(message.value));
        self.go_on(state, out, cx)
    }

    fn arm_ended(
        &mut self,
        state: &mut Evaluation,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        state.results.push(None);
        self.go_on(state, out, cx)
    }

    fn recycle(_state: &mut Evaluation) -> bool {
        // `open` clears it and keeps its room.
        true
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        self.logic.finish(out, cx)
    }

    fn reopen(&mut self) {
        self.logic.reopen();
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        self.logic.release(cx.context);
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.logic.surrender(remains);
    }

    fn reset(&mut self) {
        self.logic.reset();
    }
}

/// Runs a [`ModulatedLogic`] whose modulators need no arms: one row after the other, with nothing to come back to.
pub struct Plain<L> {
    logic: L,
    modulators: Vec<Modulator>,
    requests: Vec<Request>,
    results: Vec<Option<Value>>,
}

impl<L: ModulatedLogic> Plain<L> {
    /// The logic with its compiled modulators; none if one of them is an arm.
    pub fn new(logic: L, modulators: Vec<Modulator>) -> Plain<L> {
        Plain { logic, modulators, requests: Vec::new(), results: Vec::new() }
    }

    /// Evaluates what the logic wants of a row; `false` if that drops the row.
    fn evaluate(&mut self, row: &Traverser, cx: &mut Cx<'_>) -> Result<bool> {
        self.requests.clear();
        self.results.clear();
        self.logic.requests(row, cx, &mut self.requests)?;
        for request in &self.requests {
            look(self.results.len(), cx)?;
            let value = match &request.subject {
                Subject::Current => &row.value,
                Subject::Value(value) => value,
            };
            self.results.push(self.modulators[request.modulator].evaluate(value, cx.context)?);
            if !self.logic.wants_more(&self.results, cx) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<L: ModulatedLogic> Operator<Graphs> for Plain<L> {
    fn process(&mut self, input: &mut Queue<Traverser>, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(row) = input.pop_front() {
            cx.charge(1);
            if self.evaluate(&row, cx)? {
                self.logic.complete(row, &mut self.results, out, cx)?;
                cx.context.count_changes()?;
                if let Some(rest) = self.logic.left_over() {
                    input.push_front(rest);
                }
            }
            if cx.should_yield(out) {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        self.logic.finish(out, cx)
    }

    fn reopen(&mut self) {
        self.logic.reopen();
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        self.logic.release(cx.context);
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.logic.surrender(remains);
    }

    fn reset(&mut self) {
        self.logic.reset();
    }
}
