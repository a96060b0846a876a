//! Half-edges in the order of the sort keys that their edge type declares: what the order is, and how the overlay keeps up with it.
//!
//! A segment has the order of what it holds ([`crate::segment`]). What changed since is a set of [`SortedChange`] per tablet and side:
//! half-edges that came to a place in the order, and such of the base that left theirs, because the edge is gone or has another
//! key now. The two cancel out, so a change that is taken back leaves nothing.

use std::sync::Arc;

use ficus_model::{EdgeId, KeyId, LabelId, Value, VertexId};

use crate::EdgeRecord;
use crate::index::{ElementKind, KeyBytes, put_component, put_missing, put_remainder};
use crate::root::GraphRoot;
use crate::schema::TypeState;
use crate::segment::{EdgePosition, Segment, Side};

/// By what the half-edges of a label are ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SortOrder {
    pub(crate) label: LabelId,
    /// Keys, and whether the largest value comes first.
    pub(crate) keys: Box<[(KeyId, bool)]>,
}

impl SortOrder {
    /// The keys as they are stored.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.keys.iter().map(|(key, descending)| u64::from(key.0) << 1 | u64::from(*descending))
    }

    /// The order with these stored keys; `None` if one of them is none.
    pub(crate) fn of_numbers(label: LabelId, numbers: impl Iterator<Item = u64>) -> Option<SortOrder> {
        let key = |number: u64| Some((KeyId(u32::try_from(number >> 1).ok()?), number & 1 == 1));
        Some(SortOrder { label, keys: numbers.map(key).collect::<Option<_>>()? })
    }

    /// The place of an edge in the order, as bytes; `None` if it lacks the first key. Different values may share a place, which
    /// then has no further keys: among its values, these count only where the values are equal.
    pub(crate) fn key(&self, mut value_of: impl FnMut(KeyId) -> Option<Value>) -> Option<KeyBytes> {
        let mut bytes = Vec::with_capacity(32);
        for (position, (key, descending)) in self.keys.iter().enumerate() {
            let start = bytes.len();
            let mut is_one_value = true;
            match value_of(*key) {
                Some(value) => {
                    put_component(&value, &mut bytes);
                    is_one_value = put_remainder(&value, &mut bytes);
                }
                None if position == 0 => return None,
                None => put_missing(&mut bytes),
            }
            if *descending {
                bytes[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
            if !is_one_value {
                break;
            }
        }
        Some(KeyBytes::new(&bytes))
    }

    /// Behind all places: where a segment has edges that lack the first key.
    pub(crate) fn last_key() -> KeyBytes {
        KeyBytes::new(&[0xFF])
    }
}

/// A half-edge that came to a place in the order, or one of the base that left its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SortedChange {
    pub(crate) slot: u64,
    pub(crate) label: LabelId,
    pub(crate) key: KeyBytes,
    pub(crate) edge: EdgeId,
    pub(crate) is_gone: bool,
    pub(crate) neighbour: VertexId,
}

impl GraphRoot {
    /// The orders that edge types declare.
    pub(crate) fn declared_orders(&self) -> Vec<SortOrder> {
        let is_sorted = |own: &&Arc<crate::schema::DeclaredType>| {
            own.definition.elements == ElementKind::Edge && own.state != TypeState::Dropping
        };
        let order = |own: &Arc<crate::schema::DeclaredType>| {
            let key = |name: &str| self.words.keys.number(name).map(KeyId);
            let keys = own.definition.sort_keys.iter().map(|own| Some((key(&own.key)?, own.descending)));
            let keys: Box<[(KeyId, bool)]> = keys.collect::<Option<_>>()?;
            (!keys.is_empty()).then_some(SortOrder { label: own.label, keys })
        };
        self.schema.types.iter().filter(is_sorted).filter_map(order).collect()
    }

    /// True if the base has the half-edges of a label in an order, or none.
    fn base_is_in_order(&self, order: &SortOrder) -> bool {
        let Some(base) = self.base() else { return true };
        let has_edges =
            |segment: &Arc<Segment>| segment.edge_counts_by_label().iter().any(|(own, _)| *own == order.label);
        base.segments.iter().all(|segment| segment.sort_orders().contains(order))
            || !base.segments.iter().any(has_edges)
    }

    /// True if a type declares an order that the base does not have: the next consolidation makes it.
    pub(crate) fn has_unsorted_base(&self) -> bool {
        self.base().is_some() && self.declared_orders().iter().any(|order| !self.base_is_in_order(order))
    }

