//! When the next group of commits begins: measured, since disks differ by a factor of a thousand.
//!
//! A flush costs the same for one commit as for a hundred. So a group should have in it whoever is about to commit, and none should wait for a
//! flush that could have begun earlier. Two measures decide: how long a flush takes, and how long it takes to apply and to answer.
//!
//! * [`Pace::ahead`]: while a long group is applied, the log would be idle. The next group begins when what is left of this one takes as long as a flush.
//! * [`Returning`]: while a short group is answered, the log is idle in any case. Those who are answered are often back in no time, with the next commit;
//!   the next group waits for as many as came back lately, for a part of a flush at most.

use std::time::{Duration, Instant};

use crate::sync::atomic::{AtomicU64, Ordering};

/// A new measure counts this part of what is remembered, as a power of two.
const FADES: u32 = 3;

/// Before anything was measured: of a solid state disk.
const FLUSH_NS: u64 = 250_000;
const MUTATION_NS: u64 = 15_000;

/// Those who come back are waited for during this part of a flush.
const PATIENCE: u32 = 2;

/// How long the two halves of a commit take.
#[derive(Debug)]
pub(crate) struct Pace {
    flush_ns: AtomicU64,
    /// To apply and to answer one mutation.
    mutation_ns: AtomicU64,
}

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace { flush_ns: AtomicU64::new(FLUSH_NS), mutation_ns: AtomicU64::new(MUTATION_NS) }
    }

    /// It took so long to bring a group to the log: a flush, or next to nothing where nobody asks for one.
    pub(crate) fn logged(&self, time: Duration) {
        remember(&self.flush_ns, time);
    }

    /// So many mutations were applied in this time, and answered.
    pub(crate) fn applied(&self, mutations: usize, time: Duration) {
        remember(&self.mutation_ns, time / u32::try_from(mutations.max(1)).unwrap_or(u32::MAX));
    }

    /// Mutations that are applied and answered during one flush.
    pub(crate) fn ahead(&self) -> usize {
        if cfg!(shuttle) {
            // Tests of interleavings have groups on both sides of it, whatever the time.
            return 1;
        }
        let mutation_ns = self.mutation_ns.load(Ordering::Relaxed).max(1);
        usize::try_from(self.flush_ns.load(Ordering::Relaxed) / mutation_ns).unwrap_or(usize::MAX)
    }

    /// How long those who were answered are waited for.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_nanos(self.flush_ns.load(Ordering::Relaxed)) / PATIENCE
    }
}

/// Threads that measure at the same time may lose one of two measures.
fn remember(mean: &AtomicU64, time: Duration) {
    let before = mean.load(Ordering::Relaxed);
    let new = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) >> FADES;
    mean.store((before - (before >> FADES)).saturating_add(new), Ordering::Relaxed);
}

/// Who was answered last, and how many of them have come back.
#[derive(Debug)]
pub(crate) struct Returning {
    answered: usize,
    /// How many have come since, in time.
    back: usize,
    /// Until when it is worth to wait; `None` if nobody was answered lately.
    until: Option<Instant>,
    /// How many are together in the next group, if as many come back as lately.
    expected: usize,
    /// The share of those answered who came back in time, lately.
    share: f32,
}

impl Returning {
    pub(crate) fn new() -> Returning {
        Returning { answered: 0, back: 0, until: None, expected: 0, share: 1.0 }
    }

    /// So many are answered now, and others wait already.
    pub(crate) fn answering(&mut self, answered: usize, others: usize, now: Instant, patience: Duration) {
        if self.answered > 0 {
            let came = (self.back as f32 / self.answered as f32).min(1.0);
            self.share += (came - self.share) / (1 << FADES) as f32;
        }
        *self = Returning {
            answered,
            back: 0,
            until: Some(now + patience),
            expected: others + (answered as f32 * self.share).round() as usize,
            share: self.share,
        };
    }

    /// Somebody comes.
    pub(crate) fn comes(&mut self, now: impl FnOnce() -> Instant) {
        if let Some(until) = self.until {
            match now() <= until {
                true => self.back += 1,
                false => self.until = None,
            }
        }
    }

    /// How many are to be waited for, and how long; `None` if nobody is, where so many are there.
    pub(crate) fn missing(&self, there: usize, now: impl FnOnce() -> Instant) -> Option<(usize, Duration)> {
        let until = self.until.filter(|_| there < self.expected)?;
        let left = until.saturating_duration_since(now());
        (!left.is_zero()).then_some((self.expected, left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: Duration = Duration::from_micros(200);

    #[test]
    fn what_is_left_is_measured_in_flushes() {
        let pace = Pace::new();
        (0..100).for_each(|_| pace.logged(Duration::from_millis(10)));
        (0..100).for_each(|_| pace.applied(8, Duration::from_micros(80)));
        assert!((900..=1_100).contains(&pace.ahead()), "{}", pace.ahead());
        assert!((4..=6).contains(&pace.patience().as_millis()), "{:?}", pace.patience());
        (0..100).for_each(|_| pace.logged(Duration::from_micros(50)));
        assert!((3..=7).contains(&pace.ahead()), "{}", pace.ahead());
    }

    #[test]
    fn who_comes_back_is_waited_for() {
        let start = Instant::now();
        let mut returning = Returning::new();
        assert_eq!(returning.missing(1, || start), None, "nobody was answered");
        returning.answering(7, 1, start, FLUSH);
        assert_eq!(returning.missing(1, || start), Some((8, FLUSH)));
        assert_eq!(returning.missing(8, || start), None, "all are there");
        assert_eq!(returning.missing(5, || start + 2 * FLUSH), None, "nobody waits longer");
    }

    #[test]
    fn who_stays_away_is_waited_for_no_more() {
        let mut now = Instant::now();
        let mut returning = Returning::new();
        for _ in 0..40 {
            returning.answering(4, 0, now, FLUSH);
            // One of four comes in time, the others too late.
            returning.comes(|| now + FLUSH / 2);
            (0..3).for_each(|_| returning.comes(|| now + 10 * FLUSH));
            now += 20 * FLUSH;
        }
        returning.answering(4, 0, now, FLUSH);
        assert_eq!(returning.missing(0, || now).map(|(expected, _)| expected), Some(1));
        assert_eq!(returning.missing(1, || now), None);
    }

    #[test]
    fn one_alone_never_waits() {
        let mut now = Instant::now();
        let mut returning = Returning::new();
        for _ in 0..10 {
            assert_eq!(returning.missing(1, || now), None);
            returning.answering(1, 0, now, FLUSH);
            now += FLUSH / 10;
            returning.comes(|| now);
        }
    }
}
