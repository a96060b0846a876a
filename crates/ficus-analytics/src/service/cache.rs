//! Projections that were made, as long as there is room.

use std::sync::Arc;

use ficus_storage::CommitTs;

use crate::{Projection, ProjectionOptions};

/// A projection is worth making when so many times the edges of the graph were looked at without one: making it visits every
/// half-edge twice and sorts.
const WORTH_FACTOR: u64 = 3;

/// Demands that are remembered; the oldest is forgotten first.
const DEMANDS_LIMIT: usize = 64;

/// Projections by state and options, those used last at the end.
pub(super) struct ProjectionCache {
    limit_bytes: u64,
    entries: Vec<(ProjectionOptions, Arc<Projection>)>,
    demands: Vec<Demand>,
}

/// What was looked at without a projection.
struct Demand {
    commit_ts: CommitTs,
    options: ProjectionOptions,
    edges: u64,
    is_met: bool,
}

impl ProjectionCache {
    pub(super) fn new(limit_bytes: u64) -> ProjectionCache {
        ProjectionCache { limit_bytes, entries: Vec::new(), demands: Vec::new() }
    }

    pub(super) fn get(&mut self, commit_ts: CommitTs, options: &ProjectionOptions) -> Option<Arc<Projection>> {
        let is_it = |(known, projection): &(ProjectionOptions, Arc<Projection>)| {
            known == options && projection.commit_ts() == commit_ts
        };
        let position = self.entries.iter().position(is_it)?;
        // To the end: it was used last.
        let entry = self.entries.remove(position);
        let projection = entry.1.clone();
        self.entries.push(entry);
        Some(projection)
    }

    /// Keeps a projection, and lets go of those not used for longest until all fit.
    pub(super) fn add(&mut self, options: ProjectionOptions, projection: Arc<Projection>) {
        if self.get(projection.commit_ts(), &options).is_none() {
            self.entries.push((options, projection));
        }
        while self.bytes() > self.limit_bytes && self.entries.len() > 1 {
            let (options, gone) = self.entries.remove(0);
            // It can be earned again.
            self.demands.retain(|demand| demand.commit_ts != gone.commit_ts() || demand.options != options);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.entries.iter().map(|(_, projection)| projection.bytes()).sum()
    }

    /// True, once, when a projection of this state would have been worth its cost.
    pub(super) fn note_live_work(
        &mut self,
        commit_ts: CommitTs,
        options: &ProjectionOptions,
        edges: u64,
        edge_count: u64,
    ) -> bool {
        let known = self.demands.iter().position(|demand| demand.commit_ts == commit_ts && demand.options == *options);
        let position = known.unwrap_or_else(|| {
            if self.demands.len() == DEMANDS_LIMIT {
                self.demands.remove(0);
            }
            self.demands.push(Demand { commit_ts, options: options.clone(), edges: 0, is_met: false });
            self.demands.len() - 1
        });
        let demand = &mut self.demands[position];
        demand.edges += edges;
        let is_worth = !demand.is_met && demand.edges > edge_count * WORTH_FACTOR;
        demand.is_met |= is_worth;
        is_worth
    }
}
