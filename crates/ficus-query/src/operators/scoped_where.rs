//! `where()` with labels: predicates between labelled objects, and traversals that start or end at them.

use ficus_dataflow::{BranchLogic, BranchOptions, NodeName, Queue, Turn};
use ficus_model::matching::CompiledPredicate;
use ficus_model::{Comparison, P, Pop, TextComparison, Value, VertexId};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::logical::{By, Name, Node, WherePredicate};
use crate::memberships::Memberships;
use crate::modulate::{ModulatedLogic, Modulator, Request, Subject};
use crate::operators::combine::found_under;
use crate::operators::per_row::KeepRows;
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::Traverser;

/// The labels on the right-hand sides, left to right.
pub fn right_labels(predicate: &WherePredicate, list: &mut Vec<Name>) {
    match predicate {
        WherePredicate::Compare(_, label) | WherePredicate::Text(_, label) => list.push(label.clone()),
        WherePredicate::Within(labels) | WherePredicate::Without(labels) => list.extend(labels.iter().cloned()),
        WherePredicate::And(parts) | WherePredicate::Or(parts) => {
            for part in parts {
                right_labels(part, list);
            }
        }
        WherePredicate::Not(part) => right_labels(part, list),
    }
}

/// Tests with the right-hand sides filled in, taking them from `values` left to right.
fn test(
    predicate: &WherePredicate,
    left: &Value,
    values: &mut std::vec::IntoIter<Value>,
    context: &QueryContext,
) -> Result<bool> {
    let mut next = || values.next().unwrap_or(Value::Null);
    Ok(match predicate {
        WherePredicate::Compare(comparison, _) => comparison.test(left, &next(), context),
        WherePredicate::Text(comparison, _) => text(*comparison, &next())?.test(left, context)?,
        WherePredicate::Within(labels) => {
            let rights: Vec<Value> = labels.iter().map(|_| next()).collect();
            is_within(left, &rights, context)?
        }
        WherePredicate::Without(labels) => {
            let rights: Vec<Value> = labels.iter().map(|_| next()).collect();
            !is_within(left, &rights, context)?
        }
        // All parts are walked, so that each takes its own values.
        WherePredicate::And(parts) => {
            let mut all = true;
            for part in parts {
                all &= test(part, left, values, context)?;
            }
            all
        }
        WherePredicate::Or(parts) => {
            let mut any = false;
            for part in parts {
                any |= test(part, left, values, context)?;
            }
            any
        }
        WherePredicate::Not(part) => !test(part, left, values, context)?,
    })
}

fn text(comparison: TextComparison, right: &Value) -> Result<CompiledPredicate> {
    match right {
        Value::String(pattern) => Ok(P::Text(comparison, pattern.clone()).compile()?),
        other => Err(QueryError::invalid(format!(
            "{}() needs a string under its label, but there is a {}",
            comparison.name(),
            other.type_name()
        ))),
    }
}

