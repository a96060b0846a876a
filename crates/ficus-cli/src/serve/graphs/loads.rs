//! The load that runs, if one does, and what loads have come to.

use std::fmt::Write;
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
    ended: Ended,
}

/// What the loads that have ended came to.
#[derive(Default)]
struct Ended {
    complete: u64,
    broken_off: u64,
    vertices: u64,
    edges: u64,
    rejected: u64,
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
        let place = Place { inner: self.0.clone(), counts: None, far, is_stopped };
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

    /// Writes what is known of loads, in the Prometheus text format.
    pub fn write_metrics(&self, out: &mut String) {
        let state = self.0.state();
        let running = state.running.as_ref();
        let far = running.map(|running| *running.far.lock().unwrap_or_else(PoisonError::into_inner));
        let (Far { bytes, bytes_total, .. }, ended) = (far.unwrap_or_default(), &state.ended);
        let mut write = |name: &str, kind: &str, help: &str, samples: &[(&str, u64)]| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            samples.iter().for_each(|(labels, value)| {
                let _ = writeln!(out, "{name}{labels} {value}");
            });
        };
        let outcomes = [(r#"{outcome="complete"}"#, ended.complete), (r#"{outcome="broken_off"}"#, ended.broken_off)];
        write("ficus_load_running", "gauge", "Whether files are being loaded.", &[("", u64::from(far.is_some()))]);
        write("ficus_load_bytes", "gauge", "Bytes to be read by the load that runs, all passes.", &[("", bytes_total)]);
        write("ficus_load_bytes_read", "gauge", "Bytes of these that were read.", &[("", bytes)]);
        write("ficus_loads_total", "counter", "Loads that have ended, with all their records or before.", &outcomes);
        let vertices = ("{kind=\"vertex\"}", ended.vertices);
        let records = [vertices, ("{kind=\"edge\"}", ended.edges), ("{kind=\"rejected\"}", ended.rejected)];
        let help = "Records of complete loads, by what became of them.";
        write("ficus_load_records_total", "counter", help, &records);
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
    /// What a complete load came to.
    counts: Option<Counts>,
    far: Arc<Mutex<Far>>,
    is_stopped: Arc<AtomicBool>,
}

impl Place {
    /// Where the load says how far it is.
    pub fn far(&self) -> Arc<Mutex<Far>> {
        self.far.clone()
    }

    /// The load has ended with all its records.
    pub fn complete(mut self, counts: Counts) {
        self.counts = Some(counts);
    }

    /// Whether it is to end early.
    pub fn is_stopped(&self) -> Arc<AtomicBool> {
        self.is_stopped.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.inner.state();
        state.running = None;
        let ended = &mut state.ended;
        match self.counts {
            None => ended.broken_off += 1,
            Some(Counts { vertices, edges, rejected, implied_vertices, .. }) => {
                ended.complete += 1;
                ended.vertices += vertices + implied_vertices;
                ended.edges += edges;
                ended.rejected += rejected;
            }
        }
        drop(state);
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
        let mut metrics = String::new();
        loads.write_metrics(&mut metrics);
        assert!(metrics.contains("ficus_loads_total{outcome=\"broken_off\"} 1\n"), "{metrics}");
        assert!(is_stopped.load(Ordering::Relaxed) && loads.now().is_none());
        assert!(loads.begin("g").is_none());
        load.join().expect("it ended");
    }
}
