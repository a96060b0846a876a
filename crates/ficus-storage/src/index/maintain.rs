//! How a root keeps its indexes up to date with its own writes.
//!
//! Single-key indexes follow values: one is added before or after its row has it, and removed when the row no longer has it.
//! Composite indexes follow elements: taken out before a row changes, put back in after.

use std::sync::Arc;

use ficus_model::{EdgeId, KeyId, LabelId, Value, VertexId};

use super::{ElementKind, Entries, Entry, EntrySet, Index, IndexKind, IndexShape, KeyBytes, composite_key};
use crate::root::GraphRoot;

impl GraphRoot {
    /// Hands the values of a vertex under a key to `visit`.
    pub(crate) fn visit_vertex_values(&self, vertex: VertexId, key: KeyId, visit: &mut dyn FnMut(&Value)) {
        let Some(row) = self.vertex(vertex) else { return };
        let entries = row.entries();
        entries.iter().filter(|entry| entry.key() == key).for_each(|entry| visit(&entry.value));
    }

    /// Hands the values of an element under a key to `visit`.
    pub(crate) fn visit_values(&self, elements: ElementKind, element: u64, key: KeyId, visit: &mut dyn FnMut(&Value)) {
        match elements {
            ElementKind::Vertex => self.visit_vertex_values(VertexId(element), key, visit),
            ElementKind::Edge => {
                if let Some(value) = self.edge_value(EdgeId(element), key) {
                    visit(&value);
                }
            }
        }
    }

    /// The label of an element.
    pub(crate) fn label_of(&self, elements: ElementKind, element: u64) -> Option<LabelId> {
        match elements {
            ElementKind::Vertex => self.vertex(VertexId(element)).map(|row| row.label()),
            ElementKind::Edge => self.edge(EdgeId(element)).map(|record| record.label),
        }
    }

    /// Adds a value of a vertex to the single-key indexes.
    pub(crate) fn index_value(&mut self, label: LabelId, key: KeyId, value: &Value, vertex: VertexId) {
        self.change(ElementKind::Vertex, label, Some(key), false, |index, _| index.insert_value(value, vertex.0));
    }

    /// Takes a value that the vertex no longer has out of the single-key indexes.
    pub(crate) fn unindex_value(&mut self, label: LabelId, key: KeyId, value: &Value, vertex: VertexId) {
        self.change(ElementKind::Vertex, label, Some(key), false, |index, root| {
            index.remove_value(value, vertex.0, |is_same| {
                let mut shared = false;
                root.visit_vertex_values(vertex, key, &mut |other| shared |= is_same(other));
                shared
            });
        });
    }

    /// Puts a vertex into the composite indexes that have `key`, or all, as its row is now.
    pub(crate) fn place_vertex(&mut self, label: LabelId, vertex: VertexId, key: Option<KeyId>) {
        self.place(ElementKind::Vertex, label, key, vertex.0, true);
    }

    /// Takes a vertex out of the composite indexes that have `key`, or all, before its row changes.
    pub(crate) fn unplace_vertex(&mut self, label: LabelId, vertex: VertexId, key: Option<KeyId>) {
        self.place(ElementKind::Vertex, label, key, vertex.0, false);
    }

    /// Puts an edge into the indexes that have `key`, or all, as its row is now.
    pub(crate) fn index_edge(&mut self, label: LabelId, edge: EdgeId, key: Option<KeyId>) {
        self.change(ElementKind::Edge, label, key, false, |index, root| {
            root.visit_values(ElementKind::Edge, edge.0, index.shape.keys[0], &mut |value| {
                index.insert_value(value, edge.0);
            });
        });
        self.place(ElementKind::Edge, label, key, edge.0, true);
    }

    /// Takes an edge out of the indexes that have `key`, or all, before its row changes.
    pub(crate) fn unindex_edge(&mut self, label: LabelId, edge: EdgeId, key: Option<KeyId>) {
        self.change(ElementKind::Edge, label, key, false, |index, root| {
            root.visit_values(ElementKind::Edge, edge.0, index.shape.keys[0], &mut |value| {
                index.remove_value(value, edge.0, |_| false);
            });
        });
        self.place(ElementKind::Edge, label, key, edge.0, false);
    }

