//! Sessions: a client's conversation over several requests, with a transaction that begins by itself.
//!
//! ```text
//!            first query on a source                 commit, rollback
//! (none) ───────────────────────────► transaction ───────────────────► (none)
//!   any state ── idle too long, transaction open too long ──► expired: rolled back, further requests are refused
//!   any state ── close, connection gone ──► rolled back, forgotten
//! ```
//!
//! A session belongs to the connection that opened it; another one that names its id is refused. Its requests run one
//! after another. An expired session stays refused until it is closed or its connection ends, so that a client cannot
//! take the second half of its work for the whole.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use crate::backend::{Backend, Failure, TransactionKey};
use crate::catalogue::{self, Entry};
use crate::metrics::Metrics;

/// Which connections hold which sessions, for the whole server.
pub(crate) struct SessionRegistry {
    /// Ids in use. The lock protects the set alone; nothing is locked under it.
    claimed: Mutex<HashSet<Arc<str>>>,
    limit: usize,
    metrics: Arc<Metrics>,
}

impl SessionRegistry {
    pub fn new(limit: usize, metrics: Arc<Metrics>) -> SessionRegistry {
        SessionRegistry { claimed: Mutex::default(), limit, metrics }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.claimed.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn claim(&self, id: &Arc<str>) -> Result<(), Failure> {
        let mut claimed = self.lock();
        if claimed.contains(id) {
            let message = format!("Session {id} is not bound to the connecting client");
            return Err(Failure::new(&catalogue::SESSION_NOT_OURS, message));
        }
        if claimed.len() >= self.limit {
            let message = format!("{} sessions are open, as many as allowed", self.limit);
            return Err(Failure::new(&catalogue::TOO_MANY_SESSIONS, message));
        }
        claimed.insert(id.clone());
        self.metrics.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn release(&self, id: &str) {
        if self.lock().remove(id) {
            self.metrics.sessions.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The sessions of one connection. Dropping it rolls back what is open.
pub(crate) struct Sessions {
    registry: Arc<SessionRegistry>,
    backend: Arc<dyn Backend>,
    life: SessionLife,
    open: HashMap<Arc<str>, Session>,
}

/// How long sessions and their transactions live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLife {
    /// Time without a request.
    pub idle: Option<Duration>,
    /// Time from the begin of a transaction, busy or not: it keeps the state it reads.
    pub transaction: Option<Duration>,
}

struct Session {
    /// One per traversal source that was used: sources may stand for different graphs.
    transactions: Vec<OpenTransaction>,
    last_used: Instant,
    expired: Option<&'static Entry>,
}

struct OpenTransaction {
    source: Arc<str>,
    key: TransactionKey,
    began: Instant,
}

impl Session {
    /// When it expires, and what is said then.
    fn expiry(&self, life: SessionLife) -> Option<(Instant, &'static Entry)> {
        let idle = life.idle.map(|idle| (self.last_used + idle, &catalogue::SESSION_EXPIRED));
        let began = self.transactions.iter().map(|open| open.began).min();
        let total = life.transaction.zip(began).map(|(life, began)| (began + life, &catalogue::TRANSACTION_EXPIRED));
        idle.into_iter().chain(total).min_by_key(|(moment, _)| *moment).filter(|_| self.expired.is_none())
    }
}

impl Sessions {
    pub fn new(registry: Arc<SessionRegistry>, backend: Arc<dyn Backend>, life: SessionLife) -> Sessions {
        Sessions { registry, backend, life, open: HashMap::new() }
    }

    /// The transaction of a session over a source; begins what is not there yet.
    pub fn transaction(&mut self, id: &Arc<str>, source: &Arc<str>) -> Result<TransactionKey, Failure> {
        let backend = self.backend.clone();
        let session = self.session(id)?;
        if let Some(open) = session.transactions.iter().find(|open| open.source == *source) {
            return Ok(open.key);
        }
        let key = backend.open_transaction(source)?;
        session.transactions.push(OpenTransaction { source: source.clone(), key, began: Instant::now() });
        Ok(key)
    }

    /// Takes the open transaction of a session over a source out of it, to be ended by the caller.
    pub fn take_transaction(&mut self, id: &Arc<str>, source: &Arc<str>) -> Result<Option<TransactionKey>, Failure> {
        let session = self.session(id)?;
        let position = session.transactions.iter().position(|open| open.source == *source);
        Ok(position.map(|position| session.transactions.swap_remove(position).key))
    }

    /// Forgets a transaction that has ended.
    pub fn forget(&mut self, id: &str, key: TransactionKey) {
        if let Some(session) = self.open.get_mut(id) {
            session.transactions.retain(|open| open.key != key);
        }
    }

    /// A request of the session is over: its idle time begins.
    pub fn touch(&mut self, id: &str) {
        if let Some(session) = self.open.get_mut(id) {
            session.last_used = Instant::now();
        }
    }

    /// Ends a session. Unknown ids are fine.
    pub fn close(&mut self, id: &str) {
        if let Some(session) = self.open.remove(id) {
            roll_back(&*self.backend, id, session.transactions);
            self.registry.release(id);
        }
    }

    /// Whether work would be lost by closing now.
    pub fn has_open_transaction(&self) -> bool {
        self.open.values().any(|session| !session.transactions.is_empty())
    }

    /// When the next session expires, except `busy`, whose request runs.
    pub fn next_expiry(&self, busy: Option<&str>) -> Option<Instant> {
        let waiting = self.open.iter().filter(|(id, _)| busy != Some(&**id));
        waiting.filter_map(|(_, session)| session.expiry(self.life)).map(|(moment, _)| moment).min()
    }

    /// Rolls back sessions that were idle, or had a transaction open, too long, except `busy`, whose request runs.
    pub fn expire(&mut self, now: Instant, busy: Option<&str>) {
        for (id, session) in &mut self.open {
            if busy == Some(&**id) {
                session.last_used = now;
            } else if let Some((moment, entry)) = session.expiry(self.life)
                && moment <= now
            {
                tracing::info!(session = %id, code = entry.code, "session expired");
                session.expired = Some(entry);
                roll_back(&*self.backend, id, std::mem::take(&mut session.transactions));
            }
        }
    }

    fn session(&mut self, id: &Arc<str>) -> Result<&mut Session, Failure> {
        if !self.open.contains_key(id) {
            self.registry.claim(id)?;
        }
        let new = || Session { transactions: Vec::new(), last_used: Instant::now(), expired: None };
        let session = self.open.entry(id.clone()).or_insert_with(new);
        if let Some(entry) = session.expired {
            let reason = match entry.code == catalogue::SESSION_EXPIRED.code {
                true => "it was idle too long and its transaction was rolled back",
                false => "its transaction was open too long and was rolled back",
            };
            let message = format!("Session {id} is no longer accepting requests: {reason}");
            return Err(Failure::new(entry, message));
        }
        session.last_used = Instant::now();
        Ok(session)
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        for (id, session) in self.open.drain() {
            roll_back(&*self.backend, &id, session.transactions);
            self.registry.release(&id);
        }
    }
}

fn roll_back(backend: &dyn Backend, session: &str, transactions: Vec<OpenTransaction>) {
    for OpenTransaction { source, key, .. } in transactions {
        let session = session.to_owned();
        let done = move |result: Result<(), Failure>| {
            if let Err(failure) = result {
                tracing::warn!(%session, %source, %failure, "rollback failed");
            }
        };
        backend.finish_transaction(key, false, Box::new(done));
    }
}

/// Numbers connections and queries of this process.
#[derive(Debug)]
pub(crate) struct Identifiers {
    process: u64,
    next: AtomicU64,
}

impl Identifiers {
    pub fn new() -> Identifiers {
        Identifiers { process: uuid::Uuid::new_v4().as_u64_pair().0, next: AtomicU64::new(1) }
    }

    /// A number of its own in this process, as a UUID no other process makes.
    pub fn next(&self) -> uuid::Uuid {
        uuid::Uuid::from_u64_pair(self.process, self.next.fetch_add(1, Ordering::Relaxed))
    }
}
