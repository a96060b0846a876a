//! Decides commit or abort, in log order, from the log alone.
//!
//! The resolver remembers when each thing was last written, as fingerprints in a window of bounded size. A transaction
//! that read ([`crate::read_set`]) or overwrites something written ([`crate::written`]) after its snapshot aborts; so does
//! one whose snapshot is older than the window. What passes has read, and written, the state at its place in the log: strict
//! serialisability. On top come checks against the state itself: a new user id must be free, the ends of a new edge must exist. The
//! outcome depends on the log, the window (which is part of a checkpoint) and nothing else: no clock, no hash-map order. What no transaction under way can
//! meet any more is forgotten ahead of time ([`crate::beginning`]), which changes no outcome.
//!
//! Two transactions that add edges to one vertex do not conflict: they only write to its adjacency, which is checked
//! where it was read (a removed vertex, an upserted edge).
//! Source: the resolvers of FoundationDB (Zhou et al., SIGMOD 2021) and Hyder (Bernstein et al., CIDR 2011).

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use ficus_model::{EdgeId, VertexId};

use crate::error::IdText;
use crate::fingerprint::Fingerprints;
use crate::mutation::{GraphWrite, Mutation};
use crate::root::GraphRoot;
use crate::schema::check_write;
use crate::words::Words;
use crate::written::{visit_new_words, visit_written};
use crate::{CommitTs, StoreError};

/// Fingerprints the window holds at most: about 40 MB, and a quarter of a second of bulk loading.
const WINDOW_LIMIT: usize = 1 << 20;

/// Fingerprints that are forgotten at a time, if not more came in since: more would hold up a commit.
const FORGOTTEN_AT_ONCE: usize = 1 << 12;

/// Labels or keys after which records with new ones abort; rows name keys in 20 bits.
const WORDS_HARD_LIMIT: usize = 1 << 20;

/// Fingerprints after which the window gets all its room at once: growing a large table would hold up a commit.
const SMALL_WINDOW: usize = 1 << 16;

/// When things were last written, as far back as `horizon`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolver {
    recent: HashMap<u64, CommitTs, FingerprintHashing>,
    /// Every entry of `recent`, oldest first; an older entry of the same fingerprint may linger.
    order: WriteOrder,
    /// Writes since some were last forgotten ahead of time.
    unlooked: usize,
    /// The newest commit of which something was forgotten for want of room.
    horizon: CommitTs,
    /// The window of a checkpoint, until a record needs it. Most starts go on with an epoch, which forgets it.
    restored: WriteOrder,
    /// For tests of the tests: reads are not checked.
    ignores_reads: bool,
}

/// What a checkpoint keeps of a resolver.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResolverState {
    /// The newest commit of which something was forgotten for want of room.
    pub(crate) horizon: CommitTs,
    /// What was written and when, oldest first. With what lingers, since that decides when the next is forgotten.
    pub(crate) order: WriteOrder,
}

/// A fingerprint and when it was written.
type Written = (u64, CommitTs);

/// Writes in the order in which they happened, in chunks. A clone shares them, so that a checkpoint need not hold up commits.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOrder {
    chunks: VecDeque<Arc<Vec<Written>>>,
    /// Writes of the first chunk that were taken out.
    taken: usize,
    count: usize,
}

impl WriteOrder {
    /// Writes of a chunk: 64 KiB.
    const CHUNK: usize = 1 << 12;

    /// Adds the newest write.
    pub(crate) fn push(&mut self, fingerprint: u64, ts: CommitTs) {
        if self.chunks.back().is_none_or(|chunk| chunk.len() >= WriteOrder::CHUNK) {
            self.chunks.push_back(Arc::new(Vec::with_capacity(WriteOrder::CHUNK)));
        }
        if let Some(chunk) = self.chunks.back_mut() {
            Arc::make_mut(chunk).push((fingerprint, ts));
        }
        self.count += 1;
    }

    /// The oldest write.
    fn first(&self) -> Option<Written> {
        self.chunks.front()?.get(self.taken).copied()
    }

