//! Properties of the vertices of a tablet.
//!
//! A column per key holds the first value that each vertex has under it, with the set of slots that have one, and the ids
//! of these properties. What a column cannot hold (a second value under a key, and all meta-properties) is in the
//! *extras*, an encoded row for each of the few slots that have any. Which keys occur with a label is kept as well, so that
//! listing a vertex does not ask every column.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use ficus_model::{KeyId, LabelId, Value};

use super::damage::damaged;
use super::file::{FileBuilder, Owner, SegmentFile, part};
use super::key_columns::KeyColumns;
use super::members::{Members, MembersBuilder};
use super::numbers::{Numbers, Place};
use super::numbers_builder::NumbersBuilder;
use super::runs::{Runs, RunsBuilder};
use super::values::{Heap, HeapBuilder, StoredText, Values, ValuesBuilder};
use crate::StoreError;
use crate::property_row::{PROPERTY_ID_BITS, PropertyEntry, VisitMetas, VisitProperty, Wanted};
use crate::value_codec::{ByteReader, DecodeResult, put_number, put_value};

/// Properties being collected, slot by slot.
#[derive(Debug, Default)]
pub(super) struct VertexPropertiesBuilder {
    columns: KeyColumns<ColumnBuilder>,
    keys_of_label: BTreeSet<(LabelId, KeyId)>,
    extra_slots: MembersBuilder,
    extras: HeapBuilder,
    open: ExtraRow,
}

#[derive(Debug, Default)]
struct ColumnBuilder {
    slots: MembersBuilder,
    values: ValuesBuilder,
    ids: NumbersBuilder,
    /// The label of the last vertex, whose pair with the key is known.
    label: Option<LabelId>,
    /// Whether a vertex has more than one value under the key.
    several: bool,
}

/// What the columns do not hold of one vertex.
#[derive(Debug, Default, PartialEq)]
struct ExtraRow {
    properties: Vec<(u64, KeyId, Value)>,
    /// By id of the property.
    metas: BTreeMap<u64, Vec<(KeyId, Value)>>,
}

impl ExtraRow {
    fn is_empty(&self) -> bool {
        self.properties.is_empty() && self.metas.is_empty()
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_number(self.properties.len() as u64, out);
        for (id, key, value) in &self.properties {
            put_number(*id, out);
            put_number(u64::from(key.0), out);
            put_value(value, out);
        }
        put_number(self.metas.len() as u64, out);
        for (property, metas) in &self.metas {
            put_number(*property, out);
            put_number(metas.len() as u64, out);
            for (key, value) in metas {
                put_number(u64::from(key.0), out);
                put_value(value, out);
            }
        }
    }

    /// All of it.
    fn read(bytes: &[u8]) -> DecodeResult<ExtraRow> {
        ExtraRow::read_wanted(bytes, Wanted::EVERYTHING)
    }

    /// What is wanted of it; meta-properties may be those of all properties.
    fn read_wanted(bytes: &[u8], wanted: Wanted) -> DecodeResult<ExtraRow> {
        let mut reader = ByteReader::new(bytes);
        let mut row = ExtraRow::default();
        for _ in 0..reader.count()? {
            let id = reader.number()?;
            let key = KeyId(reader.narrow()?);
            if id >> PROPERTY_ID_BITS != 0 || key.0 >> (u64::BITS - PROPERTY_ID_BITS) != 0 {
                return Err("the id or key of a property is too large");
            }
            let value = reader.value()?;
            if wanted.key.is_none_or(|wanted| wanted == key) {
                row.properties.push((id, key, value));
            }
        }
        if !wanted.metas {
            return Ok(row);
        }
        for _ in 0..reader.count()? {
            let property = reader.number()?;
            let metas = row.metas.entry(property).or_default();
            for _ in 0..reader.count()? {
                metas.push((KeyId(reader.narrow()?), reader.value()?));
            }
        }
        reader.finish()?;
        Ok(row)
    }
}

impl VertexPropertiesBuilder {
    /// Adds the next property, in insertion order, of a vertex.
    pub(super) fn push(&mut self, slot: u64, label: LabelId, property: &PropertyEntry, metas: &[(KeyId, Value)]) {
        let index = self.columns.index_or(property.key(), ColumnBuilder::default);
        let column = self.columns.at_mut(index);
        if column.slots.ends_with(slot) {
            column.several = true;
            self.open.properties.push((property.id(), property.key(), property.value.clone()));
        } else {
            column.slots.push(slot);
            column.values.push(&property.value);
            column.ids.push(property.id());
            if column.label != Some(label) {
                column.label = Some(label);
                self.keys_of_label.insert((label, property.key()));
            }
        }
        if !metas.is_empty() {
            self.open.metas.insert(property.id(), metas.to_vec());
        }
    }

