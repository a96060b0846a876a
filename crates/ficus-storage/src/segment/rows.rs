//! How columns of vertices are indexed: by slot, or by rank where few slots have a vertex.
//!
//! Slots are never used twice, so a graph whose vertices come and go ends up with few vertices in many slots. An entry for
//! every slot would then grow with all that ever was.

use super::members::{Members, MembersBuilder};
use super::numbers_builder::NumbersBuilder;

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
    pub(super) fn spread(&self, of_rank: NumbersBuilder, end: u64) -> NumbersBuilder {
        if !self.by_slot || self.vertices.count() == self.slots {
            return of_rank;
        }
        let mut rows = NumbersBuilder::default();
        for (rank, slot) in self.vertices.iter().enumerate() {
            (rows.len()..=slot as usize).for_each(|_| rows.push(of_rank.get(rank)));
        }
        (rows.len()..self.slots as usize).for_each(|_| rows.push(end));
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
