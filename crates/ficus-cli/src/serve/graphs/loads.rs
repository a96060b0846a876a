//! The load that runs, if one does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::load::report::Counts;

/// How far a load is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Far {
    /// Bytes of the files that were read.
    pub bytes: u64,
    /// Bytes to read.
    pub bytes_total: u64,
    /// What became of the records.
    pub counts: Counts,
}

/// The place for one load at a time.
#[derive(Default)]
pub struct Loads(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// No load begins any more.
    is_stopped: bool,
}

struct Running {
    graph: String,
    far: Arc<Mutex<Far>>,
    is_stopped: Arc<AtomicBool>,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loads {
    /// Takes the place for a load into a graph; `None` if another has it.
    pub fn begin(&self, graph: &str) -> Option<Place> {
        let mut state = self.0.state();
        if state.running.is_some() || state.is_stopped {
            return None;
        }
        let (far, is_stopped) = (Arc::default(), Arc::default());
        let place = Place { inner: self.0.clone(), far, is_stopped };
        let (far, is_stopped) = (place.far.clone(), place.is_stopped.clone());
        state.running = Some(Running { graph: graph.to_owned(), far, is_stopped });
        Some(place)
    }

    /// The graph that is loaded, and how far that is.
    pub fn now(&self) -> Option<(String, Far)> {
        let state = self.0.state();
        let running = state.running.as_ref()?;
        let far = *running.far.lock().unwrap_or_else(PoisonError::into_inner);
        Some((running.graph.clone(), far))
    }

    /// Ends the load that runs, and waits for its end; none begins any more.
    pub fn stop(&self) {
        let mut state = self.0.state();
        state.is_stopped = true;
        if let Some(running) = &state.running {
            running.is_stopped.store(true, Ordering::Relaxed);
        }
        while state.running.is_some() {
            state = self.0.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The place of a load; dropped when the load has ended.
pub struct Place {
    inner: Arc<Inner>,
    far: Arc<Mutex<Far>>,
    is_stopped: Arc<AtomicBool>,
}

impl Place {
    /// Where the load says how far it is.
    pub fn far(&self) -> Arc<Mutex<Far>> {
        self.far.clone()
    }

    /// Whether it is to end early.
    pub fn is_stopped(&self) -> Arc<AtomicBool> {
        self.is_stopped.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.inner.state().running = None;
        self.inner.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_load_at_a_time_and_none_after_the_stop() {
        let loads = Loads::default();
        let place = loads.begin("g").expect("nobody else loads");
        assert!(loads.begin("h").is_none());
        assert_eq!(loads.now().expect("one runs").0, "g");
        let is_stopped = place.is_stopped();
        let load = std::thread::spawn(move || {
            while !place.is_stopped.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        });
        loads.stop();
        assert!(is_stopped.load(Ordering::Relaxed) && loads.now().is_none());
        assert!(loads.begin("g").is_none());
        load.join().expect("it ended");
    }
}
