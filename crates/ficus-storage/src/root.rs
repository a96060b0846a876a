//! The whole state of one graph at one commit timestamp, as an immutable tree of shared pages.
//!
//! A root is cloned in a few dozen counters. Its writing half (`insert_…`, `set_…`, `remove_…`) is used in two places: by a
//! transaction on its private clone, which is how a transaction reads its own writes, and by the commit thread on the next
//! root. It trusts its caller: existence and uniqueness were checked before, a violation is a bug and panics.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_model::{Cardinality, EdgeId, KeyId, LabelId, Value, VertexId};

use crate::base::Base;
use crate::id_index::IdIndex;
use crate::index::{ElementKind, Index, IndexKind, IndexShape, IndexState};
use crate::label_blocks::BlocksBelow;
use crate::ordered_pages::OrderedPages;
use crate::property_index::IndexEntry;
use crate::property_row::{EdgeProperties, PropertyEntry, PropertyRow, set};
use crate::schema::Schema;
use crate::segment::Side;
use crate::side_view::SideView;
use crate::sort_order::SortOrder;
use crate::state_mark::GraphIdentity;
use crate::tablet::{IdLayout, Tablet, empty_tablets};
use crate::value_key::{index_equal, spelled_integer};
use crate::vertex_view::{VertexRow, VertexView};
use crate::words::Words;
use crate::{CommitTs, EdgeRecord};

/// Slots that a walk over the vertices of a label takes from every tablet at once, as bits.
const LABEL_SLOTS: u64 = 64;

/// Ids below these were used; none is given twice, not even after a removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NextIds {
    /// The next vertex.
    pub(crate) vertex: u64,
    /// The next edge sequence.
    pub(crate) edge_sequence: u64,
    /// The next vertex property.
    pub(crate) property: u64,
    /// The next user id that is made up.
    pub(crate) user_id: u64,
}

/// The whole state of one graph at one commit timestamp.
#[derive(Clone, Debug)]
pub(crate) struct GraphRoot {
    pub(crate) commit_ts: CommitTs,
    /// The same for all states of this graph, since it was created or opened.
    pub(crate) identity: GraphIdentity,
    pub(crate) layout: IdLayout,
    pub(crate) words: Arc<Words>,
    pub(crate) next_ids: NextIds,
    tablets: Vec<Arc<Tablet>>,
    /// What all tablets have in common in the base.
    base: Option<Arc<Base>>,
    /// Of vertices that are not in the base.
    vertex_ids: IdIndex,
    /// Of edges that are not in the base.
    edge_ids: IdIndex,
    /// (label, vertex), of vertices that are not in the base.
    vertices_by_label: OrderedPages<IndexEntry>,
    pub(crate) indexes: Arc<Vec<Index>>,
    pub(crate) schema: Arc<Schema>,
    vertex_counts: Arc<Vec<u64>>,
    edge_counts: Arc<Vec<u64>>,
    pub(crate) vertex_count: u64,
    pub(crate) edge_count: u64,
    overlay_changes: u64,
    /// No vertex below this one was made since the base.
    first_added: VertexId,
    /// Labels whose half-edges can be read in the order of their sort keys.
    pub(crate) sorted: Arc<Vec<SortOrder>>,
}

/// A property of a vertex that is being made.
pub(crate) struct RootProperty {
    /// Its own id.
    pub(crate) id: u64,
    /// The key.
    pub(crate) key: KeyId,
    /// The value.
    pub(crate) value: Value,
    /// Meta-properties.
    pub(crate) meta: Vec<(KeyId, Value)>,
}

impl NextIds {
    /// Nothing below `used` is given again.
    pub(crate) fn pass(&mut self, used: NextIds) {
        self.vertex = self.vertex.max(used.vertex);
        self.edge_sequence = self.edge_sequence.max(used.edge_sequence);
        self.property = self.property.max(used.property);
        self.user_id = self.user_id.max(used.user_id);
    }
}