    /// Takes out the oldest write.
    fn pop(&mut self) -> Option<Written> {
        let oldest = self.first()?;
        let chunk = self.chunks.front()?;
        self.taken += 1;
        self.count -= 1;
        if self.taken == chunk.len() {
            self.chunks.pop_front();
            self.taken = 0;
        }
        Some(oldest)
    }

    /// All writes, oldest first, in parts of at most some thousand.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[Written]> {
        let taken = |number: usize| if number == 0 { self.taken } else { 0 };
        self.chunks.iter().enumerate().map(move |(number, chunk)| &chunk[taken(number)..])
    }
}

impl Resolver {
    /// A resolver as it was at a checkpoint.
    pub(crate) fn from_state(state: ResolverState) -> Resolver {
        Resolver { horizon: state.horizon, restored: state.order, ..Resolver::default() }
    }

    /// Remembers what the checkpoint did.
    fn wake(&mut self) {
        for (fingerprint, ts) in std::mem::take(&mut self.restored).parts().flatten() {
            self.remember(*fingerprint, *ts);
        }
    }

    /// Checks no reads from now on, see [`crate::StoreOptions::weaken_resolver`].
    pub(crate) fn ignore_reads(&mut self) {
        self.ignores_reads = true;
    }

    /// What a checkpoint has to keep. Costs a few hundred counters.
    pub(crate) fn state(&mut self) -> ResolverState {
        self.wake();
        ResolverState { horizon: self.horizon, order: self.order.clone() }
    }

    /// Forgets all that was written, since an epoch begins. Its writer is the only one from here on, and its transactions begin
    /// with the states that the graphs have now, so nothing that was written before can be newer than a snapshot to come.
    pub(crate) fn begin_epoch(&mut self) {
        *self = Resolver { ignores_reads: self.ignores_reads, ..Resolver::default() };
    }

    /// Aborts every transaction whose snapshot is older than `ts`: after a graph was cleared or dropped.
    pub(crate) fn fence(&mut self, ts: CommitTs) {
        *self = Resolver { horizon: ts, ignores_reads: self.ignores_reads, ..Resolver::default() };
    }

    /// Refuses a write that does not fit the state at its place in the log.
    pub(crate) fn check(&mut self, write: &GraphWrite, root: &GraphRoot) -> Result<(), StoreError> {
        self.wake();
        let of = Fingerprints { graph: write.graph };
        // What is newest in its graph cannot be outdated, however much happened to other graphs since.
        if write.snapshot_ts.is_some_and(|snapshot_ts| snapshot_ts < self.horizon.min(root.commit_ts)) {
            return Err(conflict("something this transaction may have read (it began too long ago)"));
        }
        let unchanged = |fingerprint: u64, what: &dyn Fn() -> String| match write.snapshot_ts {
            Some(snapshot_ts) if self.recent.get(&fingerprint).is_some_and(|ts| *ts > snapshot_ts) => {
                Err(conflict(what()))
            }
            _ => Ok(()),
        };
        let reads = if self.ignores_reads { &[] } else { write.reads.as_slice() };
        for read in reads {
            unchanged(*read, &|| "something this transaction read".to_string())?;
        }
        if root.words.labels.names().len().max(root.words.keys.names().len()) + write.words.len() > WORDS_HARD_LIMIT {
            return Err(StoreError::LimitReached {
                what: "labels or property keys".to_string(),
                limit: WORDS_HARD_LIMIT as u64,
            });
        }
        let mut fit = Fit {
            write,
            root,
            added_vertices: Added::default(),
            added_edges: Added::default(),
            removed_vertices: HashSet::new(),
            removed_edges: HashSet::new(),
            freed_ids: HashSet::new(),
        };
        for mutation in &write.mutations {
            fit.check(mutation)?;
            match mutation {
                Mutation::AddVertex { .. } | Mutation::AddEdge { .. } => {}
                Mutation::SetVertexProperty { vertex, .. }
                | Mutation::SetMetaProperty { vertex, .. }
                | Mutation::RemoveVertexProperty { vertex, .. }
                | Mutation::RemoveMetaProperty { vertex, .. } => {
                    unchanged(of.vertex(*vertex), &|| fit.name_vertex(*vertex))?;
                }
                Mutation::RemoveVertex { vertex } => {
                    unchanged(of.vertex(*vertex), &|| fit.name_vertex(*vertex))?;
                    let edges = || format!("the edges of {}", fit.name_vertex(*vertex));
                    if write.has_old_fingerprints {
                        unchanged(of.adjacency(*vertex), &edges)?;
                    } else {
                        unchanged(of.out_half_edges(*vertex), &edges)?;
                        unchanged(of.in_half_edges(*vertex), &edges)?;
                    }
                }
                Mutation::SetEdgeProperty { edge, .. }
                | Mutation::RemoveEdgeProperty { edge, .. }
                | Mutation::RemoveEdge { edge } => unchanged(of.edge(*edge), &|| fit.name_edge(*edge))?,
            }
        }
        // A transaction was held against its snapshot already: what is found now came with another one.
        check_write(write, root).map_err(|error| match write.snapshot_ts {
            Some(_) => conflict(error.schema_subject()),
            None => error,
        })
    }

