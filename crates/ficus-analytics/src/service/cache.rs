//! Projections that were made, as long as there is room.

use std::sync::Arc;

use ficus_storage::{Snapshot, StateKey};

use crate::{Projection, ProjectionOptions};

/// A projection is worth making when so many times the edges of the graph were looked at without one: making it visits every
/// half-edge twice and sorts.
const WORTH_FACTOR: u64 = 3;

/// Demands that are remembered; the oldest is forgotten first.
const DEMANDS_LIMIT: usize = 64;

/// Versions that are kept, besides the limit in bytes; finding one looks at all.
const ENTRIES_LIMIT: usize = 32;

/// Projections by state and options, those used last at the end.
pub(super) struct ProjectionCache {
    limit_bytes: u64,
    entries: Vec<(ProjectionOptions, Arc<Projection>)>,
    demands: Vec<Demand>,
    /// Edges that were looked at without a projection since one was last made. Of all states: beside a writer none of them lasts, but
    /// one that is made serves those that follow.
    looked_at: Vec<(ProjectionOptions, u64)>,
}

/// What was wanted of a state.
struct Demand {
    state: StateKey,
    options: ProjectionOptions,
    is_followed: bool,
    is_met: bool,
}

/// What is worth its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A version of a projection that is there.
    Follow,
    /// A projection from nothing.
    Make,
}

impl ProjectionCache {
    pub(super) fn new(limit_bytes: u64) -> ProjectionCache {
        ProjectionCache { limit_bytes, entries: Vec::new(), demands: Vec::new(), looked_at: Vec::new() }
    }

    /// The projection of a state. With `is_whole`, one that is not [patched](Projection::is_patched).
    pub(super) fn get(
        &mut self,
        snapshot: &Snapshot,
        options: &ProjectionOptions,
        is_whole: bool,
    ) -> Option<Arc<Projection>> {
        let is_it = |(known, projection): &(ProjectionOptions, Arc<Projection>)| {
            snapshot.is_state(projection.state()) && known == options && !(is_whole && projection.is_patched())
        };
        let position = self.entries.iter().rposition(is_it)?;
        // To the end: it was used last.
        let entry = self.entries.remove(position);
        let projection = entry.1.clone();
        self.entries.push(entry);
        projection.follow_from(snapshot);
        Some(projection)
    }

    /// The projection of which a version for this state can be made: of the newest state before it.
    pub(super) fn nearest(&self, snapshot: &Snapshot, options: &ProjectionOptions) -> Option<Arc<Projection>> {
        let fits =
            self.entries.iter().filter(|(known, projection)| known == options && projection.may_follow(snapshot));
        let is_before = |projection: &Projection| projection.commit_ts() <= snapshot.commit_ts();
        let best = fits.max_by_key(|(_, projection)| {
            // Of later states the earliest.
            let ts = projection.commit_ts().0;
            if is_before(projection) { (true, ts) } else { (false, u64::MAX - ts) }
        });
        best.map(|(_, projection)| projection.clone())
    }

    /// Keeps a projection, and lets go of those not used for longest until all fit.
    pub(super) fn add(&mut self, options: ProjectionOptions, projection: Arc<Projection>) {
        let is_same = |(known, other): &(ProjectionOptions, Arc<Projection>)| {
            other.state() == projection.state() && *known == options
        };
        // A whole one stands for a patched one.
        self.entries.retain(|entry| !is_same(entry));
        self.entries.push((options, projection));
        while self.entries.len() > ENTRIES_LIMIT || self.bytes() > self.limit_bytes && self.entries.len() > 1 {
            let (options, gone) = self.entries.remove(0);
            self.demands.retain(|demand| demand.state != *gone.state() || demand.options != options);
        }
    }

    /// Bytes held; what versions share counts once.
    pub(super) fn bytes(&self) -> u64 {
        let each = self.entries.iter().enumerate().map(|(position, (_, projection))| {
            let is_counted = self.entries[..position].iter().any(|(_, other)| projection.is_version_of(other));
            projection.own_bytes() + if is_counted { 0 } else { projection.shared_bytes() }
        });
        each.sum()
    }

    /// What was wanted of a state was not made: it has to be earned again.
    pub(super) fn forget_demand(&mut self, snapshot: &Snapshot, options: &ProjectionOptions) {
        self.demands.retain(|demand| !snapshot.is_state(&demand.state) || demand.options != *options);
    }

    /// What, if anything, would have been worth its cost for this state: each is said once.
    pub(super) fn note_live_work(
        &mut self,
        snapshot: &Snapshot,
        options: &ProjectionOptions,
        edges: u64,
    ) -> Option<Wish> {
        let is_known = |demand: &Demand| snapshot.is_state(&demand.state) && demand.options == *options;
        let known = self.demands.iter().position(is_known);
        let position = known.unwrap_or_else(|| {
            if self.demands.len() == DEMANDS_LIMIT {
                self.demands.remove(0);
            }
            let options = options.clone();
            self.demands.push(Demand { state: snapshot.key(), options, is_followed: false, is_met: false });
            self.demands.len() - 1
        });
        let may_follow = !self.demands[position].is_followed && self.nearest(snapshot, options).is_some();
        let looked_at = self.look(options, edges);
        let is_worth = *looked_at > snapshot.edge_count() * WORTH_FACTOR;
        let demand = &mut self.demands[position];
        if may_follow {
            demand.is_followed = true;
            return Some(Wish::Follow);
        }
        if demand.is_met || !is_worth {
            return None;
        }
        demand.is_met = true;
        *self.look(options, 0) = 0;
        Some(Wish::Make)
    }

    /// Adds to what was looked at; gives the sum.
    fn look(&mut self, options: &ProjectionOptions, edges: u64) -> &mut u64 {
        let known = self.looked_at.iter().position(|(own, _)| own == options);
        let position = known.unwrap_or_else(|| {
            if self.looked_at.len() == DEMANDS_LIMIT {
                self.looked_at.remove(0);
            }
            self.looked_at.push((options.clone(), 0));
            self.looked_at.len() - 1
        });
        let sum = &mut self.looked_at[position].1;
        *sum = sum.saturating_add(edges);
        sum
    }
}
