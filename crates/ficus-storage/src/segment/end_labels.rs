//! Labels of the vertices that have half-edges of a label.
//!
//! Vertices of a label mostly have the same kinds of edges, and edges of a label mostly leave, and come to, vertices of one label. A segment does not
//! change, so what was found once stays right. To find it is to look at all its vertices, some twenty nanoseconds each: who asks looks at a bounded number, and the next goes on from there.

use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};

use ficus_model::LabelId;

use super::{Segment, Side};
use crate::sync::{Mutex, MutexGuard};

/// What was asked for so far.
#[derive(Debug, Default)]
pub(super) struct EndLabels(Mutex<Vec<Search>>);

/// The labels of the vertices that have certain half-edges, as far as is known.
#[derive(Clone, Debug)]
struct Search {
    half_edges: (Side, LabelId),
    labels: Arc<[LabelId]>,
    /// The slot to go on at.
    next: u64,
    /// Half-edges at most that were not met yet; with none, all labels are known.
    left: u64,
}

impl EndLabels {
    fn known(&self) -> MutexGuard<'_, Vec<Search>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Segment {
    /// The labels of the vertices that have half-edges with a label; `None` if that is not known after a look at `budget` more vertices, which it is
    /// reduced by.
    pub(crate) fn end_labels(&self, side: Side, label: LabelId, budget: &mut u64) -> Option<Arc<[LabelId]>> {
        let half_edges = (side, label);
        let known = self.end_labels.known().iter().find(|own| own.half_edges == half_edges).cloned();
        let mut search = known.unwrap_or_else(|| {
            let of_label = self.edges_of_label.iter().find(|(own, _)| *own == label);
            // An edge comes to a vertex of any tablet.
            let left = match side {
                Side::Out => of_label.map_or(0, |(_, count)| *count),
                Side::In => self.in_.len(),
            };
            Search { half_edges, labels: Arc::new([]), next: 0, left }
        });
        if search.left > 0 {
            self.go_on(&mut search, budget);
            let mut known = self.end_labels.known();
            match known.iter_mut().find(|own| own.half_edges == half_edges) {
                // Somebody else may have come further meanwhile.
                Some(own) if own.left == 0 || own.next > search.next => search = own.clone(),
                Some(own) => *own = search.clone(),
                None => known.push(search.clone()),
            }
        }
        (search.left == 0).then_some(search.labels)
    }

    fn go_on(&self, search: &mut Search, budget: &mut u64) {
        let (side, label) = search.half_edges;
        let mut labels = search.labels.to_vec();
        let ended = self.vertices.visit_from(search.next, &mut |slot| {
            if search.left == 0 || *budget == 0 {
                return ControlFlow::Break(());
            }
            *budget -= 1;
            search.next = slot + 1;
            let count = self.half_edges(slot, side).with_label(label).len();
            if count > 0 {
                let own = self.label(slot);
                if !labels.contains(&own) {
                    labels.push(own);
                }
                search.left = search.left.saturating_sub(count as u64);
            }
            ControlFlow::Continue(())
        });
        if ended.is_continue() {
            search.left = 0;
        }
        search.labels = labels.into();
    }
}
