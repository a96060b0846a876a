//! What changed in the half-edges of a tablet since its base, one side of it.
//!
//! A page covers [`PAGE_SLOTS`] slots. The few half-edges that most of them have lie in the page itself, slot after slot, so that
//! reading what changed reads arrays; a slot with more has a list of its own. Half-edges of the base that are gone are
//! remembered by their place in the base's list of the vertex, so that what is left of it is handed out in slices.
//!
//! ```text
//! page     ends of 64 slots │ neighbours: u32 u32 … │ rest: (edge, label, …) (…) …     half-edges that were added
//!          ends of 64 slots │ places: u32 u32 …                                        half-edges of the base that are gone
//!          (slot, list)*                                                               of slots that have many
//! ```

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use ficus_model::{EdgeId, LabelId, VertexId};

use crate::adjacency::{Adjacency, PackedHalfEdge, SmallHalfEdge};
use crate::changed_slots::ChangedSlots;
use crate::ordered_pages::OrderedPages;
use crate::page_map::PageMap;
use crate::sort_order::SortedChange;

/// Slots of a page, as a power of two: reading what changed costs a page's header each time, changing something copies one.
const PAGE_BITS: u32 = 6;
const PAGE_SLOTS: usize = 1 << PAGE_BITS;

/// Half-edges of a slot that may lie in the page; copying them for each change costs more than following a pointer to more.
const SLOT_LIMIT: usize = 16;

/// Half-edges of a page from which on slots with more than [`CROWDED_SLOT_LIMIT`] get a list of their own: 6 KiB to copy.
const PAGE_LIMIT: usize = 384;
const CROWDED_SLOT_LIMIT: usize = 2;

/// Pages that are read together, and bytes that come from memory together.
const GROUP_PAGES: usize = 32;
const CACHE_LINE: usize = 64;

/// What changed in the half-edges of a tablet, one side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deltas {
    pages: PageMap<DeltaPage>,
    /// Slots of the base of which a page speaks.
    touched: ChangedSlots,
    /// Slots of the base with half-edges that are gone.
    shortened: ChangedSlots,
    /// Labels that half-edges were added with, as bits by their number modulo 64: reading other labels is reading the base.
    added_labels: u64,
    /// What changed in the order by sort keys.
    sorted: OrderedPages<SortedChange>,
}

/// What changed in the half-edges of neighbouring slots.
#[derive(Clone, Debug)]
struct DeltaPage {
    added: Inline,
    gone: Option<Box<GoneInline>>,
    /// Slots with many added half-edges, ascending.
    lists: Vec<(u8, Adjacency)>,
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

/// Added half-edges of slots that have few.
#[derive(Clone, Debug)]
struct Inline {
    ends: Ends,
    /// The low 32 bits of neighbours, apart from the rest: reading neighbours reads nothing else.
    neighbours: Vec<u32>,
    rest: Vec<InlineRest>,
    /// The label of all entries, if they have one in common.
    only_label: Option<LabelId>,
    /// True if a neighbour has more than 32 bits.
    is_wide: bool,
}

/// A half-edge without the low bits of its neighbour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InlineRest {
    edge_low: u32,
    edge_high: u16,
    neighbour_high: u16,
    label: LabelId,
}

impl InlineRest {
    fn edge(self) -> EdgeId {
        EdgeId(u64::from(self.edge_high) << 32 | u64::from(self.edge_low))
    }

    fn key(&self) -> (LabelId, EdgeId) {
        (self.label, self.edge())
    }

    fn neighbour(self, low: u32) -> VertexId {
        VertexId(u64::from(self.neighbour_high) << 32 | u64::from(low))
    }
}

/// Places of half-edges of the base that are gone, of slots that have few of them.
#[derive(Clone, Debug)]
struct GoneInline {
    ends: Ends,
    places: Vec<u32>,
}

/// Half-edges of the base that are gone, of a slot that has many of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoneList {
    places: OrderedPages<u64>,
    by_label: Vec<(LabelId, u64)>,
}

impl DeltaPage {
    fn new() -> DeltaPage {
        let added =
            Inline { ends: Ends::NONE, neighbours: Vec::new(), rest: Vec::new(), only_label: None, is_wide: false };
        DeltaPage { added, gone: None, lists: Vec::new(), gone_lists: Vec::new() }
    }