    /// Remembers what a committing write changes. `root` is the state before it is applied.
    pub(crate) fn remember_write(&mut self, write: &GraphWrite, root: &GraphRoot, ts: CommitTs) {
        self.wake();
        visit_written(write, root, &mut |fingerprint| self.remember(fingerprint, ts));
    }

    /// Remembers the words that came in with something other than a write. Whoever found one absent has looked at nothing else, and
    /// writes that use it later do not tell it as new any more.
    pub(crate) fn remember_words(&mut self, graph: u32, before: &Words, now: &Words, ts: CommitTs) {
        self.wake();
        visit_new_words(Fingerprints { graph }, before, now, &mut |fingerprint| self.remember(fingerprint, ts));
    }

    fn remember(&mut self, fingerprint: u64, ts: CommitTs) {
        if self.horizon >= ts {
            // The rest of a write that had no room, see below.
            return;
        }
        if self.recent.insert(fingerprint, ts) == Some(ts) {
            return;
        }
        if self.recent.len() == SMALL_WINDOW && self.recent.capacity() < WINDOW_LIMIT {
            self.recent.reserve(WINDOW_LIMIT + 1 - SMALL_WINDOW);
        }
        self.order.push(fingerprint, ts);
        self.unlooked += 1;
        while self.order.count > WINDOW_LIMIT {
            if let Some(written) = self.remove_oldest() {
                self.horizon = self.horizon.max(written);
            }
        }
        if self.horizon == ts {
            // One write fills the window. Whoever began before it is refused, and no one else can be refused for what is in the window; the
            // horizon moves on when the window is full of later writes, with these in it or without.
            self.fence(ts);
        }
    }

    /// Takes the oldest write out of the window; when it was, if the same was not written again.
    fn remove_oldest(&mut self) -> Option<CommitTs> {
        let (oldest, written) = self.order.pop()?;
        let is_newest = self.recent.get(&oldest) == Some(&written);
        if is_newest {
            self.recent.remove(&oldest);
        }
        is_newest.then_some(written)
    }

    /// Number of writes in the window.
    pub(crate) fn remembered(&self) -> usize {
        self.order.count
    }

    /// Forgets writes up to `oldest`, where all transactions that are still to be decided began at `oldest` or later: none of these writes can refuse
    /// one. Whoever replays the log and forgets nothing decides the same: a transaction is refused for what is newer than its snapshot, and that
    /// stays, and leaves for want of room when so many writes were behind it, whatever was before. The horizon does not move here.
    pub(crate) fn forget(&mut self, oldest: CommitTs) {
        let mut left = FORGOTTEN_AT_ONCE.max(std::mem::take(&mut self.unlooked) * 2);
        while left > 0 && self.order.first().is_some_and(|(_, written)| written <= oldest) {
            self.remove_oldest();
            left -= 1;
        }
        if self.recent.capacity() >= WINDOW_LIMIT && self.recent.len() < SMALL_WINDOW / 4 {
            // The room of a window that was large for a while.
            let recent = std::mem::take(&mut self.recent);
            self.recent.extend(recent);
        }
    }
}

