//! Barriers that work in parts: what a step makes of all its rows is made in several parts that know nothing of each other, so that other
//! executors can take some of them.
//!
//! ```text
//!   rows ─▶ [ divide ] ─▶ a row for each part ─▶ spread { [ work ] } ─▶ [ join ] ─▶ result
//!                │                                     │                   ▲
//!                └───────▶ Parts of the query ◀────────┴───────────────────┘
//! ```
//!
//! The first operator divides what comes, by hashes of keys. When all is there it puts the parts into the [`Parts`] of the query and yields a row
//! for each, its number. The second one works on the part that a row names, in a spread as rows of any other kind are worked on, with all that
//! spreads know of turns, cancellation and other queries. The third puts together what became of them.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ficus_dataflow::{Flow, NodeName, Operator};
use ficus_model::Value;

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::physical::{Builder, Chain};
use crate::traverser::Traverser;

/// A part of the work.
pub trait Part: Any + Send {
    /// Goes on with it; `false` if the turn is over before it is done.
    ///
    /// Errors: those of the account.
    fn work(&mut self, cx: &mut Cx<'_>) -> Result<bool>;
}

/// The parts of one step, by their numbers; those that somebody works on are with them.
#[derive(Default)]
pub struct Parts(Mutex<Vec<Option<Box<dyn Part>>>>);

impl Parts {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Box<dyn Part>>>> {
        // Single pushes and moves: a panic cannot come between.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a part; the row that stands for it.
    pub fn add(&self, part: Box<dyn Part>) -> Traverser {
        let mut parts = self.lock();
        parts.push(Some(part));
        Traverser::new(Value::Long(parts.len() as i64 - 1))
    }

    /// Adds what `make` gives if there are fewer than so many parts; whether it did.
    pub fn add_up_to(&self, most: usize, make: impl FnOnce() -> Box<dyn Part>) -> bool {
        let mut parts = self.lock();
        let has_room = parts.len() < most;
        if has_room {
            parts.push(Some(make()));
        }
        has_room
    }

    /// The part that a row stands for.
    fn take(&self, row: &Traverser) -> Option<Box<dyn Part>> {
        let Value::Long(number) = row.value else { return None };
        self.lock().get_mut(usize::try_from(number).ok()?)?.take()
    }

    fn put(&self, row: &Traverser, part: Box<dyn Part>) {
        if let Value::Long(number) = row.value
            && let Some(place) = self.lock().get_mut(number as usize)
        {
            *place = Some(part);
        }
    }

    /// Takes all of them, each of which is a `P`, in their order.
    pub fn take_all<P: Part>(&self) -> Vec<P> {
        let parts = std::mem::take(&mut *self.lock());
        let parts = parts.into_iter().flatten().map(|part| part as Box<dyn Any>);
        parts.filter_map(|part| part.downcast::<P>().ok()).map(|part| *part).collect()
    }
}

/// Works on the parts that rows stand for.
struct Worker {
    slot: usize,
    current: Option<(Traverser, Box<dyn Part>)>,
}

impl Operator<Graphs> for Worker {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if self.current.is_none() {
                let Some(row) = input.pop_front() else { return Ok(Flow::Ready) };
                self.current = cx.context.parts[self.slot].take(&row).map(|part| (row, part));
            }
            if let Some((_, part)) = &mut self.current
                && !part.work(cx)?
            {
                return Ok(Flow::More);
            }
            if let Some((row, part)) = self.current.take() {
                cx.context.parts[self.slot].put(&row, part);
                out.push_back(row);
            }
            if cx.should_yield(out) {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
    }

    fn reset(&mut self) {
        self.current = None;
    }
}

/// Adds the operator that works on the parts of `slot`, in a spread where the query may have one.
pub fn build_worker(builder: &mut Builder, name: &NodeName, slot: usize, chain: &mut Chain) {
    let mut nodes = Chain::new();
    let id = builder.operator(&mut nodes, name, false, move || Worker { slot, current: None });
    builder.part_of_next(id);
    builder.spread_parts(name, nodes, chain);
}
