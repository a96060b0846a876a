//! All that was committed up to a timestamp, and how it is read.
//!
//! A snapshot is a counter on a [root](crate::root): reading takes no lock, waits for nobody, and sees one state however
//! long it lasts. Long reads take a cursor and a bound and append to a vector the caller keeps, so that an operator can be
//! interrupted between two batches.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ficus_model::{Direction, EdgeId, KeyId, LabelId, Value, VertexId};

use crate::damage_mark::examine;
use crate::index::{ElementKind, Index};
use crate::property_row::Wanted;
use crate::read_set::Recorder;
use crate::root::GraphRoot;
use crate::segment::{self, Place, Side};
use crate::side_view::SideView;
use crate::tablet::Tablet;
use crate::versions::Pin;
use crate::{CommitTs, EdgeRecord, HalfEdge, HalfEdgeCursor, Neighbours, ScanCursor, StoreError, VertexPropertyRecord};

/// Vertices of which there is one in so many ids follow each other in memory, as those of a scan do: the processor loads ahead by itself, and would
/// only be held up.
const CLOSE_TOGETHER: u64 = 4;

/// All that was committed up to a timestamp. Reads never wait; a clone is a counter.
///
/// A [`crate::Transaction`] derefs to a snapshot that also holds its own writes.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) root: Arc<GraphRoot>,
    /// Where a writing transaction remembers what it reads: every read function begins by recording.
    pub(crate) reads: Recorder,
    /// Tells the store that this state is being read.
    _pin: Option<Arc<Pin>>,
}

impl Snapshot {
    pub(crate) fn new(root: Arc<GraphRoot>) -> Snapshot {
        Snapshot { root, reads: Recorder::default(), _pin: None }
    }

    /// A snapshot that readers hold.
    pub(crate) fn pinned(root: Arc<GraphRoot>, pin: Arc<Pin>) -> Snapshot {
        Snapshot { _pin: Some(pin), ..Snapshot::new(root) }
    }

    /// The newest commit in it.
    pub fn commit_ts(&self) -> CommitTs {
        self.root.commit_ts
    }

    /// Compares all checksums of the columns that this state lies on. For whoever is about to read everything, and for whoever was
    /// unwound from a read: damage is found by reading, which opening did not do.
    ///
    /// Cost: reads all files of the graph. Errors: `Corrupt`, with the file and the place in it.
    pub fn examine(&self) -> Result<(), StoreError> {
        examine(&self.root, &AtomicBool::new(false))
    }

    // words

    /// The number of a vertex or edge label, if any element ever had it.
    pub fn label_id(&self, label: &str) -> Option<LabelId> {
        let found = self.root.words.labels.number(label).map(LabelId);
        self.reads.record(|reads| {
            if found.is_none() {
                reads.absent_label(label)
            }
        });
        found
    }

    /// The text of a label; empty for a number that is none.
    pub fn label_name(&self, label: LabelId) -> Arc<str> {
        self.root.words.labels.name(label.0).cloned().unwrap_or_else(|| Arc::from(""))
    }

    /// The number of a property key, if any element ever had it.
    pub fn key_id(&self, key: &str) -> Option<KeyId> {
        let found = self.root.words.keys.number(key).map(KeyId);
        self.reads.record(|reads| {
            if found.is_none() {
                reads.absent_key(key)
            }
        });
        found
    }

    /// The text of a key; empty for a number that is none.
    pub fn key_name(&self, key: KeyId) -> Arc<str> {
        self.root.words.keys.name(key.0).cloned().unwrap_or_else(|| Arc::from(""))
    }

    // vertices

    /// Finds a vertex by its user id. Integers of any width are one id; a text that no vertex has as its id finds the
    /// integer it spells.
    pub fn find_vertex(&self, id: &Value) -> Option<VertexId> {
        self.reads.record(|reads| reads.vertex_with_id(id));
        self.root.find_vertex(id)
    }