/// Hashes fingerprints, which are hashes already, by one multiplication with a number that nobody can guess. The order it
/// gives is never looked at.
#[derive(Clone, Debug)]
pub(crate) struct FingerprintHashing {
    factor: u64,
}

impl Default for FingerprintHashing {
    fn default() -> FingerprintHashing {
        FingerprintHashing { factor: RandomState::new().hash_one(0u8) | 1 }
    }
}

impl BuildHasher for FingerprintHashing {
    type Hasher = FingerprintHasher;

    fn build_hasher(&self) -> FingerprintHasher {
        FingerprintHasher { factor: self.factor, hash: 0 }
    }
}

/// See [`FingerprintHashing`].
pub(crate) struct FingerprintHasher {
    factor: u64,
    hash: u64,
}

impl Hasher for FingerprintHasher {
    fn finish(&self) -> u64 {
        self.hash
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // Both halves of the product, since a hash map uses the highest and the lowest bits.
        let product = u128::from(self.hash ^ number) * u128::from(self.factor);
        self.hash = (product >> 64) as u64 ^ product as u64;
    }
}

fn conflict(what: impl Into<String>) -> StoreError {
    StoreError::Conflict { what: what.into() }
}

/// Elements that a record adds. A writer numbers them in ascending order, so a list that is searched by halving will do.
struct Added<T> {
    elements: Vec<T>,
    is_sorted: bool,
}

impl<T> Default for Added<T> {
    fn default() -> Added<T> {
        Added { elements: Vec::new(), is_sorted: true }
    }
}

impl<T: Copy + Ord> Added<T> {
    fn push(&mut self, element: T) {
        self.is_sorted &= self.elements.last().is_none_or(|last| *last < element);
        self.elements.push(element);
    }

    fn contains(&self, element: T) -> bool {
        match self.is_sorted {
            true => self.elements.binary_search(&element).is_ok(),
            false => self.elements.contains(&element),
        }
    }
}

/// Checks a record's mutations one after the other against the state and what the record itself did before.
struct Fit<'a> {
    write: &'a GraphWrite,
    root: &'a GraphRoot,
    added_vertices: Added<VertexId>,
    added_edges: Added<EdgeId>,
    removed_vertices: HashSet<VertexId>,
    removed_edges: HashSet<EdgeId>,
    /// User ids that this record gives back before it may use them again: fingerprints.
    freed_ids: HashSet<u64>,
}

