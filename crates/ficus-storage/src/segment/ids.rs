//! A column of user ids.
//!
//! Ids that a counter gave are [`Runs`] over the *place* of an element (the slot of a vertex, the sequence of an edge) and take
//! almost nothing; where they only rise, an element is found by its id without a table. All others are [`Values`] over
//! the *index* of an element (its rank among the vertices, the position of the edge).

use ficus_model::Value;

use super::file::{FileBuilder, Owner, SegmentFile, part};
use super::runs::{Runs, RunsBuilder};
use super::values::{Kind, Values, ValuesBuilder};
use crate::StoreError;
use crate::value_key::id_integer;

/// Writes the ids; `places` are all places in ascending order, each with its index.
pub(super) fn put_ids(
    ids: ValuesBuilder,
    places: impl Iterator<Item = (u64, u64)>,
    file: &mut FileBuilder,
    owner: Owner,
) {
    if let Some((kind, numbers)) = ids.integers() {
        let in_order = places.map(|(place, index)| (place, numbers.get(index as usize)));
        if let Some(runs) = RunsBuilder::of(in_order, numbers.len() as u64) {
            return runs.put(file, owner, 0, kind as u32);
        }
    }
    ids.put(file, owner, 0);
}

/// A column of user ids, to be read.
#[derive(Clone, Debug)]
pub(super) enum Ids {
    /// Integers of one width, by place.
    Runs { kind: Kind, runs: Runs },
    /// Anything, by index.
    Values(Values),
}

impl Ids {
    pub(super) fn open(file: &SegmentFile, owner: Owner, count: u64) -> Result<Ids, StoreError> {
        let Some(runs) = Runs::open(file, owner, 0)? else {
            return Ok(Ids::Values(Values::open(file, owner, 0, count)?));
        };
        let entry = file.entry(owner.part(part::RUN_VALUES))?;
        match Kind::from_number(entry.encoding.tag).filter(|kind| kind.is_integer()) {
            Some(kind) => Ok(Ids::Runs { kind, runs }),
            None => Err(file.corrupt(entry, "runs of ids are of no kind of integer")),
        }
    }

    #[inline]
    pub(super) fn get(&self, place: u64, index: u64) -> Value {
        match self {
            Ids::Runs { kind, runs } => kind.value(runs.get(place)),
            Ids::Values(values) => values.get(index),
        }
    }

    /// True if the element's id and this one are the same.
    #[inline]
    pub(super) fn is_id(&self, place: u64, index: u64, id: &Value) -> bool {
        match self {
            Ids::Runs { runs, .. } => id_integer(id) == Some(runs.get(place) as i64),
            Ids::Values(values) => values.is_id(index, id),
        }
    }

    /// Whether the element's id is this text; `None` if the column does not say without decoding.
    #[inline]
    pub(super) fn is_text(&self, index: u64, text: &str) -> Option<bool> {
        match self {
            Ids::Runs { .. } => None,
            Ids::Values(values) => values.is_text(index, text),
        }
    }

    /// The only place whose element can have this id, where [`Ids::needs_table`] is false.
    pub(super) fn place_of(&self, id: &Value) -> Option<u64> {
        match self {
            Ids::Runs { runs, .. } if runs.is_rising() => runs.place_of(id_integer(id)?),
            _ => None,
        }
    }

    /// True if [`Ids::place_of`] does not find the elements.
    pub(super) fn needs_table(&self) -> bool {
        match self {
            Ids::Runs { runs, .. } => !runs.is_rising(),
            Ids::Values(_) => true,
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Ids::Runs { .. } => 0,
            Ids::Values(values) => values.heap_bytes(),
        }
    }

    /// Checks order and content; for `verify`.
    pub(super) fn verify(&self) -> Result<(), &'static str> {
        match self {
            Ids::Runs { runs, .. } => runs.verify(),
            Ids::Values(values) => values.verify(),
        }
    }
}
