//! Labels of the vertices that have half-edges of a label.
//!
//! Vertices of a label mostly have the same kinds of edges, and edges of a label mostly leave, and come to, vertices of one label. A segment does not
//! change, so what was found once stays right.

use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};

use ficus_model::LabelId;

use super::{Segment, Side};
use crate::sync::Mutex;

/// What was asked for so far.
#[derive(Debug, Default)]
pub(super) struct EndLabels(Mutex<Vec<Known>>);

/// The labels of the vertices that have certain half-edges.
#[derive(Debug)]
struct Known {
    half_edges: (Side, LabelId),
    labels: Arc<[LabelId]>,
}

impl Segment {
    /// The labels of the vertices that have half-edges with a label. The first time all vertices are looked at, some ten nanoseconds each, or as many as
    /// the edges of the label leave.
    pub(crate) fn end_labels(&self, side: Side, label: LabelId) -> Arc<[LabelId]> {
        let known = || self.end_labels.0.lock().unwrap_or_else(PoisonError::into_inner);
        let half_edges = (side, label);
        let found = known().iter().find(|own| own.half_edges == half_edges).map(|own| own.labels.clone());
        found.unwrap_or_else(|| {
            let labels = self.find_end_labels(side, label);
            known().push(Known { half_edges, labels: labels.clone() });
            labels
        })
    }

    fn find_end_labels(&self, side: Side, label: LabelId) -> Arc<[LabelId]> {
        let of_label = self.edges_of_label.iter().find(|(own, _)| *own == label);
        // An edge comes to a vertex of another tablet.
        let mut left = match side {
            Side::Out => of_label.map_or(0, |(_, count)| *count),
            Side::In => self.in_.len(),
        };
        let mut labels = Vec::new();
        let _ = self.vertices.visit_from(0, &mut |slot| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            let count = self.half_edges(slot, side).with_label(label).len();
            if count > 0 {
                let own = self.label(slot);
                if !labels.contains(&own) {
                    labels.push(own);
                }
                left = left.saturating_sub(count as u64);
            }
            ControlFlow::Continue(())
        });
        labels.into()
    }
}
