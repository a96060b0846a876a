//! How columns of vertices are indexed: by slot, or by rank where few slots have a vertex.
//!
//! Slots are never used twice, so a graph whose vertices come and go ends up with few vertices in many slots. An entry for
//! every slot would then grow with all that ever was.

use super::members::{Members, MembersBuilder};

/// Slots per vertex up to which there is an entry for every slot, which spares finding the rank.
const SLOTS_PER_VERTEX: u64 = 2;
/// Slots that make no difference.
const SLOTS_FREE: u64 = 64;

/// The rows of a segment being built.
#[derive(Debug)]
pub(super) struct RowsBuilder<'a> {
    vertices: &'a MembersBuilder,
    slots: u64,
    by_slot: bool,
}

impl<'a> RowsBuilder<'a> {
    pub(super) fn new(vertices: &'a MembersBuilder, slots: u64) -> RowsBuilder<'a> {
        let by_slot = slots <= vertices.count().saturating_mul(SLOTS_PER_VERTEX).saturating_add(SLOTS_FREE);
        RowsBuilder { vertices, slots, by_slot }
    }

    /// Makes entries by row of entries by rank. A slot without a vertex gets that of the next vertex, or `end`.
    pub(super) fn spread(&self, of_rank: Vec<u64>, end: u64) -> Vec<u64> {
        if !self.by_slot || self.vertices.count() == self.slots {
            return of_rank;
        }
        let mut rows = Vec::with_capacity(self.slots as usize + 1);
        for (entry, slot) in of_rank.into_iter().zip(self.vertices.iter()) {
            rows.resize(slot as usize + 1, entry);
        }
        rows.resize(self.slots as usize, end);
        rows
    }
}

/// How a slot becomes a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Slots,
    Ranks,
}

impl Rows {
    /// How a file with so many rows has them; `None` if it can have no such number.
    pub(super) fn of(rows: u64, slots: u64, vertices: &Members) -> Option<Rows> {
        if rows == slots { Some(Rows::Slots) } else { (rows == vertices.count()).then_some(Rows::Ranks) }
    }

    /// The row of a slot. By slot, those without a vertex have one as well.
    #[inline(always)]
    pub(super) fn row(self, slot: u64, vertices: &Members) -> Option<u64> {
        match self {
            Rows::Slots => Some(slot),
            Rows::Ranks => vertices.rank(slot),
        }
    }

    /// The slot of a row that has a vertex.
    pub(super) fn slot(self, row: u64, vertices: &Members) -> u64 {
        match self {
            Rows::Slots => row,
            Rows::Ranks => vertices.member(row),
        }
    }
}
