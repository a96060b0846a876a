//! One partition of a graph: pages of vertex rows and pages of edge rows.
//!
//! A vertex lives in the tablet that the low bits of its id name, in the slot that the high bits name. An edge lives in the
//! tablet of its out vertex: the low bits of its id name the tablet, the high bits are its *sequence*, unique in the graph,
//! so that ascending edge ids are insertion order. A page covers a range of sequences; of those, a bitmap tells which
//! belong to this tablet, and the rank of a bit is the position of its row.

use std::sync::Arc;

use ficus_model::{EdgeId, LabelId, Value, VertexId};

use crate::EdgeRecord;
use crate::adjacency::{Adjacency, ID_BITS};
use crate::page_map::PageMap;
use crate::property_row::{EdgeProperties, PropertyRow};
use crate::value_key::id_integer;

/// Vertices per page: a commit copies this many rows (88 bytes and four counters each) for every vertex it touches.
const VERTEX_PAGE_BITS: u32 = 4;

/// The largest number of sequences an edge page covers, as a power of two.
const EDGE_PAGE_BITS_LIMIT: u32 = 10;
const EDGE_PAGE_WORDS: usize = (1 << EDGE_PAGE_BITS_LIMIT) / 64;

/// A vertex with all that belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct VertexRow {
    /// The user id.
    pub(crate) id: Value,
    /// The label.
    pub(crate) label: LabelId,
    /// The properties.
    pub(crate) properties: PropertyRow,
    /// Half-edges at the source.
    pub(crate) out: Adjacency,
    /// Half-edges at the target.
    pub(crate) in_: Adjacency,
}

/// Rows of vertices with neighbouring slots.
pub(crate) type VertexPage = [Option<VertexRow>; 1 << VERTEX_PAGE_BITS];

fn empty_vertex_page() -> VertexPage {
    std::array::from_fn(|_| None)
}

/// An edge without its id and properties, in 16 bytes.
#[derive(Clone, Copy, Debug)]
struct PackedEdge {
    out_low: u32,
    in_low: u32,
    label: LabelId,
    out_high: u16,
    in_high: u16,
}

const _: () = assert!(size_of::<PackedEdge>() == 16);

impl PackedEdge {
    fn new(record: EdgeRecord) -> PackedEdge {
        debug_assert!(record.out.0 >> ID_BITS == 0 && record.in_.0 >> ID_BITS == 0);
        PackedEdge {
            out_low: record.out.0 as u32,
            in_low: record.in_.0 as u32,
            label: record.label,
            out_high: (record.out.0 >> 32) as u16,
            in_high: (record.in_.0 >> 32) as u16,
        }
    }

    fn unpack(self) -> EdgeRecord {
        EdgeRecord {
            label: self.label,
            out: VertexId(u64::from(self.out_high) << 32 | u64::from(self.out_low)),
            in_: VertexId(u64::from(self.in_high) << 32 | u64::from(self.in_low)),
        }
    }
}

/// User ids of the edges of a page.
#[derive(Clone, Debug)]
enum IdColumn {
    /// All are `Long`, as the counter gives them.
    Longs(Vec<i64>),
    /// Anything.
    Values(Vec<Value>),
}

impl IdColumn {
    fn get(&self, position: usize) -> Value {
        match self {
            IdColumn::Longs(ids) => Value::Long(ids[position]),
            IdColumn::Values(ids) => ids[position].clone(),
        }
    }

    fn insert(&mut self, position: usize, id: Value) {
        if let (IdColumn::Longs(ids), Value::Long(id)) = (&mut *self, &id) {
            ids.insert(position, *id);
            return;
        }
        if let IdColumn::Longs(ids) = self {
            *self = IdColumn::Values(ids.iter().copied().map(Value::Long).collect());
        }
        if let IdColumn::Values(ids) = self {
            ids.insert(position, id);
        }
    }

    fn remove(&mut self, position: usize) {
        match self {
            IdColumn::Longs(ids) => {
                ids.remove(position);
            }
            IdColumn::Values(ids) => {
                ids.remove(position);
            }
        }
    }
}

/// Rows of edges with neighbouring sequences whose out vertex is in this tablet.
#[derive(Clone, Debug)]
pub(crate) struct EdgePage {
    present: [u64; EDGE_PAGE_WORDS],
    edges: Vec<PackedEdge>,
    ids: IdColumn,
    /// Empty as long as no edge of the page has a property; else one entry per edge.
    properties: Vec<EdgeProperties>,
}

impl EdgePage {
    fn new() -> EdgePage {
        EdgePage {
            present: [0; EDGE_PAGE_WORDS],
            edges: Vec::new(),
            ids: IdColumn::Longs(Vec::new()),
            properties: Vec::new(),
        }
    }

    fn contains(&self, offset: usize) -> bool {
        self.present[offset / 64] >> (offset % 64) & 1 == 1
    }

