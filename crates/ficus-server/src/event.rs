//! The channel between a running query and the connection that waits for its answer.
//!
//! Bounded, one producer side and one consumer. The producer is an executor thread and never blocks: a push into a full
//! channel hands the batch back, and the producer asks to be woken when there is room. The consumer is a connection's
//! task, and says how many rows it can do something with: waking a thread costs more than making a small row, so it is
//! woken when there are so many, when the channel is full, and at the end. The last event (done or failed) always fits,
//! so that a query can end at any time.
//!
//! ```text
//! executor ──try_push──► [batch][batch][batch][batch] ──poll──► connection ──► frames
//!     ▲ wake when there is room                          wake when there is enough
//! ```
//!
//! A sink that goes away without a last event (its query panicked) reads as a failure on the other side; a receiver
//! that goes away makes every further push answer [`Push::Closed`].

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use ficus_model::{Value, ValueMap};
use ficus_query::budget::Held;

use crate::backend::Failure;
use crate::catalogue;

/// Batches that wait in a channel at most. With a dataflow batch of about a thousand rows this bounds a slow client's
/// share of memory to some thousand rows, and is enough to hide the hand-over between the two threads.
pub const CHANNEL_BATCHES: usize = 4;

/// Rows up to which a batch that waits takes in the next, so that rows that come one by one do not fill the channel.
const BATCH_ROWS: usize = 1024;

/// Bytes up to which it does, as far as they are counted.
const BATCH_BYTES: usize = 1 << 20;

/// Results in order, each with its multiplicity.
#[derive(Debug, Default)]
pub struct Batch {
    /// The results.
    pub rows: Vec<(Value, u64)>,
    /// What they take of their query's memory, handed back when they are no longer there.
    pub held: Held,
}

impl From<Vec<(Value, u64)>> for Batch {
    fn from(rows: Vec<(Value, u64)>) -> Batch {
        Batch { rows, held: Held::default() }
    }
}

impl Batch {
    fn takes_in(&self, next: &Batch) -> bool {
        self.rows.len() + next.rows.len() <= BATCH_ROWS && self.held.bytes() + next.held.bytes() <= BATCH_BYTES
    }

    fn take_in(&mut self, mut next: Batch) {
        self.rows.append(&mut next.rows);
        self.held.absorb(&mut next.held);
    }
}

/// What a running query tells.
#[derive(Debug)]
pub enum Event {
    /// Some results.
    Batch(Batch),
    /// The query is done.
    Done(Completion),
    /// The query ended otherwise.
    Failed(Failure),
}

/// The end of a query that succeeded.
#[derive(Debug, Default)]
pub struct Completion {
    /// Attributes for the status of the last response.
    pub attributes: ValueMap,
    /// True when the query itself ended its session's transaction, as the text `g.addV(); g.tx().commit()` does. The
    /// transaction's key is then dead.
    pub transaction_finished: bool,
}

/// The answer to a push.
#[derive(Debug)]
pub enum Push {
    /// Taken.
    Accepted,
    /// No room; the batch comes back. The waker given is called once there is room.
    Full(Batch),
    /// Nobody waits for results any more; the query should stop.
    Closed,
}

struct State {
    batches: VecDeque<Batch>,
    last: Option<Event>,
    /// Who waits, and for how many more results.
    consumer: Option<Waker>,
    wanted: u64,
    producer: Option<Waker>,
    receiver_gone: bool,
    sink_gone: bool,
}

