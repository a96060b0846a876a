//! The edges between two known vertices.
//!
//! Each of them is in a list of both ends, and one of the two lists may be short: whoever asks whether a person follows a vertex with
//! millions of edges looks at what the person follows. Half-edges lie in the order of label and edge in either list, so both give the same
//! edges in the same order, and it is open to whoever reads which one it is. Where both are long, neighbours are compared in slices.
//!
//! What is recorded as read are the edges between the two and not the list: an edge from one of them to somebody else changes nothing here.

use std::ops::ControlFlow;

use ficus_model::{Direction, EdgeId, LabelId, VertexId};

use crate::segment::{Neighbours, Side};
use crate::side_view::SideView;
use crate::snapshot::different;
use crate::{HalfEdge, Snapshot};

/// Half-edges that are looked at in one go by those who want all that is found.
const LOOKS: usize = 1 << 16;

/// Neighbours that are compared without a branch between.
const COMPARED_AT_ONCE: usize = 64;

/// Where a read of the half-edges between two vertices goes on; start with `BetweenCursor::default()` and pass it back unchanged, together
/// with the same vertices, direction and labels.
#[derive(Clone, Copy, Debug, Default)]
pub struct BetweenCursor {
    /// Whether it is at the in half-edges; those going out come first.
    is_at_in: bool,
    /// Whether the list of the other vertex is read, once that is decided for this direction.
    from_other: Option<bool>,
    /// Position in the caller's list of labels, or the label itself when all are read.
    label: u32,
    /// The smallest edge id not yet considered in that label.
    edge: u64,
}

impl Snapshot {
    /// Appends the half-edges of a vertex that lead to `other`, in the order of [`Snapshot::half_edges`]; labels and direction mean what they
    /// mean there. Reads the list of that end that is shorter and looks at about `looks` half-edges of it; true if there may be more.
    #[expect(clippy::too_many_arguments, reason = "those of `half_edges`, and the other end")]
    pub fn half_edges_to(
        &self,
        vertex: VertexId,
        direction: Direction,
        labels: &[LabelId],
        other: VertexId,
        cursor: &mut BetweenCursor,
        looks: usize,
        out: &mut Vec<HalfEdge>,
    ) -> bool {
        let (leaves, arrives) = (direction != Direction::In, direction != Direction::Out);
        self.reads.record(|reads| {
            if leaves {
                reads.edges_between(vertex, other);
            }
            if arrives {
                reads.edges_between(other, vertex);
            }
        });
        let mut looks = looks.max(1);
        let found = &mut |edge| out.push(HalfEdge { edge, neighbour: other });
        if leaves && !cursor.is_at_in {
            if self.read_between((vertex, Side::Out), labels, other, cursor, &mut looks, found) {
                return true;
            }
            *cursor = BetweenCursor { is_at_in: true, ..BetweenCursor::default() };
        }
        cursor.is_at_in = true;
        if !arrives {
            return false;
        }
        // What is left of the looks may be nothing.
        looks == 0 || self.read_between((vertex, Side::In), labels, other, cursor, &mut looks, found)
    }

