//! Reads half-edges of a vertex in the order of the sort keys of their label.
//!
//! Two orders are merged, that of the segment and that of what changed since, group by group: a group are the half-edges with one key.
//! Keys are bytes that may stand for several values (see [`crate::index`]), so a group with more than one half-edge is sorted by
//! the values themselves, and by edge where they are equal.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::ops::Range;

use ficus_model::compare::order;
use ficus_model::{Direction, EdgeId, InternalIds, LabelId, Value, VertexId};

use crate::index::{IndexTest, KeyBytes, KeySpan};
use crate::root::GraphRoot;
use crate::segment::{SHORT_RUN, Side, SortedRun};
use crate::sort_order::{SortOrder, SortedChange};
use crate::{HalfEdge, Snapshot, SortKey};

/// Which half-edges of a vertex are read, and how.
#[derive(Clone, Debug)]
pub struct SortedQuery {
    /// Out or in half-edges.
    pub direction: Direction,
    /// Their label.
    pub label: LabelId,
    /// A condition on the first sort key. What is read may hold more than what satisfies it.
    pub test: IndexTest,
    /// From the end of the order to its beginning; edges with equal keys stay in insertion order.
    pub backward: bool,
}

/// Where a sorted read goes on; start with `SortedCursor::default()` and pass it back unchanged, with the same query.
#[derive(Clone, Debug, Default)]
pub struct SortedCursor(Option<KeyBytes>);

impl Snapshot {
    /// The sort keys by which half-edges with a label can be read; empty if the label has none, or if its half-edges were there
    /// before the keys and no consolidation has been since. Not recorded as a read: nothing that is answered may depend on it.
    pub fn sort_keys_hint(&self, label: LabelId) -> Vec<SortKey> {
        let order = self.root.sorted.iter().find(|order| order.label == label);
        let keys = order.iter().flat_map(|order| order.keys.iter());
        keys.map(|(key, descending)| SortKey { key: self.key_name(*key), descending: *descending }).collect()
    }

    /// Appends half-edges of a vertex in the order of the sort keys of their label, at least `max` if there are so many; true if
    /// there may be more. Those that lack the first sort key are left out. Nothing if [`Snapshot::sort_keys_hint`] is empty.
    ///
    /// Cost: logarithmic in the degree to begin, then proportional to what is appended; a group of equal keys is read as a whole.
    pub fn half_edges_by_sort_key(
        &self,
        vertex: VertexId,
        query: &SortedQuery,
        cursor: &mut SortedCursor,
        max: usize,
        out: &mut Vec<HalfEdge>,
    ) -> bool {
        self.reads.record(|reads| {
            reads.half_edges(vertex, query.direction);
            reads.edge_properties_at(vertex);
        });
        let side = match query.direction {
            Direction::Out => Side::Out,
            Direction::In => Side::In,
            Direction::Both => return false,
        };
        let Some(order) = self.root.sorted.iter().find(|order| order.label == query.label) else { return false };
        let mut reading = Reading::new(&self.root, order, side, vertex, query, cursor.0.as_ref());
        let end = out.len().saturating_add(max);
        while out.len() < end {
            let Some(key) = reading.next_group(out) else { return false };
            cursor.0 = Some(key);
        }
        true
    }
}

/// The keys of an order that may satisfy a test on its first key: from the first on, to before the second.
fn span_of(order: &SortOrder, test: &IndexTest) -> (Vec<u8>, Vec<u8>) {
    let span = match test {
        IndexTest::Equal(value) => KeySpan::equal(&[], value),
        IndexTest::Between { low, high } => KeySpan::between(&[], low.as_ref(), high.as_ref()),
        IndexTest::StartingWith(text) => KeySpan::starting_with(&[], text),
        IndexTest::Any => KeySpan::of_prefix(Vec::new()),
    };
    let last = || SortOrder::last_key().as_slice().to_vec();
    if span.is_empty() {
        return (Vec::new(), Vec::new());
    }
    if !order.keys[0].1 {
        return (span.from, span.to.unwrap_or_else(last));
    }
    let inverted = |bytes: &[u8]| bytes.iter().map(|byte| !*byte).collect::<Vec<u8>>();
    // What is below `to` is above its inversion, and what is not below `from` begins with its inversion or is below that.
    let from = span.to.map(|to| inverted(&to)).unwrap_or_default();
    (from, KeySpan::of_prefix(inverted(&span.from)).to.unwrap_or_else(last))
}

