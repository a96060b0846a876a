//! How a pass learns that nobody wants its answer any more.

use crate::AnalyticsError;

/// Asked between parts of a pass, from several threads; a part is some hundred microseconds of work.
pub trait Control: Sync {
    /// True if the work is to end without an answer.
    fn is_stopped(&self) -> bool;

    /// Told by programs how much of their work is done, from 0 to 1.
    fn progress(&self, _share: f64) {}

    /// Told by programs that go in rounds how many are done, of how many at most.
    fn round(&self, done: u32, limit: u32) {
        self.progress(f64::from(done) / f64::from(limit.max(1)));
    }
}

/// Never stops anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl Control for Unlimited {
    fn is_stopped(&self) -> bool {
        false
    }
}

/// `Stopped` if the control says so.
pub(crate) fn check(control: &dyn Control) -> Result<(), AnalyticsError> {
    if control.is_stopped() { Err(AnalyticsError::Stopped) } else { Ok(()) }
}
