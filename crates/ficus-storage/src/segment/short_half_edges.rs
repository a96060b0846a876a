//! Columns of half-edges that take 32 bits an entry, as nearly all do, for reads of many vertices.

use std::ops::Range;

use ficus_model::LabelId;

use super::damage::damaged;
use super::numbers::Numbers;
use crate::mapping::Section;

/// The half-edges of a tablet in one direction, by slot: what [`super::HalfEdges`] reads, without a choice of forms on the way.
#[derive(Clone, Debug)]
pub(crate) struct ShortHalfEdges {
    pub(super) offsets: Section<u32>,
    pub(super) neighbours: Section<u32>,
    pub(super) labels: Numbers,
}

impl ShortHalfEdges {
    /// Begins to load where the half-edges of a slot are.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, slot: u64) {
        self.offsets.prefetch(slot as usize);
    }

    /// The places of the half-edges of a slot.
    #[inline(always)]
    pub(crate) fn of_slot(&self, slot: u64) -> Range<usize> {
        match self.offsets.get(slot as usize..) {
            Some([start, end, ..]) if start <= end => *start as usize..*end as usize,
            Some([_, _, ..]) => damaged(),
            _ => 0..0,
        }
    }

    /// Begins to load the labels at these places, and the first neighbour.
    #[inline(always)]
    pub(crate) fn prefetch(&self, places: &Range<usize>) {
        if places.start < places.end {
            self.neighbours.prefetch(places.start);
            // Where those of one label are is searched for: at both ends, then in the middle.
            self.labels.prefetch(places.start as u64);
            self.labels.prefetch((places.start + (places.end - places.start) / 2) as u64);
            self.labels.prefetch(places.end as u64 - 1);
        }
    }

    /// Of some places, those with a label; begins to load the first neighbour there.
    #[inline(always)]
    pub(crate) fn with_label(&self, places: Range<usize>, label: LabelId) -> Range<usize> {
        let found = match self.labels.constant() {
            Some(only) if only == u64::from(label.0) => places,
            Some(_) => places.start..places.start,
            None => self.labels.equal_range(places, u64::from(label.0)),
        };
        self.neighbours.prefetch(found.start);
        found
    }

    /// The neighbours at some places.
    #[inline(always)]
    pub(crate) fn neighbours(&self, places: Range<usize>) -> &[u32] {
        self.neighbours.get(places).unwrap_or_else(|| damaged())
    }
}
