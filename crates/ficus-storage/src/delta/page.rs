//! What changed in the half-edges of neighbouring slots.

use std::ops::Range;
use std::sync::Arc;

use ficus_model::{EdgeId, LabelId, VertexId};

use super::block::HalfEdgeBlock;
use super::gone::{Gone, GoneList};
use super::{Added, DeltaView};
use crate::adjacency::Adjacency;

/// Slots of a page, as a power of two: reading what changed costs a page's header each time, changing something copies one.
pub(super) const PAGE_BITS: u32 = 6;
pub(super) const PAGE_SLOTS: usize = 1 << PAGE_BITS;

/// Half-edges of a slot that may lie in the page; copying them for each change costs more than following a pointer to more.
const SLOT_LIMIT: usize = 16;

/// Half-edges of a page from which on slots with more than [`CROWDED_SLOT_LIMIT`] get a list of their own: 8 KiB to copy, which takes
/// less time than counting the references to 64 lists.
const PAGE_LIMIT: usize = 512;
const CROWDED_SLOT_LIMIT: usize = 2;

/// Bytes that come from memory together.
const CACHE_LINE: usize = 64;

/// What changed in the half-edges of neighbouring slots. On cache lines of its own: whoever copies the path to another page changes the
/// counter of this one, and readers would wait for the line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct DeltaPage {
    added: HalfEdgeBlock,
    ends: Ends,
    /// Slots with many added half-edges, as bits.
    listed: u64,
    /// Their half-edges, in the order of slots.
    lists: Vec<Adjacency>,
    gone: Option<Box<GoneInline>>,
    /// Slots with many half-edges that are gone, ascending.
    gone_lists: Vec<(u8, Arc<GoneList>)>,
}

/// Where the entries of each slot end in arrays that have them slot after slot.
#[derive(Clone, Debug)]
struct Ends {
    /// Slots that have any, as bits.
    there: u64,
    ends: [u16; PAGE_SLOTS],
}

impl Ends {
    const NONE: Ends = Ends { there: 0, ends: [0; PAGE_SLOTS] };

    #[inline]
    fn of(&self, position: usize) -> Range<usize> {
        let start = if position == 0 { 0 } else { self.ends[position - 1] };
        usize::from(start)..usize::from(self.ends[position])
    }

    fn grow(&mut self, position: usize) {
        self.there |= 1 << position;
        self.ends[position..].iter_mut().for_each(|end| *end += 1);
    }

    fn shrink(&mut self, position: usize, count: usize) {
        self.ends[position..].iter_mut().for_each(|end| *end -= count as u16);
        if self.of(position).is_empty() {
            self.there &= !(1 << position);
        }
    }

    /// Hands out the slots that have any, and which.
    #[inline]
    fn visit(&self, visit: &mut impl FnMut(usize, Range<usize>)) {
        let mut there = self.there;
        let mut start = 0;
        while there != 0 {
            let position = there.trailing_zeros() as usize;
            let end = usize::from(self.ends[position]);
            visit(position, start..end);
            start = end;
            there &= there - 1;
        }
    }
}

/// Places of half-edges of the base that are gone, of slots that have few of them.
#[derive(Clone, Debug)]
struct GoneInline {
    ends: Ends,
    places: Vec<u32>,
}

impl DeltaPage {
    pub(super) fn new() -> DeltaPage {
        DeltaPage {
            added: HalfEdgeBlock::default(),
            ends: Ends::NONE,
            listed: 0,
            lists: Vec::new(),
            gone: None,
            gone_lists: Vec::new(),
        }
    }

