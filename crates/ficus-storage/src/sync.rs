//! Locks, waiting and threads of the pieces whose interleavings are tested: those of the standard library, or with
//! `--cfg shuttle` those of a scheduler that tries many orders of events from a seed.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic, mpsc};
#[cfg(not(shuttle))]
pub(crate) use std::thread;

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic, mpsc};
#[cfg(shuttle)]
pub(crate) use shuttle::thread;