    /// Ends the row of a vertex.
    pub(super) fn end_vertex(&mut self, slot: u64) {
        if !self.open.is_empty() {
            let row = std::mem::take(&mut self.open);
            self.extra_slots.push(slot);
            self.extras.push(|out| row.put(out));
        }
    }

    pub(super) fn put(self, file: &mut FileBuilder) {
        let mut of_several = NumbersBuilder::default();
        for (key, column) in self.columns.into_iter() {
            if column.several {
                of_several.push(u64::from(key.0));
            }
            let ids = &column.ids;
            let placed = column.slots.iter().enumerate().map(|(index, slot)| (slot, ids.get(index)));
            match RunsBuilder::of(placed, column.slots.count()) {
                Some(runs) => runs.put(file, Owner::VertexProperty, key.0, 0),
                None => column.ids.put(file, Owner::VertexProperty.key_part(key.0, part::PROPERTY_IDS), 0),
            }
            column.slots.put(file, Owner::VertexProperty, key.0);
            column.values.put(file, Owner::VertexProperty, key.0);
        }
        let mut of_label: BTreeMap<LabelId, NumbersBuilder> = BTreeMap::new();
        for (label, key) in self.keys_of_label {
            of_label.entry(label).or_default().push(u64::from(key.0));
        }
        for (label, keys) in of_label {
            keys.put(file, Owner::KeysOfLabel.key_part(label.0, part::NUMBERS), 0);
        }
        if self.extra_slots.count() > 0 {
            self.extra_slots.put(file, Owner::VertexExtras, 0);
            self.extras.put(file, Owner::VertexExtras, 0, part::OFFSETS, 0);
            of_several.put(file, Owner::VertexExtras.part(part::NUMBERS), 0);
        }
    }
}

/// Properties of vertices, to be read.
#[derive(Clone, Debug)]
pub(super) struct VertexProperties {
    columns: KeyColumns<Column>,
    /// Indices of the columns that occur with a label; ascending by label.
    of_label: Vec<(LabelId, Box<[u32]>)>,
    extra_slots: Members,
    extras: Heap,
}

#[derive(Clone, Debug)]
struct Column {
    slots: Members,
    values: Values,
    ids: PropertyIds,
    /// Whether extras may hold more values under the key.
    several: bool,
}

#[derive(Clone, Debug)]
enum PropertyIds {
    /// By slot.
    Runs(Runs),
    /// By rank of the slot.
    Listed(Numbers),
}

impl Column {
    fn open(file: &SegmentFile, key: u32) -> Result<Column, StoreError> {
        let slots = Members::open(file, Owner::VertexProperty, key, file.header.slots)?;
        let ids = match Runs::open(file, Owner::VertexProperty, key)? {
            Some(runs) => PropertyIds::Runs(runs),
            None => {
                let name = Owner::VertexProperty.key_part(key, part::PROPERTY_IDS);
                PropertyIds::Listed(Numbers::open_counted(file, name, slots.count())?)
            }
        };
        let values = Values::open(file, Owner::VertexProperty, key, slots.count())?;
        Ok(Column { slots, values, ids, several: false })
    }

    fn id(&self, slot: u64, rank: u64) -> u64 {
        match &self.ids {
            PropertyIds::Runs(runs) => runs.get(slot),
            PropertyIds::Listed(ids) => ids.get(rank),
        }
    }
}

/// A property before its value is read: id, column, rank; or its place among the extras instead of the rank.
type Found = (u64, u32, u64);

/// Stands for a column in a property of the extras.
const EXTRA: u32 = u32::MAX;

/// Properties of a vertex that are listed without allocating.
const INLINE: usize = 24;