    /// True if the vertex is there.
    pub fn vertex_exists(&self, vertex: VertexId) -> bool {
        self.reads.record(|reads| reads.vertex_existence(vertex));
        self.root.vertex(vertex).is_some()
    }

    /// The user id.
    pub fn vertex_id(&self, vertex: VertexId) -> Option<Value> {
        self.reads.record(|reads| reads.vertex_existence(vertex));
        self.root.vertex(vertex).map(|row| row.id())
    }

    /// The label.
    pub fn vertex_label(&self, vertex: VertexId) -> Option<LabelId> {
        self.reads.record(|reads| reads.vertex_existence(vertex));
        self.root.vertex(vertex).map(|row| row.label())
    }

    /// Appends up to `max` vertices in insertion order; true if there may be more.
    pub fn scan_vertices(&self, cursor: &mut ScanCursor, max: usize, out: &mut Vec<VertexId>) -> bool {
        self.reads.record(|reads| reads.all_vertices());
        let root = &self.root;
        let tablets = root.layout.tablets() as u64;
        let end = out.len().saturating_add(max);
        let mut slot = cursor.next / tablets;
        // All tablets have one group of slots at a time; where none has vertices, groups are passed over.
        while let Some(first) = root.tablets().iter().filter_map(|tablet| tablet.next_vertex_group(slot)).min() {
            let groups: Vec<u32> = root.tablets().iter().map(|tablet| tablet.vertex_group(first)).collect();
            for position in 0..Tablet::GROUP {
                for (tablet, group) in groups.iter().enumerate() {
                    let vertex = (first + position) * tablets + tablet as u64;
                    if group >> position & 1 == 0 || vertex < cursor.next {
                        continue;
                    }
                    if out.len() >= end {
                        cursor.next = vertex;
                        return true;
                    }
                    out.push(VertexId(vertex));
                }
            }
            slot = first + Tablet::GROUP;
        }
        cursor.next = u64::MAX;
        false
    }

    /// Appends up to `max` vertices with this label in insertion order; true if there may be more.
    pub fn scan_vertices_with_label(
        &self,
        label: LabelId,
        cursor: &mut ScanCursor,
        max: usize,
        out: &mut Vec<VertexId>,
    ) -> bool {
        self.reads.record(|reads| reads.vertices_with_label(&self.label_name(label)));
        let end = out.len().saturating_add(max);
        let mut more = false;
        let mut next = u64::MAX;
        self.root.visit_label(label, VertexId(cursor.next), &mut |vertex| {
            if out.len() >= end {
                more = true;
                next = vertex.0;
                return ControlFlow::Break(());
            }
            out.push(vertex);
            ControlFlow::Continue(())
        });
        cursor.next = next;
        more
    }

    /// Appends the vertices that have `value` under `key` (and the label, if given) in insertion order; false, and
    /// nothing appended, if no index covers the question.
    pub fn vertices_by_index(
        &self,
        label: Option<LabelId>,
        key: KeyId,
        value: &Value,
        out: &mut Vec<VertexId>,
    ) -> bool {
        let covers = |index: &&Index| {
            let shape = &index.shape;
            let in_label = shape.label.is_none() || shape.label == label;
            index.is_ready() && shape.elements == ElementKind::Vertex && *shape.keys == [key] && in_label
        };
        // An index of just this label has the fewest candidates.
        let usable = self.root.indexes().iter().filter(covers);
        let Some(index) = usable.max_by_key(|index| index.shape.label.is_some()) else { return false };
        self.reads.record(|reads| reads.key_value(&self.key_name(key), value));
        index.visit_exact(std::slice::from_ref(value), &mut |vertex| {
            let vertex = VertexId(vertex);
            let has_label = label.is_none()
                || label == index.shape.label
                || self.root.vertex(vertex).map(|row| row.label()) == label;
            if has_label && self.root.vertex_has(vertex, key, value) {
                out.push(vertex);
            }
        });
        true
    }

