//! The progress of a load: a bar on a terminal, plain lines elsewhere, always on stderr; or told to a [`Listener`].

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::loader::LoadError;
use super::report::Counts;
use crate::output::talk;

/// Between two lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Between two reports to a listener.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);

/// Somebody who wants to know how far a load is, and may call it off.
pub trait Listener {
    /// Bytes of the files that were read, of so many, and what became of their records. Comes twice a second.
    fn update(&mut self, bytes: u64, bytes_total: u64, counts: &Counts);

    /// Something to tell the user.
    fn remark(&mut self, text: &str);

    /// Whether the load is to end before it is complete.
    fn is_stopped(&self) -> bool;
}

/// Who is told.
enum Audience {
    /// Nobody.
    Nobody,
    /// Somebody at a terminal.
    Terminal(ProgressBar),
    /// Whoever reads a log.
    Lines,
    /// A program.
    Listener(Box<dyn Listener + Send>),
}

/// Shows how far a load is.
pub struct Progress {
    audience: Audience,
    started: Instant,
    last_line: Instant,
    bytes_total: u64,
    bytes_read: Arc<AtomicU64>,
}

impl Progress {
    /// For a load of `bytes_total` bytes on disk, on stderr.
    pub fn new(bytes_total: u64, quiet: bool) -> Progress {
        let audience = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Audience::Nobody,
            (false, false) => Audience::Lines,
            (false, true) => Audience::Terminal(bar(bytes_total)),
        };
        Progress::told_to(audience, bytes_total)
    }

    /// For a load that a program looks after.
    pub fn to_listener(bytes_total: u64, listener: Box<dyn Listener + Send>) -> Progress {
        Progress::told_to(Audience::Listener(listener), bytes_total)
    }

    fn told_to(audience: Audience, bytes_total: u64) -> Progress {
        let now = Instant::now();
        Progress { audience, started: now, last_line: now, bytes_total, bytes_read: Arc::default() }
    }

    /// Where readers add the bytes they take from disk.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        self.bytes_read.clone()
    }

    /// Counts bytes that did not have to be read once more.
    pub fn passed_over(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Says something to the user.
    pub fn remark(&mut self, text: &str) {
        match &mut self.audience {
            Audience::Listener(listener) => listener.remark(text),
            _ => talk(text),
        }
    }

    /// Shows the counts of now, at most every so often.
    ///
    /// Errors: `Stopped` if somebody called the load off.
    pub fn update(&mut self, counts: &Counts) -> Result<(), LoadError> {
        let bytes = self.bytes_read.load(Ordering::Relaxed).min(self.bytes_total);
        let message = || message(counts, self.started.elapsed());
        match &mut self.audience {
            Audience::Nobody => {}
            Audience::Terminal(bar) => {
                bar.set_position(bytes);
                bar.set_message(message());
            }
            Audience::Lines if self.last_line.elapsed() < LINE_INTERVAL => {}
            Audience::Lines => {
                self.last_line = Instant::now();
                talk(&line(bytes, self.bytes_total, self.started.elapsed(), &message()));
            }
            Audience::Listener(listener) => {
                if self.last_line.elapsed() >= REPORT_INTERVAL {
                    self.last_line = Instant::now();
                    listener.update(bytes, self.bytes_total, counts);
                }
                if listener.is_stopped() {
                    return Err(LoadError::Stopped);
                }
            }
        }
        Ok(())
    }

    /// Shows what somebody else says of a load: bytes read, of so many, and counts.
    pub fn show(&mut self, bytes: u64, bytes_total: u64, counts: &Counts) {
        self.bytes_read.store(bytes, Ordering::Relaxed);
        self.bytes_total = bytes_total;
        if let Audience::Terminal(bar) = &self.audience {
            bar.set_length(bytes_total);
        }
        // Nobody who looks on from here can call it off.
        let _ = self.update(counts);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Audience::Terminal(bar) = &self.audience {
            bar.finish_and_clear();
        }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

fn bar(bytes_total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {elapsed} elapsed, {left} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key(
        "left",
        |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{}", duration(state.eta()));
        },
    );
    ProgressBar::with_draw_target(Some(bytes_total), ProgressDrawTarget::stderr_with_hz(5)).with_style(style)
}

fn line(bytes: u64, bytes_total: u64, elapsed: Duration, message: &str) -> String {
    let share = bytes as f64 / bytes_total.max(1) as f64;
    let left = if share > 0.0 { elapsed.mul_f64((1.0 - share) / share) } else { Duration::ZERO };
    format!("{:>3.0} %  {message}, {} left", share * 100.0, duration(left))
}

fn message(counts: &Counts, elapsed: Duration) -> String {
    let rate = counts.read as f64 / elapsed.as_secs_f64().max(0.001);
    format!(
        "{} vertices, {} edges, {} rejected, {rate:.0} records/s",
        counts.vertices + counts.implied_vertices,
        counts.edges,
        counts.rejected
    )
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
