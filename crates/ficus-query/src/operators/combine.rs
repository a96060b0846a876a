//! `project`, `select`, `sack(operator)`: values combined from several places.

use std::sync::Arc;

use ficus_dataflow::{NodeName, Queue};
use ficus_model::{Column, MapMaker, Operator, Pop, Shared, Value};

use crate::bound::BoundRef;
use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
use crate::functions::members;
use crate::logical::{By, Name, Node};
use crate::modulate::{ModulatedLogic, Request, Subject, column_of};
use crate::operators::per_row::PerRow;
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::{StepInfo, Traverser, work_of};

struct ProjectLogic {
    keys: Arc<[Value]>,
    maker: MapMaker,
    modulators: usize,
    /// The entry by which an order behind keeps its first rows, and its bound.
    ordered: Option<(usize, BoundRef)>,
    step: StepInfo,
}

impl ModulatedLogic for ProjectLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        list.extend((0..self.keys.len()).map(|position| Request::current(position % self.modulators)));
        Ok(())
    }

    fn wants_more(&mut self, results: &[Option<Value>], cx: &Cx<'_>) -> bool {
        match (&self.ordered, results) {
            (Some((place, bound)), [.., Some(key)]) if results.len() == place + 1 => {
                !bound.is_beyond(key, &cx.context.bounds)
            }
            _ => true,
        }
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        // A key whose by() yields nothing is left out.
        let map =
            self.maker.make(self.keys.iter().zip(results.drain(..)).filter_map(|(key, value)| Some((key, value?))));
        let map = cx.context.made(Value::Map(Shared::new(map)))?;
        out.push_back(traverser.move_to(map, &self.step));
        Ok(())
    }
}

/// The object a label stands for, with `pop` choosing among several; `None` if there is no such label.
pub fn popped(context: &QueryContext, traverser: &Traverser, pop: Pop, label: &str) -> Option<Value> {
    found_under(context, &traverser.value, Some(traverser), pop, label)
}

/// As [`popped`], for an object that may have come from elsewhere than the path it is looked for in.
pub fn found_under(
    context: &QueryContext,
    value: &Value,
    way: Option<&Traverser>,
    pop: Pop,
    label: &str,
) -> Option<Value> {
    if let Value::Map(_) | Value::Tree(_) = value
        && let Some(value) = members::under(value, &Value::String(Arc::from(label)))
    {
        return Some(value);
    }
    if let Some(value) = context.side_effects.get(label) {
        return Some(value);
    }
    // Last first.
    let mut labelled = way
        .into_iter()
        .flat_map(Traverser::way)
        .filter(|passed| passed.labels().iter().any(|own| &**own == label))
        .map(|passed| passed.value);
    match pop {
        Pop::Last => labelled.next().cloned(),
        Pop::First => labelled.last().cloned(),
        Pop::All | Pop::Mixed => {
            let mut all: Vec<Value> = labelled.cloned().collect();
            all.reverse();
            match (pop, all.len()) {
                (_, 0) => None,
                (Pop::Mixed, 1) => all.pop(),
                _ => Some(Value::List(Shared::new(all))),
            }
        }
    }
}

struct SelectLogic {
    pop: Pop,
    /// The labels, as keys of maps.
    labels: Arc<[(Name, Value)]>,
    modulators: usize,
    step: StepInfo,
    maker: MapMaker,
}

impl ModulatedLogic for SelectLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        for (position, (label, _)) in self.labels.iter().enumerate() {
            match popped(cx.context, traverser, self.pop, label) {
                Some(value) => {
                    list.push(Request { modulator: position % self.modulators, subject: Subject::Value(value) })
                }
                None => {
                    list.clear();
                    break;
                }
            }
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
        if results.len() != self.labels.len() {
            return Ok(());
        }
        if results.iter().any(Option::is_none) {
            return Ok(());
        }
        let mut values = results.drain(..).flatten();
        let value = if self.labels.len() == 1 {
            values.next().expect("one label, one value")
        } else {
            let keys = self.labels.iter().map(|(_, key)| key);
            Value::Map(Shared::new(self.maker.make(keys.zip(values))))
        };
        // The objects under a label, all of them, are a list that was just made.
        let value = cx.context.made(value)?;
        out.push_back(traverser.move_to(value, &self.step));
        Ok(())
    }
}

/// `select(traversal)`: modulator 0 computes the key, modulator 1 is applied to what is found.
struct SelectTraversalLogic {
    pop: Pop,
    step: StepInfo,
}