impl GraphRoot {
    /// A graph without elements.
    pub(crate) fn empty(layout: IdLayout) -> GraphRoot {
        GraphRoot {
            commit_ts: CommitTs(0),
            identity: GraphIdentity::default(),
            layout,
            words: Arc::default(),
            next_ids: NextIds::default(),
            tablets: empty_tablets(layout),
            base: None,
            vertex_ids: IdIndex::default(),
            edge_ids: IdIndex::default(),
            vertices_by_label: OrderedPages::default(),
            indexes: Arc::default(),
            schema: Arc::default(),
            vertex_counts: Arc::default(),
            edge_counts: Arc::default(),
            vertex_count: 0,
            edge_count: 0,
            overlay_changes: 0,
            first_added: VertexId(u64::MAX),
            sorted: Arc::default(),
        }
    }

    /// The same graph without its elements; labels, keys, indexes and used ids stay.
    pub(crate) fn cleared(&self) -> GraphRoot {
        let mut root = GraphRoot::empty(self.layout);
        root.identity = self.identity.clone();
        root.words = self.words.clone();
        root.next_ids = self.next_ids;
        root.indexes = Arc::new(self.indexes.iter().map(Index::cleared).collect());
        root.schema = self.schema.clone();
        root.refresh_sorted();
        root
    }

    // reading

    /// The tablet with this number.
    #[inline]
    pub(crate) fn tablet(&self, number: usize) -> &Tablet {
        &self.tablets[number]
    }

    /// Changes since the base.
    pub(crate) fn overlay_changes(&self) -> u64 {
        self.overlay_changes
    }

    /// The tablets in order.
    pub(crate) fn tablets(&self) -> &[Arc<Tablet>] {
        &self.tablets
    }

    /// Takes the tablets out of a root that nobody reads any more, and says how many changes they have.
    pub(crate) fn take_tablets(&mut self) -> (Vec<Arc<Tablet>>, usize) {
        (std::mem::take(&mut self.tablets), self.overlay_changes as usize)
    }

    /// What all tablets have in common in the base.
    pub(crate) fn base(&self) -> Option<&Arc<Base>> {
        self.base.as_ref()
    }

