//! Roots that were replaced, until nobody reads them any more.
//!
//! Who lets go of a root last gives back the pages that only it had, one by one, and waits for that. It must not be a reader, so the store keeps each
//! replaced root until all readers are gone. After an ordinary group of commits that is a few pages: the commit threads give them back behind their
//! answers. After a consolidation, or when a graph was cleared, it is a whole overlay: a thread in the background gives it back.
//!
//! Nobody can get hold of a root again that has no reader left, since only the newest one is handed out; so a count of one is for ever.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::root::GraphRoot;

/// How often the thread in the background looks: soon after something came, then less often.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const PAUSE_LIMIT: Duration = Duration::from_secs(1);

/// Entries of indexes that a commit may take out of pages without being heavy.
const INDEX_ENTRIES_LIGHT: u64 = 1 << 12;

/// Roots that were replaced, until nobody reads them any more.
#[derive(Debug, Default)]
pub(crate) struct Farewell {
    /// Rank: nothing else is locked inside, and nothing is dropped.
    leaving: Mutex<Leaving>,
    /// Something came into `heavy`, or the store is closing.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Leaving {
    /// True while there are threads that call [`Farewell::release`] and [`Farewell::run`]; else who reads last gives back.
    has_threads: bool,
    /// They differ from what replaced them in a few pages.
    light: Vec<Arc<GraphRoot>>,
    /// How many of `light` were there when the thread in the background last looked.
    old: usize,
    /// They differ from what replaced them in nearly all, or have been read for long.
    heavy: Vec<Arc<GraphRoot>>,
}

/// Takes out the roots that nobody else has.
fn take_unread(roots: &mut Vec<Arc<GraphRoot>>) -> Vec<Arc<GraphRoot>> {
    roots.extract_if(.., |root| Arc::strong_count(root) == 1).collect()
}

impl Farewell {
    fn leaving(&self) -> MutexGuard<'_, Leaving> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on there are threads that give back.
    pub(crate) fn expect_threads(&self) {
        self.leaving().has_threads = true;
    }

    /// Ends [`Farewell::run`]. What is still read is given back by its readers.
    pub(crate) fn close(&self) {
        let roots = std::mem::take(&mut *self.leaving());
        self.changed.notify_all();
        drop(roots);
    }

    /// Takes roots that were replaced by `next`. None may come twice.
    pub(crate) fn add(&self, mut replaced: Vec<Arc<GraphRoot>>, next: &Arc<GraphRoot>) {
        replaced.retain(|root| !Arc::ptr_eq(root, next));
        let mut leaving = self.leaving();
        if !leaving.has_threads {
            drop(leaving);
            return;
        }
        let loses_index = |root: &GraphRoot| root.index_pages() > next.index_pages() + INDEX_ENTRIES_LIGHT;
        let is_heavy = replaced.iter().any(|root| root.overlay_changes() > next.overlay_changes() || loses_index(root));
        leaving.light.extend(replaced);
        if is_heavy {
            // Older versions share the overlay that goes.
            leaving.all_are_heavy();
            drop(leaving);
            self.changed.notify_all();
        }
    }

    /// Gives back what is light and not read any more.
    pub(crate) fn release(&self) {
        let mut leaving = self.leaving();
        let unread = take_unread(&mut leaving.light);
        leaving.old = leaving.old.min(leaving.light.len());
        drop(leaving);
        drop(unread);
    }

    /// Gives back what is heavy, and what was read for long, until the store is closed.
    pub(crate) fn run(&self) {
        let mut pause = FIRST_PAUSE;
        let mut leaving = self.leaving();
        while leaving.has_threads {
            let unread = take_unread(&mut leaving.heavy);
            if !unread.is_empty() {
                drop(leaving);
                drop(unread);
                leaving = self.leaving();
                continue;
            }
            pause = if leaving.heavy.is_empty() { PAUSE_LIMIT } else { pause };
            let (next, waited) = self.changed.wait_timeout(leaving, pause).unwrap_or_else(PoisonError::into_inner);
            leaving = next;
            if !waited.timed_out() {
                pause = FIRST_PAUSE;
                continue;
            }
            if pause == PAUSE_LIMIT {
                leaving.oldest_are_heavy();
            }
            pause = (pause * 2).min(PAUSE_LIMIT);
        }
    }
}

impl Leaving {
    fn all_are_heavy(&mut self) {
        self.heavy.append(&mut self.light);
        self.old = 0;
    }

    /// Who has been read since the last look may share little with the newest by now.
    fn oldest_are_heavy(&mut self) {
        // In the order in which they came; what went since only makes this look at younger ones.
        self.heavy.extend(self.light.drain(..self.old));
        self.old = self.light.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tablet::IdLayout;

    #[test]
    fn a_root_goes_when_its_last_reader_has_gone() {
        let root = || Arc::new(GraphRoot::empty(IdLayout { tablet_bits: 0 }));
        let (farewell, next) = (Farewell::default(), root());
        let read = root();
        let weak = [Arc::downgrade(&read), Arc::downgrade(&next)];
        farewell.add(vec![root()], &next);
        assert!(farewell.leaving().light.is_empty(), "without threads nothing is kept");
        farewell.expect_threads();
        farewell.add(vec![read.clone(), root()], &next);
        farewell.release();
        assert_eq!(farewell.leaving().light.len(), 1, "one of them is read");
        drop(read);
        assert!(weak[0].upgrade().is_some(), "the reader was not the last");
        farewell.release();
        assert!(weak[0].upgrade().is_none() && weak[1].upgrade().is_some());
    }
}
