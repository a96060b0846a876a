//! Rows on their way to `groupCount()`, merged where they are made: of the equal ones of a chunk that several executors work on goes on one, with
//! their number. What one executor does by itself is counted at once, and goes on as it is.

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Value, ValueHashing};
use indexmap::IndexMap;

use crate::budget::Held;
use crate::context::{Cx, Graphs, Result, Traversers};
use crate::operators::packed_ends::ends_of;
use crate::physical::{Builder, Chain};
use crate::traverser::Traverser;

/// Different rows that are kept at most, about a mebibyte.
const KEPT: usize = 1 << 14;

/// Rows for each that is kept, on average, from which on merging is worth it.
const ROWS_PER_KEPT: usize = 2;

/// Ends that a hop has packed that are merged in the time of one row.
const ENDS_PER_UNIT: usize = 4;

/// What one of them takes: value, number, hash, and place in the index.
const ENTRY_BYTES: usize = size_of::<Value>() + 32;

#[derive(Default)]
struct Merge {
    /// In the order in which they came first.
    rows: IndexMap<Value, u64, ValueHashing>,
    /// What the table takes, which stays for the next chunk.
    held: Held,
    /// What values hold beside themselves.
    of_values: Held,
    /// They are on their way out.
    leaves: bool,
    /// Rows that came since the last left.
    taken: usize,
    /// Hardly any were equal, so the others of this chunk go on as they are.
    passes_on: bool,
}

impl Merge {
    /// Yields what is kept; `false` if there is no room for all.
    fn flush(&mut self, out: &mut Traversers, cx: &Cx<'_>) -> bool {
        // In the order of their coming, whatever that costs: the first go last in a vector.
        if !self.leaves {
            self.rows.reverse();
            self.leaves = true;
        }
        while let Some((value, bulk)) = self.rows.pop() {
            out.push_back(Traverser::new(value).with_bulk(bulk));
            if cx.should_pause(out) {
                break;
            }
        }
        self.leaves = !self.rows.is_empty();
        if !self.leaves {
            self.of_values.give_back();
            self.passes_on = self.taken < ROWS_PER_KEPT * KEPT;
            self.taken = 0;
        }
        !self.leaves
    }
}

impl Operator<Graphs> for Merge {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if !cx.in_chunk && self.rows.is_empty() {
            out.append(input);
            return Ok(Flow::Ready);
        }
        loop {
            if (self.leaves || self.rows.len() >= KEPT) && !self.flush(out, cx) {
                return Ok(Flow::More);
            }
            if self.passes_on {
                out.append(input);
                return Ok(Flow::Ready);
            }
            let Some(row) = input.pop_front() else { return Ok(Flow::Ready) };
            let ends = ends_of(&row);
            self.taken += ends.len();
            cx.charge(ends.len().div_ceil(ENDS_PER_UNIT));
            for end in ends {
                match self.rows.get_mut(end) {
                    Some(bulk) => *bulk = bulk.saturating_add(row.bulk),
                    None => {
                        let (account, length) = (&cx.context.memory, self.rows.len());
                        self.held.make_room(account, length, self.rows.capacity(), ENTRY_BYTES)?;
                        match end.size_hint_bytes() - size_of::<Value>() {
                            0 => {}
                            bytes => self.of_values.add(account, bytes)?,
                        }
                        self.rows.insert(end.clone(), row.bulk);
                    }
                }
            }
            if cx.should_pause(out) {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        Ok(if self.flush(out, cx) { Flow::Ready } else { Flow::More })
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        *self = Merge::default();
    }

    fn reset(&mut self) {
        self.rows.clear();
        self.of_values.give_back();
        self.leaves = false;
        (self.taken, self.passes_on) = (0, false);
    }
}

/// Adds the operator that merges what a count takes by its value, or by what is the same for equal values.
pub fn build(builder: &mut Builder, chain: &mut Chain) {
    let id = builder.operator(chain, "Merge", false, Merge::default);
    builder.part_of_next(id);
}