    /// Finds out anew which labels can be read in order, after the schema or the base changed. Costs a look at every edge of the
    /// overlay if there is a label that could not before.
    pub(crate) fn refresh_sorted(&mut self) {
        let mut usable = self.declared_orders();
        usable.retain(|order| self.base_is_in_order(order));
        if usable == *self.sorted {
            return;
        }
        self.sorted = Arc::new(usable);
        for number in 0..self.layout.tablets() {
            for side in [Side::Out, Side::In] {
                if self.tablet(number).deltas(side).sorted().len() > 0 {
                    *self.vertex_tablet_mut(VertexId(number as u64)).deltas_mut(side).sorted_mut() = Default::default();
                }
            }
        }
        let mut changes = Vec::new();
        for number in 0..self.layout.tablets() {
            self.visit_order_changes(number, &mut |edge, record, key, is_there| {
                changes.push((edge, record, key, is_there));
            });
        }
        for (edge, record, key, is_there) in changes {
            self.put_order_change(edge, record, &key, is_there);
        }
    }

    /// What the overlay of edges of a tablet changes in the order: places left, then places come to.
    fn visit_order_changes(&self, number: usize, visit: &mut dyn FnMut(EdgeId, EdgeRecord, KeyBytes, bool)) {
        if self.sorted.is_empty() {
            return;
        }
        let tablet = self.tablet(number);
        tablet.visit_edge_overlay(self.layout, &mut |sequence, is_row| {
            let edge = self.layout.edge_in_tablet(sequence, number);
            let before = tablet.base().and_then(|base| {
                let position = base.find_edge(sequence)?;
                let record = base.edge(position);
                Some((record, self.base_key(base, position, record.label)?))
            });
            let now = self.edge(edge).filter(|_| is_row).and_then(|record| {
                let order = self.sorted.iter().find(|order| order.label == record.label)?;
                Some((record, order.key(|key| self.edge_value(edge, key))?))
            });
            if before != now {
                before.into_iter().for_each(|(record, key)| visit(edge, record, key, false));
                now.into_iter().for_each(|(record, key)| visit(edge, record, key, true));
            }
        });
    }

    fn base_key(&self, base: &Segment, position: EdgePosition, label: LabelId) -> Option<KeyBytes> {
        let order = self.sorted.iter().find(|order| order.label == label)?;
        order.key(|key| base.edge_value(position, key))
    }

    /// Takes an edge out of the order, before its row changes, or puts it in, as its row is now. With `key`, only if that is one it
    /// is sorted by.
    pub(crate) fn change_order(&mut self, edge: EdgeId, record: EdgeRecord, key: Option<KeyId>, is_there: bool) {
        let Some(order) = self.sorted.iter().find(|order| order.label == record.label) else { return };
        if key.is_some_and(|key| order.keys.iter().all(|(own, _)| *own != key)) {
            return;
        }
        if let Some(place) = order.key(|key| self.edge_value(edge, key)) {
            self.put_order_change(edge, record, &place, is_there);
        }
    }

    fn put_order_change(&mut self, edge: EdgeId, record: EdgeRecord, key: &KeyBytes, is_there: bool) {
        let EdgeRecord { label, out, in_ } = record;
        for (side, vertex, neighbour) in [(Side::Out, out, in_), (Side::In, in_, out)] {
            let slot = self.layout.vertex_slot(vertex);
            let change = SortedChange { slot, label, key: key.clone(), edge, is_gone: !is_there, neighbour };
            let changes = self.vertex_tablet_mut(vertex).deltas_mut(side).sorted_mut();
            if !changes.remove(&SortedChange { is_gone: is_there, ..change.clone() }) {
                changes.insert(change);
            }
        }
    }

    /// Checks that the changes of the order are those that follow from the overlay; for `check_invariants`.
    pub(crate) fn check_order(&self) -> Result<(), String> {
        let mut expected = 0;
        let mut missing = None;
        for number in 0..self.layout.tablets() {
            self.visit_order_changes(number, &mut |edge, EdgeRecord { label, out, in_ }, key, is_there| {
                for (side, vertex, neighbour) in [(Side::Out, out, in_), (Side::In, in_, out)] {
                    let (slot, key) = (self.layout.vertex_slot(vertex), key.clone());
                    let change = SortedChange { slot, label, key, edge, is_gone: !is_there, neighbour };
                    expected += 1;
                    if !self.tablet(self.layout.vertex_tablet(vertex)).deltas(side).sorted().contains(&change) {
                        missing = Some(change);
                    }
                }
            });
        }
        let sides = self.tablets().iter().flat_map(|tablet| [tablet.deltas(Side::Out), tablet.deltas(Side::In)]);
        let found: u64 = sides.map(|deltas| deltas.sorted().len()).sum();
        match missing {
            Some(change) => Err(format!("the order by sort keys lacks {change:?}")),
            None if found != expected => {
                Err(format!("{found} changes of the order by sort keys instead of {expected}"))
            }
            None => Ok(()),
        }
    }
}
