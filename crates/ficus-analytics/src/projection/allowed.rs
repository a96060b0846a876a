//! Vertices that may be entered, as bits by place, for each condition that was asked for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ficus_storage::Snapshot;
use rayon::prelude::*;

use super::{Place, Projection, Shared};
use crate::control::check;
use crate::filter::{Test, VertexFilter};
use crate::{AnalyticsError, Control};
use ficus_model::VertexId;

/// A bit for each vertex, by place.
pub type Allowed = Arc<[u64]>;

/// Conditions whose bits are kept; the one not used for longest goes first.
const CONDITIONS_LIMIT: usize = 16;

/// Words of bits that one thread finds at a time: some hundred microseconds.
const WORDS: usize = 32;

/// The bits of each condition; none for one that fails on some vertex. Those used last at the end.
#[derive(Debug, Default)]
pub(super) struct AllowedCache(Mutex<Vec<(VertexFilter, Option<Allowed>)>>);

impl AllowedCache {
    fn entries(&self) -> MutexGuard<'_, Vec<(VertexFilter, Option<Allowed>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, filter: &VertexFilter) -> Option<Option<Allowed>> {
        let mut entries = self.entries();
        let position = entries.iter().position(|(known, _)| known == filter)?;
        let entry = entries.remove(position);
        let found = entry.1.clone();
        entries.push(entry);
        Some(found)
    }

    fn put(&self, filter: VertexFilter, allowed: Option<Allowed>) {
        let mut entries = self.entries();
        entries.retain(|(known, _)| *known != filter);
        if entries.len() == CONDITIONS_LIMIT {
            entries.remove(0);
        }
        entries.push((filter, allowed));
    }

    pub(super) fn bytes(&self) -> u64 {
        self.entries().iter().flat_map(|(_, allowed)| allowed).map(|bits| size_of_val(&**bits) as u64).sum()
    }

    /// The same for a version of the projection in which these vertices are others.
    pub(super) fn patched(&self, projection: &Projection, snapshot: &Snapshot, changed: &[VertexId]) -> AllowedCache {
        let known: Vec<(VertexFilter, Option<Allowed>)> = self.entries().clone();
        let words = projection.vertex_count().div_ceil(64);
        let kept = known.into_iter().filter_map(|(filter, allowed)| {
            let mut bits = allowed?.to_vec();
            bits.resize(words, 0);
            let mut test = filter.on(snapshot.clone());
            for vertex in changed {
                if let Some(place) = projection.place(*vertex) {
                    let (word, bit) = (place as usize / 64, 1 << (place % 64));
                    bits[word] = if test(*vertex)? { bits[word] | bit } else { bits[word] & !bit };
                }
            }
            Some((filter, Some(bits.into())))
        });
        AllowedCache(Mutex::new(kept.collect()))
    }
}

impl Projection {
    /// The vertices that fulfil a condition, if that was asked before.
    pub fn known_allowed(&self, filter: &VertexFilter) -> Option<Allowed> {
        self.allowed.get(filter).flatten()
    }

    /// The vertices that fulfil a condition; `snapshot` is the state of the projection. Costs a test of each vertex, once.
    ///
    /// Errors: `Stopped`; `Untestable` if the condition fails on a vertex.
    pub fn allowed(
        &self,
        snapshot: &Snapshot,
        filter: &VertexFilter,
        control: &dyn Control,
    ) -> Result<Allowed, AnalyticsError> {
        if let Some(known) = self.allowed.get(filter) {
            return known.ok_or(AnalyticsError::Untestable);
        }
        let vertices = self.vertex_count();
        let snapshot = &Shared(Mutex::new(snapshot.clone()));
        let mut bits = vec![0u64; vertices.div_ceil(64)];
        let found = bits.par_chunks_mut(WORDS).enumerate().try_for_each_init(
            || filter.on(snapshot.handle()),
            |test: &mut Test<VertexId>, (part, words)| {
                check(control)?;
                for (number, word) in words.iter_mut().enumerate() {
                    let first = (part * WORDS + number) * 64;
                    for place in first..vertices.min(first + 64) {
                        let fits = test(self.vertex(place as Place)).ok_or(AnalyticsError::Untestable)?;
                        *word |= u64::from(fits) << (place % 64);
                    }
                }
                Ok(())
            },
        );
        match found {
            Ok(()) => {
                let bits = Allowed::from(bits);
                self.allowed.put(filter.clone(), Some(bits.clone()));
                Ok(bits)
            }
            Err(AnalyticsError::Untestable) => {
                self.allowed.put(filter.clone(), None);
                Err(AnalyticsError::Untestable)
            }
            Err(other) => Err(other),
        }
    }
}