    /// True if [`Snapshot::vertices_by_index`] can answer for this label and key.
    pub fn has_index(&self, label: Option<LabelId>, key: KeyId) -> bool {
        self.vertices_by_index(label, key, &Value::Null, &mut Vec::new())
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> u64 {
        self.reads.record(|reads| reads.all_vertices());
        self.root.vertex_count
    }

    /// Number of vertices with this label.
    pub fn vertex_count_with_label(&self, label: LabelId) -> u64 {
        self.reads.record(|reads| reads.vertices_with_label(&self.label_name(label)));
        self.root.vertex_count_with_label(label)
    }

    /// Number of edges.
    pub fn edge_count(&self) -> u64 {
        self.reads.record(|reads| reads.all_edges());
        self.root.edge_count
    }

    /// Number of edges with this label.
    pub fn edge_count_with_label(&self, label: LabelId) -> u64 {
        self.reads.record(|reads| reads.edges_with_label(&self.label_name(label)));
        self.root.edge_count_with_label(label)
    }

    /// Number of vertices or of edges with each label that has any, in the order of labels.
    pub fn counts_by_label(&self, elements: ElementKind) -> Vec<(LabelId, u64)> {
        self.reads.record(|reads| match elements {
            ElementKind::Vertex => reads.all_vertices(),
            ElementKind::Edge => reads.all_edges(),
        });
        let labels = (0..self.root.words.labels.names().len()).map(|number| LabelId(number as u32));
        let counted = labels.map(|label| (label, self.root.count_of(elements, Some(label))));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    // adjacency

    /// Appends up to `max` half-edges of a vertex, grouped by label, in insertion order inside a label; no `labels` means
    /// all, a label given twice counts once; `Both` gives out half-edges, then in. True if there may be more.
    pub fn half_edges(
        &self,
        vertex: VertexId,
        direction: Direction,
        labels: &[LabelId],
        cursor: &mut HalfEdgeCursor,
        max: usize,
        out: &mut Vec<HalfEdge>,
    ) -> bool {
        self.incident(vertex, direction, labels, cursor, max, out)
    }

    /// The vertices at the other ends of [`Snapshot::half_edges`], in the same order. Cheaper, as nothing is read of the edges.
    pub fn copy_neighbours(
        &self,
        vertex: VertexId,
        direction: Direction,
        labels: &[LabelId],
        cursor: &mut HalfEdgeCursor,
        max: usize,
        out: &mut Vec<VertexId>,
    ) -> bool {
        self.incident(vertex, direction, labels, cursor, max, out)
    }

    /// Begins to load the half-edges of some vertices, which are to be read next, one vertex after the other: so their memory is waited for at
    /// once. Worth the while for some ten of them; what was loaded for many more is gone when it is its turn. Reads nothing.
    pub fn prefetch_half_edges(&self, vertices: impl Iterator<Item = VertexId> + Clone, direction: Direction) {
        let (layout, tablets) = (self.root.layout, self.root.tablets());
        let (low, high, count) = vertices
            .clone()
            .fold((u64::MAX, 0, 0), |(low, high, count), own| (own.0.min(low), own.0.max(high), count + 1));
        if high.saturating_sub(low) < count * CLOSE_TOGETHER {
            return;
        }
        for content in [false, true] {
            for vertex in vertices.clone() {
                let (tablet, slot) = (&tablets[layout.vertex_tablet(vertex)], layout.vertex_slot(vertex));
                sides_of(direction).for_each(|side| tablet.prefetch_half_edges(slot, side, content));
            }
        }
    }

    #[inline]
    fn incident<H: Incident>(
        &self,
        vertex: VertexId,
        direction: Direction,
        labels: &[LabelId],
        cursor: &mut HalfEdgeCursor,
        max: usize,
        out: &mut Vec<H>,
    ) -> bool {
        self.reads.record(|reads| reads.half_edges(vertex, direction));
        self.read_incident(vertex, direction, labels, cursor, max, out)
    }

    /// As [`Snapshot::incident`], for who has recorded the read.
    #[inline]
    pub(crate) fn read_incident<H: Incident>(
        &self,
        vertex: VertexId,
        direction: Direction,
        labels: &[LabelId],
        cursor: &mut HalfEdgeCursor,
        max: usize,
        out: &mut Vec<H>,
    ) -> bool {
        let end = out.len().saturating_add(max);
        if let Some(more) = self.copy_unchanged(vertex, direction, labels, cursor, end, out) {
            return more;
        }
        for (side, adjacency) in self.sides(vertex, direction) {
            let stage = u8::from(side == Side::In);
            if cursor.stage > stage {
                continue;
            }
            if cursor.stage < stage {
                *cursor = HalfEdgeCursor { stage, label: 0, edge: 0 };
            }
            if read_side(&adjacency, labels, cursor, end, out) {
                return true;
            }
        }
        cursor.stage = 2;
        false
    }

    /// Appends the integers that vertices have under a key and says whether they are `Long`, and not `Int`, if that is all they have there,
    /// each one or none. `None` if columns do not say so, or if reads are recorded; what was appended means nothing then.
    pub fn integers(&self, key: KeyId, vertices: &[VertexId], out: &mut Vec<i64>) -> Option<bool> {
        if self.reads.is_recording() {
            return None;
        }
        let (layout, tablets) = (self.root.layout, self.root.tablets());
        let mut kinds = tablets.iter().filter_map(|tablet| tablet.base()?.are_long(key));
        let are_long = kinds.next()??;
        if kinds.any(|kind| kind != Some(are_long)) {
            return None;
        }
        for vertex in vertices {
            match tablets[layout.vertex_tablet(*vertex)].number_place(layout.vertex_slot(*vertex), key, false) {
                Place::At(numbers, place) => out.push(numbers.get(place) as i64),
                Place::Nowhere => {}
                Place::Known(_) | Place::Unknown => return None,
            }
        }
        Some(are_long)
    }

    /// As [`Snapshot::incident`], of a vertex whose half-edges did not change since the last consolidation, of one label or all:
    /// a copy of columns. `None` if they did, with the cursor where the rest begins.
    #[inline]
    fn copy_unchanged<H: Incident>(
        &self,
        vertex: VertexId,
        direction: Direction,
        labels: &[LabelId],
        cursor: &mut HalfEdgeCursor,
        end: usize,
        out: &mut Vec<H>,
    ) -> Option<bool> {
        let only = match labels {
            [] => None,
            [label] => Some(*label),
            _ => return None,
        };
        let layout = self.root.layout;
        let (tablet, slot) = (self.root.tablet(layout.vertex_tablet(vertex)), layout.vertex_slot(vertex));
        for side in sides_of(direction) {
            let stage = u8::from(side == Side::In);
            if cursor.stage > stage {
                continue;
            }
            if cursor.stage < stage {
                *cursor = HalfEdgeCursor { stage, label: 0, edge: 0 };
            }
            let base = tablet.unchanged_half_edges(slot, side, only)?;
            let start = match (cursor.label, cursor.edge) {
                (0, 0) => 0,
                (label, edge) => base.lower_bound(only.unwrap_or(LabelId(label)), layout.edge_sequence(EdgeId(edge))),
            };
            let next = base.len().min(start + end.saturating_sub(out.len()));
            let edge = |position: usize, neighbour| {
                layout.edge_id(base.sequence(position), if side == Side::Out { vertex } else { neighbour })
            };
            let half_edge =
                |(place, neighbour): (usize, VertexId)| H::incident(neighbour, || edge(start + place, neighbour));
            match base.range(start, next).neighbours() {
                segment::Neighbours::U32(some) => {
                    out.extend(some.iter().map(|vertex| VertexId(u64::from(*vertex))).enumerate().map(half_edge));
                }
                segment::Neighbours::U64(some) => {
                    out.extend(some.iter().map(|vertex| VertexId(*vertex)).enumerate().map(half_edge));
                }
            }
            if next < base.len() {
                cursor.label = if only.is_some() { 0 } else { base.label(next).0 };
                cursor.edge = edge(next, base.neighbour(next)).0;
                return Some(true);
            }
        }
        cursor.stage = 2;
        Some(false)
    }

    /// Hands out the vertices at the other ends of all half-edges, of one label or all, older ones first. Costs a column
    /// scan where nothing changed since the last consolidation.
    #[inline]
    pub fn visit_neighbours(
        &self,
        vertex: VertexId,
        direction: Direction,
        label: Option<LabelId>,
        visit: &mut impl FnMut(VertexId),
    ) {
        self.reads.record(|reads| reads.half_edges(vertex, direction));
        sides_of(direction).for_each(|side| self.visit_side(vertex, side, label, visit));
    }

    /// Reads neighbours of many vertices; faster than [`Snapshot::visit_neighbours`] for each.
    pub fn neighbours(&self, direction: Direction, label: Option<LabelId>) -> Neighbours<'_> {
        Neighbours::new(self, direction, label)
    }

    /// [`Snapshot::visit_neighbours`] in one direction.
    #[inline]
    pub(crate) fn visit_side(
        &self,
        vertex: VertexId,
        side: Side,
        label: Option<LabelId>,
        visit: &mut impl FnMut(VertexId),
    ) {
        let root = &*self.root;
        let tablet = root.tablet(root.layout.vertex_tablet(vertex));
        tablet.visit_neighbours(root.layout.vertex_slot(vertex), side, label, visit);
    }

    /// Number of half-edges; a loop counts twice for `Both`.
    pub fn degree(&self, vertex: VertexId, direction: Direction, labels: &[LabelId]) -> u64 {
        self.reads.record(|reads| reads.half_edges(vertex, direction));
        let of_side = |adjacency: SideView<'_>| match labels {
            [] => adjacency.degree(),
            labels => different(labels).map(|(_, label)| adjacency.degree_with_label(label)).sum(),
        };
        self.sides(vertex, direction).map(|(_, adjacency)| of_side(adjacency)).sum()
    }

