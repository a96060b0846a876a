//! A gate that a query comes to when it has done a little work: small ones are through before, large ones wait until it is opened.
//!
//! Whoever decides how many queries may run at a time cannot know which of those that come is small. Behind a gate each may begin.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Domain;
use crate::inbox::Waker;

/// One gate, for the tasks of one query, one after the other.
pub struct Gate<D: Domain> {
    units_max: u64,
    units: AtomicU64,
    is_open: AtomicBool,
    has_held: AtomicBool,
    /// Wakes who waits. Nothing else is locked while it is but the inbox of an executor.
    waiting: Mutex<Option<Waker<D>>>,
}

impl<D: Domain> Gate<D> {
    /// Closed, for who has used so many work units.
    pub fn new(units_max: u64) -> Arc<Gate<D>> {
        Arc::new(Gate {
            units_max,
            units: AtomicU64::new(0),
            is_open: AtomicBool::new(false),
            has_held: AtomicBool::new(false),
            waiting: Mutex::new(None),
        })
    }

    /// Lets through who waits, and everybody from now on.
    pub fn open(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_open.store(true, Ordering::Relaxed);
        if let Some(waker) = waiting.take() {
            waker.wake();
        }
    }

    /// Whether somebody has come to it while it was closed.
    pub fn has_held(&self) -> bool {
        self.has_held.load(Ordering::Relaxed)
    }

    /// So many work units were used.
    pub(crate) fn count(&self, units: u64) {
        self.units.fetch_add(units, Ordering::Relaxed);
    }

    /// Whether a task has to wait here; it is woken when the gate is opened.
    pub(crate) fn holds(&self, waker: &Waker<D>) -> bool {
        if self.units.load(Ordering::Relaxed) < self.units_max || self.is_open.load(Ordering::Relaxed) {
            return false;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Who opens it takes the lock first.
        if self.is_open.load(Ordering::Relaxed) {
            return false;
        }
        self.has_held.store(true, Ordering::Relaxed);
        *waiting = Some(waker.clone());
        true
    }
}

impl<D: Domain> fmt::Debug for Gate<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("units", &self.units).field("is_open", &self.is_open).finish_non_exhaustive()
    }
}
