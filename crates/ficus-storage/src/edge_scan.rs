//! Edges of one label, read from the out half-edges of one vertex after the other.
//!
//! Half-edges are sorted by label, so a vertex that has none of the label costs one look, and edges of other labels cost nothing. The edges come
//! grouped by the vertex that they leave: vertices in insertion order, and the edges of each as well.

use ficus_model::{Direction, EdgeId, LabelId, VertexId};

use crate::tablet::Tablet;
use crate::{HalfEdgeCursor, Snapshot};

/// Vertices looked at in one go: some ten microseconds.
const VERTICES_AT_ONCE: usize = 1 << 12;

/// Where a scan of the edges of a label goes on; start with `EdgeScanCursor::default()` and pass it back unchanged, with the same label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeScanCursor {
    vertex: u64,
    within: HalfEdgeCursor,
    /// Edges that were handed out.
    found: u64,
}

impl Snapshot {
    /// Appends up to `max` edges with this label, and fewer if that takes looking at many vertices; true if there may be more. They come
    /// grouped by the vertex that they leave. In a state that does not change, nothing is looked at behind the last of them.
    pub fn scan_edges_with_label(
        &self,
        label: LabelId,
        cursor: &mut EdgeScanCursor,
        max: usize,
        out: &mut Vec<EdgeId>,
    ) -> bool {
        self.reads.record(|reads| reads.edges_with_label(&self.label_name(label)));
        let root = &self.root;
        let tablets = root.layout.tablets() as u64;
        // Who writes may remove edges that it was given.
        let all = if self.reads.is_recording() { u64::MAX } else { root.edge_count_with_label(label) };
        let (start, end) = (out.len(), out.len().saturating_add(max));
        let mut more = false;
        for _ in 0..VERTICES_AT_ONCE {
            if cursor.found + (out.len() - start) as u64 >= all {
                more = false;
                break;
            }
            if cursor.vertex.is_multiple_of(Tablet::GROUP * tablets) {
                // Where no tablet has vertices, groups of slots are passed over.
                let slot = cursor.vertex / tablets;
                let groups = root.tablets().iter().filter_map(|tablet| tablet.next_vertex_group(slot));
                let Some(first) = groups.min() else {
                    more = false;
                    break;
                };
                if first > slot {
                    (cursor.vertex, cursor.within) = (first * tablets, HalfEdgeCursor::default());
                }
            }
            more = true;
            let left = end - out.len();
            if self.read_incident(VertexId(cursor.vertex), Direction::Out, &[label], &mut cursor.within, left, out) {
                break;
            }
            (cursor.vertex, cursor.within) = (cursor.vertex + 1, HalfEdgeCursor::default());
        }
        cursor.found += (out.len() - start) as u64;
        more
    }
}
