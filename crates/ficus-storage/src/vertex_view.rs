//! A vertex as a reader sees it, without its half-edges: a row of the overlay, or what the base has.

use std::borrow::Cow;
use std::ops::ControlFlow;

use ficus_model::{KeyId, LabelId, Value};

use crate::property_row::{Metas, PropertyEntry, PropertyRow, VisitMetas, Wanted};
use crate::segment::Segment;
use crate::value_key::ids_equal;

/// A vertex in the overlay: a new one, or one of the base whose properties changed.
#[derive(Clone, Debug)]
pub(crate) struct VertexRow {
    /// The user id.
    pub(crate) id: Value,
    /// The label.
    pub(crate) label: LabelId,
    /// True if the base has the vertex as well.
    pub(crate) in_base: bool,
    /// The properties.
    pub(crate) properties: PropertyRow,
}

impl VertexRow {
    /// A vertex that the base does not have.
    pub(crate) fn new(id: Value, label: LabelId, properties: PropertyRow) -> VertexRow {
        VertexRow { id, label, in_base: false, properties }
    }

    /// A row that says what the base says.
    pub(crate) fn of_base(base: &BaseVertex<'_>) -> VertexRow {
        let (id, label) = (base.segment.vertex_id(base.slot), base.segment.label(base.slot));
        VertexRow { id, label, in_base: true, properties: base.properties() }
    }
}

/// A vertex of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BaseVertex<'a> {
    /// The segment.
    pub(crate) segment: &'a Segment,
    /// The slot, which has a vertex.
    pub(crate) slot: u64,
}

impl BaseVertex<'_> {
    /// Its properties as a row.
    pub(crate) fn properties(&self) -> PropertyRow {
        let (mut entries, mut of_entries) = (Vec::new(), Vec::new());
        self.segment.visit_properties(self.slot, Wanted::EVERYTHING, &mut |entry, metas| {
            if !metas.is_empty() {
                of_entries.push((entry.id(), metas.to_vec()));
            }
            entries.push(entry);
            ControlFlow::Continue(())
        });
        let mut row = PropertyRow::from_entries(entries);
        for (property, metas) in of_entries {
            metas.into_iter().for_each(|(key, value)| row.set_meta(property, key, value));
        }
        row
    }
}

