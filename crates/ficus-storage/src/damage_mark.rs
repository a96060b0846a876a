//! What is known of damage to the files of a graph.
//!
//! Opening a segment reads no column, so damage is found later: by the thread that compares checksums behind a start, by a query that reads a column
//! which contradicts itself, by a consolidation, or by a commit. Whoever finds it notes it here, and from then on nobody believes the graph: queries
//! and commits ask, and are refused. Other graphs have marks of their own. A graph that is cleared or dropped has no damaged files any more.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use arc_swap::ArcSwapOption;

use crate::StoreError;
use crate::root::GraphRoot;

/// The first damage that was found in the files of a graph.
#[derive(Debug, Default)]
pub(crate) struct DamageMark {
    found: ArcSwapOption<StoreError>,
}

impl DamageMark {
    /// What was found, if anything was.
    pub(crate) fn get(&self) -> Option<StoreError> {
        self.found.load().as_deref().cloned()
    }

    /// Refuses if anything was found.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.get().map_or(Ok(()), Err)
    }

    /// Notes what was found; the first to find something is remembered.
    pub(crate) fn note(&self, error: &StoreError) {
        self.found.rcu(|found| Some(found.clone().unwrap_or_else(|| Arc::new(error.clone()))));
    }

    /// Forgets it, for a graph that lies on other files now.
    pub(crate) fn clear(&self) {
        if self.found.load().is_some() {
            self.found.store(None);
        }
    }
}

/// The outcome of something that reads the graph with this root. If it was unwound from a damaged column, that is an error which names the file.
pub(crate) fn or_damage<T>(outcome: thread::Result<Result<T, StoreError>>, root: &GraphRoot) -> Result<T, StoreError> {
    outcome.unwrap_or_else(|panic| {
        // Of files that are sound, this is a bug.
        examine(root, &AtomicBool::new(false))?;
        resume_unwind(panic)
    })
}

/// Compares all checksums of the files of a graph, unless told to stop.
pub(crate) fn examine(root: &GraphRoot, stop: &AtomicBool) -> Result<(), StoreError> {
    // Of what has sound checksums, the rules are looked at; a file that was forged may contradict itself only there.
    let verify = || root.verify_files(stop);
    catch_unwind(AssertUnwindSafe(verify)).unwrap_or_else(|_| {
        let name = root.files().first().cloned().unwrap_or_else(|| "a file of the base".into());
        Err(StoreError::corrupt(&*name, 0, "a column of it, or of another file of the graph, contradicts itself"))
    })
}
