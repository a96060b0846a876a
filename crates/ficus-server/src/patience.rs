//! Patience with a client that does not take what is written for it.
//!
//! Time counts while the stream takes nothing more: until all is taken, or a good part of it. What is written faster than that is never looked at.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// Bytes that a client has to take in the time it has, if there are so many for it: a large answer may take longer than that, byte by byte it may not.
const PART_BYTES: usize = 1 << 20;

/// The longest time that is waited for, a year: what is longer is for ever, and no clock goes so far.
const LIMIT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long a client may let the server wait.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    /// Ends the wait; kept from one to the next.
    timer: Option<Pin<Box<Sleep>>>,
    /// While the server waits: what was taken since it began to.
    waiting: Option<usize>,
}

impl Patience {
    /// A server that waits for so long.
    pub fn new(limit: Duration) -> Patience {
        Patience { limit: limit.min(LIMIT_MAX), timer: None, waiting: None }
    }

    /// So many bytes were taken.
    pub fn taken(&mut self, bytes: usize) {
        self.waiting = self.waiting.map(|taken| taken.saturating_add(bytes)).filter(|taken| *taken < PART_BYTES);
    }

    /// Everything was taken.
    pub fn all_taken(&mut self) {
        self.waiting = None;
    }

    /// Nothing is taken now. Ready with an error when that has lasted too long; else the task is woken by then.
    pub fn poll_wait(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if self.waiting.is_none() {
            self.waiting = Some(0);
            timer.as_mut().reset(Instant::now() + limit);
        }
        ready!(timer.as_mut().poll(context));
        tracing::warn!(patience_ms = limit.as_millis() as u64, "the client does not take its answers");
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "the client does not take its answers"))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[tokio::test]
    async fn who_takes_little_is_waited_for_as_long_as_who_takes_nothing() {
        let mut context = Context::from_waker(Waker::noop());
        // Far away: what happens does not depend on how long it takes.
        let mut patience = Patience::new(Duration::from_secs(3600));
        let due = |patience: &Patience| patience.timer.as_ref().expect("it waits").deadline();
        assert!(patience.poll_wait(&mut context).is_pending());
        let first = due(&patience);
        patience.taken(PART_BYTES - 1);
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(patience.poll_wait(&mut context).is_pending());
        assert_eq!(due(&patience), first, "the same wait");
        patience.taken(1);
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(patience.poll_wait(&mut context).is_pending());
        let second = due(&patience);
        assert!(second > first, "another one");
        patience.all_taken();
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(patience.poll_wait(&mut context).is_pending());
        assert!(due(&patience) > second, "and another one");
        let mut none = Patience::new(Duration::ZERO);
        let error = std::future::poll_fn(|context| none.poll_wait(context)).await;
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