    #[inline]
    fn visit(&self, first: u64, visit: &mut impl FnMut(u64, DeltaView<'_>)) {
        let Inline { ends, neighbours, rest, only_label, is_wide } = &self.added;
        ends.visit(&mut |position, own| {
            let (neighbours, rest) = (&neighbours[own.clone()], &rest[own]);
            let added = Added::Inline { neighbours, rest, only_label: *only_label, is_wide: *is_wide };
            visit(first + position as u64, DeltaView { added, ..DeltaView::NONE });
        });
        for (position, list) in &self.lists {
            visit(first + u64::from(*position), DeltaView { added: Added::List(list), ..DeltaView::NONE });
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

    /// The slots of which it speaks, as bits.
    fn slots(&self) -> u64 {
        let lists = self.lists.iter().map(|(slot, _)| slot).chain(self.gone_lists.iter().map(|(slot, _)| slot));
        let gone = self.gone.as_ref().map_or(0, |gone| gone.ends.there);
        lists.fold(self.added.ends.there | gone, |slots, slot| slots | 1 << slot)
    }

    fn list(&self, position: usize) -> Option<usize> {
        if self.lists.is_empty() {
            return None;
        }
        self.lists.binary_search_by_key(&(position as u8), |(slot, _)| *slot).ok()
    }

    #[inline]
    fn added(&self, position: usize) -> Added<'_> {
        let own = self.added.ends.of(position);
        if own.is_empty()
            && let Some(list) = self.list(position)
        {
            return Added::List(&self.lists[list].1);
        }
        let only_label = self.added.only_label;
        let rest = &self.added.rest[own.clone()];
        Added::Inline { neighbours: &self.added.neighbours[own], rest, only_label, is_wide: self.added.is_wide }
    }

    #[inline]
    fn gone(&self, position: usize) -> Gone<'_> {
        let Some(inline) = &self.gone else { return Gone::Few(&[]) };
        let own = inline.ends.of(position);
        if own.is_empty()
            && let Ok(list) = self.gone_lists.binary_search_by_key(&(position as u8), |(slot, _)| *slot)
        {
            return Gone::Many(&self.gone_lists[list].1);
        }
        Gone::Few(&inline.places[own])
    }

    fn insert(&mut self, position: usize, label: LabelId, edge: EdgeId, neighbour: VertexId) {
        if let Some(list) = self.list(position) {
            return self.lists[list].1.insert(label, edge, neighbour);
        }
        let own = self.added.ends.of(position);
        let is_crowded = self.added.rest.len() >= PAGE_LIMIT && own.len() >= CROWDED_SLOT_LIMIT;
        if own.len() >= SLOT_LIMIT || is_crowded {
            let mut list = self.added.take(position);
            list.insert(label, edge, neighbour);
            let place = self.lists.partition_point(|(slot, _)| usize::from(*slot) < position);
            self.lists.insert(place, (position as u8, list));
            return;
        }
        self.added.insert(position, label, edge, neighbour);
    }

    fn remove_added(&mut self, position: usize, label: LabelId, edge: EdgeId) -> bool {
        let Some(list) = self.list(position) else { return self.added.remove(position, label, edge) };
        let removed = self.lists[list].1.remove(label, edge);
        if self.lists[list].1.degree() == 0 {
            self.lists.remove(list);
        }
        removed
    }

    fn remove_of_base(
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

impl Inline {
    fn insert(&mut self, position: usize, label: LabelId, edge: EdgeId, neighbour: VertexId) {
        let rest = InlineRest {
            edge_low: edge.0 as u32,
            edge_high: (edge.0 >> 32) as u16,
            neighbour_high: (neighbour.0 >> 32) as u16,
            label,
        };
        let own = self.ends.of(position);
        let place = own.start + self.rest[own.clone()].partition_point(|own| own.key() < rest.key());
        self.neighbours.insert(place, neighbour.0 as u32);
        self.rest.insert(place, rest);
        self.ends.grow(position);
        self.only_label =
            if self.rest.len() == 1 { Some(label) } else { self.only_label.filter(|only| *only == label) };
        self.is_wide |= rest.neighbour_high != 0;
    }

    fn remove(&mut self, position: usize, label: LabelId, edge: EdgeId) -> bool {
        let own = self.ends.of(position);
        let Ok(found) = self.rest[own.clone()].binary_search_by_key(&(label, edge), InlineRest::key) else {
            return false;
        };
        self.neighbours.remove(own.start + found);
        self.rest.remove(own.start + found);
        self.ends.shrink(position, 1);
        true
    }

    /// Takes out the entries of a slot.
    fn take(&mut self, position: usize) -> Adjacency {
        let own = self.ends.of(position);
        self.ends.shrink(position, own.len());
        let neighbours = self.neighbours.drain(own.clone());
        let entries = neighbours
            .zip(self.rest.drain(own))
            .map(|(low, rest)| SmallHalfEdge::new(rest.label, PackedHalfEdge::new(rest.edge(), rest.neighbour(low))));
        Adjacency::from_ascending(entries)
    }
}

impl GoneList {
    fn insert(&mut self, label: LabelId, place: u64) -> bool {
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

/// The bit of a label in [`Deltas::added_labels`].
#[inline]
fn label_bit(label: LabelId) -> u64 {
    1 << (label.0 % u64::BITS)
}

/// Hands out what neighbouring pages have. Pages lie anywhere in memory: all of the group are touched before the first is read, so
/// that their cache misses happen at once and not one after the other.
#[inline]
fn visit_group(group: &[(u64, &DeltaPage)], visit: &mut impl FnMut(u64, DeltaView<'_>)) {
    let heads = group.iter().map(|(_, page)| page.added.ends.there ^ page.added.neighbours.len() as u64);
    std::hint::black_box(heads.fold(0, |all, head| all ^ head));
    let arrays = group.iter().map(|(_, page)| {
        let lines = page.added.neighbours.iter().step_by(CACHE_LINE / size_of::<u32>());
        let ends = page.added.ends.ends.iter().step_by(CACHE_LINE / size_of::<u16>());
        lines.fold(0, |all, line| all ^ line)
            ^ ends.fold(0, |all, line| all ^ u32::from(*line))
            ^ page.lists.len() as u32
    });
    std::hint::black_box(arrays.fold(0, |all, array| all ^ array));
    group.iter().for_each(|(first, page)| page.visit(*first, visit));
}

impl Deltas {
    /// Slots of the base of which a page speaks.
    #[inline]
    pub(crate) fn touched(&self) -> &ChangedSlots {
        &self.touched
    }

    /// Slots of the base with half-edges that are gone.
    #[inline]
    pub(crate) fn shortened(&self) -> &ChangedSlots {
        &self.shortened
    }

    /// Slots of the base whose half-edges, of one label or all, may have changed.
    #[inline]
    pub(crate) fn touched_with(&self, label: Option<LabelId>) -> &ChangedSlots {
        match label {
            Some(label) if self.added_labels & label_bit(label) == 0 => &self.shortened,
            _ => &self.touched,
        }
    }

    /// What changed in the order by sort keys, of all slots.
    pub(crate) fn sorted(&self) -> &OrderedPages<SortedChange> {
        &self.sorted
    }

    /// What changed in the order by sort keys, to be changed.
    pub(crate) fn sorted_mut(&mut self) -> &mut OrderedPages<SortedChange> {
        &mut self.sorted
    }

    /// What changed in the half-edges of a slot.
    #[inline]
    pub(crate) fn of_slot(&self, slot: u64) -> DeltaView<'_> {
        match self.pages.page(slot >> PAGE_BITS) {
            None => DeltaView::NONE,
            Some(page) => {
                let position = slot as usize % PAGE_SLOTS;
                DeltaView { added: page.added(position), gone: page.gone(position) }
            }
        }
    }

    /// Hands out what changed, page by page: added half-edges and those that are gone of a slot one after the other.
    #[inline]
    pub(crate) fn visit(&self, visit: &mut impl FnMut(u64, DeltaView<'_>)) {
        let mut group = Vec::with_capacity(GROUP_PAGES);
        self.pages.visit_all(&mut |number, page| {
            group.push((number << PAGE_BITS, page));
            if group.len() == GROUP_PAGES {
                visit_group(&group, visit);
                group.clear();
            }
        });
        visit_group(&group, visit);
    }

    /// Hands out the slots that may have other half-edges than in an earlier version on the same base.
    pub(crate) fn visit_changed(&self, earlier: &Deltas, visit: &mut impl FnMut(u64)) {
        self.pages.visit_changed(&earlier.pages, &mut |number, then, now| {
            let mut slots = then.map_or(0, DeltaPage::slots) | now.map_or(0, DeltaPage::slots);
            while slots != 0 {
                visit(number << PAGE_BITS | u64::from(slots.trailing_zeros()));
                slots &= slots - 1;
            }
        });
    }

    /// Adds a half-edge that is not there to a slot.
    pub(crate) fn insert(&mut self, slot: u64, has_base: bool, label: LabelId, edge: EdgeId, neighbour: VertexId) {
        if has_base {
            self.touched.insert(slot);
        }
        self.added_labels |= label_bit(label);
        let page = self.pages.page_mut_or(slot >> PAGE_BITS, DeltaPage::new);
        page.insert(slot as usize % PAGE_SLOTS, label, edge, neighbour);
    }

    /// Removes an added half-edge; false if it is not there.
    pub(crate) fn remove_added(&mut self, slot: u64, label: LabelId, edge: EdgeId) -> bool {
        let page = self.pages.page_mut(slot >> PAGE_BITS);
        page.is_some_and(|page| page.remove_added(slot as usize % PAGE_SLOTS, label, edge))
    }

    /// Removes the half-edge at a place of the base's list of a slot; false if it is gone already. `label_of` tells labels of
    /// places.
    pub(crate) fn remove_of_base(
        &mut self,
        slot: u64,
        label: LabelId,
        place: u64,
        label_of: impl Fn(u64) -> LabelId,
    ) -> bool {
        self.touched.insert(slot);
        self.shortened.insert(slot);
        let page = self.pages.page_mut_or(slot >> PAGE_BITS, DeltaPage::new);
        page.remove_of_base(slot as usize % PAGE_SLOTS, label, place, &label_of)
    }
}

/// What changed in the half-edges of one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeltaView<'a> {
    /// Half-edges beside those of the base.
    pub(crate) added: Added<'a>,
    /// Half-edges of the base that are gone.
    pub(crate) gone: Gone<'a>,
}

impl DeltaView<'_> {
    /// Nothing changed.
    pub(crate) const NONE: DeltaView<'static> = DeltaView { added: Added::NONE, gone: Gone::Few(&[]) };
}

/// Half-edges of a slot beside those of the base, ordered by label and edge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Added<'a> {
    /// Few: parts of the arrays of a page.
    Inline {
        /// The low 32 bits of neighbours.
        neighbours: &'a [u32],
        /// The rest of each.
        rest: &'a [InlineRest],
        /// The label of all of them, if known.
        only_label: Option<LabelId>,
        /// False if no neighbour of the page has more than 32 bits.
        is_wide: bool,
    },
    /// Many.
    List(&'a Adjacency),
}

impl<'a> Added<'a> {
    const NONE: Added<'static> = Added::Inline { neighbours: &[], rest: &[], only_label: None, is_wide: false };

    /// Number of half-edges, of all labels.
    #[inline]
    pub(crate) fn degree(self) -> u64 {
        match self {
            Added::Inline { rest, .. } => rest.len() as u64,
            Added::List(list) => list.degree(),
        }
    }

    /// Number of half-edges with this label.
    pub(crate) fn degree_with_label(self, label: LabelId) -> u64 {
        match self {
            Added::Inline { rest, .. } => rest.iter().filter(|own| own.label == label).count() as u64,
            Added::List(list) => list.degree_with_label(label),
        }
    }

    /// Hands out the half-edges at or after (`label`, `edge`) in order until `visit` breaks. With `only_label`, ends after
    /// that label.
    pub(crate) fn visit_from(
        self,
        label: LabelId,
        edge: EdgeId,
        only_label: bool,
        visit: &mut impl FnMut(LabelId, crate::HalfEdge) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Added::Inline { neighbours, rest, .. } => {
                let start = rest.partition_point(|own| own.key() < (label, edge));
                let found = neighbours[start..].iter().zip(&rest[start..]);
                let mut own = found.take_while(|(_, rest)| !only_label || rest.label == label);
                own.try_for_each(|(low, rest)| {
                    visit(rest.label, crate::HalfEdge { edge: rest.edge(), neighbour: rest.neighbour(*low) })
                })
            }
            Added::List(list) => list.visit_from(label, edge, only_label, visit),
        }
    }

    /// The neighbours as a slice, of one label or all, if they lie in one.
    #[inline]
    pub(crate) fn slice(self, label: Option<LabelId>) -> Option<&'a [u32]> {
        match self {
            Added::Inline { rest: [], .. } => Some(&[]),
            Added::Inline { is_wide: false, neighbours, only_label, .. } if label.is_none() || only_label == label => {
                Some(neighbours)
            }
            Added::Inline { only_label: Some(only), .. } if label.is_some_and(|label| label != only) => Some(&[]),
            _ => None,
        }
    }

    /// Hands out the neighbours of all half-edges, of one label or all.
    #[inline]
    pub(crate) fn visit_neighbours(self, label: Option<LabelId>, visit: &mut impl FnMut(VertexId)) {
        if let Some(neighbours) = self.slice(label) {
            return neighbours.iter().for_each(|neighbour| visit(VertexId(u64::from(*neighbour))));
        }
        match self {
            Added::Inline { neighbours, rest, .. } => {
                let own = neighbours.iter().zip(rest);
                own.filter(|(_, rest)| label.is_none_or(|label| label == rest.label))
                    .for_each(|(low, rest)| visit(rest.neighbour(*low)));
            }
            Added::List(list) => list.visit_neighbours(label, visit),
        }
    }

    /// Checks order and counts; for tests and `check_invariants`.
    pub(crate) fn check_invariants(self) -> Result<(), String> {
        match self {
            Added::Inline { rest, only_label, .. } => {
                let ordered = rest.is_sorted_by(|a, b| a.key() < b.key());
                match ordered && rest.iter().all(|own| only_label.is_none_or(|only| only == own.label)) {
                    true => Ok(()),
                    false => Err("half-edges of a page out of order".to_string()),
                }
            }
            Added::List(list) => list.check_invariants(),
        }
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
