//! A scan with its conditions and what is made of all its elements: a count, a reduction of the values under a key, counts by a key.

use std::ops::ControlFlow;

use ficus_dataflow::{Flow, Operator, Remains};
use ficus_model::{Value, ValueMap};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::elements::KeyRef;
use crate::growing::Keyed;
use crate::logical::Reduction;
use crate::operators::group::count;
use crate::operators::reduce::Reducer;
use crate::operators::scan::{self, Elements};
use crate::physical::{Builder, Chain};
use crate::traverser::StepInfo;

/// What becomes of the elements of a scan.
#[derive(Clone)]
pub enum Fold {
    /// `count()`.
    Count,
    /// `values(key).count()`.
    CountValues(KeyRef),
    /// `values(key).sum()` and the like.
    Reduce(KeyRef, Reduction),
    /// `groupCount().by(key)`.
    GroupCount(KeyRef),
}

impl Fold {
    /// Whether it says something of no elements.
    fn speaks_of_nothing(&self) -> bool {
        match self {
            Fold::Count | Fold::CountValues(_) | Fold::GroupCount(_) => true,
            Fold::Reduce(..) => false,
        }
    }
}

/// What is known so far.
enum Gathered {
    Count(u64),
    CountValues(KeyRef, u64),
    Reduced(KeyRef, Reducer),
    Groups(Box<Groups>),
}

/// Counts by a key.
struct Groups {
    key: KeyRef,
    counts: Keyed<i64>,
    /// The result under way.
    finished: ValueMap,
}

impl Gathered {
    fn new(fold: &Fold) -> Gathered {
        match fold {
            Fold::Count => Gathered::Count(0),
            Fold::CountValues(key) => Gathered::CountValues(key.clone(), 0),
            Fold::Reduce(key, reduction) => Gathered::Reduced(key.clone(), Reducer::new(*reduction)),
            Fold::GroupCount(key) => Gathered::Groups(Box::new(Groups {
                key: key.clone(),
                counts: Keyed::default(),
                finished: ValueMap::default(),
            })),
        }
    }

    fn add(&mut self, element: &Value, bulk: u64, context: &QueryContext) -> Result<()> {
        match self {
            Gathered::Count(count) => *count = count.saturating_add(bulk),
            Gathered::CountValues(key, count) => {
                visit_values(element, key, context, |_| {
                    *count = count.saturating_add(bulk);
                    Ok(())
                })?;
            }
            Gathered::Reduced(key, reducer) => visit_values(element, key, context, |value| reducer.add(&value, bulk))?,
            Gathered::Groups(groups) => {
                if let Some(value) = context.property_value(element, &mut groups.key) {
                    count(&mut groups.counts, value, bulk, &context.memory)?;
                }
            }
        }
        Ok(())
    }
}

/// Hands out the values of a vertex or edge under a key.
fn visit_values(
    element: &Value,
    key: &mut KeyRef,
    context: &QueryContext,
    mut visit: impl FnMut(Value) -> Result<()>,
) -> Result<()> {
    let Some(key) = key.id(context) else { return Ok(()) };
    let mut outcome = Ok(());
    match element {
        Value::Vertex(vertex) => context.transaction.visit_vertex_values(*vertex, key, |value| {
            outcome = visit(value);
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }),
        Value::Edge(edge) => outcome = context.transaction.edge_value(*edge, key).map_or(Ok(()), visit),
        _ => {}
    }
    outcome
}

struct FoldOperator {
    elements: Elements,
    fold: Fold,
    gathered: Gathered,
    step: StepInfo,
    /// How often each element of the scan under way counts.
    bulk: Option<u64>,
    /// The integers of a part.
    numbers: Vec<i64>,
}

impl FoldOperator {
    /// Takes in the part that is there.
    fn add_part(&mut self, bulk: u64, context: &QueryContext) -> Result<()> {
        if let Gathered::Count(count) = &mut self.gathered
            && let Some(elements) = self.elements.take_all_told()
        {
            *count = count.saturating_add(bulk.saturating_mul(elements as u64));
        }
        if let Gathered::Reduced(key, reducer) = &mut self.gathered
            && let Some(vertices) = self.elements.vertices_all_told()
            && let Some(key) = key.id(context)
        {
            self.numbers.clear();
            if let Some(are_long) = context.transaction.integers(key, vertices, &mut self.numbers) {
                self.elements.take_all_told();
                return reducer.add_integers(&self.numbers, are_long, bulk);
            }
        }
        while let Some(element) = self.elements.next_of_part(context)? {
            self.gathered.add(&element, bulk, context)?;
        }
        Ok(())
    }
}

impl Operator<Graphs> for FoldOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            let bulk = match self.bulk {
                Some(bulk) => bulk,
                None => {
                    let Some(traverser) = input.pop_front() else { return Ok(Flow::Ready) };
                    self.elements.begin(cx.context);
                    *self.bulk.insert(traverser.bulk)
                }
            };
            self.elements.fetch(cx.context)?;
            self.add_part(bulk, cx.context)?;
            if self.elements.is_exhausted() {
                self.bulk = None;
                self.elements.end();
            }
            self.elements.charge(cx);
            if cx.exhausted() && (self.bulk.is_some() || !input.is_empty()) {
                return Ok(Flow::More);
            }
        }
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let result = match &mut self.gathered {
            Gathered::Count(count) | Gathered::CountValues(_, count) => {
                Some(Value::Long(i64::try_from(std::mem::take(count)).unwrap_or(i64::MAX)))
            }
            Gathered::Reduced(_, reducer) => reducer.finish()?,
            Gathered::Groups(groups) => {
                let Groups { counts, finished, .. } = &mut **groups;
                if !counts.move_to(finished, cx, Value::Long)? {
                    return Ok(Flow::More);
                }
                let map = Value::Map(std::mem::take(finished).into());
                Some(cx.context.made_of(map, counts.held()))
            }
        };
        out.extend(result.map(|value| cx.context.fresh_at(value, &self.step)));
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        if let Gathered::Groups(groups) = &mut self.gathered {
            groups.counts.surrender(remains);
        }
    }

    fn reset(&mut self) {
        self.elements.reset();
        self.gathered = Gathered::new(&self.fold);
        self.bulk = None;
    }
}

/// Adds a scan with its conditions and a fold behind.
pub fn build(builder: &mut Builder, edges: bool, name: &str, fold: Fold, step: StepInfo, chain: &mut Chain) {
    let elements = scan::elements(builder, edges);
    builder.operator(chain, name, fold.speaks_of_nothing(), move || FoldOperator {
        elements: elements(),
        gathered: Gathered::new(&fold),
        fold: fold.clone(),
        step: step.clone(),
        bulk: None,
        numbers: Vec::new(),
    });
}