    /// The sides a direction stands for.
    pub(crate) fn sides(&self, vertex: VertexId, direction: Direction) -> impl Iterator<Item = (Side, SideView<'_>)> {
        sides_of(direction).map(move |side| (side, self.root.side(vertex, side)))
    }

    // edges

    /// Finds an edge by its user id, as [`Snapshot::find_vertex`] does.
    pub fn find_edge(&self, id: &Value) -> Option<EdgeId> {
        self.reads.record(|reads| reads.edge_with_id(id));
        self.root.find_edge(id)
    }

    /// Label and ends.
    pub fn edge(&self, edge: EdgeId) -> Option<EdgeRecord> {
        self.reads.record(|reads| reads.edge_existence(edge));
        self.root.edge(edge)
    }

    /// True if the edge is there.
    pub fn edge_exists(&self, edge: EdgeId) -> bool {
        self.reads.record(|reads| reads.edge_existence(edge));
        self.root.edge(edge).is_some()
    }

    /// The user id.
    pub fn edge_id(&self, edge: EdgeId) -> Option<Value> {
        self.reads.record(|reads| reads.edge_existence(edge));
        self.root.edge_user_id(edge)
    }

    /// Appends up to `max` edges in insertion order; true if there may be more.
    pub fn scan_edges(&self, cursor: &mut ScanCursor, max: usize, out: &mut Vec<EdgeId>) -> bool {
        self.reads.record(|reads| reads.all_edges());
        let root = &self.root;
        let layout = root.layout;
        let page_bits = layout.edge_page_bits();
        let end = out.len().saturating_add(max);
        let sequence = layout.edge_sequence(EdgeId(cursor.next));
        let mut page = sequence >> page_bits;
        let mut word = (sequence as usize & ((1 << page_bits) - 1)) / 64;
        let mut found = Vec::new();
        while let Some(number) =
            (0..layout.tablets()).filter_map(|tablet| root.tablet(tablet).next_edge_page(layout, page)).min()
        {
            if number != page {
                (page, word) = (number, 0);
            }
            while word < (1 << page_bits) / 64 {
                found.clear();
                let first = (page << page_bits) + word as u64 * 64;
                for tablet in 0..layout.tablets() {
                    let mut bits = root.tablet(tablet).edge_word(layout, page, word);
                    while bits != 0 {
                        let sequence = first + u64::from(bits.trailing_zeros());
                        found.push(EdgeId(sequence << layout.tablet_bits | tablet as u64));
                        bits &= bits - 1;
                    }
                }
                found.sort_unstable();
                for edge in found.iter().filter(|edge| edge.0 >= cursor.next) {
                    if out.len() >= end {
                        cursor.next = edge.0;
                        return true;
                    }
                    out.push(*edge);
                }
                word += 1;
            }
            (page, word) = (page + 1, 0);
        }
        cursor.next = u64::MAX;
        false
    }