struct Reading<'a> {
    root: &'a GraphRoot,
    order: &'a SortOrder,
    side: Side,
    vertex: VertexId,
    slot: u64,
    backward: bool,
    run: Option<SortedRun<'a>>,
    /// Places of a short run in the order of keys, with these.
    short: Vec<(KeyBytes, usize)>,
    /// What is left to read of the run.
    left: Range<usize>,
    /// What is left to read of the changes: keys from the first on, to before the second; without the second, all behind.
    from: KeyBytes,
    to: KeyBytes,
    /// The key at the end of `left` that is read next.
    peeked: Option<KeyBytes>,
}

impl<'a> Reading<'a> {
    fn new(
        root: &'a GraphRoot,
        order: &'a SortOrder,
        side: Side,
        vertex: VertexId,
        query: &SortedQuery,
        behind: Option<&KeyBytes>,
    ) -> Reading<'a> {
        let slot = root.layout.vertex_slot(vertex);
        let tablet = root.tablet(root.layout.vertex_tablet(vertex));
        let run = tablet.base().map(|base| base.sorted_run(slot, side, order.label));
        let (from, to) = span_of(order, &query.test);
        let (mut from, mut to) = (KeyBytes::new(&from), KeyBytes::new(&to));
        match behind {
            Some(behind) if query.backward => to = behind.clone(),
            Some(behind) => from = behind_key(behind),
            None => {}
        }
        let (short, left, peeked) = (Vec::new(), 0..0, None);
        let backward = query.backward;
        let mut reading = Reading { root, order, side, vertex, slot, backward, run, short, left, from, to, peeked };
        let count = run.map_or(0, |run| run.half_edges.len());
        if count <= SHORT_RUN {
            reading.short = (0..count).map(|place| (reading.key_of_place(place), place)).collect();
            reading.short.sort_unstable();
        }
        let first = reading.first_at_or_behind(count, &reading.from);
        reading.left = first..reading.first_at_or_behind(count, &reading.to).max(first);
        reading
    }

    fn half_edge(&self, place: usize) -> HalfEdge {
        let half_edges = self.run.expect("a run with places").half_edges;
        let neighbour = half_edges.neighbour(place);
        let source = if self.side == Side::Out { self.vertex } else { neighbour };
        HalfEdge { edge: self.root.layout.edge_id(half_edges.sequence(place), source), neighbour }
    }

    /// The key that the base has of a half-edge.
    fn key_of_place(&self, place: usize) -> KeyBytes {
        let layout = self.root.layout;
        let edge = self.half_edge(place).edge;
        let base = self.root.tablet(layout.edge_tablet(edge)).base();
        let found = base.and_then(|base| Some((base, base.find_edge(layout.edge_sequence(edge))?)));
        let key = found.and_then(|(base, position)| self.order.key(|key| base.edge_value(position, key)));
        key.unwrap_or_else(SortOrder::last_key)
    }

    fn key_at(&self, index: usize) -> KeyBytes {
        match self.short.get(index) {
            Some((key, _)) => key.clone(),
            None => self.key_of_place(self.run.map_or(0, |run| run.place(index))),
        }
    }

    fn place_at(&self, index: usize) -> usize {
        match self.short.get(index) {
            Some((_, place)) => *place,
            None => self.run.map_or(0, |run| run.place(index)),
        }
    }

    /// The first index of the run whose key is not below `key`.
    fn first_at_or_behind(&self, count: usize, key: &KeyBytes) -> usize {
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key_at(middle) < *key { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn bound(&self, key: &KeyBytes) -> SortedChange {
        let (label, key) = (self.order.label, key.clone());
        SortedChange { slot: self.slot, label, key, edge: EdgeId(0), is_gone: false, neighbour: VertexId(0) }
    }

    fn changes(&self) -> &'a crate::ordered_pages::OrderedPages<SortedChange> {
        self.root.tablet(self.root.layout.vertex_tablet(self.vertex)).deltas(self.side).sorted()
    }

    /// The key of the next change.
    fn next_change(&self) -> Option<KeyBytes> {
        let mut found = None;
        let (from, to) = (self.bound(&self.from), self.bound(&self.to));
        if self.backward {
            self.changes().visit_before(Some(&to), |changes| {
                found = changes.last().filter(|change| **change >= from).map(|change| change.key.clone());
                false
            });
        } else {
            self.changes().visit_from(&from, |changes| {
                found = changes.first().filter(|change| **change < to).map(|change| change.key.clone());
                false
            });
        }
        found
    }

    /// Reads the next group; its key, or `None` if there is none.
    fn next_group(&mut self, out: &mut Vec<HalfEdge>) -> Option<KeyBytes> {
        let of_run = self.peek();
        let of_changes = self.next_change();
        let key = match (of_run, of_changes) {
            (None, None) => return None,
            (Some(key), None) | (None, Some(key)) => key,
            (Some(a), Some(b)) => {
                if (a < b) != self.backward {
                    a
                } else {
                    b
                }
            }
        };
        let start = out.len();
        let mut gone = Vec::new();
        self.changes().visit_from(&self.bound(&key), |changes| {
            let is_own = |change: &&SortedChange| {
                (change.slot, change.label) == (self.slot, self.order.label) && change.key == key
            };
            let own = changes.iter().take_while(is_own);
            let mut count = 0;
            for change in own {
                count += 1;
                match change.is_gone {
                    true => gone.push(change.edge),
                    false => out.push(HalfEdge { edge: change.edge, neighbour: change.neighbour }),
                }
            }
            count == changes.len()
        });
        while self.peek().is_some_and(|own| own == key) {
            let index = if self.backward { self.left.end - 1 } else { self.left.start };
            let half_edge = self.half_edge(self.place_at(index));
            if gone.binary_search(&half_edge.edge).is_err() {
                out.push(half_edge);
            }
            self.left = if self.backward { self.left.start..index } else { index + 1..self.left.end };
            self.peeked = None;
        }
        if out.len() > start + 1 {
            self.sort_group(&mut out[start..]);
        }
        if self.backward {
            self.to = key.clone();
        } else {
            self.from = behind_key(&key);
        }
        Some(key)
    }

    fn peek(&mut self) -> Option<KeyBytes> {
        if self.left.is_empty() {
            return None;
        }
        if self.peeked.is_none() {
            self.peeked = Some(self.key_at(if self.backward { self.left.end - 1 } else { self.left.start }));
        }
        self.peeked.clone()
    }

    /// Sorts half-edges whose keys are the same by what they really are.
    fn sort_group(&self, group: &mut [HalfEdge]) {
        type Keyed = (Vec<Option<Value>>, HalfEdge);
        let keyed = |half_edge: &HalfEdge| -> Keyed {
            let values = self.order.keys.iter().map(|(key, _)| self.root.edge_value(half_edge.edge, *key));
            (values.collect(), *half_edge)
        };
        let mut sorted: Vec<Keyed> = group.iter().map(keyed).collect();
        sorted.sort_unstable_by(|(a, edge_a), (b, edge_b)| {
            let parts = a.iter().zip(b).zip(&self.order.keys);
            let by_value = parts.fold(Ordering::Equal, |so_far, ((a, b), (_, descending))| {
                so_far.then_with(|| {
                    let upwards = match (a, b) {
                        (Some(a), Some(b)) => order(a, b, &InternalIds),
                        // What is missing comes first.
                        (a, b) => a.is_some().cmp(&b.is_some()),
                    };
                    if *descending != self.backward { upwards.reverse() } else { upwards }
                })
            });
            by_value.then(edge_a.edge.cmp(&edge_b.edge))
        });
        group.iter_mut().zip(sorted).for_each(|(place, (_, half_edge))| *place = half_edge);
    }
}

/// The smallest key behind all that are equal to this one: keys end by themselves, so none continues another.
fn behind_key(key: &KeyBytes) -> KeyBytes {
    KeyBytes::new(&[key.as_slice(), &[0]].concat())
}