/// A vertex as a reader sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VertexView<'a> {
    /// Unchanged since the base.
    Base(BaseVertex<'a>),
    /// In the overlay.
    Row(&'a VertexRow),
}

impl<'a> VertexView<'a> {
    /// The user id.
    pub(crate) fn id(&self) -> Value {
        match self {
            VertexView::Base(base) => base.segment.vertex_id(base.slot),
            VertexView::Row(row) => row.id.clone(),
        }
    }

    /// True if this is the user id.
    pub(crate) fn has_id(&self, id: &Value) -> bool {
        match self {
            VertexView::Base(base) => base.segment.vertex_has_id(base.slot, id),
            VertexView::Row(row) => ids_equal(&row.id, id),
        }
    }

    /// The label.
    pub(crate) fn label(&self) -> LabelId {
        match self {
            VertexView::Base(base) => base.segment.label(base.slot),
            VertexView::Row(row) => row.label,
        }
    }

    /// True if the base has the vertex.
    pub(crate) fn in_base(&self) -> bool {
        match self {
            VertexView::Base(_) => true,
            VertexView::Row(row) => row.in_base,
        }
    }

    /// Where the properties are: a row, or the base.
    fn properties(&self) -> Result<&'a PropertyRow, BaseVertex<'a>> {
        match *self {
            VertexView::Base(base) => Err(base),
            VertexView::Row(row) => Ok(&row.properties),
        }
    }

    /// All properties in insertion order.
    pub(crate) fn entries(&self) -> Cow<'a, [PropertyEntry]> {
        match self.properties() {
            Ok(row) => Cow::Borrowed(row.entries()),
            Err(base) => {
                let mut entries = Vec::new();
                base.segment.visit_properties(base.slot, Wanted { key: None, metas: false }, &mut |entry, _| {
                    entries.push(entry);
                    ControlFlow::Continue(())
                });
                Cow::Owned(entries)
            }
        }
    }

    /// Hands out the properties that are wanted in insertion order, each with its meta-properties.
    pub(crate) fn visit_properties(&self, wanted: Wanted, visit: &mut dyn FnMut(PropertyEntry, &Metas)) {
        match self.properties() {
            Ok(row) => {
                for entry in row.entries().iter().filter(|entry| wanted.key.is_none_or(|key| key == entry.key())) {
                    let metas = if wanted.metas { row.metas(entry.id()) } else { &[] };
                    visit(entry.clone(), metas);
                }
            }
            Err(base) => base.segment.visit_properties(base.slot, wanted, &mut |entry, metas| {
                visit(entry, metas);
                ControlFlow::Continue(())
            }),
        }
    }

    /// Hands out the keys of all properties, in insertion order if they are to come so.
    pub(crate) fn visit_keys(&self, in_order: bool, visit: &mut dyn FnMut(KeyId)) {
        match self.properties() {
            Ok(row) => row.entries().iter().for_each(|entry| visit(entry.key())),
            Err(base) => base.segment.visit_keys(base.slot, in_order, visit),
        }
    }

    /// The first value under a key.
    pub(crate) fn first(&self, key: KeyId) -> Option<Value> {
        match self.properties() {
            Ok(row) => row.first(key).cloned(),
            Err(base) => base.segment.first_property(base.slot, key),
        }
    }

    /// True if there is a value under a key.
    pub(crate) fn has_key(&self, key: KeyId) -> bool {
        match self.properties() {
            Ok(row) => row.has_key(key),
            Err(base) => base.segment.has_value(base.slot, key),
        }
    }

    /// Hands out the values under a key in insertion order until `visit` breaks.
    #[inline]
    pub(crate) fn visit_values(&self, key: KeyId, visit: impl FnMut(Value) -> ControlFlow<()>) {
        match self.properties() {
            Ok(row) => {
                let own = row.entries().iter().filter(|entry| entry.key() == key);
                let _ = own.map(|entry| entry.value.clone()).try_for_each(visit);
            }
            Err(base) => base.segment.visit_values(base.slot, key, visit),
        }
    }

    /// Whether the value under a key is this text; `None` if there is none or several, or one that is no text.
    #[inline]
    pub(crate) fn value_is_text(&self, key: KeyId, text: &str) -> Option<bool> {
        match self.properties() {
            Ok(row) => {
                let mut own = row.entries().iter().filter(|entry| entry.key() == key);
                match (own.next().map(|entry| &entry.value), own.next()) {
                    (Some(Value::String(value)), None) => Some(**value == *text),
                    _ => None,
                }
            }
            Err(base) => base.segment.value_is_text(base.slot, key, text),
        }
    }

    /// Whether the user id is this text; `None` if it is no text, or that takes decoding it.
    #[inline]
    pub(crate) fn id_is_text(&self, text: &str) -> Option<bool> {
        match self {
            VertexView::Base(base) => base.segment.vertex_id_is_text(base.slot, text),
            VertexView::Row(row) => match &row.id {
                Value::String(id) => Some(**id == *text),
                _ => None,
            },
        }
    }

    /// True if there is a property with this id.
    pub(crate) fn has_property(&self, id: u64) -> bool {
        match self.properties() {
            Ok(row) => row.by_id(id).is_some(),
            Err(_) => self.entries().iter().any(|entry| entry.id() == id),
        }
    }

    /// The meta-properties of a property, in insertion order.
    pub(crate) fn metas(&self, property: u64) -> Cow<'a, [(KeyId, Value)]> {
        match self.properties() {
            Ok(row) => Cow::Borrowed(row.metas(property)),
            Err(base) => Cow::Owned(base.segment.metas(base.slot, property)),
        }
    }

    /// Hands out the meta-properties of all properties that have any, with the ids of these.
    pub(crate) fn visit_metas(&self, visit: VisitMetas<'_>) {
        match self.properties() {
            Ok(row) => row.visit_metas(visit),
            Err(base) => base.segment.visit_metas(base.slot, visit),
        }
    }
}
