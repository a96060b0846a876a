//! The rules a state must keep, checked one by one: for tests, for the simulator, and for `ficus admin check`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ficus_model::{Direction, EdgeId, LabelId, VertexId};

use crate::index::{Entries, Entry, EntrySet};
use crate::schema::TypeState;
use crate::segment::Side;
use crate::value_key::ids_equal;
use crate::{HalfEdgeCursor, IndexState, ScanCursor, Snapshot};

impl Snapshot {
    /// Checks that both half-edges of every edge exist and no others, that ids and indexes find what is there and nothing
    /// else, and that counts agree. Reads everything.
    pub fn check_invariants(&self) -> Result<(), String> {
        let vertices = self.check_vertices()?;
        let half_edges = self.check_adjacency(&vertices)?;
        self.check_edges(half_edges)?;
        self.root.check_order()?;
        self.check_label_index(&vertices)?;
        self.check_property_indexes()
    }

    /// All vertices, after checking rows, ids and scan.
    fn check_vertices(&self) -> Result<Vec<VertexId>, String> {
        let root = &self.root;
        let mut vertices = Vec::new();
        self.scan_vertices(&mut ScanCursor::default(), usize::MAX, &mut vertices);
        if !vertices.is_sorted_by(|a, b| a < b) {
            return Err("a scan of vertices is not in ascending order".to_string());
        }
        let mut rows = 0;
        root.visit_vertices(&mut |_, _| rows += 1);
        if (rows, root.vertex_count) != (vertices.len(), vertices.len() as u64) {
            let (scanned, counted) = (vertices.len(), root.vertex_count);
            return Err(format!("{rows} vertex rows, {scanned} scanned, {counted} counted"));
        }
        root.check_id_counts()?;
        let mut properties = std::collections::BTreeSet::new();
        for &vertex in &vertices {
            let row = root.vertex(vertex).ok_or("a scanned vertex has no row")?;
            if vertex.0 >= root.next_ids.vertex {
                return Err(format!("{vertex:?} is not below the next number {}", root.next_ids.vertex));
            }
            if root.vertex_with_id(&row.id()) != Some(vertex) {
                return Err(format!("the id index does not find {vertex:?} by its id"));
            }
            for entry in row.entries().iter() {
                if entry.id() >= root.next_ids.property || !properties.insert(entry.id()) {
                    return Err(format!("vertex property id {} is used twice or too large", entry.id()));
                }
            }
        }
        Ok(vertices)
    }

    /// The number of half-edges, after checking that each belongs to an edge.
    fn check_adjacency(&self, vertices: &[VertexId]) -> Result<u64, String> {
        let mut count = 0;
        for &vertex in vertices {
            for side in [Side::Out, Side::In] {
                let adjacency = self.root.side(vertex, side);
                adjacency.check_invariants().map_err(|error| format!("adjacency of {vertex:?}: {error}"))?;
                count += adjacency.degree();
                let mut wrong = None;
                let _ = adjacency.visit_from(LabelId(0), EdgeId(0), false, &mut |label, half_edge| {
                    let (out, in_) = match side {
                        Side::Out => (vertex, half_edge.neighbour),
                        Side::In => (half_edge.neighbour, vertex),
                    };
                    if self.edge(half_edge.edge) == Some(crate::EdgeRecord { label, out, in_ }) {
                        return ControlFlow::Continue(());
                    }
                    wrong = Some(half_edge);
                    ControlFlow::Break(())
                });
                if let Some(half_edge) = wrong {
                    return Err(format!("{vertex:?} has {half_edge:?}, which is no half-edge of an edge"));
                }
            }
            let mut read = Vec::new();
            self.half_edges(vertex, Direction::Both, &[], &mut HalfEdgeCursor::default(), usize::MAX, &mut read);
            if read.len() as u64 != self.degree(vertex, Direction::Both, &[]) {
                return Err(format!("{vertex:?} has another degree than half-edges"));
            }
        }
        Ok(count)
    }