    /// Number of rows before this offset.
    fn rank(&self, offset: usize) -> usize {
        let whole: u32 = self.present[..offset / 64].iter().map(|word| word.count_ones()).sum();
        let below = self.present[offset / 64] & ((1u64 << (offset % 64)) - 1);
        (whole + below.count_ones()) as usize
    }
}

/// How ids of one graph are cut into tablet, page and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdLayout {
    /// Base-2 logarithm of the number of tablets.
    pub(crate) tablet_bits: u8,
}

impl IdLayout {
    /// Number of tablets.
    pub(crate) fn tablets(self) -> usize {
        1 << self.tablet_bits
    }

    /// The tablet of a vertex.
    pub(crate) fn vertex_tablet(self, vertex: VertexId) -> usize {
        vertex.0 as usize & (self.tablets() - 1)
    }

    /// The vertex in a slot of a tablet.
    pub(crate) fn vertex_id(self, slot: u64, tablet: usize) -> VertexId {
        VertexId(slot << self.tablet_bits | tablet as u64)
    }

    /// The tablet of an edge.
    pub(crate) fn edge_tablet(self, edge: EdgeId) -> usize {
        edge.0 as usize & (self.tablets() - 1)
    }

    /// The id of the edge with this sequence whose source is `out`.
    pub(crate) fn edge_id(self, sequence: u64, out: VertexId) -> EdgeId {
        EdgeId(sequence << self.tablet_bits | self.vertex_tablet(out) as u64)
    }

    /// The sequence in an edge id.
    pub(crate) fn edge_sequence(self, edge: EdgeId) -> u64 {
        edge.0 >> self.tablet_bits
    }

    fn vertex_place(self, vertex: VertexId) -> (u64, usize) {
        let slot = vertex.0 >> self.tablet_bits;
        (slot >> VERTEX_PAGE_BITS, slot as usize & ((1 << VERTEX_PAGE_BITS) - 1))
    }

    /// A page has about 64 rows when sources are spread evenly over the tablets.
    pub(crate) fn edge_page_bits(self) -> u32 {
        (6 + u32::from(self.tablet_bits)).min(EDGE_PAGE_BITS_LIMIT)
    }

    fn edge_place(self, edge: EdgeId) -> (u64, usize) {
        let sequence = self.edge_sequence(edge);
        (sequence >> self.edge_page_bits(), sequence as usize & ((1 << self.edge_page_bits()) - 1))
    }
}

/// One partition of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tablet {
    vertices: PageMap<VertexPage>,
    edges: PageMap<EdgePage>,
}

impl Tablet {
    /// The row of a vertex.
    pub(crate) fn vertex(&self, layout: IdLayout, vertex: VertexId) -> Option<&VertexRow> {
        let (page, position) = layout.vertex_place(vertex);
        self.vertices.page(page)?[position].as_ref()
    }

    /// The row of a vertex, to be changed.
    pub(crate) fn vertex_mut(&mut self, layout: IdLayout, vertex: VertexId) -> Option<&mut VertexRow> {
        let (page, position) = layout.vertex_place(vertex);
        self.vertices.page_mut(page)?[position].as_mut()
    }

    /// Puts a row in the slot of a vertex.
    pub(crate) fn insert_vertex(&mut self, layout: IdLayout, vertex: VertexId, row: VertexRow) {
        let (page, position) = layout.vertex_place(vertex);
        self.vertices.page_mut_or(page, empty_vertex_page)[position] = Some(row);
    }

    /// Empties the slot of a vertex.
    pub(crate) fn remove_vertex(&mut self, layout: IdLayout, vertex: VertexId) -> Option<VertexRow> {
        let (page, position) = layout.vertex_place(vertex);
        self.vertices.page_mut(page)?[position].take()
    }

    /// Label and ends of an edge.
    pub(crate) fn edge(&self, layout: IdLayout, edge: EdgeId) -> Option<EdgeRecord> {
        let (page, position) = self.edge_position(layout, edge)?;
        Some(page.edges[position].unpack())
    }

    /// The user id of an edge.
    pub(crate) fn edge_user_id(&self, layout: IdLayout, edge: EdgeId) -> Option<Value> {
        let (page, position) = self.edge_position(layout, edge)?;
        Some(page.ids.get(position))
    }

    /// The user id of an edge, if it is the integer `wanted` or equal to it.
    pub(crate) fn edge_has_id(&self, layout: IdLayout, edge: EdgeId, wanted: &Value) -> bool {
        let Some((page, position)) = self.edge_position(layout, edge) else { return false };
        match &page.ids {
            IdColumn::Longs(ids) => id_integer(wanted) == Some(ids[position]),
            IdColumn::Values(ids) => crate::value_key::ids_equal(&ids[position], wanted),
        }
    }

    /// The properties of an edge.
    pub(crate) fn edge_properties(&self, layout: IdLayout, edge: EdgeId) -> Option<&EdgeProperties> {
        let (page, position) = self.edge_position(layout, edge)?;
        Some(page.properties.get(position).unwrap_or(&None))
    }

