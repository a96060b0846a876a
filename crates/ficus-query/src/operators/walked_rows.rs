//! Rows on their way to `groupCount()` and `dedup()` by `out(…).values(…)`: the walks of many are made together ([`crate::many_walks`]), and rows that come to
//! the same vertex have the same key. In front of a count goes on the vertex in place of its rows, with their number, as vertices are often few; in front
//! of `dedup()` the first of its rows.
//!
//! Rows whose walk is not quickly told go on as they are, and in their place: what their key is is found by the step itself.

use ficus_dataflow::{Flow, Operator, Remains};
use ficus_model::{Value, ValueHashing, VertexId};
use indexmap::IndexMap;

use crate::budget::Held;
use crate::context::{Cx, Graphs, Result, Traversers};
use crate::many_walks::{EndOf, LOOKED_AT_PER_UNIT, ManyWalks, TOGETHER};
use crate::physical::{Builder, Chain};
use crate::traverser::{Traverser, marks};
use crate::vertex_set::VertexSet;

/// Different vertices that are kept at most.
const KEPT: usize = 1 << 13;

/// What one of them takes: number, count, hash, and place in the index.
const ENTRY_BYTES: usize = 48;

/// What becomes of rows that come to the same vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// They are counted under its key.
    Count,
    /// The first is enough.
    Distinct,
}

struct WalkedRows {
    purpose: Purpose,
    /// Vertices of which a row has gone on.
    seen: VertexSet,
    walks: ManyWalks,
    starts: Vec<VertexId>,
    told: Vec<EndOf>,
    /// In the order in which they came first.
    ends: IndexMap<VertexId, u64, ValueHashing>,
    held: Held,
    /// Those in front that have gone on, while they go.
    gone: Option<usize>,
}

impl WalkedRows {
    /// Hands on what is kept; false if there is no room for all.
    fn flush(&mut self, out: &mut Traversers, cx: &Cx<'_>) -> bool {
        let gone = self.gone.get_or_insert(0);
        while let Some((vertex, bulk)) = self.ends.get_index(*gone) {
            out.push_back(Traverser::new(Value::Vertex(*vertex)).with_bulk(*bulk).marked(marks::WALKED));
            *gone += 1;
            if cx.should_pause(out) {
                break;
            }
        }
        let is_done = *gone == self.ends.len();
        if is_done {
            self.ends.clear();
            self.gone = None;
        }
        is_done
    }
}

impl Operator<Graphs> for WalkedRows {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if (self.gone.is_some() || self.ends.len() + TOGETHER > KEPT) && !self.flush(out, cx) {
                return Ok(Flow::More);
            }
            self.starts.clear();
            self.starts.extend(input.iter().take(TOGETHER).map_while(|row| match row.value {
                Value::Vertex(vertex) => Some(vertex),
                _ => None,
            }));
            if self.starts.is_empty() {
                if input.is_empty() {
                    return Ok(Flow::Ready);
                }
                // Keys are counted in the order in which they came first.
                if !self.ends.is_empty() && !self.flush(out, cx) {
                    return Ok(Flow::More);
                }
                out.extend(input.pop_front());
            }
            let looked = self.walks.end_of_each(&self.starts, cx.context, &mut self.told);
            cx.charge(looked.div_ceil(LOOKED_AT_PER_UNIT));
            for place in 0..self.starts.len() {
                let Some(row) = input.pop_front() else { break };
                match self.told[place] {
                    EndOf::At(vertex) if self.purpose == Purpose::Distinct => {
                        if self.seen.insert(vertex, &cx.context.memory)? {
                            out.push_back(row);
                        }
                    }
                    EndOf::At(vertex) => {
                        let (length, capacity) = (self.ends.len(), self.ends.capacity());
                        self.held.make_room(&cx.context.memory, length, capacity, ENTRY_BYTES)?;
                        let count = self.ends.entry(vertex).or_insert(0);
                        *count = count.saturating_add(row.bulk);
                    }
                    EndOf::Nowhere => {}
                    EndOf::Open => {
                        // A few rows more than there is room for.
                        while !self.ends.is_empty() && !self.flush(out, cx) {}
                        out.push_back(row);
                    }
                }
            }
            if cx.should_yield(out) {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        Ok(if self.flush(out, cx) { Flow::Ready } else { Flow::More })
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.seen.surrender(remains);
    }

    fn next_chunk(&mut self) {
        // What was seen stands before what comes.
        let seen = std::mem::take(&mut self.seen);
        self.reset();
        self.seen = seen;
    }

    fn reset(&mut self) {
        self.seen.clear();
        self.ends = IndexMap::default();
        self.held.give_back();
        self.gone = None;
    }
}

/// Adds the operator in front of a step by these walks.
pub fn build(builder: &mut Builder, walks: ManyWalks, purpose: Purpose, chain: &mut Chain) {
    builder.may_pack(chain);
    let id = builder.operator(chain, "Walks", false, move || WalkedRows {
        purpose,
        seen: VertexSet::default(),
        walks: walks.clone(),
        starts: Vec::new(),
        told: Vec::new(),
        ends: IndexMap::default(),
        held: Held::default(),
        gone: None,
    });
    builder.part_of_next(id);
}