    fn check_edges(&self, half_edges: u64) -> Result<(), String> {
        let root = &self.root;
        let mut edges = Vec::new();
        self.scan_edges(&mut ScanCursor::default(), usize::MAX, &mut edges);
        if !edges.is_sorted_by(|a, b| a < b) {
            return Err("a scan of edges is not in ascending order".to_string());
        }
        if edges.len() as u64 != root.edge_count || half_edges != 2 * root.edge_count {
            let (scanned, counted) = (edges.len(), root.edge_count);
            return Err(format!("{scanned} edges scanned, {counted} counted, {half_edges} half-edges"));
        }
        let mut by_label: BTreeMap<LabelId, u64> = BTreeMap::new();
        let mut ends = BTreeMap::new();
        for edge in edges {
            let record = self.edge(edge).ok_or("a scanned edge has no row")?;
            for (direction, vertex) in [(Direction::Out, record.out), (Direction::In, record.in_)] {
                let known = ends.entry((direction.name(), record.label));
                let known = known.or_insert_with(|| self.labels_of_ends(direction, &[record.label]));
                let own = self.vertex_label(vertex);
                if known.as_ref().is_some_and(|known| own.is_none_or(|own| !known.contains(&own))) {
                    return Err(format!("the label of an end of {edge:?} is not among those of such edges"));
                }
            }
            *by_label.entry(record.label).or_default() += 1;
            root.vertex(record.out).ok_or_else(|| format!("the source of {edge:?} is missing"))?;
            root.vertex(record.in_).ok_or_else(|| format!("the target of {edge:?} is missing"))?;
            let out = root.side(record.out, Side::Out);
            let in_ = root.side(record.in_, Side::In);
            if !out.contains(record.label, edge, record.in_) || !in_.contains(record.label, edge, record.out) {
                return Err(format!("a half-edge of {edge:?} is missing"));
            }
            let id = self.edge_id(edge).ok_or("an edge has no id")?;
            if root.edge_with_id(&id) != Some(edge) || !ids_equal(&id, &id) {
                return Err(format!("the id index does not find {edge:?} by its id"));
            }
            if root.layout.edge_sequence(edge) >= root.next_ids.edge_sequence {
                return Err(format!("{edge:?} is not below the next sequence {}", root.next_ids.edge_sequence));
            }
        }
        for label in 0..root.words.labels.names().len() as u32 {
            let expected = by_label.get(&LabelId(label)).copied().unwrap_or(0);
            if root.edge_count_with_label(LabelId(label)) != expected {
                return Err(format!("wrong edge count for label {label}"));
            }
        }
        Ok(())
    }

    fn check_label_index(&self, vertices: &[VertexId]) -> Result<(), String> {
        for label in (0..self.root.words.labels.names().len() as u32).map(LabelId) {
            let expected: Vec<VertexId> =
                vertices.iter().copied().filter(|vertex| self.vertex_label(*vertex) == Some(label)).collect();
            let mut found = Vec::new();
            self.scan_vertices_with_label(label, &mut ScanCursor::default(), usize::MAX, &mut found);
            if found != expected || self.vertex_count_with_label(label) != expected.len() as u64 {
                return Err(format!("the label index or count of {:?} is wrong", self.label_name(label)));
            }
        }
        Ok(())
    }

    /// Checks that complete indexes have the entries that follow from the rows, and that those of unfinished ones do.
    fn check_property_indexes(&self) -> Result<(), String> {
        for index in self.root.indexes() {
            let name = &index.shape.name;
            let wrong = || format!("the index '{name}' does not agree with the rows");
            match (&index.entries, self.root.index_content(&index.shape)) {
                (Entries::Hashed(found), Entries::Hashed(expected)) => {
                    found.check_invariants()?;
                    compare_entries(found, &expected, index.state).ok_or_else(wrong)?;
                }
                (Entries::Ordered(found), Entries::Ordered(expected)) => {
                    found.check_invariants()?;
                    compare_entries(found, &expected, index.state).ok_or_else(wrong)?;
                }
                _ => return Err(format!("the index '{name}' is of another kind than it says")),
            }
            self.root.check_run(index).map_err(|what| format!("the file of the index '{name}': {what}"))?;
            if index.state != IndexState::Ready || !index.shape.unique {
                continue;
            }
            let (elements, _) = self.root.elements_from(index.shape.elements, index.shape.label, 0, usize::MAX);
            if let Some(element) = elements.iter().find(|element| self.root.collision_of(index, **element).is_some()) {
                return Err(format!("the unique index '{name}' has the values of element {element} twice"));
            }
        }
        for declared in self.root.schema.types.iter().filter(|own| own.state == TypeState::Active) {
            let elements = self.root.elements_from(declared.definition.elements, Some(declared.label), 0, usize::MAX).0;
            for element in elements {
                self.root.check_element(declared, element).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

/// Whether an index has the entries it must have: all, and no others; of one being built no others.
fn compare_entries<T: Entry>(found: &EntrySet<T>, expected: &EntrySet<T>, state: IndexState) -> Option<()> {
    let mut is_right = state == IndexState::Building || found.len() == expected.len();
    found.visit_all(|entry| {
        is_right &= expected.contains(entry);
        is_right
    });
    is_right.then_some(())
}
