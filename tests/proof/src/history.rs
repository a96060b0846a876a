//! What happened in a run: one [`Record`] a transaction.

use crate::naive::Write;
use crate::query::Query;

/// What a client asked, in the order in which it did.
#[derive(Clone, Debug)]
pub enum Event {
    /// A read with its answer.
    Read(Query, Vec<i64>),
    /// A write that the transaction accepted.
    Write(Write),
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It wrote, and its commit was acknowledged with this timestamp.
    Committed(u64),
    /// It wrote nothing and ended well.
    ReadOnly,
    /// It was refused, rolled back or cut off; nothing of it may ever be seen.
    Aborted,
    /// It wrote, and the disk failed during its commit: all of it happened, or nothing.
    Unknown,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Record {
    /// Who ran it.
    pub client: usize,
    /// A moment before it began. Moments are numbers from one counter.
    pub begin: u64,
    /// A moment after its client was told the outcome.
    pub end: u64,
    /// The timestamp of its snapshot, as the store tells it.
    pub snapshot: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it did.
    pub events: Vec<Event>,
}

impl Record {
    /// True if something was written, whether it lasted or not.
    pub fn has_writes(&self) -> bool {
        self.events.iter().any(|event| matches!(event, Event::Write(_)))
    }
}