    // properties

    /// The first value under the key.
    pub fn vertex_value(&self, vertex: VertexId, key: KeyId) -> Option<Value> {
        self.reads.record(|reads| reads.vertex(vertex));
        self.root.vertex(vertex)?.first(key)
    }

    /// Whether there is a value under the key. Makes none.
    #[inline]
    pub fn vertex_has_value(&self, vertex: VertexId, key: KeyId) -> bool {
        self.reads.record(|reads| reads.vertex(vertex));
        self.root.vertex(vertex).is_some_and(|row| row.has_key(key))
    }

    /// Hands out the values of a vertex under a key in insertion order until `visit` breaks. Cheaper than
    /// [`Snapshot::vertex_properties`]: no other key is read.
    #[inline]
    pub fn visit_vertex_values(&self, vertex: VertexId, key: KeyId, visit: impl FnMut(Value) -> ControlFlow<()>) {
        self.reads.record(|reads| reads.vertex(vertex));
        if let Some(row) = self.root.vertex(vertex) {
            row.visit_values(key, visit);
        }
    }

    /// Whether the value of a vertex under a key is this text; `None` if the vertex is gone, or has none or several values, or
    /// one that is no text: look at them with [`Snapshot::visit_vertex_values`] then. Makes no value.
    #[inline]
    pub fn vertex_value_is_text(&self, vertex: VertexId, key: KeyId, text: &str) -> Option<bool> {
        self.reads.record(|reads| reads.vertex(vertex));
        self.root.vertex(vertex)?.value_is_text(key, text)
    }