    fn place(&mut self, elements: ElementKind, label: LabelId, key: Option<KeyId>, element: u64, adds: bool) {
        self.change(elements, label, key, true, |index, root| {
            if let Some(key) = root.composite_key_of(&index.shape, element) {
                match adds {
                    true => index.insert_key(key, element),
                    false => index.remove_key(key, element),
                }
            }
        });
    }

    /// The key of an element in a composite index, as its row is now.
    pub(crate) fn composite_key_of(&self, shape: &IndexShape, element: u64) -> Option<KeyBytes> {
        composite_key(&shape.keys, &mut |key, visit| self.visit_values(shape.elements, element, key, visit))
    }

    /// Runs `change` on the indexes of these elements that have `key`, or all; composite ones or those of one key. It gets
    /// the root without its indexes.
    fn change(
        &mut self,
        elements: ElementKind,
        label: LabelId,
        key: Option<KeyId>,
        composite: bool,
        mut change: impl FnMut(&mut Index, &GraphRoot),
    ) {
        let concerned = |index: &Index| {
            let shape = &index.shape;
            let key = key.unwrap_or(shape.keys[0]);
            shape.is_composite() == composite && shape.covers(elements, label, key)
        };
        if !self.indexes.iter().any(concerned) {
            return;
        }
        let mut indexes = std::mem::take(&mut self.indexes);
        Arc::make_mut(&mut indexes).iter_mut().filter(|index| concerned(index)).for_each(|index| change(index, self));
        self.indexes = indexes;
    }

    /// Adds all values of one element to the index at `position`, as a build does; does nothing to what is there.
    pub(crate) fn fill_index_with(&mut self, position: usize, element: u64) {
        let mut indexes = std::mem::take(&mut self.indexes);
        let index = &mut Arc::make_mut(&mut indexes)[position];
        let shape = index.shape.clone();
        if shape.is_composite() {
            if let Some(key) = self.composite_key_of(&shape, element) {
                index.insert_key(key, element);
            }
        } else {
            self.visit_values(shape.elements, element, shape.keys[0], &mut |value| index.insert_value(value, element));
        }
        self.indexes = indexes;
    }

    /// Builds all entries of the index at `position` at once, from what is there.
    pub(crate) fn fill_index(&mut self, position: usize) {
        let entries = self.index_content(&self.indexes[position].shape);
        Arc::make_mut(&mut self.indexes)[position].entries = entries;
    }

    /// The entries that an index of this shape has to have.
    pub(crate) fn index_content(&self, shape: &IndexShape) -> Entries {
        match shape.kind {
            IndexKind::Hash => Entries::Hashed(self.content(shape)),
            IndexKind::Ordered => Entries::Ordered(self.content(shape)),
        }
    }

    fn content<T: Entry>(&self, shape: &IndexShape) -> EntrySet<T> {
        let mut all = Vec::new();
        let mut add = |element: u64| {
            #[cfg(test)]
            super::stored::tests::ELEMENTS_READ.with(|count| count.set(count.get() + 1));
            T::put_entries(self, shape, element, &mut all);
        };
        match shape.elements {
            ElementKind::Vertex => self.visit_vertices(&mut |vertex, row| {
                if shape.label.is_none_or(|label| label == row.label()) {
                    add(vertex.0);
                }
            }),
            ElementKind::Edge => {
                let mut edges = Vec::new();
                let snapshot = crate::Snapshot::new(Arc::new(self.clone()));
                let mut cursor = crate::ScanCursor::default();
                let mut more = true;
                while more {
                    edges.clear();
                    more = snapshot.scan_edges(&mut cursor, 4096, &mut edges);
                    for edge in &edges {
                        if shape.label.is_none_or(|label| self.label_of(ElementKind::Edge, edge.0) == Some(label)) {
                            add(edge.0);
                        }
                    }
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        EntrySet::from_ascending(&all)
    }
}