impl VertexProperties {
    pub(super) fn open(file: &SegmentFile, labels: &[LabelId]) -> Result<VertexProperties, StoreError> {
        let mut columns = KeyColumns::default();
        for key in file.keys_of(Owner::VertexProperty, part::NUMBERS) {
            let column = Column::open(file, key)?;
            if columns.add(KeyId(key), column).is_none() {
                let entry = file.entry(Owner::VertexProperty.key_part(key, part::NUMBERS))?;
                return Err(file.corrupt(entry, "a property key is too large"));
            }
        }
        let mut of_label = Vec::new();
        for label in labels {
            let name = Owner::KeysOfLabel.key_part(label.0, part::NUMBERS);
            let Some(entry) = file.find(name) else { continue };
            let keys = Numbers::of(file, entry)?;
            if keys.len() > columns.iter().count() as u64 {
                return Err(file.corrupt(entry, "a label has more keys than there are"));
            }
            let index = |place| {
                let key = u32::try_from(keys.get(place)).ok().and_then(|key| columns.index(KeyId(key)));
                key.map(|index| index as u32).ok_or_else(|| file.corrupt(entry, "a label has a key without a column"))
            };
            of_label.push((*label, (0..keys.len()).map(index).collect::<Result<Box<[u32]>, StoreError>>()?));
        }
        let (extra_slots, extras) = match file.find(Owner::VertexExtras.part(part::BYTES)) {
            None => (Members::EMPTY, Heap::EMPTY),
            Some(entry) => {
                let slots = Members::open(file, Owner::VertexExtras, 0, file.header.slots)?;
                let extras = Heap::open(file, Owner::VertexExtras, 0, part::OFFSETS)?;
                if extras.len() != slots.count() {
                    return Err(file.corrupt(entry, "there are not as many extra rows as slots that have one"));
                }
                mark_several(file, &mut columns)?;
                (slots, extras)
            }
        };
        Ok(VertexProperties { columns, of_label, extra_slots, extras })
    }

    /// The first value under a key.
    #[inline]
    pub(super) fn first(&self, slot: u64, key: KeyId) -> Option<Value> {
        let column = self.columns.get(key)?;
        Some(column.values.get(column.slots.rank(slot)?))
    }

    /// Whether there is a value under a key.
    #[inline]
    pub(super) fn has(&self, slot: u64, key: KeyId) -> bool {
        self.columns.get(key).is_some_and(|column| column.slots.contains(slot))
    }

