//! Half-edges in the order of the sort keys that their type declares.
//!
//! They are not laid out in that order yet: a read collects the half-edges of the label and sorts them.

use std::cmp::Ordering;

use ficus_model::compare::{compare, order};
use ficus_model::{Direction, InternalIds, KeyId, LabelId, Value, VertexId};

use crate::index::ElementKind;
use crate::{HalfEdge, HalfEdgeCursor, Snapshot};

impl Snapshot {
    /// The half-edges of a vertex with a label whose first sort key lies from `low` to `high` (an end that is not there is
    /// open), in the order of the sort keys of their edge type, at most `max`. Edges without a sort key come last; in a
    /// bounded range they do not come at all. Without declared sort keys the order is that of insertion.
    ///
    /// Cost: linear in the half-edges with the label.
    pub fn half_edges_sorted(
        &self,
        vertex: VertexId,
        direction: Direction,
        label: LabelId,
        (low, high): (Option<&Value>, Option<&Value>),
        max: usize,
    ) -> Vec<HalfEdge> {
        let mut half_edges = Vec::new();
        self.half_edges(vertex, direction, &[label], &mut HalfEdgeCursor::default(), usize::MAX, &mut half_edges);
        let declared = self.root.schema.find(ElementKind::Edge, label);
        let keys: Vec<(Option<KeyId>, bool)> = declared
            .iter()
            .flat_map(|declared| &declared.definition.sort_keys)
            .map(|own| (self.key_id(&own.key), own.descending))
            .collect();
        let values = |half_edge: &HalfEdge| -> Vec<Option<Value>> {
            keys.iter().map(|(key, _)| self.edge_value(half_edge.edge, (*key)?)).collect()
        };
        let is_inside = |value: Option<&Value>| {
            let reaches = |bound: Option<&Value>, beyond: Ordering| match (bound, value) {
                (None, _) => true,
                (Some(bound), Some(value)) => compare(value, bound, &InternalIds).is_some_and(|own| own != beyond),
                (Some(_), None) => false,
            };
            reaches(low, Ordering::Less) && reaches(high, Ordering::Greater)
        };
        let mut sorted: Vec<(Vec<Option<Value>>, HalfEdge)> = half_edges
            .into_iter()
            .map(|half_edge| (values(&half_edge), half_edge))
            .filter(|(values, _)| is_inside(values.first().and_then(Option::as_ref)))
            .collect();
        sorted.sort_by(|(a, _), (b, _)| {
            let pairs = a.iter().zip(b).zip(&keys);
            pairs.fold(Ordering::Equal, |so_far, ((a, b), (_, descending))| {
                so_far.then_with(|| match (a, b) {
                    (Some(a), Some(b)) if *descending => order(b, a, &InternalIds),
                    (Some(a), Some(b)) => order(a, b, &InternalIds),
                    (a, b) => b.is_some().cmp(&a.is_some()),
                })
            })
        });
        sorted.truncate(max);
        sorted.into_iter().map(|(_, half_edge)| half_edge).collect()
    }
}