    /// Vertices that have this text under a key, and some that may not: all that have changed since the last consolidation are among
    /// them, also those that are gone. `None` if that takes looking at more than `limit` values, if the graph was never consolidated, or
    /// if reads are recorded. Cost: a scan of the column.
    pub fn vertices_with_text(&self, key: KeyId, text: &str, limit: usize) -> Option<Vec<VertexId>> {
        if self.reads.is_recording() {
            return None;
        }
        let (mut found, mut left) = (Vec::new(), limit as u64);
        for (number, tablet) in self.root.tablets().iter().enumerate() {
            let add = &mut |slot| found.push(self.root.layout.vertex_id(slot, number));
            if !tablet.visit_slots_with_text(key, text, &mut left, add) {
                return None;
            }
        }
        Some(found)
    }

    /// Whether the user id of a vertex is this text; `None` if the vertex is gone, its id is no text, or that takes decoding
    /// it: compare with [`Snapshot::vertex_id`] then.
    #[inline]
    pub fn vertex_id_is_text(&self, vertex: VertexId, text: &str) -> Option<bool> {
        self.reads.record(|reads| reads.vertex_existence(vertex));
        self.root.vertex(vertex)?.id_is_text(text)
    }

    /// Appends the properties of a vertex, of one key or all, in insertion order. Of one key, no other is read.
    pub fn vertex_properties(&self, vertex: VertexId, key: Option<KeyId>, out: &mut Vec<VertexPropertyRecord>) {
        self.visit_properties(vertex, Wanted { key, metas: false }, |property, _| out.push(property));
    }

