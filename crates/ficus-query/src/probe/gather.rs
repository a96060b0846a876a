//! Barriers inside a walk: what they gather, and what becomes of it.

use ficus_model::{Direction, Order, Shared, Value};

use super::{Halt, Surroundings};
use crate::context::QueryContext;
use crate::elements::LabelSet;
use crate::functions::local;
use crate::logical::{By, Reach, Reduction, SortKey};
use crate::modulate::Modulator;
use crate::operators::adjacent::vertex_of;
use crate::operators::reduce::Reducer;

/// A barrier.
#[derive(Clone)]
pub(super) enum Gather {
    Count(u64),
    /// The number of neighbours of all that come.
    Degree {
        direction: Direction,
        labels: LabelSet,
        count: u64,
    },
    Reduce(Reducer),
    Fold(Vec<Value>),
    Order {
        keys: Vec<(Modulator, Order)>,
        rows: Vec<(Vec<Value>, (Value, u64))>,
    },
}

impl Gather {
    pub(super) fn degree(direction: Direction, labels: LabelSet) -> Gather {
        Gather::Degree { direction, labels, count: 0 }
    }

    pub(super) fn reduce(reduction: Reduction) -> Gather {
        match reduction {
            Reduction::Count => Gather::Count(0),
            other => Gather::Reduce(Reducer::new(other)),
        }
    }

    /// Sorting; `None` where a key takes a sub-query, or chance.
    pub(super) fn order(keys: &[SortKey]) -> Option<Gather> {
        let key = |key: &SortKey| {
            let by = match &key.by {
                By::Identity => Modulator::Identity,
                By::Key(name) => Modulator::Key(crate::elements::KeyRef::new(name.clone())),
                By::Token(token) => Modulator::Token(*token),
                By::Column(column) => Modulator::Column(*column),
                By::Traversal(_) => return None,
            };
            (key.order != Order::Shuffle).then_some((by, key.order))
        };
        let mut keys = keys.iter().map(key).collect::<Option<Vec<_>>>()?;
        if keys.is_empty() {
            keys.push((Modulator::Identity, Order::Asc));
        }
        Some(Gather::Order { keys, rows: Vec::new() })
    }

    /// Forgets what an evaluation that was broken off left.
    pub(super) fn clear(&mut self) {
        match self {
            Gather::Count(count) | Gather::Degree { count, .. } => *count = 0,
            Gather::Reduce(reducer) => reducer.clear(),
            Gather::Fold(list) => list.clear(),
            Gather::Order { rows, .. } => rows.clear(),
        }
    }

    pub(super) fn add(&mut self, value: Value, bulk: u64, around: &mut Surroundings<'_>) -> Result<(), Halt> {
        match self {
            Gather::Count(count) => *count = count.saturating_add(bulk),
            Gather::Degree { direction, labels, count } => {
                let vertex = vertex_of(around.context, &value, *direction, Reach::Vertex)?;
                if let (Some(vertex), Some(labels)) = (vertex, labels.ids(around.context)) {
                    let degree = around.context.transaction.degree(vertex, *direction, labels);
                    *count = count.saturating_add(degree.saturating_mul(bulk));
                }
            }
            Gather::Reduce(reducer) => reducer.add(&value, bulk)?,
            Gather::Fold(list) => {
                let rows = usize::try_from(bulk).unwrap_or(usize::MAX);
                around.pay(rows)?;
                list.extend(std::iter::repeat_n(value, rows));
            }
            Gather::Order { keys, rows } => {
                let mut of_row = Vec::with_capacity(keys.len());
                for (by, _) in keys {
                    // A key that yields nothing filters.
                    let Some(key) = by.evaluate(&value, around.context)? else { return Ok(()) };
                    of_row.push(key);
                }
                rows.push((of_row, (value, bulk)));
            }
        }
        Ok(())
    }

    /// What goes on, in order.
    pub(super) fn finish(&mut self, context: &QueryContext, out: &mut Vec<(Value, u64)>) -> Result<(), Halt> {
        match self {
            Gather::Count(count) | Gather::Degree { count, .. } => {
                out.push((Value::Long(i64::try_from(std::mem::take(count)).unwrap_or(i64::MAX)), 1));
            }
            Gather::Reduce(reducer) => out.extend(reducer.finish()?.map(|value| (value, 1))),
            Gather::Fold(list) => out.push((Value::List(Shared::new(std::mem::take(list))), 1)),
            Gather::Order { keys, rows } => {
                let orders: Vec<Order> = keys.iter().map(|(_, order)| *order).collect();
                local::sort_by_keys(rows, &orders, context);
                out.extend(rows.drain(..).map(|(_, row)| row));
            }
        }
        Ok(())
    }
}