impl Fit<'_> {
    fn check(&mut self, mutation: &Mutation) -> Result<(), StoreError> {
        let of = Fingerprints { graph: self.write.graph };
        match mutation {
            Mutation::AddVertex { vertex, id, .. } => {
                let taken = self.root.vertex_with_id(id).is_some() && !self.freed_ids.contains(&of.vertex_id(id));
                if taken {
                    return Err(match self.write.snapshot_ts {
                        Some(_) => conflict(format!("the vertex id {}", IdText(id))),
                        None => StoreError::DuplicateVertex { id: id.clone() },
                    });
                }
                if self.root.vertex(*vertex).is_some() {
                    return Err(conflict(self.name_vertex(*vertex)));
                }
                self.added_vertices.push(*vertex);
            }
            Mutation::AddEdge { edge, out, in_, id, .. } => {
                self.vertex(*out)?;
                self.vertex(*in_)?;
                let taken = self.root.edge_with_id(id).is_some() && !self.freed_ids.contains(&of.edge_id(id));
                if taken {
                    return Err(match self.write.snapshot_ts {
                        Some(_) => conflict(format!("the edge id {}", IdText(id))),
                        None => StoreError::DuplicateEdge { id: id.clone() },
                    });
                }
                if self.root.edge(*edge).is_some() {
                    return Err(conflict(self.name_edge(*edge)));
                }
                self.added_edges.push(*edge);
            }
            Mutation::SetVertexProperty { vertex, .. }
            | Mutation::SetMetaProperty { vertex, .. }
            | Mutation::RemoveVertexProperty { vertex, .. }
            | Mutation::RemoveMetaProperty { vertex, .. } => self.vertex(*vertex)?,
            Mutation::SetEdgeProperty { edge, .. } | Mutation::RemoveEdgeProperty { edge, .. } => self.edge(*edge)?,
            Mutation::RemoveVertex { vertex } => {
                self.vertex(*vertex)?;
                if let Some(row) = self.root.vertex(*vertex) {
                    self.freed_ids.insert(of.vertex_id(&row.id()));
                    for edge in self.root.edges_of(*vertex) {
                        self.free_edge(edge);
                    }
                }
                self.removed_vertices.insert(*vertex);
            }
            Mutation::RemoveEdge { edge } => {
                self.edge(*edge)?;
                self.free_edge(*edge);
            }
        }
        Ok(())
    }

    fn free_edge(&mut self, edge: EdgeId) {
        if let Some(id) = self.root.edge_user_id(edge) {
            self.freed_ids.insert(Fingerprints { graph: self.write.graph }.edge_id(&id));
        }
        self.removed_edges.insert(edge);
    }

    fn vertex(&self, vertex: VertexId) -> Result<(), StoreError> {
        let removed = !self.removed_vertices.is_empty() && self.removed_vertices.contains(&vertex);
        if removed || !(self.root.vertex(vertex).is_some() || self.added_vertices.contains(vertex)) {
            return Err(conflict(self.name_vertex(vertex)));
        }
        Ok(())
    }

    fn edge(&self, edge: EdgeId) -> Result<(), StoreError> {
        let removed = !self.removed_edges.is_empty() && self.removed_edges.contains(&edge);
        if removed || !(self.root.edge(edge).is_some() || self.added_edges.contains(edge)) {
            return Err(conflict(self.name_edge(edge)));
        }
        Ok(())
    }

    fn name_vertex(&self, vertex: VertexId) -> String {
        match self.root.vertex(vertex) {
            Some(row) => format!("the vertex with id {}", IdText(&row.id())),
            None => format!("a vertex that was removed meanwhile (internal number {})", vertex.0),
        }
    }

    fn name_edge(&self, edge: EdgeId) -> String {
        match self.root.edge_user_id(edge) {
            Some(id) => format!("the edge with id {}", IdText(&id)),
            None => format!("an edge that was removed meanwhile (internal number {})", edge.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolver_forgets_the_same_after_a_restart() {
        let mut resolver = Resolver::default();
        let write = |resolver: &mut Resolver, ts: u64| {
            // Some things are written again and again, others once.
            for fingerprint in [1, 2 + ts % 100, 1000 + ts] {
                resolver.remember(fingerprint, CommitTs(ts));
            }
        };
        let end = WINDOW_LIMIT as u64 / 3 + 5000;
        (1..end).for_each(|ts| write(&mut resolver, ts));
        let state = resolver.state();
        let mut restarted = Resolver::from_state(state.clone());
        assert!(restarted.recent.is_empty(), "what no record needs takes no room");
        restarted.wake();
        for ts in end..end + 5000 {
            write(&mut resolver, ts);
            write(&mut restarted, ts);
        }
        assert!(resolver.horizon > state.horizon, "something was forgotten since");
        assert_eq!(restarted.horizon, resolver.horizon);
        assert_eq!(restarted.recent.len(), resolver.recent.len());
        let all = |state: ResolverState| state.order.parts().flatten().copied().collect::<Vec<_>>();
        assert_eq!(all(restarted.state()), all(resolver.state()));
    }

    /// One resolver forgets ahead of time, another one, as in a replay, does not, and a third goes on from a checkpoint of the first: they decide
    /// the same about every transaction that holds its beginning.
    #[test]
    fn what_is_forgotten_ahead_of_time_decides_nothing() {
        for seed in 1..4 {
            let mut random = seed;
            let mut number = |limit: u64| {
                random = random_after(random);
                (random >> 33) % limit
            };
            let [mut forgetful, mut replaying] = [Resolver::default(), Resolver::default()];
            let mut begun: Vec<CommitTs> = Vec::new();
            // Longer than the window.
            for ts in (1..WINDOW_LIMIT as u64 / 8 + 40_000).map(CommitTs) {
                for _ in 0..8 {
                    let fingerprint = if number(2) == 0 { number(50) } else { number(1 << 21) };
                    forgetful.remember(fingerprint, ts);
                    replaying.remember(fingerprint, ts);
                }
                if number(500) == 0 {
                    // One may be under way until it is older than the window.
                    let is_over = seed == 1 || ts.0 > WINDOW_LIMIT as u64 / 8 + seed * 10_000;
                    begun.retain(|begun| *begun == CommitTs(1_000) && !is_over || begun.0 + 50 > ts.0);
                }
                begun.push(ts);
                if ts.0 % 100 == 0 {
                    forgetful.forget(begun[0]);
                }
                if ts.0 == WINDOW_LIMIT as u64 / 16 {
                    replaying = Resolver::from_state(forgetful.state());
                    replaying.wake();
                }
                let snapshot = begun[number(begun.len() as u64) as usize];
                let fingerprint = if number(2) == 0 { number(50) } else { number(1 << 21) };
                let refusals = [&forgetful, &replaying].map(|resolver| {
                    let is_newer = resolver.recent.get(&fingerprint).is_some_and(|ts| *ts > snapshot);
                    (snapshot < resolver.horizon, is_newer)
                });
                assert_eq!(refusals[0], refusals[1], "seed {seed}, {fingerprint} of {snapshot:?} at {ts:?}");
            }
            assert!(forgetful.remembered() < replaying.remembered());
            assert_eq!(replaying.horizon > CommitTs(1_000), seed > 1, "seed {seed}");
        }
    }

    fn random_after(number: u64) -> u64 {
        number.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F)
    }

    #[test]
    fn a_window_gives_its_room_back() {
        let mut resolver = Resolver::default();
        (1..=WINDOW_LIMIT as u64).for_each(|ts| resolver.remember(ts, CommitTs(ts)));
        resolver.forget(CommitTs(WINDOW_LIMIT as u64 - 10));
        assert_eq!((resolver.remembered(), resolver.recent.len()), (10, 10));
        assert!(resolver.recent.capacity() < SMALL_WINDOW);
        resolver.remember(7, CommitTs(1 << 30));
        assert_eq!(resolver.recent.get(&7), Some(&CommitTs(1 << 30)));
        assert_eq!(resolver.horizon, CommitTs(0), "nothing had to go for want of room");
    }

    #[test]
    fn a_write_beyond_the_window_is_a_fence() {
        let mut resolver = Resolver::default();
        let limit = WINDOW_LIMIT as u64;
        (0..10).for_each(|number| resolver.remember(number, CommitTs(1)));
        (0..limit + 5).for_each(|number| resolver.remember(number, CommitTs(2)));
        assert_eq!((resolver.horizon, resolver.remembered()), (CommitTs(2), 0));
        // The next horizon comes where it would have come.
        (0..limit).for_each(|number| resolver.remember(number, CommitTs(3)));
        assert_eq!((resolver.horizon, resolver.remembered()), (CommitTs(2), WINDOW_LIMIT));
        resolver.remember(0, CommitTs(4));
        assert_eq!((resolver.horizon, resolver.remembered()), (CommitTs(2), WINDOW_LIMIT));
        resolver.remember(1, CommitTs(5));
        assert_eq!((resolver.horizon, resolver.remembered()), (CommitTs(2), WINDOW_LIMIT));
        resolver.remember(limit, CommitTs(6));
        assert_eq!((resolver.horizon, resolver.remembered()), (CommitTs(3), WINDOW_LIMIT));
    }

    #[test]
    fn an_epoch_leaves_nothing_behind() {
        let mut resolver = Resolver::default();
        resolver.ignore_reads();
        (1..WINDOW_LIMIT as u64 + 10).for_each(|ts| resolver.remember(ts, CommitTs(ts)));
        let of_a_checkpoint = Resolver::from_state(resolver.state());
        for mut resolver in [resolver, of_a_checkpoint] {
            let ignores_reads = resolver.ignores_reads;
            resolver.begin_epoch();
            assert_eq!(resolver.ignores_reads, ignores_reads);
            let state = resolver.state();
            assert_eq!((resolver.recent.capacity(), state.order.parts().flatten().count()), (0, 0));
            assert_eq!(state.horizon, CommitTs(0));
        }
    }
}
