//! What the server asks of the engine, and the words both use for it.
//!
//! The server knows sockets, sessions and limits; the engine knows traversals and graphs. This trait is all that lies
//! between them. Nothing in it blocks: work is started, and its outcome arrives through an [`EventSink`] or a
//! [`Callback`] from whatever thread the engine likes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ficus_model::{Bytecode, Value, ValueMap};
use uuid::Uuid;

use crate::catalogue::Entry;
use crate::event::EventSink;
use crate::tenants::{Asker, Tenants};
use crate::transfer::GraphService;

/// What the server asks of the engine. Never blocks.
pub trait Backend: Send + Sync + 'static {
    /// Starts a query. Results and the end arrive through `events`; the engine may also answer before this returns.
    ///
    /// Outside a transaction the query is one of its own: committed before [`EventSink::done`], rolled back on failure.
    fn start(&self, query: Query, events: EventSink) -> CancelHandle;

    /// Opens a transaction over the graph behind `source`, for queries that name its key.
    ///
    /// A transaction that can no longer commit keeps its key until [`Backend::finish_transaction`], which then fails.
    fn open_transaction(&self, source: &str) -> Result<TransactionKey, Failure>;

    /// Commits or rolls back, and forgets the key in any case. Queries of the transaction that still run are cancelled.
    fn finish_transaction(&self, key: TransactionKey, commit: bool, done: Callback);

    /// Names of the traversal sources: `g`, `gmodern`, …
    fn sources(&self) -> Vec<String>;

    /// Whether there is a traversal source of this name; asked for every request, so worth being quick.
    fn has_source(&self, name: &str) -> bool {
        self.sources().iter().any(|source| source == name)
    }

    /// Says for whom queries will be, to be told in metrics and lists; called once, before the first query.
    fn set_tenants(&self, tenants: &Arc<Tenants>) {
        let _ = tenants;
    }

    /// What answers for graphs as wholes; without it they are as they are.
    fn graphs(&self) -> Option<Arc<dyn GraphService>> {
        None
    }

    /// How the engine is, for the health paths. May wait for the disk.
    fn health(&self) -> Health {
        Health { ready: true, writable: Ok(()) }
    }

    /// Appends the engine's own metrics in the Prometheus text format.
    fn write_metrics(&self, out: &mut String) {
        let _ = out;
    }
}

/// How the engine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Recovery is over and queries are answered.
    pub ready: bool,
    /// `Ok` if commits are possible, else why they are not (the disk is full, the log poisoned).
    pub writable: Result<(), String>,
}

/// A query as the engine gets it: checked by the server, not yet parsed.
#[derive(Clone, Debug)]
pub struct Query {
    /// What to run.
    pub program: Program,
    /// Parameters by name; the keys are strings.
    pub bindings: ValueMap,
    /// The traversal source that `g` stands for, after alias resolution; known to [`Backend::has_source`].
    pub source: Arc<str>,
    /// The transaction to run in; `None` for one of its own.
    pub transaction: Option<TransactionKey>,
    /// Time the query may take: what the request asks for within the server's cap, or the server's default.
    pub timeout: Option<Duration>,
    /// The server's cap. A traversal may ask for more than `timeout` through `with('evaluationTimeout', ms)`, never for
    /// more than this.
    pub timeout_cap: Option<Duration>,
    /// Rows per response; batches of another size are cut and joined by the server.
    pub batch_size: usize,
    /// Whether elements carry their properties.
    pub materialize_properties: Materialize,
    /// Identifies this run in logs, unique on this server. Not the client's request id, which may repeat.
    pub query_id: Uuid,
    /// Who asks, and for whom the work is done.
    pub asker: Asker,
}

/// The two forms in which traversals arrive.
#[derive(Clone, Debug)]
pub enum Program {
    /// gremlin-lang text.
    Text {
        /// The statements.
        gremlin: Arc<str>,
        /// The language the client named: `gremlin-lang`, `gremlin-groovy` or nothing.
        language: Option<Arc<str>>,
    },
    /// A traversal tree from the wire.
    Bytecode(Arc<Bytecode>),
}

/// Whether the elements of a result carry their properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Materialize {
    /// All of them.
    #[default]
    All,
    /// Only id and label.
    Tokens,
}

/// Names an open transaction; never used again after it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransactionKey(pub u64);

/// Called once with the outcome of a commit or rollback.
pub type Callback = Box<dyn FnOnce(Result<(), Failure>) + Send>;

/// Stops a running query; dropping the handle does not.
pub struct CancelHandle(Option<Box<dyn FnOnce() + Send>>);

impl CancelHandle {
    /// A handle that calls `cancel`, which must not block.
    pub fn new(cancel: impl FnOnce() + Send + 'static) -> CancelHandle {
        CancelHandle(Some(Box::new(cancel)))
    }

    /// A handle of a query that is already over.
    pub fn finished() -> CancelHandle {
        CancelHandle(None)
    }

    /// Asks the query to stop. Does nothing to one that ended.
    pub fn cancel(self) {
        if let Some(cancel) = self.0 {
            cancel();
        }
    }
}

impl fmt::Debug for CancelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CancelHandle")
    }
}

/// Why a request has no result.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Gremlin status code of the answer.
    pub status: u16,
    /// Stable code of the catalogue.
    pub code: &'static str,
    /// Text for the user: what happened, to what, what to do.
    pub message: String,
    /// True when the same request may succeed later, unchanged.
    pub retryable: bool,
    /// Further status attributes, such as `failStepMessage`.
    pub attributes: ValueMap,
}

impl Failure {
    /// A failure of the catalogue with a message of its own, of which the middle is left out if it is very long: messages quote values.
    pub fn new(entry: &Entry, message: impl Into<String>) -> Failure {
        let Entry { code, status, retryable, .. } = *entry;
        let message = shortened(message.into());
        Failure { status, code, message, retryable, attributes: ValueMap::default() }
    }

    /// The same failure with a further status attribute.
    pub fn with_attribute(mut self, name: &str, value: Value) -> Failure {
        self.attributes.insert(Value::String(name.into()), value);
        self
    }
}

/// Bytes at the beginning and at the end of a message that are told in any case.
const TOLD_BYTES: (usize, usize) = (3 << 10, 1 << 10);

/// A message without its middle, if it is longer than both ends together.
fn shortened(message: String) -> String {
    let (front, back) = TOLD_BYTES;
    let Some(left_out) = message.len().checked_sub(front + back).filter(|bytes| *bytes > 0) else { return message };
    let front = message.floor_char_boundary(front);
    let back = message.ceil_char_boundary(message.len() - back);
    format!("{} […{left_out} bytes left out…] {}", &message[..front], &message[back..])
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.code, self.status, self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_told_without_their_middle() {
        let short = "ä".repeat(2048);
        assert_eq!(shortened(short.clone()), short);
        let long = shortened(format!("Can't parse '{}' as number.", "ä9".repeat(1 << 20)));
        assert!(long.len() < 5000 && long.starts_with("Can't parse 'ä9") && long.ends_with("9' as number."), "{long}");
        assert!(long.contains("3141657 bytes left out"), "{long}");
    }
}