/// The lock protects one channel's state, is held for a few moves of pointers and never while another lock is taken.
struct Shared(Mutex<State>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the state half changed: every section below is a few infallible moves.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The query's end of the channel.
pub struct EventSink {
    shared: Arc<Shared>,
}

/// The connection's end of the channel.
pub struct EventReceiver {
    shared: Arc<Shared>,
}

/// Makes a channel.
pub fn channel() -> (EventSink, EventReceiver) {
    let shared = Arc::new(Shared(Mutex::new(State {
        batches: VecDeque::with_capacity(1),
        last: None,
        consumer: None,
        wanted: 0,
        producer: None,
        receiver_gone: false,
        sink_gone: false,
    })));
    (EventSink { shared: shared.clone() }, EventReceiver { shared })
}

impl EventSink {
    /// Offers a batch of results. When there is no room the batch comes back and `waker` is called once there is.
    ///
    /// Never blocks. An empty batch is accepted and forgotten.
    pub fn try_push(&self, batch: Batch, waker: &Waker) -> Push {
        let mut state = self.shared.lock();
        if state.receiver_gone {
            return Push::Closed;
        }
        debug_assert!(state.last.is_none(), "a batch after the last event");
        if batch.rows.is_empty() {
            return Push::Accepted;
        }
        let is_full = state.batches.len() >= CHANNEL_BATCHES;
        let results = batch.rows.iter().fold(0, |sum: u64, (_, bulk)| sum.saturating_add(*bulk));
        let answer = match state.batches.back_mut() {
            Some(last) if last.takes_in(&batch) => {
                last.take_in(batch);
                Push::Accepted
            }
            _ if is_full => {
                state.producer = Some(waker.clone());
                Push::Full(batch)
            }
            _ => {
                state.batches.push_back(batch);
                Push::Accepted
            }
        };
        state.wanted = state.wanted.saturating_sub(results);
        let is_enough = state.wanted == 0 || matches!(answer, Push::Full(_));
        let consumer = if is_enough { state.consumer.take() } else { None };
        drop(state);
        if let Some(consumer) = consumer {
            consumer.wake();
        }
        answer
    }

    /// Ends the query with success.
    pub fn done(self, completion: Completion) {
        self.finish(Event::Done(completion));
    }

    /// Ends the query with a failure. Batches that wait are not delivered any more: their memory is free at once, however slow the client is.
    pub fn fail(self, failure: Failure) {
        let unwanted = std::mem::take(&mut self.shared.lock().batches);
        self.finish(Event::Failed(failure));
        drop(unwanted);
    }

    /// True when nobody waits for results any more.
    pub fn is_closed(&self) -> bool {
        self.shared.lock().receiver_gone
    }

    fn finish(self, event: Event) {
        let consumer = {
            let mut state = self.shared.lock();
            state.last = Some(event);
            state.consumer.take()
        };
        if let Some(consumer) = consumer {
            consumer.wake();
        }
    }
}

impl Drop for EventSink {
    fn drop(&mut self) {
        let consumer = {
            let mut state = self.shared.lock();
            state.sink_gone = true;
            state.consumer.take()
        };
        if let Some(consumer) = consumer {
            consumer.wake();
        }
    }
}

impl EventReceiver {
    /// The next event, when there is one. After the last event the answer is a failure, for ever.
    ///
    /// If there is none, the caller is woken when `wanted` results wait, when there is no room for more, and at the end.
    pub fn poll_event(&mut self, wanted: usize, context: &mut Context<'_>) -> Poll<Event> {
        let mut state = self.shared.lock();
        if let Some(batch) = state.batches.pop_front() {
            let producer = state.producer.take();
            drop(state);
            if let Some(producer) = producer {
                producer.wake();
            }
            return Poll::Ready(Event::Batch(batch));
        }
        if let Some(last) = state.last.take() {
            return Poll::Ready(last);
        }
        if state.sink_gone {
            return Poll::Ready(Event::Failed(Failure::new(
                &catalogue::INTERNAL,
                "the query ended without an answer; the server's log tells more",
            )));
        }
        if !state.consumer.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            state.consumer = Some(context.waker().clone());
        }
        state.wanted = wanted as u64;
        Poll::Pending
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let (producer, batches) = {
            let mut state = self.shared.lock();
            state.receiver_gone = true;
            (state.producer.take(), std::mem::take(&mut state.batches))
        };
        drop(batches);
        if let Some(producer) = producer {
            producer.wake();
        }
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSink").field("closed", &self.is_closed()).finish()
    }
}

