//! A projection that follows the graph: a version for a later state, which shares all lists that did not change.
//!
//! The store tells which vertices may have changed between two states ([`Snapshot::changes_since`]); their lists are read again and stand
//! before those of the arrays. Vertices that came get the places behind all others, places of those that went stay empty, so that a
//! version may have more places than vertices: questions do not mind, programs take a projection that is whole.
//!
//! Cost: the pages that differ, the half-edges of the vertices on them, a word for every 64 vertices. For a Kronecker graph of a million vertices
//! and a thousand commits of an edge between busy vertices that is a hundredth of making it anew.

use std::sync::{Arc, Mutex};

use ficus_model::{Direction, VertexId};
use ficus_storage::Snapshot;

use super::read::EdgeReader;
use super::{Adjacency, Origin, Place, Projection};
use crate::control::check;
use crate::service::lock;
use crate::{AnalyticsError, Control};

/// A version has at most this share of its edges in lists of their own; beyond it, it is worth while to make it anew.
const PATCHED_SHARE: u64 = 8;

/// So many edges may be in lists of their own, however few there are.
const PATCHED_MINIMUM: u64 = 1 << 10;

impl Projection {
    /// A version for another state; `None` if too much has changed, or the graph was consolidated meanwhile. Reads from one thread.
    ///
    /// Errors: `Stopped`; `TooManyVertices`; `Untestable` if a condition on edges fails on a new one.
    pub fn patched(&self, snapshot: &Snapshot, control: &dyn Control) -> Result<Option<Projection>, AnalyticsError> {
        let Some(Origin { options, mark }) = &self.origin else { return Ok(None) };
        let mark = lock(mark).clone();
        let Some(changes) = snapshot.changes_since(&mark, options.edges.is_some()) else { return Ok(None) };
        let mut numbering = self.numbering.clone();
        let mut gone = Vec::new();
        for vertex in &changes.rows {
            match (numbering.place(*vertex), snapshot.vertex_exists(*vertex)) {
                (None, true) => numbering.add(*vertex),
                (Some(place), false) => {
                    numbering.remove(*vertex);
                    gone.push((place, Arc::from([])));
                }
                _ => {}
            }
        }
        if numbering.len() as u64 >= u64::from(Place::MAX) {
            return Err(AnalyticsError::TooManyVertices { vertices: numbering.len() as u64 });
        }
        let sides = [
            (&self.out, Direction::Out, &changes.out, &changes.edge_sources),
            (&self.into, Direction::In, &changes.into, &changes.edge_targets),
        ];
        let mut patched = Vec::with_capacity(2);
        for (side, way, touched, of_edges) in sides {
            let limit = (side.edge_count() / PATCHED_SHARE).max(PATCHED_MINIMUM);
            let mut reader = EdgeReader::new(snapshot, way, options);
            let mut lists: Vec<(Place, Arc<[Place]>)> = gone.clone();
            let mut edges = side.patched_edges();
            for part in union(touched, of_edges).chunks(1 << 8) {
                check(control)?;
                for vertex in part {
                    let Some(place) = numbering.place(*vertex) else { continue };
                    let mut list = Vec::new();
                    reader.visit(*vertex, &mut |neighbour| {
                        list.push(numbering.place(neighbour).expect("an edge ends at a vertex of its snapshot"));
                    })?;
                    list.sort_unstable();
                    edges += list.len() as u64;
                    lists.push((place, list.into()));
                }
                if edges > limit {
                    return Ok(None);
                }
            }
            lists.sort_unstable_by_key(|(place, _)| *place);
            patched.push(side.patched(numbering.len(), lists));
        }
        let (into, out) = (patched.pop().expect("two sides"), patched.pop().expect("two sides"));
        let mut version = Projection {
            state: snapshot.key(),
            numbering,
            out,
            into,
            origin: Some(Origin { options: options.clone(), mark: Mutex::new(snapshot.mark()) }),
            allowed: Default::default(),
        };
        version.allowed = self.allowed.patched(&version, snapshot, &changes.rows);
        Ok(Some(version))
    }

    /// Whether it shares arrays with a version of another state. Such a one is for questions, not for programs: places may be empty.
    pub fn is_patched(&self) -> bool {
        self.out.is_patched()
    }

    /// Whether so much is patched that it should be made anew before long: half of what a version may have.
    pub(crate) fn is_worn(&self) -> bool {
        let is_worn = |side: &Adjacency| side.patched_edges() > side.edge_count() / (2 * PATCHED_SHARE);
        is_worn(&self.out) || is_worn(&self.into)
    }

    /// Whether [`Projection::patched`] may make a version for a state.
    pub(crate) fn may_follow(&self, snapshot: &Snapshot) -> bool {
        self.origin.as_ref().is_some_and(|origin| snapshot.is_comparable_with(&lock(&origin.mark)))
    }

    /// Told a snapshot of its own state, which may stand on a newer consolidation.
    pub(crate) fn follow_from(&self, snapshot: &Snapshot) {
        debug_assert!(snapshot.is_state(&self.state));
        if let Some(origin) = &self.origin
            && !self.may_follow(snapshot)
        {
            *lock(&origin.mark) = snapshot.mark();
        }
    }
}

/// All of two ascending lists, ascending, each once.
fn union(left: &[VertexId], right: &[VertexId]) -> Vec<VertexId> {
    let mut all = [left, right].concat();
    all.sort_unstable();
    all.dedup();
    all
}