    /// Hands out the properties of a vertex as [`Snapshot::vertex_properties`] does, each with its meta-properties. Cheaper than asking for these with
    /// [`Snapshot::meta_properties`], which reads those of all properties each time.
    pub fn visit_vertex_properties(
        &self,
        vertex: VertexId,
        key: Option<KeyId>,
        visit: impl FnMut(VertexPropertyRecord, &[(KeyId, Value)]),
    ) {
        self.visit_properties(vertex, Wanted { key, metas: true }, visit);
    }

    fn visit_properties(
        &self,
        vertex: VertexId,
        wanted: Wanted,
        mut visit: impl FnMut(VertexPropertyRecord, &[(KeyId, Value)]),
    ) {
        self.reads.record(|reads| reads.vertex(vertex));
        if let Some(row) = self.root.vertex(vertex) {
            row.visit_properties(wanted, &mut |entry, metas| {
                let (id, key) = (entry.id(), entry.key());
                visit(VertexPropertyRecord { id, key, value: entry.value }, metas);
            });
        }
    }

    /// Hands out the key of each property of a vertex, in insertion order if they are to come so. Cheaper than [`Snapshot::vertex_properties`]: no
    /// values are read, and cheaper still in any order.
    pub fn visit_vertex_keys(&self, vertex: VertexId, in_order: bool, mut visit: impl FnMut(KeyId)) {
        self.reads.record(|reads| reads.vertex(vertex));
        if let Some(row) = self.root.vertex(vertex) {
            row.visit_keys(in_order, &mut visit);
        }
    }

    /// True if the vertex has the property with this id.
    pub fn vertex_property_exists(&self, vertex: VertexId, property: u64) -> bool {
        self.reads.record(|reads| reads.vertex(vertex));
        self.root.vertex(vertex).is_some_and(|row| row.has_property(property))
    }

    /// Appends the meta-properties of a vertex property in insertion order.
    pub fn meta_properties(&self, vertex: VertexId, property: u64, out: &mut Vec<(KeyId, Value)>) {
        self.reads.record(|reads| reads.vertex(vertex));
        if let Some(row) = self.root.vertex(vertex) {
            out.extend_from_slice(&row.metas(property));
        }
    }

    /// Hands out the meta-properties of all properties of a vertex that have any, with the ids of these. Cost: that of
    /// [`Snapshot::meta_properties`] of one.
    pub fn visit_meta_properties(&self, vertex: VertexId, mut visit: impl FnMut(u64, &[(KeyId, Value)])) {
        self.reads.record(|reads| reads.vertex(vertex));
        if let Some(row) = self.root.vertex(vertex) {
            row.visit_metas(&mut visit);
        }
    }

    /// The value under the key.
    pub fn edge_value(&self, edge: EdgeId, key: KeyId) -> Option<Value> {
        self.reads.record(|reads| reads.edge(edge));
        self.root.edge_value(edge, key)
    }

    /// Appends the properties of an edge in insertion order.
    pub fn edge_properties(&self, edge: EdgeId, out: &mut Vec<(KeyId, Value)>) {
        self.reads.record(|reads| reads.edge(edge));
        out.extend_from_slice(&self.root.edge_properties(edge));
    }
}