impl ModulatedLogic for SelectTraversalLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        list.push(Request::current(0));
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let Some(Some(key)) = results.pop() else { return Ok(()) };
        let found = members::under(&traverser.value, &key).or_else(|| match &key {
            Value::String(label) => popped(cx.context, &traverser, self.pop, label),
            _ => None,
        });
        if let Some(value) = found {
            out.push_back(traverser.move_to(value, &self.step));
        }
        Ok(())
    }
}

struct SackLogic {
    operator: Operator,
}

impl ModulatedLogic for SackLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        list.push(Request::current(0));
        Ok(())
    }

    fn complete(
        &mut self,
        mut traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let Some(Some(value)) = results.pop() else { return Ok(()) };
        let sack = traverser.sack().cloned().unwrap_or(Value::Null);
        let combined = cx.context.made(self.operator.apply(sack, &value)?)?;
        cx.charge(work_of(&combined));
        traverser.set_sack(combined);
        out.push_back(traverser);
        Ok(())
    }
}

fn column(builder: &mut Builder, name: &NodeName, column: Column, step: &StepInfo, chain: &mut Chain) {
    let step = step.clone();
    builder.operator(chain, name, false, move || {
        let step = step.clone();
        PerRow {
            function: move |traverser: Traverser, cx: &mut Cx<'_>| {
                let value = column_of(&traverser.value, column, cx.context)?;
                let value = cx.context.made(value)?;
                cx.charge(work_of(&value));
                Ok(Some(traverser.move_to(value, &step)))
            },
        }
    });
}

/// Adds the operator of a combining node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (NodeName::from(node), step.clone());
    match node {
        Node::Project { keys, bys } => {
            let modulators = Modulators::of(bys);
            let count = modulators.len();
            let ordered = builder.take_maps_bound().and_then(|bound| {
                let place = keys.iter().position(|key| *key == bound.key.name)?;
                Some((place, bound))
            });
            let keys: Arc<[Value]> = keys.iter().cloned().map(Value::String).collect();
            let name = match &ordered {
                Some((_, bound)) => name.and(format!("[within the first by {}]", bound.key.name)),
                None => name,
            };
            builder.modulated(chain, name, false, modulators, move || ProjectLogic {
                keys: keys.clone(),
                maker: MapMaker::default(),
                modulators: count,
                ordered: ordered.clone(),
                step: step.clone(),
            })
        }
        Node::Select { pop, labels, bys } => {
            let labels: Arc<[_]> = labels.iter().map(|label| (label.clone(), Value::String(label.clone()))).collect();
            let modulators = Modulators::of(bys);
            let (count, pop) = (modulators.len(), pop.unwrap_or(Pop::Last));
            builder.modulated(chain, &name, false, modulators, move || SelectLogic {
                pop,
                labels: labels.clone(),
                modulators: count,
                step: step.clone(),
                maker: MapMaker::default(),
            })
        }
        Node::SelectTraversal { pop, traversal, by } => {
            let mut modulators = Modulators::new();
            modulators.traversal(traversal);
            let pop = pop.unwrap_or(Pop::Last);
            let inner = if by.is_some() { builder.step(&[]) } else { step.clone() };
            builder.modulated(chain, &name, false, modulators, move || SelectTraversalLogic {
                pop,
                step: inner.clone(),
            })?;
            if let Some(by) = by {
                map_by(builder, by, step, chain)?;
            }
            Ok(())
        }
        Node::SelectColumn { column: half } => {
            column(builder, &name, *half, &step, chain);
            Ok(())
        }
        Node::SackWith { operator, by } => {
            let mut modulators = Modulators::new();
            modulators.by(by);
            let operator = *operator;
            builder.modulated(chain, &name, false, modulators, move || SackLogic { operator })
        }
        _ => Err(QueryError::invalid(format!("{node} does not combine values"))),
    }
}

/// Replaces the object by the result of a `by()`.
struct MapByLogic {
    step: StepInfo,
}

impl ModulatedLogic for MapByLogic {
    fn requests(&mut self, traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        list.push(Request { modulator: 0, subject: Subject::Value(traverser.value.clone()) });
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        _cx: &mut Cx<'_>,
    ) -> Result<()> {
        if let Some(Some(value)) = results.pop() {
            out.push_back(traverser.move_to(value, &self.step));
        }
        Ok(())
    }
}

fn map_by(builder: &mut Builder, by: &By, step: StepInfo, chain: &mut Chain) -> Result<()> {
    let mut modulators = Modulators::new();
    modulators.by(by);
    builder.modulated(chain, "by", false, modulators, move || MapByLogic { step: step.clone() })
}
