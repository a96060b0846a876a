//! Whether a whole write obeys the schema: the state it leaves is what counts, not the steps on the way.
//!
//! The elements that the write touches are followed through its mutations, beside the root, and held against their types,
//! the unique indexes and the multiplicities at the end. The same check runs when a transaction commits, against its own
//! snapshot, and in the resolver, against the newest state: what only the second finds is a conflict.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ficus_model::{Cardinality, Direction, EdgeId, KeyId, LabelId, Value, VertexId};

use super::{DeclaredType, Multiplicity};
use crate::index::{ElementKind, collisions};
use crate::mutation::{GraphWrite, Mutation, WordRef};
use crate::root::GraphRoot;
use crate::value_key::{canonical_index_key, index_equal};
use crate::{EdgeRecord, Snapshot, StoreError};

/// Refuses a write after which the graph would not obey its schema. Cost: what the write touches, if the graph has declared
/// types or unique indexes; else nothing.
pub(crate) fn check_write(write: &GraphWrite, root: &GraphRoot) -> Result<(), StoreError> {
    if !root.has_rules() {
        return Ok(());
    }
    let mut check = Check { write, root, touched: BTreeMap::new(), edges: AddedEdges::default() };
    write.mutations.iter().try_for_each(|mutation| check.follow(mutation))?;
    check.finish()
}

/// An element as the write leaves it.
struct Touched {
    label: Option<LabelId>,
    declared: Option<Arc<DeclaredType>>,
    is_new: bool,
    is_gone: bool,
    /// Key, property id (of vertices) and value.
    properties: Vec<(WordOrKey, u64, Value)>,
}

/// A key of the graph, or a word of the record that the graph does not know yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordOrKey {
    Key(KeyId),
    Word(WordRef),
}

/// Edges that come and go with the write, where multiplicities are declared.
#[derive(Default)]
struct AddedEdges {
    added: BTreeMap<EdgeId, (Arc<DeclaredType>, EdgeRecord)>,
    removed: BTreeSet<EdgeId>,
}

struct Check<'a> {
    write: &'a GraphWrite,
    root: &'a GraphRoot,
    touched: BTreeMap<(ElementKind, u64), Touched>,
    edges: AddedEdges,
}