    /// Adds a row for an edge that has none.
    pub(crate) fn insert_edge(
        &mut self,
        layout: IdLayout,
        edge: EdgeId,
        record: EdgeRecord,
        id: Value,
        properties: EdgeProperties,
    ) {
        let (number, offset) = layout.edge_place(edge);
        let page = self.edges.page_mut_or(number, EdgePage::new);
        assert!(!page.contains(offset), "an edge id is used once");
        let position = page.rank(offset);
        page.present[offset / 64] |= 1 << (offset % 64);
        page.edges.insert(position, PackedEdge::new(record));
        page.ids.insert(position, id);
        if !page.properties.is_empty() || properties.is_some() {
            page.properties.resize(page.edges.len() - 1, None);
            page.properties.insert(position, properties);
        }
    }

    /// Replaces the properties of an edge.
    pub(crate) fn set_edge_properties(&mut self, layout: IdLayout, edge: EdgeId, properties: EdgeProperties) {
        let (number, offset) = layout.edge_place(edge);
        let Some(page) = self.edges.page_mut(number).filter(|page| page.contains(offset)) else { return };
        let position = page.rank(offset);
        if page.properties.is_empty() {
            page.properties.resize(page.edges.len(), None);
        }
        page.properties[position] = properties;
    }

    /// Removes the row of an edge.
    pub(crate) fn remove_edge(&mut self, layout: IdLayout, edge: EdgeId) {
        let (number, offset) = layout.edge_place(edge);
        let Some(page) = self.edges.page_mut(number).filter(|page| page.contains(offset)) else { return };
        let position = page.rank(offset);
        page.present[offset / 64] &= !(1 << (offset % 64));
        page.edges.remove(position);
        page.ids.remove(position);
        if !page.properties.is_empty() {
            page.properties.remove(position);
        }
    }

    fn edge_position(&self, layout: IdLayout, edge: EdgeId) -> Option<(&EdgePage, usize)> {
        let (number, offset) = layout.edge_place(edge);
        let page = self.edges.page(number).filter(|page| page.contains(offset))?;
        Some((page, page.rank(offset)))
    }

    /// The first page of vertices at or after the page of slot `slot`: its first slot and its rows.
    pub(crate) fn vertex_page_from(&self, slot: u64) -> Option<(u64, &VertexPage)> {
        let (number, page) = self.vertices.next_page(slot >> VERTEX_PAGE_BITS)?;
        Some((number << VERTEX_PAGE_BITS, page))
    }

    /// The number of the first page of edges with at least this number.
    pub(crate) fn next_edge_page(&self, number: u64) -> Option<u64> {
        Some(self.edges.next_page(number)?.0)
    }

    /// Which 64 sequences of an edge page, counted from `word * 64`, have a row here.
    pub(crate) fn edge_word(&self, number: u64, word: usize) -> u64 {
        self.edges.page(number).map_or(0, |page| page.present[word])
    }
}

/// Tablets of a graph without elements.
pub(crate) fn empty_tablets(layout: IdLayout) -> Vec<Arc<Tablet>> {
    (0..layout.tablets()).map(|_| Arc::new(Tablet::default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edge_rows_are_found_whatever_the_order_they_came_in() {
        for tablet_bits in [0u8, 1, 4, 7] {
            let layout = IdLayout { tablet_bits };
            let mut tablet = Tablet::default();
            let out = VertexId(1 << tablet_bits);
            let record =
                |sequence: u64| EdgeRecord { label: LabelId(sequence as u32 % 3), out, in_: VertexId(sequence * 7) };
            let sequences: Vec<u64> = (0..5000).map(|n| n * 1237 % 5000).filter(|n| n % 3 != 0).collect();
            for &sequence in &sequences {
                let id = if sequence == 4001 { Value::String("x".into()) } else { Value::Long(sequence as i64) };
                let properties = (sequence % 1000 == 1).then(|| [(ficus_model::KeyId(1), Value::Int(1))].into());
                tablet.insert_edge(layout, layout.edge_id(sequence, out), record(sequence), id, properties);
            }
            for &sequence in sequences.iter().filter(|sequence| *sequence % 5 == 0) {
                tablet.remove_edge(layout, layout.edge_id(sequence, out));
            }
            for sequence in 0..5000 {
                let edge = layout.edge_id(sequence, out);
                let there = sequence % 3 != 0 && sequence % 5 != 0;
                assert_eq!(tablet.edge(layout, edge), there.then(|| record(sequence)));
                assert_eq!(tablet.edge_has_id(layout, edge, &Value::Int(sequence as i32)), there && sequence != 4001);
                let properties = tablet.edge_properties(layout, edge).is_some_and(|properties| properties.is_some());
                assert_eq!(properties, there && sequence % 1000 == 1);
            }
        }
    }
}
