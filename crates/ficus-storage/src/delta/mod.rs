//! What changed in the half-edges of a tablet since its base, one side of it.
//!
//! A page covers [`PAGE_SLOTS`] slots. The few half-edges that most of them have lie in the page itself, slot after slot, so that
//! reading what changed reads arrays; a slot with more has a block, or a list, of its own. Half-edges of the base that are gone are
//! remembered by their place in the base's list of the vertex, so that what is left of it is handed out in slices.
//!
//! ```text
//! page     ends of 64 slots │ neighbours: u32 u32 … │ rest: (edge, label, …) (…) …     half-edges that were added
//!          ends of 64 slots │ places: u32 u32 …                                        half-edges of the base that are gone
//!          (slot, list)*                                                               of slots that have many
//! ```

mod block;
mod gone;
mod page;

use std::ops::ControlFlow;

use ficus_model::{EdgeId, LabelId, VertexId};

pub(crate) use self::block::{BlockView, HalfEdgeBlock};
pub(crate) use self::gone::Gone;
use self::page::{DeltaPage, PAGE_BITS, PAGE_SLOTS};
use crate::adjacency::Adjacency;
use crate::changed_slots::ChangedSlots;
use crate::ordered_pages::OrderedPages;
use crate::page_map::PageMap;
use crate::sort_order::SortedChange;

/// Pages that are read together.
const GROUP_PAGES: usize = 32;

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

/// The bit of a label in [`Deltas::added_labels`].
#[inline]
fn label_bit(label: LabelId) -> u64 {
    1 << (label.0 % u64::BITS)
}

/// Hands out what neighbouring pages have. Pages lie anywhere in memory: all of the group are touched before the first is read, so
/// that their cache misses happen at once and not one after the other.
#[inline]
fn visit_group(group: &[(u64, &DeltaPage)], visit: &mut impl FnMut(u64, DeltaView<'_>)) {
    let heads = group.iter().map(|(_, page)| page.touch_header());
    std::hint::black_box(heads.fold(0, |all, head| all ^ head));
    let arrays = group.iter().map(|(_, page)| page.touch_arrays());
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
            Some(page) => page.of(slot as usize % PAGE_SLOTS),
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
    /// Few: in arrays.
    Block(BlockView<'a>),
    /// Many.
    List(&'a Adjacency),
}

impl<'a> Added<'a> {
    const NONE: Added<'static> = Added::Block(BlockView::NONE);

    /// Those of a list.
    #[inline]
    fn of_list(list: &'a Adjacency) -> Added<'a> {
        match list {
            Adjacency::Small(block) => Added::Block(block.all()),
            _ => Added::List(list),
        }
    }

    /// Number of half-edges, of all labels.
    #[inline]
    pub(crate) fn degree(self) -> u64 {
        match self {
            Added::Block(block) => block.len() as u64,
            Added::List(list) => list.degree(),
        }
    }

    /// Number of half-edges with this label.
    pub(crate) fn degree_with_label(self, label: LabelId) -> u64 {
        match self {
            Added::Block(block) => block.len_with_label(label) as u64,
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
            Added::Block(block) => block.visit_from(label, edge, only_label, visit),
            Added::List(list) => list.visit_from(label, edge, only_label, visit),
        }
    }

    /// The neighbours as a slice, of one label or all, if they lie in one.
    #[inline]
    pub(crate) fn slice(self, label: Option<LabelId>) -> Option<&'a [u32]> {
        match self {
            Added::Block(block) => block.slice(label),
            Added::List(_) => None,
        }
    }

    /// Hands out the neighbours of all half-edges, of one label or all.
    #[inline]
    pub(crate) fn visit_neighbours(self, label: Option<LabelId>, visit: &mut impl FnMut(VertexId)) {
        match self {
            Added::Block(block) => block.visit_neighbours(label, visit),
            Added::List(list) => list.visit_neighbours(label, visit),
        }
    }

    /// Checks order and counts; for tests and `check_invariants`.
    pub(crate) fn check_invariants(self) -> Result<(), String> {
        match self {
            Added::Block(block) => block.check_invariants(),
            Added::List(list) => list.check_invariants(),
        }
    }
}