/// Whether `left` is one of the objects, or a member of those that are collections.
fn is_within(left: &Value, rights: &[Value], context: &QueryContext) -> Result<bool> {
    for right in rights {
        let found = Memberships::contain(context, right, left)?;
        if found.unwrap_or_else(|| Comparison::Eq.test(left, right, context)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn nothing_under(label: &str, value: &Value) -> QueryError {
    QueryError::invalid(format!("Neither the map, sideEffects, nor path has a {label}-key: {}", value.type_name()))
}

/// Tests an object against what is under the labels of the predicate, without `by()`; `way` is where it looks beside the
/// object itself and the side effects.
///
/// Errors: `Invalid` if there is nothing under a label.
pub fn holds(
    predicate: &WherePredicate,
    value: &Value,
    way: Option<&Traverser>,
    context: &QueryContext,
) -> Result<bool> {
    let under = |label: &Name| {
        let found = found_under(context, value, way, Pop::Last, label);
        found.ok_or_else(|| nothing_under(label, value))
    };
    // Nothing is left out: a label that nothing is under is an error wherever it stands.
    Ok(match predicate {
        WherePredicate::Compare(comparison, label) => comparison.test(value, &under(label)?, context),
        WherePredicate::Text(comparison, label) => text(*comparison, &under(label)?)?.test(value, context)?,
        WherePredicate::Within(labels) | WherePredicate::Without(labels) => {
            let mut is_among = false;
            for label in labels {
                let found = match value {
                    Value::Map(_) | Value::Tree(_) => None,
                    _ => context.side_effects.holds(label, value, context)?,
                };
                is_among |= match found {
                    Some(found) => found,
                    None => is_within(value, &[under(label)?], context)?,
                };
            }
            is_among == matches!(predicate, WherePredicate::Within(_))
        }
        WherePredicate::And(parts) => {
            let mut all = true;
            for part in parts {
                all &= holds(part, value, way, context)?;
            }
            all
        }
        WherePredicate::Or(parts) => {
            let mut any = false;
            for part in parts {
                any |= holds(part, value, way, context)?;
            }
            any
        }
        WherePredicate::Not(part) => !holds(part, value, way, context)?,
    })
}

/// The vertex that the ends of a hop from `row` have to be, or (`false`) must not be; `None` if the predicate says something else.
pub fn wanted_vertex(predicate: &WherePredicate, row: &Traverser, context: &QueryContext) -> Option<(VertexId, bool)> {
    let WherePredicate::Compare(comparison @ (Comparison::Eq | Comparison::Neq), label) = predicate else {
        return None;
    };
    // Where the object itself is a vertex, its own entries are not a place to look.
    match found_under(context, &Value::Null, Some(row), Pop::Last, label)? {
        Value::Vertex(vertex) => Some((vertex, *comparison == Comparison::Eq)),
        _ => None,
    }
}

struct WhereLogic {
    start: Option<Name>,
    predicate: WherePredicate,
    labels: Vec<Name>,
    modulators: usize,
}

impl ModulatedLogic for WhereLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        let subject = |label: &Name, cx: &Cx<'_>| {
            let found = cx.context.scope_value(traverser, label).map(Subject::Value);
            found.ok_or_else(|| nothing_under(label, &traverser.value))
        };
        let left = match &self.start {
            None => Subject::Current,
            Some(label) => subject(label, cx)?,
        };
        list.push(Request { modulator: 0, subject: left });
        for (position, label) in self.labels.iter().enumerate() {
            list.push(Request { modulator: (position + 1) % self.modulators, subject: subject(label, cx)? });
        }
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let Some(mut values) = results.drain(..).collect::<Option<Vec<Value>>>() else { return Ok(()) };
        let left = values.remove(0);
        if test(&self.predicate, &left, &mut values.into_iter(), cx.context)? {
            out.push_back(traverser);
        }
        Ok(())
    }
}

/// A `where(P)` with a label that it begins at, or with `by()` that are no sub-queries, on the spot.
#[derive(Clone)]
pub struct LabelledTest {
    start: Option<Name>,
    predicate: WherePredicate,
    labels: Vec<Name>,
    /// In turns: for the left side, then for the labels.
    modulators: Vec<Modulator>,
}

impl LabelledTest {
    /// `None` if a `by()` is a sub-query.
    pub fn compile(start: Option<&Name>, predicate: &WherePredicate, bys: &[By]) -> Option<LabelledTest> {
        let modulators = Modulators::of(bys).all_simple()?.to_vec();
        let mut labels = Vec::new();
        right_labels(predicate, &mut labels);
        Some(LabelledTest { start: start.cloned(), predicate: predicate.clone(), labels, modulators })
    }

