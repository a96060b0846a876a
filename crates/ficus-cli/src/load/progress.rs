//! The progress of a load: a bar on a terminal, plain lines elsewhere, always on stderr.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::report::Counts;
use crate::output::talk;

/// Between two lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows how far a load is.
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
    quiet: bool,
    started: Instant,
    last_line: Instant,
    bytes_total: u64,
    bytes_read: Arc<AtomicU64>,
}

impl Progress {
    /// For a load of `bytes_total` bytes on disk.
    pub fn new(bytes_total: u64, quiet: bool) -> Progress {
        let plain = !std::io::stderr().is_terminal();
        let target = if plain || quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(5) };
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {elapsed} elapsed, {left} left");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key(
            "left",
            |state: &ProgressState, text: &mut dyn std::fmt::Write| {
                let _ = write!(text, "{}", duration(state.eta()));
            },
        );
        let bar = ProgressBar::with_draw_target(Some(bytes_total), target).with_style(style);
        let now = Instant::now();
        Progress { bar, plain, quiet, started: now, last_line: now, bytes_total, bytes_read: Arc::default() }
    }

    /// Where readers add the bytes they take from disk.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        self.bytes_read.clone()
    }

    /// Counts bytes that did not have to be read once more.
    pub fn passed_over(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Shows the counts of now.
    pub fn update(&mut self, counts: &Counts) {
        if self.quiet {
            return;
        }
        let bytes = self.bytes_read.load(Ordering::Relaxed).min(self.bytes_total);
        if !self.plain {
            self.bar.set_position(bytes);
            self.bar.set_message(self.message(counts));
        } else if self.last_line.elapsed() >= LINE_INTERVAL {
            self.last_line = Instant::now();
            let elapsed = self.started.elapsed();
            let share = bytes as f64 / self.bytes_total.max(1) as f64;
            let left = if share > 0.0 { elapsed.mul_f64((1.0 - share) / share) } else { Duration::ZERO };
            talk(&format!("{:>3.0} %  {}, {} left", share * 100.0, self.message(counts), duration(left)));
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn message(&self, counts: &Counts) -> String {
        let rate = counts.read as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        format!(
            "{} vertices, {} edges, {} rejected, {rate:.0} records/s",
            counts.vertices + counts.implied_vertices,
            counts.edges,
            counts.rejected
        )
    }
}

/// `3 s`, `2:05`, `1:02:03`.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}