impl fmt::Debug for EventReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventReceiver").field("waiting", &self.shared.lock().batches.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use ficus_query::budget::MemoryAccount;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn counter() -> (Arc<Counter>, Waker) {
        let counter = Arc::new(Counter::default());
        (counter.clone(), Waker::from(counter))
    }

    /// One that takes in no other.
    fn batch(number: i32) -> Batch {
        vec![(Value::Int(number), 1); BATCH_ROWS].into()
    }

    fn row(number: i32) -> Batch {
        vec![(Value::Int(number), 1)].into()
    }

    fn read(receiver: &mut EventReceiver, waker: &Waker) -> String {
        read_when(1, receiver, waker)
    }

    fn read_when(wanted: usize, receiver: &mut EventReceiver, waker: &Waker) -> String {
        match receiver.poll_event(wanted, &mut Context::from_waker(waker)) {
            Poll::Pending => "pending".into(),
            Poll::Ready(Event::Batch(batch)) if batch.rows.len() < BATCH_ROWS => format!("{} rows", batch.rows.len()),
            Poll::Ready(Event::Batch(batch)) => format!("batch {:?}", batch.rows[0].0),
            Poll::Ready(Event::Done(_)) => "done".into(),
            Poll::Ready(Event::Failed(failure)) => format!("failed {}", failure.code),
        }
    }

    #[test]
    fn batches_come_in_order_and_before_the_end() {
        let (sink, mut receiver) = channel();
        let (woken, waker) = counter();
        assert_eq!(read(&mut receiver, &waker), "pending");
        assert!(matches!(sink.try_push(batch(1), &waker), Push::Accepted));
        assert!(matches!(sink.try_push(batch(2), &waker), Push::Accepted));
        assert_eq!(woken.0.load(Ordering::SeqCst), 1, "one wake for a consumer that waits");
        sink.done(Completion::default());
        let events: Vec<String> = (0..4).map(|_| read(&mut receiver, &waker)).collect();
        assert_eq!(events, ["batch Int(1)", "batch Int(2)", "done", "failed FICUS-1901"]);
    }

    #[test]
    fn rows_that_come_one_by_one_wait_together_for_as_many_as_are_wanted() {
        let (sink, mut receiver) = channel();
        let (woken, waker) = counter();
        assert_eq!(read_when(20, &mut receiver, &waker), "pending");
        for number in 0..19 {
            assert!(matches!(sink.try_push(row(number), Waker::noop()), Push::Accepted));
        }
        assert_eq!(woken.0.load(Ordering::SeqCst), 0, "a row is missing");
        assert!(matches!(sink.try_push(row(19), Waker::noop()), Push::Accepted));
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(read(&mut receiver, &waker), "20 rows");
        assert_eq!(read_when(100, &mut receiver, &waker), "pending");
        assert!(matches!(sink.try_push(vec![(Value::Int(1), u64::MAX)].into(), Waker::noop()), Push::Accepted));
        assert_eq!(woken.0.load(Ordering::SeqCst), 2, "one row, but many results");
        assert_eq!(read(&mut receiver, &waker), "1 rows");
        assert_eq!(read_when(100, &mut receiver, &waker), "pending");
        assert!(matches!(sink.try_push(row(1), Waker::noop()), Push::Accepted));
        sink.done(Completion::default());
        assert_eq!(woken.0.load(Ordering::SeqCst), 3, "the end comes in any case");
        let events: Vec<String> = (0..2).map(|_| read(&mut receiver, &waker)).collect();
        assert_eq!(events, ["1 rows", "done"]);
    }

    #[test]
    fn a_consumer_that_wants_more_than_there_is_room_for_is_woken() {
        let (sink, mut receiver) = channel();
        let (woken, waker) = counter();
        assert_eq!(read_when(1_000_000, &mut receiver, &waker), "pending");
        for number in 0..CHANNEL_BATCHES {
            assert!(matches!(sink.try_push(batch(number as i32), &waker), Push::Accepted));
        }
        assert_eq!(woken.0.load(Ordering::SeqCst), 0);
        assert!(matches!(sink.try_push(row(9), &waker), Push::Full(_)));
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(read(&mut receiver, &waker), "batch Int(0)");
    }

    #[test]
    fn a_full_channel_hands_back_and_wakes_when_there_is_room() {
        let (sink, mut receiver) = channel();
        let (woken, waker) = counter();
        for number in 0..CHANNEL_BATCHES {
            assert!(matches!(sink.try_push(batch(number as i32), &waker), Push::Accepted));
        }
        assert!(matches!(sink.try_push(batch(9), &waker), Push::Full(back) if back.rows == batch(9).rows));
        assert_eq!(woken.0.load(Ordering::SeqCst), 0);
        assert_eq!(read(&mut receiver, Waker::noop()), "batch Int(0)");
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert!(matches!(sink.try_push(batch(9), &waker), Push::Accepted));
    }

    #[test]
    fn the_end_fits_even_into_a_full_channel() {
        let (sink, mut receiver) = channel();
        for number in 0..CHANNEL_BATCHES {
            assert!(matches!(sink.try_push(batch(number as i32), Waker::noop()), Push::Accepted));
        }
        sink.done(Completion::default());
        for _ in 0..CHANNEL_BATCHES {
            assert!(read(&mut receiver, Waker::noop()).starts_with("batch"));
        }
        assert_eq!(read(&mut receiver, Waker::noop()), "done");
    }

    #[test]
    fn a_failure_comes_at_once_and_frees_what_waits() {
        let account = MemoryAccount::new(1 << 30);
        let (sink, mut receiver) = channel();
        for number in 0..CHANNEL_BATCHES {
            assert!(matches!(sink.try_push(heavy(&account, number as i32, 1000), Waker::noop()), Push::Accepted));
        }
        sink.fail(Failure::new(&catalogue::TIMEOUT, "late"));
        assert_eq!(account.used_bytes(), 0);
        assert_eq!(read(&mut receiver, Waker::noop()), "failed FICUS-1401");
    }

    /// A row that holds so many bytes.
    fn heavy(account: &MemoryAccount, number: i32, bytes: usize) -> Batch {
        let mut batch = row(number);
        batch.held.add(account, bytes).expect("there is room");
        batch
    }

    #[test]
    fn heavy_rows_do_not_wait_together() {
        let account = MemoryAccount::new(1 << 30);
        let (sink, mut receiver) = channel();
        let push = |number| sink.try_push(heavy(&account, number, BATCH_BYTES / 2), Waker::noop());
        for number in 0..2 * CHANNEL_BATCHES {
            assert!(matches!(push(number as i32), Push::Accepted));
        }
        assert!(matches!(push(9), Push::Full(_)));
        assert_eq!(account.used_bytes(), CHANNEL_BATCHES * BATCH_BYTES);
        assert_eq!(read(&mut receiver, Waker::noop()), "2 rows");
        assert_eq!(account.used_bytes(), (CHANNEL_BATCHES - 1) * BATCH_BYTES);
        drop(receiver);
        assert_eq!(account.used_bytes(), 0);
    }

    #[test]
    fn a_sink_that_vanishes_reads_as_a_failure_and_wakes() {
        let (sink, mut receiver) = channel();
        let (woken, waker) = counter();
        assert_eq!(read(&mut receiver, &waker), "pending");
        drop(sink);
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(read(&mut receiver, &waker), "failed FICUS-1901");
    }

    #[test]
    fn a_receiver_that_vanishes_closes_the_sink_and_wakes() {
        let (sink, receiver) = channel();
        let (woken, waker) = counter();
        for number in 0..=CHANNEL_BATCHES {
            let _ = sink.try_push(batch(number as i32), &waker);
        }
        drop(receiver);
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert!(sink.is_closed());
        assert!(matches!(sink.try_push(batch(1), &waker), Push::Closed));
    }
}
