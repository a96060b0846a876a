//! Transactions that live between requests: those of sessions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ficus_dataflow::CancelToken;
use ficus_query::QueryError;
use ficus_storage::{Graph, Transaction};

use crate::backend::{Callback, Failure, TransactionKey};
use crate::catalogue;

use super::failure::{self, Form};

/// The open transactions of sessions.
#[derive(Default)]
pub struct Transactions {
    /// Protects the map; held for look-ups and moves, never while a query runs or a commit is waited for.
    open: Mutex<HashMap<TransactionKey, Slot>>,
    next_key: AtomicU64,
}

/// Where a transaction is between requests, and that it is away during one.
enum Slot {
    /// No request uses it. Boxed: a transaction is a few hundred bytes, the map is rehashed.
    Idle(Box<Transaction>),
    /// A request uses it.
    Busy(CancelToken),
    /// It is to be ended as soon as the request that uses it is over.
    Ending(bool, Callback),
}

impl Transactions {
    fn lock(&self) -> MutexGuard<'_, HashMap<TransactionKey, Slot>> {
        // All critical sections are single map operations.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a transaction.
    pub fn open(&self, graph: &Arc<Graph>) -> TransactionKey {
        let key = TransactionKey(self.next_key.fetch_add(1, Ordering::Relaxed) + 1);
        self.lock().insert(key, Slot::Idle(Box::new(graph.begin())));
        key
    }

    /// Lends the transaction to a request.
    pub fn take(&self, key: TransactionKey, cancel: &CancelToken) -> Result<Transaction, Failure> {
        let mut open = self.lock();
        match open.get_mut(&key) {
            Some(slot @ Slot::Idle(_)) => match std::mem::replace(slot, Slot::Busy(cancel.clone())) {
                Slot::Idle(transaction) => Ok(*transaction),
                _ => unreachable!("matched above"),
            },
            Some(Slot::Busy(_) | Slot::Ending(..)) => {
                Err(Failure::new(&catalogue::INVALID_TRAVERSAL, "another request of this transaction is still running"))
            }
            None => Err(no_transaction()),
        }
    }

    /// Takes the transaction back after a request.
    pub fn put_back(&self, key: TransactionKey, transaction: Transaction) {
        let mut open = self.lock();
        match open.remove(&key) {
            Some(Slot::Ending(commit, done)) => {
                drop(open);
                end(transaction, commit, done);
            }
            Some(_) => {
                open.insert(key, Slot::Idle(Box::new(transaction)));
            }
            None => transaction.rollback(),
        }
    }

    /// Removes a transaction that its own request ended.
    pub fn forget(&self, key: TransactionKey) {
        if let Some(Slot::Ending(_, done)) = self.lock().remove(&key) {
            done(Err(no_transaction()));
        }
    }

    /// Ends a transaction: at once, or when the request that uses it is over (which is cancelled).
    pub fn finish(&self, key: TransactionKey, commit: bool, done: Callback) {
        let mut open = self.lock();
        match open.remove(&key) {
            None => {
                drop(open);
                done(Err(no_transaction()));
            }
            Some(Slot::Idle(transaction)) => {
                drop(open);
                end(*transaction, commit, done);
            }
            Some(Slot::Busy(cancel)) => {
                cancel.cancel();
                open.insert(key, Slot::Ending(commit, done));
            }
            Some(ending @ Slot::Ending(..)) => {
                open.insert(key, ending);
                drop(open);
                done(Err(no_transaction()));
            }
        }
    }
}

fn no_transaction() -> Failure {
    Failure::new(
        &catalogue::INVALID_TRAVERSAL,
        "there is no open transaction; it was committed, rolled back or expired",
    )
}

/// Commits or rolls back without waiting.
pub fn end(transaction: Transaction, commit: bool, done: Callback) {
    if !commit {
        transaction.rollback();
        done(Ok(()));
        return;
    }
    transaction.commit_with(Box::new(move |outcome| {
        done(outcome.map(|_| ()).map_err(|error| failure::query(&QueryError::from(error), Form::Text)));
    }));
}
