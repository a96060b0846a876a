//! Rows on their way to `groupCount()`, merged where they are made: of the equal ones of the chunks of one executor goes on one, with their number.
//! What one executor does by itself is counted at once, and goes on as it is.
//!
//! ```text
//!   chunks of one executor ─▶ [ merge ] ─▶ what it had not seen before ─▶ exchange ─▶ [ rest ] ─▶ groupCount()
//!                                │                                                       ▲
//!                                └────────▶ table: how often it came since then ─────────┘
//! ```
//!
//! A row that an executor meets for the first time goes out at the end of its chunk, and so in the order in which rows came first, which is that of
//! the entries of `groupCount()`: chunks go out in their order, and each executor works on its own in that order. What comes of it later is only
//! counted, in a table that stays from chunk to chunk, and handed over when all chunks are done. So a key costs the exchange a row for each executor,
//! not one for each chunk.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Value, ValueHashing};
use indexmap::IndexMap;

use crate::budget::Held;
use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::operators::packed_ends::ends_of;
use crate::parts::Part;
use crate::physical::{Builder, Chain};
use crate::traverser::{Traverser, marks};
use crate::vertex_counts::VertexCounts;

/// Different rows that are kept at most, about a mebibyte.
const KEPT: usize = 1 << 14;

/// Rows for each that is kept, on average, from which on merging is worth it.
const ROWS_PER_KEPT: usize = 2;

/// Ends that a hop has packed that are merged in the time of one row.
const ENDS_PER_UNIT: usize = 4;

/// What one of them takes: value, number, hash, and place in the index.
const ENTRY_BYTES: usize = size_of::<Value>() + 32;

/// Tables that stay until all chunks are done. On a busy server helpers come and go, and each has its own.
const TABLES: usize = 64;

/// What an executor has met, in the order in which it came first, each with how often it came since it last went out.
#[derive(Default)]
struct Table {
    /// As long as all are vertices.
    vertices: VertexCounts,
    /// Once others have come.
    rows: IndexMap<Value, u64, ValueHashing>,
    is_mixed: bool,
    /// How many of them have gone out, the first ones.
    known: usize,
    /// What `rows` take.
    held: Held,
    /// What values hold beside themselves.
    of_values: Held,
}

impl Table {
    fn len(&self) -> usize {
        if self.is_mixed { self.rows.len() } else { self.vertices.len() }
    }

    /// Whether a row can be added; else all that is kept has to go out before.
    fn takes(&mut self, row: &Traverser) -> bool {
        let is_vertex = row.marks & marks::PACKED != 0 || matches!(row.value, Value::Vertex(_));
        self.is_mixed |= !is_vertex && self.vertices.is_empty();
        self.is_mixed || is_vertex
    }

    /// Yields those from a place on that have come; the place of the next, if there is no room for all.
    fn tell(&mut self, mut place: usize, out: &mut Traversers, cx: &mut Cx<'_>) -> Option<usize> {
        let length = self.len();
        while place < length {
            if cx.should_pause(out) {
                return Some(place);
            }
            let next = match self.is_mixed {
                true => self.rows.get_index_mut(place).map(|(value, bulk)| (value.clone(), std::mem::take(bulk))),
                false => self.vertices.take_count(place).map(|(vertex, bulk)| (Value::Vertex(vertex), bulk)),
            };
            if let Some((value, bulk)) = next
                && bulk > 0
            {
                out.push_back(Traverser::new(value).with_bulk(bulk));
            }
            place += 1;
            if place.is_multiple_of(ENDS_PER_UNIT) {
                cx.charge(1);
            }
        }
        self.known = length;
        None
    }

    /// Adds what it [takes](Table::takes).
    fn add(&mut self, value: &Value, bulk: u64, context: &QueryContext) -> Result<()> {
        let account = &context.memory;
        if let (Value::Vertex(vertex), false) = (value, self.is_mixed) {
            return self.vertices.add(*vertex, bulk, account);
        }
        if let Some(sum) = self.rows.get_mut(value) {
            *sum = sum.saturating_add(bulk);
            return Ok(());
        }
        self.held.make_room(account, self.rows.len(), self.rows.capacity(), ENTRY_BYTES)?;
        match value.size_hint_bytes() - size_of::<Value>() {
            0 => {}
            bytes => self.of_values.add(account, bytes)?,
        }
        self.rows.insert(value.clone(), bulk);
        Ok(())
    }

    fn clear(&mut self) {
        self.vertices.clear();
        self.rows.clear();
        self.known = 0;
        self.of_values.give_back();
    }
}

/// A table that its executor writes to, and that is read when all chunks are done.
#[derive(Clone, Default)]
struct SharedTable(Arc<Mutex<Table>>);