    /// Hands out what changed, by slot: added half-edges and those that are gone one after the other. `first` is the slot of the page's first.
    #[inline]
    pub(super) fn visit(&self, first: u64, visit: &mut impl FnMut(u64, DeltaView<'_>)) {
        self.ends.visit(&mut |position, own| {
            let added = Added::Block(self.added.range(own));
            visit(first + position as u64, DeltaView { added, ..DeltaView::NONE });
        });
        let mut listed = self.listed;
        for list in &self.lists {
            let position = u64::from(listed.trailing_zeros());
            listed &= listed - 1;
            visit(first + position, DeltaView { added: Added::of_list(list), ..DeltaView::NONE });
        }
        if let Some(gone) = &self.gone {
            gone.ends.visit(&mut |position, own| {
                let gone = Gone::Few(&gone.places[own]);
                visit(first + position as u64, DeltaView { gone, ..DeltaView::NONE });
            });
            for (position, list) in &self.gone_lists {
                visit(first + u64::from(*position), DeltaView { gone: Gone::Many(list), ..DeltaView::NONE });
            }
        }
    }

    /// Something of the header: brings it into the cache.
    #[inline]
    pub(super) fn touch_header(&self) -> u64 {
        self.ends.there ^ self.added.len() as u64
    }

    /// Something of each line of the arrays: brings them into the cache.
    #[inline]
    pub(super) fn touch_arrays(&self) -> u32 {
        let ends = self.ends.ends.iter().step_by(CACHE_LINE / size_of::<u16>());
        self.added.touch(CACHE_LINE / size_of::<u32>())
            ^ ends.fold(0, |all, line| all ^ u32::from(*line))
            ^ self.lists.len() as u32
    }

    /// The slots of which it speaks, as bits.
    pub(super) fn slots(&self) -> u64 {
        let gone = self.gone.as_ref().map_or(0, |gone| gone.ends.there);
        self.gone_lists.iter().fold(self.ends.there | self.listed | gone, |slots, (slot, _)| slots | 1 << slot)
    }

    /// Where the list of a slot is among the lists.
    #[inline]
    fn list(&self, position: usize) -> Option<usize> {
        let is_listed = self.listed >> position & 1 == 1;
        is_listed.then(|| self.list_place(position))
    }

    /// How many slots before this one have a list.
    #[inline]
    fn list_place(&self, position: usize) -> usize {
        (self.listed & ((1 << position) - 1)).count_ones() as usize
    }

    /// What changed in the half-edges of a slot.
    #[inline]
    pub(super) fn of(&self, position: usize) -> DeltaView<'_> {
        let added = match self.list(position) {
            Some(list) => Added::of_list(&self.lists[list]),
            None => Added::Block(self.added.range(self.ends.of(position))),
        };
        let gone = match &self.gone {
            None => Gone::Few(&[]),
            Some(inline) => self.gone(inline, position),
        };
        DeltaView { added, gone }
    }

    fn gone<'a>(&'a self, inline: &'a GoneInline, position: usize) -> Gone<'a> {
        let own = inline.ends.of(position);
        if own.is_empty()
            && let Ok(list) = self.gone_lists.binary_search_by_key(&(position as u8), |(slot, _)| *slot)
        {
            return Gone::Many(&self.gone_lists[list].1);
        }
        Gone::Few(&inline.places[own])
    }

    /// Adds a half-edge that is not there.
    pub(super) fn insert(&mut self, position: usize, label: LabelId, edge: EdgeId, neighbour: VertexId) {
        if let Some(list) = self.list(position) {
            return self.lists[list].insert(label, edge, neighbour);
        }
        let own = self.ends.of(position);
        let is_crowded = self.added.len() >= PAGE_LIMIT && own.len() >= CROWDED_SLOT_LIMIT;
        if own.len() >= SLOT_LIMIT || is_crowded {
            self.ends.shrink(position, own.len());
            let mut list = Adjacency::of_block(self.added.take(own));
            list.insert(label, edge, neighbour);
            self.lists.insert(self.list_place(position), list);
            self.listed |= 1 << position;
            return;
        }
        self.added.insert(own, label, edge, neighbour);
        self.ends.grow(position);
    }

    /// Removes an added half-edge; false if it is not there.
    pub(super) fn remove_added(&mut self, position: usize, label: LabelId, edge: EdgeId) -> bool {
        let Some(list) = self.list(position) else {
            let removed = self.added.remove(self.ends.of(position), label, edge);
            if removed {
                self.ends.shrink(position, 1);
            }
            return removed;
        };
        let removed = self.lists[list].remove(label, edge);
        if self.lists[list].degree() == 0 {
            self.lists.remove(list);
            self.listed &= !(1 << position);
        }
        removed
    }

    /// Removes the half-edge at a place of the base's list; false if it is gone already. `label_of` tells labels of places.
    pub(super) fn remove_of_base(
        &mut self,
        position: usize,
        label: LabelId,
        place: u64,
        label_of: &impl Fn(u64) -> LabelId,
    ) -> bool {
        let inline = self.gone.get_or_insert_with(|| Box::new(GoneInline { ends: Ends::NONE, places: Vec::new() }));
        let own = inline.ends.of(position);
        let at = self.gone_lists.partition_point(|(slot, _)| usize::from(*slot) < position);
        if self.gone_lists.get(at).is_some_and(|(slot, _)| usize::from(*slot) == position) {
            return Arc::make_mut(&mut self.gone_lists[at].1).insert(label, place);
        }
        if own.len() < SLOT_LIMIT
            && let Ok(place) = u32::try_from(place)
        {
            let Err(before) = inline.places[own.clone()].binary_search(&place) else { return false };
            inline.places.insert(own.start + before, place);
            inline.ends.grow(position);
            return true;
        }
        let mut list = GoneList::default();
        for place in inline.places.drain(own.clone()) {
            list.insert(label_of(u64::from(place)), u64::from(place));
        }
        inline.ends.shrink(position, own.len());
        let is_new = list.insert(label, place);
        self.gone_lists.insert(at, (position as u8, Arc::new(list)));
        is_new
    }
}
