//! What belongs to the edges whose source is in a tablet, beside their half-edges: sequence, user id, properties.
//!
//! All columns are over the position of an edge among the out half-edges. Edges are found by sequence through the set of
//! sequences and a column of positions, which is affine, and so free, where positions rise with sequences. The keys of an
//! edge's properties, in insertion order, are its *shape*; shapes are few, and each edge has the number of its own.

use std::collections::HashMap;

use ficus_model::{KeyId, Value};

use super::damage::damaged;
use super::file::{FileBuilder, Owner, SegmentFile, part};
use super::half_edges::HalfEdgeColumns;
use super::ids::{Ids, put_ids};
use super::key_columns::KeyColumns;
use super::members::{Members, MembersBuilder, bit_rank, block_ranks, put_bitmap};
use super::numbers::{Numbers, Place};
use super::numbers_builder::NumbersBuilder;
use super::values::{Values, ValuesBuilder};
use crate::StoreError;

/// Bits per edge up to which the sequences of edges in no order are kept as a bitmap; ranges would need as many.
const BITS_PER_EDGE: u64 = 64;

/// Edges being collected, by position.
#[derive(Debug)]
pub(super) struct EdgesBuilder {
    ids: ValuesBuilder,
    shapes: NumbersBuilder,
    /// Keys of each shape; the first has none.
    shape_keys: Vec<Box<[KeyId]>>,
    known: HashMap<Box<[KeyId]>, u64>,
    last_shape: u64,
    columns: KeyColumns<(MembersBuilder, ValuesBuilder)>,
}

impl Default for EdgesBuilder {
    fn default() -> EdgesBuilder {
        EdgesBuilder {
            ids: ValuesBuilder::default(),
            shapes: NumbersBuilder::default(),
            shape_keys: vec![Box::default()],
            known: HashMap::from([(Box::default(), 0)]),
            last_shape: 0,
            columns: KeyColumns::default(),
        }
    }
}

impl EdgesBuilder {
    #[inline]
    pub(super) fn push(&mut self, position: u64, id: &Value, properties: &[(KeyId, Value)]) {
        self.ids.push(id);
        if properties.is_empty() {
            self.shapes.push(0);
        } else {
            self.push_properties(position, properties);
        }
    }

    fn push_properties(&mut self, position: u64, properties: &[(KeyId, Value)]) {
        let keys = || properties.iter().map(|(key, _)| *key);
        // Neighbouring edges mostly have the same keys.
        if !self.shape_keys[self.last_shape as usize].iter().copied().eq(keys()) {
            let shape: Box<[KeyId]> = keys().collect();
            self.last_shape = *self.known.entry(shape).or_insert_with_key(|shape| {
                self.shape_keys.push(shape.clone());
                self.shape_keys.len() as u64 - 1
            });
        }
        self.shapes.push(self.last_shape);
        for (key, value) in properties {
            let index = self.columns.index_or(*key, Default::default);
            let (positions, values) = self.columns.at_mut(index);
            // A key that comes twice would be out of order here.
            positions.push(position);
            values.push(value);
        }
    }

    /// Writes all; `sequences` are those of the out half-edges.
    pub(super) fn put(self, sequences: &NumbersBuilder, file: &mut FileBuilder) {
        if sequences.is_ascending() {
            let mut members = MembersBuilder::default();
            sequences.iter().for_each(|sequence| members.push(sequence));
            let positions: NumbersBuilder = (0..sequences.len() as u64).collect();
            let places = sequences.iter().zip(0..);
            put_ids(self.ids, places, file, Owner::EdgeIds);
            members.put(file, Owner::Sequences, 0);
            positions.put(file, Owner::Sequences.part(part::POSITIONS), 0);
        } else {
            let order = SequenceOrder::of(sequences);
            let places = order.positions.iter().map(|position| (sequences.get(position as usize), position));
            put_ids(self.ids, places, file, Owner::EdgeIds);
            order.put(sequences, file);
        }
        self.shapes.put(file, Owner::EdgeShapes.part(part::NUMBERS), 0);
        for (shape, keys) in self.shape_keys.iter().enumerate().skip(1) {
            let numbers: NumbersBuilder = keys.iter().map(|key| u64::from(key.0)).collect();
            numbers.put(file, Owner::EdgeShapes.key_part(shape as u32, part::LABELS), 0);
        }
        for (key, (positions, values)) in self.columns.into_iter() {
            positions.put(file, Owner::EdgeProperty, key.0);
            values.put(file, Owner::EdgeProperty, key.0);
        }
    }
}