    /// Which label the vertices of a stretch of ids have; `None` without a base.
    pub(crate) fn label_blocks(&self) -> Option<BlocksBelow<'_>> {
        Some(self.base.as_ref()?.label_blocks(self.layout).below(self.first_added))
    }

    /// The same graph, with all elements in a new base: `tablets` hold exactly what this root holds.
    pub(crate) fn on_base(&self, base: Arc<Base>) -> GraphRoot {
        let mut root = GraphRoot {
            tablets: base.segments.iter().map(|segment| Arc::new(Tablet::on(segment.clone()))).collect(),
            base: Some(base),
            vertex_ids: IdIndex::default(),
            edge_ids: IdIndex::default(),
            vertices_by_label: OrderedPages::default(),
            overlay_changes: 0,
            first_added: VertexId(u64::MAX),
            ..self.clone()
        };
        root.refresh_sorted();
        root
    }

    /// A vertex, if it exists.
    #[inline]
    pub(crate) fn vertex(&self, vertex: VertexId) -> Option<VertexView<'_>> {
        self.tablets[self.layout.vertex_tablet(vertex)].vertex(self.layout, vertex)
    }

    /// The half-edges of a vertex; none where there is no vertex.
    #[inline]
    pub(crate) fn side(&self, vertex: VertexId, side: Side) -> SideView<'_> {
        let number = self.layout.vertex_tablet(vertex);
        self.tablets[number].side(self.layout, number, self.layout.vertex_slot(vertex), side)
    }

    /// Label and ends of an edge.
    pub(crate) fn edge(&self, edge: EdgeId) -> Option<EdgeRecord> {
        self.tablets[self.layout.edge_tablet(edge)].edge(self.layout, edge)
    }

    /// The user id of an edge.
    pub(crate) fn edge_user_id(&self, edge: EdgeId) -> Option<Value> {
        self.tablets[self.layout.edge_tablet(edge)].edge_user_id(self.layout, edge)
    }

    /// The properties of an edge.
    pub(crate) fn edge_properties(&self, edge: EdgeId) -> Cow<'_, [(KeyId, Value)]> {
        self.tablets[self.layout.edge_tablet(edge)].edge_properties(self.layout, edge)
    }

    /// The value of an edge under a key.
    pub(crate) fn edge_value(&self, edge: EdgeId, key: KeyId) -> Option<Value> {
        self.tablets[self.layout.edge_tablet(edge)].edge_value(self.layout, edge, key)
    }

    /// The vertex with exactly this user id.
    pub(crate) fn vertex_with_id(&self, id: &Value) -> Option<VertexId> {
        let has_id = |vertex| self.vertex(VertexId(vertex)).is_some_and(|row| row.has_id(id));
        let added = self.vertex_ids.find(id, has_id);
        added.or_else(|| self.base.as_ref()?.find_vertex(self.layout, id, has_id)).map(VertexId)
    }

    /// The edge with exactly this user id.
    pub(crate) fn edge_with_id(&self, id: &Value) -> Option<EdgeId> {
        let has_id = |edge| {
            let edge = EdgeId(edge);
            self.tablets[self.layout.edge_tablet(edge)].edge_has_id(self.layout, edge, id)
        };
        let added = self.edge_ids.find(id, has_id);
        added.or_else(|| self.base.as_ref()?.find_edge(self.layout, id, has_id)).map(EdgeId)
    }

    /// The vertex a user means by this id: a text also finds the integer it spells.
    pub(crate) fn find_vertex(&self, id: &Value) -> Option<VertexId> {
        self.vertex_with_id(id).or_else(|| self.vertex_with_id(&spelled_integer(id)?))
    }

    /// The edge a user means by this id: a text also finds the integer it spells.
    pub(crate) fn find_edge(&self, id: &Value) -> Option<EdgeId> {
        self.edge_with_id(id).or_else(|| self.edge_with_id(&spelled_integer(id)?))
    }

    /// Vertices of a label at or after `from`, ascending, until `visit` breaks.
    pub(crate) fn visit_label(
        &self,
        label: LabelId,
        from: VertexId,
        visit: &mut impl FnMut(VertexId) -> ControlFlow<()>,
    ) {
        if self.base.is_none() {
            let _ = self.visit_added_label(label, from, visit);
            return;
        }
        // All tablets have one range of slots at a time; where none has the label, ranges are passed over.
        let layout = self.layout;
        let mut words = vec![0; self.tablets.len()];
        let mut slot = layout.vertex_slot(from);
        while let Some(next) = self.next_slot_with_label(label, slot) {
            let first = next / LABEL_SLOTS * LABEL_SLOTS;
            for (number, (tablet, word)) in self.tablets.iter().zip(&mut words).enumerate() {
                *word = tablet.label_word(layout, number, label, first);
            }
            let _ = self.visit_added_label(label, layout.vertex_id(first, 0), &mut |vertex| {
                let Some(place @ 0..LABEL_SLOTS) = layout.vertex_slot(vertex).checked_sub(first) else {
                    return ControlFlow::Break(());
                };
                words[layout.vertex_tablet(vertex)] |= 1 << place;
                ControlFlow::Continue(())
            });
            let mut places = words.iter().fold(0u64, |all, word| all | word);
            while places != 0 {
                let place = places.trailing_zeros();
                let there = words.iter().enumerate().filter(|(_, word)| **word >> place & 1 == 1);
                let mut vertices = there.map(|(number, _)| layout.vertex_id(first + u64::from(place), number));
                if vertices
                    .try_for_each(|vertex| if vertex < from { ControlFlow::Continue(()) } else { visit(vertex) })
                    .is_break()
                {
                    return;
                }
                places &= places - 1;
            }
            slot = first + LABEL_SLOTS;
        }
    }

    fn visit_added_label(
        &self,
        label: LabelId,
        from: VertexId,
        visit: &mut impl FnMut(VertexId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let hash = u64::from(label.0);
        let mut flow = ControlFlow::Continue(());
        self.vertices_by_label.visit_from(&IndexEntry { hash, element: from.0 }, |entries| {
            let same = entries.partition_point(|entry| entry.hash == hash);
            flow = entries[..same].iter().try_for_each(|entry| visit(VertexId(entry.element)));
            flow.is_continue() && same == entries.len()
        });
        flow
    }

    /// The first slot at or after `slot` in which some tablet has, or had in the base, a vertex with the label.
    fn next_slot_with_label(&self, label: LabelId, slot: u64) -> Option<u64> {
        let mut next: Option<u64> = None;
        let mut consider = |slot: u64| {
            next = Some(next.map_or(slot, |before| before.min(slot)));
            ControlFlow::Break(())
        };
        for base in self.tablets.iter().filter_map(|tablet| tablet.base()) {
            base.visit_label(label, slot, &mut consider);
        }
        let layout = self.layout;
        let _ = self
            .visit_added_label(label, layout.vertex_id(slot, 0), &mut |vertex| consider(layout.vertex_slot(vertex)));
        next
    }

    /// All vertices, tablet by tablet.
    pub(crate) fn visit_vertices(&self, visit: &mut impl FnMut(VertexId, VertexView<'_>)) {
        for (number, tablet) in self.tablets.iter().enumerate() {
            let mut slot = 0;
            while let Some(first) = tablet.next_vertex_group(slot) {
                let mut there = tablet.vertex_group(first);
                while there != 0 {
                    let vertex = self.layout.vertex_id(first + u64::from(there.trailing_zeros()), number);
                    visit(vertex, tablet.vertex(self.layout, vertex).expect("the group has this vertex"));
                    there &= there - 1;
                }
                slot = first + Tablet::GROUP;
            }
        }
    }

    /// The secondary indexes.
    pub(crate) fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// True if a vertex index of any label covers the key, or did.
    pub(crate) fn is_indexed(&self, key: KeyId) -> bool {
        self.schema.precise_keys.contains(&key)
    }

    /// True if the vertex has an equal value under the key.
    pub(crate) fn vertex_has(&self, vertex: VertexId, key: KeyId, value: &Value) -> bool {
        self.vertex(vertex)
            .is_some_and(|row| row.entries().iter().any(|entry| entry.key() == key && index_equal(&entry.value, value)))
    }

    /// Number of vertices with a label.
    pub(crate) fn vertex_count_with_label(&self, label: LabelId) -> u64 {
        self.vertex_counts.get(label.0 as usize).copied().unwrap_or(0)
    }

    /// Number of edges with a label.
    pub(crate) fn edge_count_with_label(&self, label: LabelId) -> u64 {
        self.edge_counts.get(label.0 as usize).copied().unwrap_or(0)
    }

    // writing

    pub(crate) fn vertex_tablet_mut(&mut self, vertex: VertexId) -> &mut Tablet {
        Arc::make_mut(&mut self.tablets[self.layout.vertex_tablet(vertex)])
    }

    fn properties_mut(&mut self, vertex: VertexId) -> &mut PropertyRow {
        self.overlay_changes += 1;
        let tablet = Arc::make_mut(&mut self.tablets[self.layout.vertex_tablet(vertex)]);
        tablet.vertex_properties_mut(self.layout, vertex).expect("the caller checked that the vertex exists")
    }

    fn edge_tablet_mut(&mut self, edge: EdgeId) -> &mut Tablet {
        self.overlay_changes += 1;
        Arc::make_mut(&mut self.tablets[self.layout.edge_tablet(edge)])
    }

    /// Adds a vertex that does not exist, with a user id that is free.
    pub(crate) fn insert_vertex(&mut self, vertex: VertexId, label: LabelId, id: Value, properties: Vec<RootProperty>) {
        self.vertex_ids.insert(&id, vertex.0);
        self.vertices_by_label.insert(IndexEntry { hash: u64::from(label.0), element: vertex.0 });
        add_to(&mut self.vertex_counts, label, 1);
        self.vertex_count += 1;
        self.overlay_changes += 1;
        self.first_added = self.first_added.min(vertex);
        self.next_ids.vertex = self.next_ids.vertex.max(vertex.0 + 1);
        for property in &properties {
            self.next_ids.property = self.next_ids.property.max(property.id + 1);
            self.index_value(label, property.key, &property.value, vertex);
        }
        let row = VertexRow::new(id, label, property_row(properties));
        let layout = self.layout;
        Arc::make_mut(&mut self.tablets[layout.vertex_tablet(vertex)]).insert_vertex(layout, vertex, row);
        self.place_vertex(label, vertex, None);
    }

    /// Adds an edge that does not exist, with a user id that is free, between vertices that do.
    pub(crate) fn insert_edge(&mut self, edge: EdgeId, record: EdgeRecord, id: Value, properties: EdgeProperties) {
        self.edge_ids.insert(&id, edge.0);
        add_to(&mut self.edge_counts, record.label, 1);
        self.edge_count += 1;
        self.next_ids.edge_sequence = self.next_ids.edge_sequence.max(self.layout.edge_sequence(edge) + 1);
        let (layout, EdgeRecord { label, out, in_ }) = (self.layout, record);
        let (out_slot, in_slot) = (layout.vertex_slot(out), layout.vertex_slot(in_));
        self.vertex_tablet_mut(out).insert_half_edge(Side::Out, out_slot, label, edge, in_);
        self.vertex_tablet_mut(in_).insert_half_edge(Side::In, in_slot, label, edge, out);
        self.edge_tablet_mut(edge).insert_edge(layout, edge, record, id, properties);
        self.index_edge(record.label, edge, None);
        self.change_order(edge, record, None, true);
    }

    /// Sets a vertex property; returns the id of the property that has the value afterwards.
    pub(crate) fn set_vertex_property(
        &mut self,
        vertex: VertexId,
        key: KeyId,
        value: Value,
        cardinality: Cardinality,
        id: u64,
    ) -> u64 {
        self.next_ids.property = self.next_ids.property.max(id + 1);
        let row = self.vertex(vertex).expect("the caller checked that the vertex exists");
        let label = row.label();
        match cardinality {
            Cardinality::List => {}
            _ if !row.has_key(key) => {}
            Cardinality::Single => self.remove_vertex_properties(vertex, |entry| entry.key() == key),
            Cardinality::Set => {
                let same = |entry: &&PropertyEntry| entry.key() == key && entry.value == value;
                if let Some(entry) = row.entries().iter().find(same) {
                    return entry.id();
                }
            }
        }
        self.index_value(label, key, &value, vertex);
        self.unplace_vertex(label, vertex, Some(key));
        self.properties_mut(vertex).push(PropertyEntry::new(id, key, value));
        self.place_vertex(label, vertex, Some(key));
        id
    }

    /// Sets a meta-property of a vertex property that exists.
    pub(crate) fn set_meta_property(&mut self, vertex: VertexId, property: u64, key: KeyId, value: Value) {
        self.properties_mut(vertex).set_meta(property, key, value);
    }

    /// Removes a meta-property.
    pub(crate) fn remove_meta_property(&mut self, vertex: VertexId, property: u64, key: KeyId) {
        self.properties_mut(vertex).remove_meta(property, key);
    }

    /// Removes the properties of a vertex that `doomed` picks.
    pub(crate) fn remove_vertex_properties(&mut self, vertex: VertexId, doomed: impl Fn(&PropertyEntry) -> bool) {
        let row = self.vertex(vertex).expect("the caller checked that the vertex exists");
        if !row.entries().iter().any(&doomed) {
            return;
        }
        let label = row.label();
        self.unplace_vertex(label, vertex, None);
        for entry in self.properties_mut(vertex).remove_where(doomed) {
            self.unindex_value(label, entry.key(), &entry.value, vertex);
        }
        self.place_vertex(label, vertex, None);
    }

    /// Sets a property of an edge that exists.
    pub(crate) fn set_edge_property(&mut self, edge: EdgeId, key: KeyId, value: Value) {
        let record = self.edge(edge).expect("the caller checked that the edge exists");
        let label = record.label;
        self.unindex_edge(label, edge, Some(key));
        self.change_order(edge, record, Some(key), false);
        let mut properties = self.edge_properties(edge).to_vec();
        set(&mut properties, key, value);
        let layout = self.layout;
        self.edge_tablet_mut(edge).set_edge_properties(layout, edge, Some(properties.into()));
        self.index_edge(label, edge, Some(key));
        self.change_order(edge, record, Some(key), true);
    }

    /// Removes a property of an edge.
    pub(crate) fn remove_edge_property(&mut self, edge: EdgeId, key: KeyId) {
        let mut properties = self.edge_properties(edge).to_vec();
        let before = properties.len();
        properties.retain(|(existing, _)| *existing != key);
        if properties.len() < before {
            let record = self.edge(edge).expect("an edge with properties exists");
            let label = record.label;
            self.unindex_edge(label, edge, Some(key));
            self.change_order(edge, record, Some(key), false);
            let layout = self.layout;
            let properties = (!properties.is_empty()).then(|| properties.into());
            self.edge_tablet_mut(edge).set_edge_properties(layout, edge, properties);
            self.index_edge(label, edge, Some(key));
            self.change_order(edge, record, Some(key), true);
        }
    }

    /// Removes an edge that exists: its row and both half-edges.
    pub(crate) fn remove_edge(&mut self, edge: EdgeId) -> EdgeRecord {
        let record = self.edge(edge).expect("the caller checked that the edge exists");
        let id = self.edge_user_id(edge).expect("an edge has an id");
        self.unindex_edge(record.label, edge, None);
        self.change_order(edge, record, None, false);
        if !self.in_base(edge) {
            self.edge_ids.remove(&id, edge.0);
        }
        add_to(&mut self.edge_counts, record.label, -1);
        self.edge_count -= 1;
        let layout = self.layout;
        let ends = [(Side::Out, record.out), (Side::In, record.in_)];
        let removed = ends.map(|(side, vertex)| {
            let slot = layout.vertex_slot(vertex);
            self.vertex_tablet_mut(vertex).remove_half_edge(layout, side, slot, record.label, edge)
        });
        assert_eq!(removed, [true, true], "an edge has two half-edges");
        self.edge_tablet_mut(edge).remove_edge(layout, edge);
        record
    }

    /// Removes a vertex that exists and has no edges any more.
    pub(crate) fn remove_vertex(&mut self, vertex: VertexId) {
        self.remove_vertex_properties(vertex, |_| true);
        let layout = self.layout;
        let row = self.vertex(vertex).expect("the caller checked that the vertex exists");
        let edges = [Side::Out, Side::In].map(|side| self.side(vertex, side).degree());
        assert!(edges == [0, 0], "edges are removed before their vertex");
        let (id, label, in_base) = (row.id(), row.label(), row.in_base());
        if !in_base {
            self.vertex_ids.remove(&id, vertex.0);
            self.vertices_by_label.remove(&IndexEntry { hash: u64::from(label.0), element: vertex.0 });
        }
        Arc::make_mut(&mut self.tablets[layout.vertex_tablet(vertex)]).remove_vertex(layout, vertex);
        add_to(&mut self.vertex_counts, label, -1);
        self.vertex_count -= 1;
        self.overlay_changes += 1;
    }

    /// True if the base has the edge, gone or not.
    fn in_base(&self, edge: EdgeId) -> bool {
        self.tablets[self.layout.edge_tablet(edge)].base_has_edge(self.layout.edge_sequence(edge))
    }

    /// The edges of a vertex, each once (a loop has two half-edges).
    pub(crate) fn edges_of(&self, vertex: VertexId) -> Vec<EdgeId> {
        let [out, in_] = [Side::Out, Side::In].map(|side| self.side(vertex, side));
        let mut edges = Vec::with_capacity((out.degree() + in_.degree()) as usize);
        let mut collect = |_: LabelId, half_edge: crate::HalfEdge| {
            edges.push(half_edge.edge);
            ControlFlow::Continue(())
        };
        let _ = out.visit_from(LabelId(0), EdgeId(0), false, &mut collect);
        let _ = in_.visit_from(LabelId(0), EdgeId(0), false, &mut collect);
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    // overlay and base

    /// Counts of elements that are in the overlay and not in the base must agree with the indexes of ids; for
    /// `check_invariants`.
    pub(crate) fn check_id_counts(&self) -> Result<(), String> {
        let (mut vertices, mut edges) = (0, 0);
        for tablet in &self.tablets {
            tablet.visit_overlay(&mut |_, row| vertices += u64::from(row.is_some_and(|row| !row.in_base)));
            tablet.visit_edge_overlay(self.layout, &mut |sequence, is_row| {
                edges += u64::from(is_row && !tablet.base_has_edge(sequence));
            });
        }
        let found = (self.vertex_ids.len(), self.edge_ids.len());
        if found == (vertices, edges) {
            return Ok(());
        }
        Err(format!("the id indexes have {found:?} entries for {vertices} new vertices and {edges} new edges"))
    }

    /// Puts a base under a graph without elements.
    pub(crate) fn attach(&mut self, base: Arc<Base>) {
        assert!(self.vertex_count == 0 && self.edge_count == 0, "the caller checked that the graph is empty");
        for segment in &base.segments {
            for (label, count) in segment.vertex_counts_by_label() {
                add_to(&mut self.vertex_counts, *label, *count as i64);
            }
            for (label, count) in segment.edge_counts_by_label() {
                add_to(&mut self.edge_counts, *label, *count as i64);
            }
            self.vertex_count += segment.vertex_count();
            self.edge_count += segment.edge_count();
        }
        *self = self.on_base(base);
    }

    /// Replaces the properties of an edge of the base, as a checkpoint remembers them.
    pub(crate) fn replace_edge_properties(&mut self, edge: EdgeId, properties: Vec<(KeyId, Value)>) {
        let layout = self.layout;
        let properties = (!properties.is_empty()).then(|| properties.into());
        self.edge_tablet_mut(edge).set_edge_properties(layout, edge, properties);
    }

    /// Replaces the properties of a vertex of the base, as a checkpoint remembers them.
    pub(crate) fn replace_properties(&mut self, vertex: VertexId, properties: PropertyRow) {
        *self.properties_mut(vertex) = properties;
    }

    // indexes

    /// Adds a hash index of vertices over what is there, complete at once; does nothing if it exists.
    pub(crate) fn create_index(&mut self, label: Option<LabelId>, key: KeyId) {
        let is_same = |shape: &IndexShape| {
            shape.elements == ElementKind::Vertex && shape.label == label && *shape.keys == [key] && !shape.unique
        };
        if self.indexes.iter().any(|index| is_same(&index.shape) && index.shape.kind == IndexKind::Hash) {
            return;
        }
        let word = |name: Option<&Arc<str>>| name.map_or("*", |name| name).to_string();
        let label_name = word(label.and_then(|label| self.words.labels.name(label.0)));
        let key_name = word(self.words.keys.name(key.0));
        let number = Arc::make_mut(&mut self.schema).number_index(ElementKind::Vertex, &[key]);
        let shape = IndexShape {
            number,
            name: Arc::from(format!("vertex.{label_name}.{key_name}.hash")),
            elements: ElementKind::Vertex,
            label,
            keys: [key].into(),
            kind: IndexKind::Hash,
            unique: false,
        };
        Arc::make_mut(&mut self.indexes).push(Index::new(shape, IndexState::Ready));
        self.fill_index(self.indexes.len() - 1);
    }

    /// Makes the entries of all indexes anew, from what is there.
    pub(crate) fn rebuild_indexes(&mut self) {
        (0..self.indexes.len()).for_each(|position| self.fill_index(position));
    }
}

/// A row of these properties.
pub(crate) fn property_row(properties: Vec<RootProperty>) -> PropertyRow {
    let mut entries = Vec::with_capacity(properties.len());
    let mut metas = Vec::new();
    for property in properties {
        entries.push(PropertyEntry::new(property.id, property.key, property.value));
        metas.extend(property.meta.into_iter().map(|(key, value)| (property.id, key, value)));
    }
    let mut properties = PropertyRow::from_entries(entries);
    for (property, key, value) in metas {
        properties.set_meta(property, key, value);
    }
    properties
}

fn add_to(counts: &mut Arc<Vec<u64>>, label: LabelId, change: i64) {
    let counts = Arc::make_mut(counts);
    let position = label.0 as usize;
    if counts.len() <= position {
        counts.resize(position + 1, 0);
    }
    counts[position] = counts[position].checked_add_signed(change).expect("a count is never negative");
}
