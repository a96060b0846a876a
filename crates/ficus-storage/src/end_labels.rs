//! Labels of the vertices that have edges of some labels.

use ficus_model::{Direction, LabelId, VertexId};

use crate::Snapshot;
use crate::snapshot::sides_of;

/// Changed vertices that are looked at; where there are more, nothing is told.
const CHANGED_MAX: usize = 1 << 12;

/// Vertices of segments that a question looks at, two or three milliseconds.
const LOOKED_AT_MAX: u64 = 1 << 17;

impl Snapshot {
    /// Labels such that every vertex with an edge of one of `labels` in a direction has one of them, and maybe more. `None` if that would take long:
    /// much has changed since the last consolidation, there was none, few have asked since, or reads are recorded.
    pub fn labels_of_ends(&self, direction: Direction, labels: &[LabelId]) -> Option<Vec<LabelId>> {
        if self.reads.is_recording() {
            return None;
        }
        let (mut found, mut changed, mut budget) = (Vec::new(), 0, LOOKED_AT_MAX);
        for (number, tablet) in self.root.tablets().iter().enumerate() {
            for side in sides_of(direction) {
                for label in labels {
                    let of_base = tablet.base_end_labels(side, *label, &mut budget)?;
                    let of_changed = tablet.changed_with(side, *label).map(|slot| {
                        let vertex: VertexId = self.root.layout.vertex_id(slot, number);
                        self.root.vertex(vertex).map(|row| row.label())
                    });
                    let within = of_changed.take(CHANGED_MAX + 1 - changed).inspect(|_| changed += 1).flatten();
                    for own in of_base.iter().copied().chain(within) {
                        if !found.contains(&own) {
                            found.push(own);
                        }
                    }
                    if changed > CHANGED_MAX {
                        return None;
                    }
                }
            }
        }
        Some(found)
    }
}
