//! Half-edges of the base that are gone, by their place in the base's list of their vertex: what is left is handed out in slices.

use std::ops::{ControlFlow, Range};

use ficus_model::LabelId;

use crate::ordered_pages::OrderedPages;

/// Half-edges of the base that are gone, of a slot that has many of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoneList {
    places: OrderedPages<u64>,
    by_label: Vec<(LabelId, u64)>,
}

impl GoneList {
    /// Adds a place; false if it was there.
    pub(super) fn insert(&mut self, label: LabelId, place: u64) -> bool {
        if !self.places.insert(place) {
            return false;
        }
        match self.by_label.iter_mut().find(|(own, _)| *own == label) {
            Some((_, count)) => *count += 1,
            None => self.by_label.push((label, 1)),
        }
        true
    }
}

/// Places of half-edges of the base that are gone, in the base's list of their vertex.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gone<'a> {
    /// A part of the array of a page.
    Few(&'a [u32]),
    /// A list.
    Many(&'a GoneList),
}

impl Gone<'_> {
    /// How many.
    #[inline]
    pub(crate) fn len(self) -> u64 {
        match self {
            Gone::Few(places) => places.len() as u64,
            Gone::Many(list) => list.places.len(),
        }
    }

    /// How many have a label, whose half-edges are at these places.
    pub(crate) fn len_with_label(self, label: LabelId, own: Range<usize>) -> u64 {
        match self {
            Gone::Few(places) => places.iter().filter(|place| own.contains(&(**place as usize))).count() as u64,
            Gone::Many(list) => list.by_label.iter().find(|(own, _)| *own == label).map_or(0, |(_, count)| *count),
        }
    }

    /// Hands out what is left of a range of places, in ranges that are not empty, until `visit` breaks.
    #[inline]
    pub(crate) fn visit_left(
        self,
        range: Range<usize>,
        visit: &mut impl FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut start = range.start;
        let mut pass = |place: usize, visit: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>| {
            let before = start..place;
            start = place + 1;
            if before.is_empty() { ControlFlow::Continue(()) } else { visit(before) }
        };
        match self {
            Gone::Few(places) => {
                for place in places.iter().map(|place| *place as usize).filter(|place| range.contains(place)) {
                    pass(place, visit)?;
                }
            }
            Gone::Many(list) => {
                let mut flow = ControlFlow::Continue(());
                list.places.visit_from(&(range.start as u64), |places| {
                    for place in places.iter().map(|place| *place as usize) {
                        if place >= range.end {
                            return false;
                        }
                        flow = pass(place, visit);
                        if flow.is_break() {
                            return false;
                        }
                    }
                    true
                });
                flow?;
            }
        }
        if start < range.end { visit(start..range.end) } else { ControlFlow::Continue(()) }
    }
}