/// The sides a direction stands for.
#[inline]
pub(crate) fn sides_of(direction: Direction) -> impl Iterator<Item = Side> {
    let out = matches!(direction, Direction::Out | Direction::Both).then_some(Side::Out);
    let in_ = matches!(direction, Direction::In | Direction::Both).then_some(Side::In);
    out.into_iter().chain(in_)
}

/// The labels without repetitions, with their positions.
pub(crate) fn different(labels: &[LabelId]) -> impl Iterator<Item = (usize, LabelId)> {
    labels.iter().copied().enumerate().filter(|(position, label)| !labels[..*position].contains(label))
}

/// A vertex, perhaps with something that goes with it.
pub trait AtVertex: Copy {
    /// The vertex.
    fn vertex(self) -> VertexId;
}

impl AtVertex for VertexId {
    #[inline(always)]
    fn vertex(self) -> VertexId {
        self
    }
}

impl AtVertex for HalfEdge {
    #[inline(always)]
    fn vertex(self) -> VertexId {
        self.neighbour
    }
}

impl AtVertex for (VertexId, u32) {
    #[inline(always)]
    fn vertex(self) -> VertexId {
        self.0
    }
}

/// An edge, perhaps with something that goes with it.
pub trait AtEdge: Copy {
    /// The edge.
    fn edge(self) -> EdgeId;
}

impl AtEdge for EdgeId {
    #[inline(always)]
    fn edge(self) -> EdgeId {
        self
    }
}

impl AtEdge for HalfEdge {
    #[inline(always)]
    fn edge(self) -> EdgeId {
        self.edge
    }
}

/// What of a half-edge somebody wants to know.
pub(crate) trait Incident {
    /// From the vertex at the other end, and the edge if that is asked for.
    fn incident(neighbour: VertexId, edge: impl FnOnce() -> EdgeId) -> Self;
}

impl Incident for HalfEdge {
    #[inline(always)]
    fn incident(neighbour: VertexId, edge: impl FnOnce() -> EdgeId) -> HalfEdge {
        HalfEdge { edge: edge(), neighbour }
    }
}

impl Incident for VertexId {
    #[inline(always)]
    fn incident(neighbour: VertexId, _edge: impl FnOnce() -> EdgeId) -> VertexId {
        neighbour
    }
}

impl Incident for EdgeId {
    #[inline(always)]
    fn incident(_neighbour: VertexId, edge: impl FnOnce() -> EdgeId) -> EdgeId {
        edge()
    }
}

/// Reads one adjacency until `out` has `end` entries; true, with the cursor at the next half-edge, if there are more.
fn read_side<H: Incident>(
    adjacency: &SideView<'_>,
    labels: &[LabelId],
    cursor: &mut HalfEdgeCursor,
    end: usize,
    out: &mut Vec<H>,
) -> bool {
    let mut next = None;
    let mut read = |label: LabelId, half_edge: HalfEdge| {
        if out.len() >= end {
            next = Some((label, half_edge.edge));
            return ControlFlow::Break(());
        }
        out.push(H::incident(half_edge.neighbour, || half_edge.edge));
        ControlFlow::Continue(())
    };
    if labels.is_empty() {
        let _ = adjacency.visit_from(LabelId(cursor.label), EdgeId(cursor.edge), false, &mut read);
        if let Some((label, edge)) = next {
            (cursor.label, cursor.edge) = (label.0, edge.0);
        }
        return next.is_some();
    }
    for (position, label) in different(labels).skip_while(|(position, _)| *position < cursor.label as usize) {
        let from = if position == cursor.label as usize { cursor.edge } else { 0 };
        if adjacency.visit_from(label, EdgeId(from), true, &mut read).is_break() {
            if let Some((_, edge)) = next {
                (cursor.label, cursor.edge) = (position as u32, edge.0);
            }
            return true;
        }
    }
    false
}