    /// Where the number of the only value under a key is, if it is a moment or, else, an integer.
    #[inline]
    pub(super) fn number_place(&self, slot: u64, key: KeyId, of_moments: bool) -> Place<'_> {
        self.place(slot, key, |values| values.numbers(of_moments))
    }

    /// The numbers under a key, if the slots that have one are a range, and no vertex has several.
    pub(super) fn plain_numbers(&self, key: KeyId, of_moments: bool) -> Option<(Range<u64>, &Numbers)> {
        let column = self.columns.get(key).filter(|column| !column.several)?;
        Some((column.slots.range()?, column.values.numbers(of_moments)?))
    }

    /// Where the code of the only value under a key is, if it is a text of a dictionary.
    #[inline]
    pub(super) fn code_place(&self, slot: u64, key: KeyId) -> Place<'_> {
        self.place(slot, key, Values::codes)
    }

    #[inline]
    fn place(&self, slot: u64, key: KeyId, numbers: impl Fn(&Values) -> Option<&Numbers>) -> Place<'_> {
        let Some(column) = self.columns.get(key) else { return Place::Nowhere };
        let Some(rank) = column.slots.rank(slot) else { return Place::Nowhere };
        if column.several && self.extra_slots.contains(slot) {
            return Place::Unknown;
        }
        numbers(&column.values).map_or(Place::Unknown, |numbers| Place::At(numbers, rank))
    }

    /// The text of a code under a key, if there is a dictionary.
    pub(super) fn text_of_code(&self, key: KeyId, code: u64) -> Option<&Arc<str>> {
        self.columns.get(key)?.values.text_of_code(code)
    }

    /// Whether integers under a key are `Long`; the inner `None` if they are not all `Int` or all `Long`, the outer if there is no value.
    pub(super) fn are_long(&self, key: KeyId) -> Option<Option<bool>> {
        self.columns.get(key).map(|column| column.values.are_long())
    }

    /// The only value under a key, if it is a text; `None` if there is no value, the inner one if it is another or not the only one.
    #[inline]
    pub(super) fn text(&self, slot: u64, key: KeyId) -> Option<Option<StoredText<'_>>> {
        let column = self.columns.get(key)?;
        let rank = column.slots.rank(slot)?;
        if column.several && self.extra_slots.contains(slot) {
            return Some(None);
        }
        Some(column.values.text(rank))
    }

    /// Whether the value under a key is this text; `None` if there is none or several, or one that is no text.
    #[inline]
    pub(super) fn is_text(&self, slot: u64, key: KeyId, text: &str) -> Option<bool> {
        let column = self.columns.get(key)?;
        let rank = column.slots.rank(slot)?;
        if column.several && self.extra_slots.contains(slot) {
            return None;
        }
        column.values.is_text(rank, text)
    }

    /// How many vertices have a value under a key.
    pub(super) fn count(&self, key: KeyId) -> u64 {
        self.columns.get(key).map_or(0, |column| column.slots.count())
    }

    /// Hands out the slots that have this text under a key, and those whose values would have to be read to know.
    pub(super) fn visit_slots_with_text(&self, key: KeyId, text: &str, visit: &mut dyn FnMut(u64)) {
        let Some(column) = self.columns.get(key) else { return };
        column.values.visit_text(text, &mut |rank| visit(column.slots.member(rank)));
        if !column.several {
            return;
        }
        // Of several values one may be it that is not in the column.
        let _ = self.extra_slots.visit_from(0, &mut |slot| {
            if column.slots.contains(slot) {
                visit(slot);
            }
            ControlFlow::Continue(())
        });
    }

    /// Hands out the values under a key in insertion order until `visit` breaks. Reads one column, and, if some vertex has
    /// several values under the key, the extras of those that have any.
    #[inline]
    pub(super) fn visit_values(&self, slot: u64, key: KeyId, mut visit: impl FnMut(Value) -> ControlFlow<()>) {
        let Some(column) = self.columns.get(key) else { return };
        let Some(rank) = column.slots.rank(slot) else { return };
        if visit(column.values.get(rank)).is_break() || !column.several {
            return;
        }
        let more = self.extra_row(slot, Wanted { key: Some(key), metas: false });
        let _ = more.into_iter().flat_map(|row| row.properties).try_for_each(|(_, _, value)| visit(value));
    }

    fn columns_of(&self, label: LabelId) -> &[u32] {
        match self.of_label.binary_search_by_key(&label, |(label, _)| *label) {
            Ok(place) => &self.of_label[place].1,
            Err(_) => &[],
        }
    }

    /// True if there is any property.
    pub(super) fn has_any(&self, slot: u64, label: LabelId) -> bool {
        self.columns_of(label).iter().any(|column| self.columns.at(*column as usize).1.slots.contains(slot))
    }

    fn extra_row(&self, slot: u64, wanted: Wanted) -> Option<ExtraRow> {
        let rank = self.extra_slots.rank(slot)?;
        Some(ExtraRow::read_wanted(self.extras.get(rank), wanted).unwrap_or_else(|_| damaged()))
    }

    /// Hands out the keys of all properties, in the order of their ids if they are to come so. Reads no value but those of the extras.
    pub(super) fn visit_keys(&self, slot: u64, label: LabelId, in_order: bool, visit: &mut dyn FnMut(KeyId)) {
        let extra = self.extra_row(slot, Wanted { key: None, metas: false });
        let of_columns = self.columns_of(label).iter().filter_map(|index| {
            let (key, column) = self.columns.at(*index as usize);
            column.slots.rank(slot).map(|rank| (column, rank, key))
        });
        if !in_order {
            of_columns.for_each(|(.., key)| visit(key));
            extra.iter().flat_map(|row| &row.properties).for_each(|(_, key, _)| visit(*key));
            return;
        }
        let mut found: Vec<(u64, KeyId)> = of_columns.map(|(column, rank, key)| (column.id(slot, rank), key)).collect();
        found.extend(extra.iter().flat_map(|row| &row.properties).map(|(id, key, _)| (*id, *key)));
        found.sort_unstable();
        found.into_iter().for_each(|(_, key)| visit(key));
    }

    /// Hands out the properties that are wanted, each with its meta-properties, in the order of their ids until `visit` breaks.
    pub(super) fn visit(&self, slot: u64, label: LabelId, wanted: Wanted, visit: VisitProperty<'_>) {
        let of_key;
        let columns = match wanted.key {
            None => self.columns_of(label),
            Some(key) => {
                let Some(index) = self.columns.index(key) else { return };
                of_key = [index as u32];
                &of_key
            }
        };
        let may_have_more = wanted.metas || columns.iter().any(|index| self.columns.at(*index as usize).1.several);
        let extra = if may_have_more { self.extra_row(slot, wanted) } else { None };
        let limit = columns.len() + extra.as_ref().map_or(0, |row| row.properties.len());
        let mut few = [(0, 0, 0); INLINE];
        let mut many = Vec::new();
        let found: &mut [Found] = if limit <= INLINE {
            &mut few
        } else {
            many.resize(limit, (0, 0, 0));
            &mut many
        };
        let mut count = 0;
        let mut add = |property| {
            found[count] = property;
            count += 1;
        };
        for index in columns {
            let (_, column) = self.columns.at(*index as usize);
            if let Some(rank) = column.slots.rank(slot) {
                add((column.id(slot, rank), *index, rank));
            }
        }
        for (place, (id, _, _)) in extra.iter().flat_map(|row| &row.properties).enumerate() {
            add((*id, EXTRA, place as u64));
        }
        let found = &mut found[..count];
        found.sort_unstable();
        for (id, column, place) in &*found {
            let property = if *column == EXTRA {
                let row = extra.as_ref().expect("the property came from it");
                let (_, key, value) = &row.properties[*place as usize];
                PropertyEntry::new(*id, *key, value.clone())
            } else {
                let (key, column) = self.columns.at(*column as usize);
                PropertyEntry::new(*id, key, column.values.get(*place))
            };
            let metas = extra.as_ref().and_then(|row| row.metas.get(id)).map_or(&[][..], Vec::as_slice);
            if visit(property, metas).is_break() {
                return;
            }
        }
    }

    /// The meta-properties of a property.
    pub(super) fn metas(&self, slot: u64, property: u64) -> Vec<(KeyId, Value)> {
        self.extra_row(slot, Wanted::EVERYTHING).and_then(|mut row| row.metas.remove(&property)).unwrap_or_default()
    }

    /// Hands out the meta-properties of all properties that have any, with the ids of these.
    pub(super) fn visit_metas(&self, slot: u64, visit: VisitMetas<'_>) {
        if let Some(row) = self.extra_row(slot, Wanted::EVERYTHING) {
            row.metas.iter().for_each(|(property, metas)| visit(*property, metas));
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let values: usize = self.columns.iter().map(|(_, column)| column.values.heap_bytes()).sum();
        let labels: usize = self.of_label.iter().map(|(_, columns)| columns.len() * 4 + 24).sum();
        self.columns.heap_bytes() + values + labels
    }

    /// Checks order, ids and content; for `verify`.
    pub(super) fn verify(&self, vertices: &Members) -> Result<(), &'static str> {
        let are_vertices = |slots: &Members| {
            let mut all =
                |slot| if vertices.contains(slot) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
            match slots.visit_from(0, &mut all) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err("a property belongs to a slot without a vertex"),
            }
        };
        for (_, column) in self.columns.iter() {
            column.slots.verify()?;
            are_vertices(&column.slots)?;
            column.values.verify()?;
            let mut rank = 0;
            let too_large = column.slots.visit_from(0, &mut |slot| {
                let id = column.id(slot, rank);
                rank += 1;
                if id >> PROPERTY_ID_BITS == 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            if let PropertyIds::Runs(runs) = &column.ids {
                runs.verify()?;
            }
            if too_large.is_break() {
                return Err("the id of a property is too large");
            }
        }
        self.extra_slots.verify()?;
        are_vertices(&self.extra_slots)?;
        self.extras.verify()?;
        (0..self.extras.len()).try_for_each(|rank| {
            let row = ExtraRow::read(self.extras.get(rank))?;
            let is_known = |key: KeyId| self.columns.get(key).is_some_and(|column| column.several);
            match row.properties.iter().all(|(_, key, _)| is_known(*key)) {
                true => Ok(()),
                false => Err("a second value is under a key that is not among those with several"),
            }
        })
    }
}

/// Marks the columns whose keys have several values; all of them in a file that does not say.
fn mark_several(file: &SegmentFile, columns: &mut KeyColumns<Column>) -> Result<(), StoreError> {
    let name = Owner::VertexExtras.part(part::NUMBERS);
    let Some(entry) = file.find(name) else {
        (0..columns.len()).for_each(|index| columns.at_mut(index).several = true);
        return Ok(());
    };
    let keys = Numbers::of(file, entry)?;
    if keys.len() > columns.len() as u64 {
        return Err(file.corrupt(entry, "more keys have several values than there are"));
    }
    for place in 0..keys.len() {
        let index = u32::try_from(keys.get(place)).ok().and_then(|key| columns.index(KeyId(key)));
        let index = index.ok_or_else(|| file.corrupt(entry, "a key without a column has several values"))?;
        columns.at_mut(index).several = true;
    }
    Ok(())
}