impl Check<'_> {
    fn text(&self, word: WordRef) -> &str {
        &self.write.words[word as usize]
    }

    fn key(&self, word: WordRef) -> WordOrKey {
        self.root.words.keys.number(self.text(word)).map_or(WordOrKey::Word(word), |key| WordOrKey::Key(KeyId(key)))
    }

    fn follow(&mut self, mutation: &Mutation) -> Result<(), StoreError> {
        match mutation {
            Mutation::AddVertex { vertex, label, properties, .. } => {
                let element = self.add(ElementKind::Vertex, vertex.0, *label)?;
                for property in properties {
                    self.set(element, property.key, property.id, &property.value, Cardinality::List)?;
                }
            }
            Mutation::AddEdge { edge, label, out, in_, properties, .. } => {
                let element = self.add(ElementKind::Edge, edge.0, *label)?;
                for (key, value) in properties {
                    self.set(element, *key, 0, value, Cardinality::Single)?;
                }
                let declared = self.touched.get(&element).and_then(|touched| touched.declared.clone());
                if let Some(declared) = declared.filter(|own| own.definition.multiplicity != Multiplicity::Multi) {
                    let record = EdgeRecord { label: declared.label, out: *out, in_: *in_ };
                    self.edges.added.insert(*edge, (declared, record));
                }
            }
            Mutation::SetVertexProperty { vertex, property, key, value, cardinality } => {
                if let Some(element) = self.touch(ElementKind::Vertex, vertex.0) {
                    self.set(element, *key, *property, value, *cardinality)?;
                }
            }
            Mutation::SetEdgeProperty { edge, key, value } => {
                if let Some(element) = self.touch(ElementKind::Edge, edge.0) {
                    self.set(element, *key, 0, value, Cardinality::Single)?;
                }
            }
            Mutation::RemoveVertexProperty { vertex, property } => {
                if let Some(element) = self.touch(ElementKind::Vertex, vertex.0) {
                    self.retain(element, |(_, id, _)| id != property);
                }
            }
            Mutation::RemoveEdgeProperty { edge, key } => {
                let key = self.key(*key);
                if let Some(element) = self.touch(ElementKind::Edge, edge.0) {
                    self.retain(element, |(own, _, _)| *own != key);
                }
            }
            Mutation::RemoveEdge { edge } => self.remove_edge(*edge),
            Mutation::RemoveVertex { vertex } => {
                let added = self.edges.added.iter();
                let at_it = added.filter(|(_, (_, record))| record.out == *vertex || record.in_ == *vertex);
                let mut edges: Vec<EdgeId> = at_it.map(|(edge, _)| *edge).collect();
                edges.extend(self.root.edges_of(*vertex));
                edges.into_iter().for_each(|edge| self.remove_edge(edge));
                self.remove(ElementKind::Vertex, vertex.0);
            }
            // Meta-properties are free.
            Mutation::SetMetaProperty { .. } | Mutation::RemoveMetaProperty { .. } => {}
        }
        Ok(())
    }

    fn add(&mut self, kind: ElementKind, element: u64, label: WordRef) -> Result<(ElementKind, u64), StoreError> {
        let label = self.root.words.labels.number(self.text(label)).map(LabelId);
        let declared = label.and_then(|label| self.root.schema.find(kind, label)).cloned();
        if let Some(declared) = &declared {
            declared.check_alive()?;
        }
        let is_concerned = declared.is_some() || self.root.enforced_indexes(kind, label).next().is_some();
        if is_concerned {
            let touched = Touched { label, declared, is_new: true, is_gone: false, properties: Vec::new() };
            self.touched.insert((kind, element), touched);
        }
        Ok((kind, element))
    }

    /// Begins to follow an element of the root, if its type or a unique index asks for that.
    fn touch(&mut self, kind: ElementKind, element: u64) -> Option<(ElementKind, u64)> {
        let place = (kind, element);
        if self.touched.contains_key(&place) {
            return Some(place);
        }
        let label = self.root.label_of(kind, element)?;
        let declared = self.root.schema.find(kind, label).cloned();
        if declared.is_none() && self.root.enforced_indexes(kind, Some(label)).next().is_none() {
            return None;
        }
        let snapshot = Snapshot::new(Arc::new(self.root.clone()));
        let properties = match kind {
            ElementKind::Vertex => {
                let mut records = Vec::new();
                snapshot.vertex_properties(VertexId(element), None, &mut records);
                records.into_iter().map(|record| (WordOrKey::Key(record.key), record.id, record.value)).collect()
            }
            ElementKind::Edge => {
                let mut properties = Vec::new();
                snapshot.edge_properties(EdgeId(element), &mut properties);
                properties.into_iter().map(|(key, value)| (WordOrKey::Key(key), 0, value)).collect()
            }
        };
        let label = Some(label);
        self.touched.insert(place, Touched { label, declared, is_new: false, is_gone: false, properties });
        Some(place)
    }

    fn set(
        &mut self,
        element: (ElementKind, u64),
        word: WordRef,
        id: u64,
        value: &Value,
        cardinality: Cardinality,
    ) -> Result<(), StoreError> {
        let key = self.key(word);
        let text = &self.write.words[word as usize];
        let Some(touched) = self.touched.get_mut(&element) else { return Ok(()) };
        if let Some(declared) = &touched.declared {
            declared.check_value(text, value)?;
        }
        match cardinality {
            Cardinality::Single => touched.properties.retain(|(own, _, _)| *own != key),
            Cardinality::Set if touched.properties.iter().any(|(own, _, other)| *own == key && other == value) => {
                return Ok(());
            }
            Cardinality::Set | Cardinality::List => {}
        }
        touched.properties.push((key, id, value.clone()));
        Ok(())
    }

    fn retain(&mut self, element: (ElementKind, u64), keep: impl Fn(&(WordOrKey, u64, Value)) -> bool) {
        if let Some(touched) = self.touched.get_mut(&element) {
            touched.properties.retain(keep);
        }
    }

    fn remove_edge(&mut self, edge: EdgeId) {
        self.edges.added.remove(&edge);
        self.edges.removed.insert(edge);
        self.remove(ElementKind::Edge, edge.0);
    }

    fn remove(&mut self, kind: ElementKind, element: u64) {
        if let Some(place) = self.touch(kind, element)
            && let Some(touched) = self.touched.get_mut(&place)
        {
            touched.is_gone = true;
            touched.properties.clear();
        }
    }

    fn finish(&self) -> Result<(), StoreError> {
        let left = || self.touched.iter().filter(|(_, touched)| !touched.is_gone);
        for (_, touched) in left() {
            let Some(declared) = &touched.declared else { continue };
            declared.check_counts(&|key| {
                let is_key = |own: &WordOrKey| match own {
                    WordOrKey::Key(own) => self.root.words.keys.name(own.0).is_some_and(|own| **own == *key),
                    WordOrKey::Word(own) => *self.write.words[*own as usize] == *key,
                };
                touched.properties.iter().filter(|(own, _, _)| is_key(own)).count()
            })?;
        }
        let mut taken = Taken::default();
        for ((kind, element), touched) in left() {
            self.check_unique(*kind, *element, touched, &mut taken)?;
        }
        self.check_multiplicities()
    }

    fn check_unique(
        &self,
        kind: ElementKind,
        element: u64,
        touched: &Touched,
        taken: &mut Taken,
    ) -> Result<(), StoreError> {
        for index in self.root.enforced_indexes(kind, touched.label) {
            let shape = &index.shape;
            let all = collisions(&shape.keys, &mut |key, visit| {
                let own = touched.properties.iter().filter(|(own, _, _)| *own == WordOrKey::Key(key));
                own.for_each(|(_, _, value)| visit(value));
            });
            for values in all {
                let is_changed = touched.is_new || !self.root.has_values(shape, element, &values);
                let is_followed = |other| self.touched.contains_key(&(kind, other));
                let holder = match is_changed {
                    true => self.root.element_with(index, &values, &is_followed),
                    false => None,
                };
                if let Some(holder) = holder.or_else(|| taken.take(shape.number, &values, element, is_changed)) {
                    return Err(self.root.unique_violation(index, &values, holder));
                }
            }
        }
        Ok(())
    }

    fn check_multiplicities(&self) -> Result<(), StoreError> {
        if self.edges.added.is_empty() {
            return Ok(());
        }
        let snapshot = Snapshot::new(Arc::new(self.root.clone()));
        // What the write changes about the number of edges out of, into, and between vertices.
        let mut changes: BTreeMap<(LabelId, Option<VertexId>, Option<VertexId>), i64> = BTreeMap::new();
        let mut count = |record: EdgeRecord, change: i64| {
            let EdgeRecord { label, out, in_ } = record;
            for ends in [(Some(out), None), (None, Some(in_)), (Some(out), Some(in_))] {
                *changes.entry((label, ends.0, ends.1)).or_default() += change;
            }
        };
        self.edges.added.values().for_each(|(_, record)| count(*record, 1));
        self.edges.removed.iter().filter_map(|edge| self.root.edge(*edge)).for_each(|record| count(record, -1));
        for (declared, record) in self.edges.added.values() {
            let EdgeRecord { label, out, in_ } = *record;
            let change = |ends: (Option<VertexId>, Option<VertexId>)| changes[&(label, ends.0, ends.1)];
            let too_many = |before: u64, ends| before as i64 + change(ends) > 1;
            let multiplicity = declared.definition.multiplicity;
            if multiplicity.limits_out() && too_many(snapshot.degree(out, Direction::Out, &[label]), (Some(out), None))
            {
                return Err(declared.multiplicity_violation(snapshot.vertex_id(out).as_ref()));
            }
            if multiplicity.limits_in() && too_many(snapshot.degree(in_, Direction::In, &[label]), (None, Some(in_))) {
                return Err(declared.multiplicity_violation(snapshot.vertex_id(in_).as_ref()));
            }
            if multiplicity == Multiplicity::Simple
                && too_many(snapshot.edges_between(out, in_, Some(label)).len() as u64, (Some(out), Some(in_)))
            {
                return Err(declared.multiplicity_violation(None));
            }
        }
        Ok(())
    }
}

/// Who has a value.
struct Holder {
    values: Vec<Value>,
    element: u64,
    is_changed: bool,
}

/// The values that touched elements have in unique indexes.
#[derive(Default)]
struct Taken(BTreeMap<(u32, Vec<u8>), Vec<Holder>>);

impl Taken {
    /// Takes values for an element; another one that has them already, unless both had them before the write.
    fn take(&mut self, index: u32, values: &[Value], element: u64, is_changed: bool) -> Option<u64> {
        let mut key = Vec::new();
        values.iter().for_each(|value| canonical_index_key(value, &mut key));
        let holders = self.0.entry((index, key)).or_default();
        let equal = |other: &Holder| other.values.iter().zip(values).all(|(a, b)| index_equal(a, b));
        let other =
            holders.iter().find(|other| other.element != element && (other.is_changed || is_changed) && equal(other));
        if let Some(other) = other {
            return Some(other.element);
        }
        holders.push(Holder { values: values.to_vec(), element, is_changed });
        None
    }
}