    /// Whether it holds for an object; `way` is where it looks beside the object itself and the side effects. What a `by()` yields nothing for fails.
    ///
    /// Errors: `Invalid` if there is nothing under a label; those of a `by()`.
    pub fn holds(&mut self, value: &Value, way: Option<&Traverser>, context: &QueryContext) -> Result<bool> {
        let under = |label: &Name| {
            let found = found_under(context, value, way, Pop::Last, label);
            found.ok_or_else(|| nothing_under(label, value))
        };
        let left = match &self.start {
            None => value.clone(),
            Some(label) => under(label)?,
        };
        let modulators = self.modulators.len();
        if let WherePredicate::Compare(comparison, label) = &self.predicate {
            let right = under(label)?;
            let Some(left) = self.modulators[0].evaluate(&left, context)? else { return Ok(false) };
            let Some(right) = self.modulators[1 % modulators].evaluate(&right, context)? else { return Ok(false) };
            return Ok(comparison.test(&left, &right, context));
        }
        let rights = self.labels.iter().map(under).collect::<Result<Vec<Value>>>()?;
        let mut made = Vec::with_capacity(1 + rights.len());
        for (place, side) in std::iter::once(&left).chain(&rights).enumerate() {
            match self.modulators[place % modulators].evaluate(side, context)? {
                Some(value) => made.push(value),
                None => return Ok(false),
            }
        }
        let left = made.remove(0);
        test(&self.predicate, &left, &mut made.into_iter(), context)
    }
}

/// `where(as('a')…as('b'))`: the traversal starts at one label and has to reach the object under another.
struct WhereTraversalScope {
    start: Option<Name>,
    end: Option<Name>,
}

#[derive(Default)]
struct Looking {
    input: Option<Traverser>,
    /// What is under the label of the end.
    wanted: Option<Value>,
}

impl BranchLogic<Graphs> for WhereTraversalScope {
    type State = Looking;

    fn open(
        &mut self,
        input: Traverser,
        state: &mut Looking,
        _out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        let mut message = input.single();
        if let Some(label) = &self.start {
            match cx.context.scope_value(&input, label) {
                // The path stays, so that inner steps can refer to labels too.
                Some(value) => message.put(value),
                None => return Err(nothing_under(label, &input.value)),
            }
        }
        state.wanted = self.end.as_ref().and_then(|label| cx.context.scope_value(&input, label));
        state.input = Some(input);
        Ok(Turn::Enter { arm: 0, message })
    }

    fn receive(
        &mut self,
        message: Traverser,
        state: &mut Looking,
        out: &mut Traversers,
        _cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        let is_end = match (&state.wanted, &self.end) {
            (Some(wanted), _) => *wanted == message.value,
            (None, None) => true,
            // Of what never comes to its end nobody asks what is there.
            (None, Some(label)) => return Err(nothing_under(label, &message.value)),
        };
        if !is_end {
            return Ok(Turn::Continue);
        }
        out.extend(state.input.take());
        Ok(Turn::Close)
    }

    fn arm_ended(&mut self, _state: &mut Looking, _out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Turn<Traverser>> {
        Ok(Turn::Close)
    }
}

/// Adds the operator of a `where()` with labels.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    let name = NodeName::from(node);
    match node {
        Node::WherePredicate { start: None, predicate, bys } if bys.is_empty() => {
            let predicate = predicate.clone();
            builder.operator(chain, &name, false, move || {
                let predicate = predicate.clone();
                KeepRows::new(move |row: &Traverser, cx: &mut Cx<'_>| {
                    holds(&predicate, &row.value, Some(row), cx.context)
                })
            });
            Ok(())
        }
        Node::WherePredicate { start, predicate, bys } => {
            if let Some(test) = LabelledTest::compile(start.as_ref(), predicate, bys) {
                builder.operator(chain, &name, false, move || {
                    let mut test = test.clone();
                    KeepRows::new(move |row: &Traverser, cx: &mut Cx<'_>| test.holds(&row.value, Some(row), cx.context))
                });
                return Ok(());
            }
            let mut labels = Vec::new();
            right_labels(predicate, &mut labels);
            let modulators = Modulators::of(bys);
            let (count, start, predicate) = (modulators.len(), start.clone(), predicate.clone());
            builder.modulated(chain, &name, false, modulators, move || WhereLogic {
                start: start.clone(),
                predicate: predicate.clone(),
                labels: labels.clone(),
                modulators: count,
            })
        }
        Node::WhereTraversal { start, traversal, end } => {
            let (start, end) = (start.clone(), end.clone());
            let options = BranchOptions { arm_rows_limit: 1, ..BranchOptions::default() };
            builder.branch(chain, &name, false, &[traversal], options, move || WhereTraversalScope {
                start: start.clone(),
                end: end.clone(),
            })
        }
        _ => Err(QueryError::invalid(format!("{node} is not where()"))),
    }
}
