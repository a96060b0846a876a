//! Who is told the outcome of a commit, and how: every caller exactly once, even if the thread that commits panics before it can.

use std::sync::{Arc, OnceLock};

use crate::sync::thread::{self, Thread};
use crate::{CommitCallback, CommitTs, StoreError};

type Outcome = Result<CommitTs, StoreError>;

/// For whom nobody has told.
fn untold() -> Outcome {
    Err(StoreError::Poisoned { cause: "a bug in the store stopped this commit".to_string() })
}

/// Who committed something.
pub(crate) enum Caller {
    /// A thread that sleeps until it knows. It can be told with any lock held.
    Sleeps(Reply),
    /// Somebody who is called back, and who may begin the next transaction then: told with no lock held.
    IsCalled(Told),
}

impl Caller {
    pub(crate) fn to_call(callback: CommitCallback) -> Caller {
        Caller::IsCalled(Told(Some(callback)))
    }

    pub(crate) fn tell(self, outcome: Outcome) {
        match self {
            Caller::Sleeps(reply) => reply.tell(outcome),
            Caller::IsCalled(told) => told.tell(outcome),
        }
    }
}

/// Outcomes that are known and not told yet.
#[derive(Default)]
pub(crate) struct Answers(Vec<(Caller, Outcome)>);

impl Answers {
    pub(crate) fn push(&mut self, caller: Caller, outcome: Outcome) {
        self.0.push((caller, outcome));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells those who sleep; a lock may be held.
    pub(crate) fn tell_sleepers(&mut self) {
        let sleeps = |(caller, _): &mut (Caller, Outcome)| matches!(caller, Caller::Sleeps(_));
        self.0.extract_if(.., sleeps).for_each(|(caller, outcome)| caller.tell(outcome));
    }

    /// Tells all, with no lock held.
    pub(crate) fn tell(self) {
        self.0.into_iter().for_each(|(caller, outcome)| caller.tell(outcome));
    }
}

/// Where a thread waits for the outcome of its commit.
pub(crate) struct Sleeper(Arc<Answer>);

struct Answer {
    outcome: OnceLock<Outcome>,
    asker: Thread,
}

/// Tells a thread that sleeps.
pub(crate) struct Reply(Arc<Answer>);

impl Sleeper {
    /// Of the thread that calls this, and what tells it.
    pub(crate) fn here() -> (Sleeper, Caller) {
        let answer = Arc::new(Answer { outcome: OnceLock::new(), asker: thread::current() });
        (Sleeper(answer.clone()), Caller::Sleeps(Reply(answer)))
    }

    pub(crate) fn wait(self) -> Outcome {
        loop {
            if let Some(outcome) = self.0.outcome.get() {
                return outcome.clone();
            }
            thread::park();
        }
    }
}

impl Reply {
    fn tell(self, outcome: Outcome) {
        // Dropping it wakes who waits.
        let _ = self.0.outcome.set(outcome);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.0.outcome.get_or_init(untold);
        self.0.asker.unpark();
    }
}

/// Calls back.
pub(crate) struct Told(Option<CommitCallback>);

impl Told {
    fn tell(mut self, outcome: Outcome) {
        if let Some(callback) = self.0.take() {
            callback(outcome);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(callback) = self.0.take() {
            callback(untold());
        }
    }
}