impl SharedTable {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // A panic ends the query.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part for SharedTable {
    /// It is worked on by its executor, chunk by chunk.
    fn work(&mut self, _cx: &mut Cx<'_>) -> Result<bool> {
        Ok(true)
    }
}

struct Merge {
    slot: usize,
    /// Once there are chunks.
    table: Option<SharedTable>,
    /// The table stays from chunk to chunk.
    stays: bool,
    /// The next that goes out of all that the table has, which is emptied then.
    leaves_from: Option<usize>,
    /// Rows that came since the table was empty.
    taken: usize,
    /// Hardly any were equal, so the others go on as they are.
    passes_on: bool,
}

impl Merge {
    fn new(slot: usize) -> Merge {
        Merge { slot, table: None, stays: false, leaves_from: None, taken: 0, passes_on: false }
    }

    /// Yields all that is kept from a place on, and forgets it; `false` if there is no room for all.
    fn flush(&mut self, table: &mut Table, from: usize, out: &mut Traversers, cx: &mut Cx<'_>) -> bool {
        self.leaves_from = table.tell(from, out, cx);
        if self.leaves_from.is_some() {
            return false;
        }
        table.clear();
        self.taken = 0;
        true
    }
}

impl Operator<Graphs> for Merge {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.table.is_none() {
            if !cx.in_chunk || self.passes_on {
                out.append(input);
                return Ok(Flow::Ready);
            }
            let table = SharedTable::default();
            self.stays = cx.context.parts[self.slot].add_up_to(TABLES, || Box::new(table.clone()));
            self.table = Some(table);
        }
        let Some(shared) = self.table.clone() else { return Ok(Flow::Ready) };
        let mut table = shared.lock();
        loop {
            let is_full = table.len() >= KEPT;
            if is_full || self.leaves_from.is_some() {
                let is_worth_it = self.taken >= ROWS_PER_KEPT * KEPT;
                if !self.flush(&mut table, self.leaves_from.unwrap_or(0), out, cx) {
                    return Ok(Flow::More);
                }
                self.passes_on |= is_full && !is_worth_it;
            }
            if self.passes_on {
                out.append(input);
                return Ok(Flow::Ready);
            }
            let Some(row) = input.pop_front() else { return Ok(Flow::Ready) };
            if !table.takes(&row) {
                input.push_front(row);
                self.leaves_from = Some(0);
                continue;
            }
            let ends = ends_of(&row);
            self.taken += ends.len();
            cx.charge(ends.len().div_ceil(ENDS_PER_UNIT));
            for end in ends {
                table.add(end, row.bulk, cx.context)?;
            }
            if cx.should_pause(out) {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let Some(shared) = self.table.clone() else { return Ok(Flow::Ready) };
        let mut table = shared.lock();
        let is_done = if self.stays && self.leaves_from.is_none() {
            let known = table.known;
            match table.tell(known, out, cx) {
                Some(place) => {
                    table.known = place;
                    false
                }
                None => true,
            }
        } else {
            self.flush(&mut table, self.leaves_from.unwrap_or(0), out, cx)
        };
        Ok(if is_done { Flow::Ready } else { Flow::More })
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn next_chunk(&mut self) {
        // The table stays, and that hardly any rows are equal.
        debug_assert!(self.leaves_from.is_none(), "a chunk ends when all of it has gone out");
    }

    fn reset(&mut self) {
        *self = Merge::new(self.slot);
    }
}

/// Behind all chunks: yields what tables still have.
struct Rest {
    slot: usize,
    tables: Vec<SharedTable>,
    /// Of the last of them.
    place: usize,
}

impl Operator<Graphs> for Rest {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Flow> {
        out.append(input);
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        self.tables.append(&mut cx.context.parts[self.slot].take_all::<SharedTable>());
        while let Some(last) = self.tables.last() {
            let mut table = last.lock();
            if let Some(place) = table.tell(self.place, out, cx) {
                self.place = place;
                return Ok(Flow::More);
            }
            *table = Table::default();
            drop(table);
            self.place = 0;
            self.tables.pop();
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.tables.clear();
        self.place = 0;
    }
}

/// Adds the operators that merge what a count takes by its value, or by what is the same for equal values.
pub fn build(builder: &mut Builder, chain: &mut Chain) {
    let slot = builder.new_parts();
    let id = builder.operator(chain, "Merge", false, move || Merge::new(slot));
    builder.part_of_next(id);
    let id = builder.operator(chain, "Merged", false, move || Rest { slot, tables: Vec::new(), place: 0 });
    builder.part_of_next(id);
}