    /// Reads one side of a vertex; true, with the cursor at the rest, if there may be more.
    fn read_between(
        &self,
        (vertex, side): (VertexId, Side),
        labels: &[LabelId],
        other: VertexId,
        cursor: &mut BetweenCursor,
        looks: &mut usize,
        found: &mut impl FnMut(EdgeId),
    ) -> bool {
        let opposite = match side {
            Side::Out => Side::In,
            Side::In => Side::Out,
        };
        let length = |list: &SideView<'_>| match labels {
            [] => list.degree(),
            labels => different(labels).map(|(_, label)| list.degree_with_label(label)).sum(),
        };
        let own = self.root.side(vertex, side);
        let from_other = *cursor.from_other.get_or_insert_with(|| match length(&own) {
            0 => false,
            own => length(&self.root.side(other, opposite)) < own,
        });
        let (list, wanted) = match from_other {
            true => (self.root.side(other, opposite), vertex),
            false => (own, other),
        };
        if labels.is_empty() {
            let from = (LabelId(cursor.label), EdgeId(cursor.edge));
            let next = list.visit_to(wanted, from, false, looks, found);
            if let Some((label, edge)) = next {
                (cursor.label, cursor.edge) = (label.0, edge.0);
            }
            return next.is_some();
        }
        let first = cursor.label as usize;
        for (position, label) in different(labels).skip_while(|(position, _)| *position < first) {
            if cursor.label as usize != position {
                (cursor.label, cursor.edge) = (position as u32, 0);
            }
            if *looks == 0 {
                return true;
            }
            if let Some((_, edge)) = list.visit_to(wanted, (label, EdgeId(cursor.edge)), true, looks, found) {
                cursor.edge = edge.0;
                return true;
            }
        }
        false
    }

    /// The first edge from `out` to `in_`, of this label if given.
    pub fn edge_between(&self, out: VertexId, in_: VertexId, label: Option<LabelId>) -> Option<EdgeId> {
        let (mut cursor, mut found, mut more) = (BetweenCursor::default(), Vec::new(), true);
        while more && found.is_empty() {
            more = self.half_edges_to(out, Direction::Out, label.as_slice(), in_, &mut cursor, LOOKS, &mut found);
        }
        found.first().map(|half_edge| half_edge.edge)
    }

    /// The edges from `out` to `in_`, of this label if given.
    pub fn edges_between(&self, out: VertexId, in_: VertexId, label: Option<LabelId>) -> Vec<EdgeId> {
        let (mut cursor, mut found) = (BetweenCursor::default(), Vec::new());
        while self.half_edges_to(out, Direction::Out, label.as_slice(), in_, &mut cursor, LOOKS, &mut found) {}
        found.into_iter().map(|half_edge| half_edge.edge).collect()
    }
}

impl SideView<'_> {
    /// Hands out the edges of those half-edges at or after `from` that lead to a vertex, in order, and takes what it looks at from `looks`.
    /// Where the rest begins if there may be one. With `only_label`, ends after that label.
    fn visit_to(
        &self,
        wanted: VertexId,
        from: (LabelId, EdgeId),
        only_label: bool,
        looks: &mut usize,
        found: &mut impl FnMut(EdgeId),
    ) -> Option<(LabelId, EdgeId)> {
        let (label, edge) = from;
        let (mut hits, mut next, mut seen) = (Vec::new(), None, 0);
        let _ = self.added().visit_from(label, edge, only_label, &mut |label, half_edge| {
            if seen == *looks {
                next = Some((label, half_edge.edge));
                return ControlFlow::Break(());
            }
            seen += 1;
            if half_edge.neighbour == wanted {
                hits.push((label, half_edge.edge));
            }
            ControlFlow::Continue(())
        });
        // Of the base, what lies before that.
        let end = match next {
            Some((label, edge)) => self.base_place(label, edge),
            None => usize::MAX,
        };
        let end = end.min(self.places(only_label.then_some(label)).end);
        let mut places = self.base_place(label, edge).min(end)..end;
        if places.len() > *looks {
            places.end = places.start + *looks;
            let (label, half_edge) = self.base_entry(places.end);
            next = Some((label, half_edge.edge));
            hits.retain(|own| *own < (label, half_edge.edge));
        }
        *looks = looks.saturating_sub(seen.max(places.len()));
        let in_order = hits.len();
        self.visit_base_left(places, &mut |start, neighbours| {
            places_of(neighbours, wanted, &mut |place| {
                let (label, half_edge) = self.base_entry(start + place);
                hits.push((label, half_edge.edge));
            });
        });
        if in_order > 0 && hits.len() > in_order {
            hits.sort_unstable();
        }
        hits.into_iter().for_each(|(_, edge)| found(edge));
        next
    }
}

/// Hands out where a vertex is among neighbours.
fn places_of(neighbours: Neighbours<'_>, wanted: VertexId, visit: &mut impl FnMut(usize)) {
    match neighbours {
        Neighbours::U32(neighbours) => {
            if let Ok(wanted) = u32::try_from(wanted.0) {
                places_of_number(neighbours, wanted, visit);
            }
        }
        Neighbours::U64(neighbours) => places_of_number(neighbours, wanted.0, visit),
    }
}

fn places_of_number<N: Copy + PartialEq>(numbers: &[N], wanted: N, visit: &mut impl FnMut(usize)) {
    for (chunk, numbers) in numbers.chunks(COMPARED_AT_ONCE).enumerate() {
        if numbers.iter().fold(false, |any, own| any | (*own == wanted)) {
            let places = numbers.iter().enumerate().filter(|(_, own)| **own == wanted);
            places.for_each(|(place, _)| visit(chunk * COMPARED_AT_ONCE + place));
        }
    }
}

#[cfg(test)]
mod tests;