/// Positions in the order of sequences that came in another one.
struct SequenceOrder {
    positions: NumbersBuilder,
    /// Of the sequences from the first on, if they are dense enough for one.
    bitmap: Option<(u64, Vec<u64>)>,
}

impl SequenceOrder {
    fn of(sequences: &NumbersBuilder) -> SequenceOrder {
        let count = sequences.len();
        let (first, last) = sequences.bounds().expect("sequences in no order are at least two");
        if (last - first) / BITS_PER_EDGE > count as u64 {
            let mut positions: Vec<u64> = (0..count as u64).collect();
            positions.sort_unstable_by_key(|position| sequences.get(*position as usize));
            return SequenceOrder { positions: positions.into_iter().collect(), bitmap: None };
        }
        // A bitmap and its counts sort them in two passes.
        let mut words = vec![0u64; ((last - first) / 64 + 1) as usize];
        for position in 0..count {
            let bit = sequences.get(position) - first;
            words[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        let ranks = block_ranks(&words);
        assert_eq!(ranks.last(), Some(&(count as u64)), "a sequence is used once");
        let mut positions = NumbersBuilder::zeros(count, count as u64);
        for position in 0..count {
            let rank = bit_rank(&words, &ranks, sequences.get(position) - first);
            positions.set(rank as usize, position as u64);
        }
        SequenceOrder { positions, bitmap: Some((first, words)) }
    }

    fn put(self, sequences: &NumbersBuilder, file: &mut FileBuilder) {
        match self.bitmap {
            Some((first, words)) => put_bitmap(&words, first, file, Owner::Sequences, 0),
            None => {
                let mut members = MembersBuilder::default();
                self.positions.iter().for_each(|position| members.push(sequences.get(position as usize)));
                members.put(file, Owner::Sequences, 0);
            }
        }
        self.positions.put(file, Owner::Sequences.part(part::POSITIONS), 0);
    }
}

/// Edges, to be read.
#[derive(Clone, Debug)]
pub(super) struct Edges {
    sequences: Members,
    /// By rank of the sequence.
    positions: Numbers,
    ids: Ids,
    shapes: Numbers,
    shape_keys: Vec<Box<[KeyId]>>,
    columns: KeyColumns<(Members, Values)>,
}

impl Edges {
    pub(super) fn open(file: &SegmentFile, count: u64) -> Result<Edges, StoreError> {
        let sequences = Members::open(file, Owner::Sequences, 0, u64::MAX)?;
        let positions = Numbers::open_counted(file, Owner::Sequences.part(part::POSITIONS), count)?;
        if sequences.count() != count {
            let entry = file.entry(Owner::Sequences.part(part::POSITIONS))?;
            return Err(file.corrupt(entry, "there are not as many sequences as edges"));
        }
        let mut columns = KeyColumns::default();
        for key in file.keys_of(Owner::EdgeProperty, part::NUMBERS) {
            let members = Members::open(file, Owner::EdgeProperty, key, count)?;
            let values = Values::open(file, Owner::EdgeProperty, key, members.count())?;
            if columns.add(KeyId(key), (members, values)).is_none() {
                let entry = file.entry(Owner::EdgeProperty.key_part(key, part::NUMBERS))?;
                return Err(file.corrupt(entry, "a property key is too large"));
            }
        }
        let mut shape_keys = vec![Box::default()];
        for shape in file.keys_of(Owner::EdgeShapes, part::LABELS) {
            let entry = file.entry(Owner::EdgeShapes.key_part(shape, part::LABELS))?;
            let keys = Numbers::of(file, entry)?;
            if shape as usize != shape_keys.len() || keys.len() > columns.iter().count() as u64 {
                return Err(file.corrupt(entry, "a list of keys is out of order or too long"));
            }
            let key = |place| {
                let key = u32::try_from(keys.get(place)).ok().map(KeyId).filter(|key| columns.get(*key).is_some());
                key.ok_or_else(|| file.corrupt(entry, "an edge has a key without a column"))
            };
            shape_keys.push((0..keys.len()).map(key).collect::<Result<Box<[KeyId]>, StoreError>>()?);
        }
        Ok(Edges {
            sequences,
            positions,
            ids: Ids::open(file, Owner::EdgeIds, count)?,
            shapes: Numbers::open_counted(file, Owner::EdgeShapes.part(part::NUMBERS), count)?,
            shape_keys,
            columns,
        })
    }

    /// The position of the edge with a sequence.
    #[inline]
    pub(super) fn position(&self, sequence: u64) -> Option<u64> {
        Some(self.positions.get(self.sequences.rank(sequence)?))
    }

    pub(super) fn sequences(&self) -> &Members {
        &self.sequences
    }

    pub(super) fn ids(&self) -> &Ids {
        &self.ids
    }

    #[inline]
    pub(super) fn value(&self, position: u64, key: KeyId) -> Option<Value> {
        let (positions, values) = self.columns.get(key)?;
        Some(values.get(positions.rank(position)?))
    }

    /// Where the number of an edge under a key is, if the column is one of moments or, else, of integers.
    #[inline]
    pub(super) fn number_place(&self, position: u64, key: KeyId, of_moments: bool) -> Place<'_> {
        let Some((positions, values)) = self.columns.get(key) else { return Place::Nowhere };
        let Some(rank) = positions.rank(position) else { return Place::Nowhere };
        values.numbers(of_moments).map_or(Place::Unknown, |numbers| Place::At(numbers, rank))
    }

    fn keys(&self, position: u64) -> &[KeyId] {
        self.shape_keys.get(self.shapes.get(position) as usize).unwrap_or_else(|| damaged())
    }

    pub(super) fn properties(&self, position: u64) -> Vec<(KeyId, Value)> {
        let value = |key: &KeyId| (*key, self.value(position, *key).unwrap_or_else(|| damaged()));
        self.keys(position).iter().map(value).collect()
    }

    #[inline]
    pub(super) fn has_properties(&self, position: u64) -> bool {
        self.shapes.get(position) != 0
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let values: usize = self.columns.iter().map(|(_, (_, values))| values.heap_bytes()).sum();
        let shapes: usize = self.shape_keys.iter().map(|keys| keys.len() * size_of::<KeyId>() + 16).sum();
        self.ids.heap_bytes() + self.columns.heap_bytes() + values + shapes
    }

    /// Checks order, positions and content; for `verify`.
    pub(super) fn verify(&self, out: &HalfEdgeColumns) -> Result<(), &'static str> {
        self.sequences.verify()?;
        for position in 0..out.len() {
            if self.position(out.sequence(position)) != Some(position) {
                return Err("an edge is not found by its sequence");
            }
        }
        self.ids.verify()?;
        let mut keys = 0;
        for position in 0..self.shapes.len() {
            let shape = usize::try_from(self.shapes.get(position)).ok().and_then(|shape| self.shape_keys.get(shape));
            let shape = shape.ok_or("the shape of an edge does not exist")?;
            let has = |key: &KeyId| self.columns.get(*key).is_some_and(|(positions, _)| positions.contains(position));
            if !shape.iter().all(has) {
                return Err("an edge lacks a value that its shape has");
            }
            keys += shape.len() as u64;
        }
        let mut values = 0;
        for (_, (positions, column)) in self.columns.iter() {
            positions.verify()?;
            column.verify()?;
            values += positions.count();
        }
        if keys == values { Ok(()) } else { Err("an edge has a value that its shape lacks") }
    }
}
