//! Since when transactions that may still commit are under way.
//!
//! The resolver has to remember a write only as long as a transaction may come that began before it. So every transaction that may write holds a
//! [`Beginning`], from before it takes its snapshot until the resolver has decided on its record; the committer puts a new one in place of the
//! newest every so often, and asks what the oldest is that somebody holds.
//!
//! A transaction takes the newest beginning first and its snapshot then. All that was committed up to the time of a beginning was shown to readers before
//! it was put in place, so the snapshot is at least as new, whichever graph it is of, and however long nobody wrote to that.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;

use crate::CommitTs;

/// Beginnings that are listed before those that nobody holds are looked for.
const SWEEP: usize = 64;

/// Whoever holds it has a snapshot with all that was committed up to then.
#[derive(Debug)]
pub(crate) struct Beginning {
    ts: CommitTs,
}

impl Beginning {
    /// All commits up to this one are in the snapshot.
    pub(crate) fn ts(&self) -> CommitTs {
        self.ts
    }
}

/// Where transactions get their beginnings.
#[derive(Debug)]
pub(crate) struct Beginnings {
    newest: ArcSwap<Beginning>,
}

impl Beginnings {
    /// The newest one.
    pub(crate) fn newest(&self) -> Arc<Beginning> {
        self.newest.load_full()
    }
}

/// The beginnings that somebody may hold, for whoever shows readers what was committed.
#[derive(Debug)]
pub(crate) struct HeldBeginnings {
    shared: Arc<Beginnings>,
    /// All before the newest that may be held, oldest first.
    older: VecDeque<Weak<Beginning>>,
    sweep_at: usize,
}

impl HeldBeginnings {
    /// Begins when all commits up to `ts` are shown.
    pub(crate) fn new(ts: CommitTs) -> HeldBeginnings {
        let shared = Arc::new(Beginnings { newest: ArcSwap::from_pointee(Beginning { ts }) });
        HeldBeginnings { shared, older: VecDeque::new(), sweep_at: SWEEP }
    }

    /// Where transactions get theirs.
    pub(crate) fn shared(&self) -> &Arc<Beginnings> {
        &self.shared
    }

    /// Transactions begin at `ts` from now on; all commits up to it are shown.
    pub(crate) fn renew(&mut self, ts: CommitTs) {
        // Whoever is taking the old one has it when the swap is done.
        let old = self.shared.newest.swap(Arc::new(Beginning { ts }));
        debug_assert!(old.ts <= ts);
        self.older.push_back(Arc::downgrade(&old));
        drop(old);
        if self.older.len() >= self.sweep_at {
            self.older.retain(|beginning| beginning.strong_count() > 0);
            self.sweep_at = SWEEP.max(self.older.len() * 2);
        }
    }

    /// No transaction that is under way, or to come, began before this.
    pub(crate) fn oldest(&mut self) -> CommitTs {
        while let Some(oldest) = self.older.front() {
            if let Some(held) = oldest.upgrade() {
                return held.ts;
            }
            self.older.pop_front();
        }
        self.shared.newest.load().ts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_the_oldest_that_is_held() {
        let mut held = HeldBeginnings::new(CommitTs(1));
        let shared = held.shared().clone();
        let first = shared.newest();
        assert_eq!(held.oldest(), CommitTs(1));
        for ts in 2..1_000 {
            held.renew(CommitTs(ts));
            assert!(held.older.len() <= 2 * SWEEP, "what nobody holds is not kept");
        }
        let last = shared.newest();
        held.renew(CommitTs(1_000));
        assert_eq!((held.oldest(), last.ts()), (CommitTs(1), CommitTs(999)));
        drop(first);
        assert_eq!(held.oldest(), CommitTs(999));
        drop(last);
        assert_eq!(held.oldest(), CommitTs(1_000));
    }
}
