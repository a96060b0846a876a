//! What all connections of one server share.

use std::sync::Arc;

use ficus_wire::Limits;
use tokio::sync::watch;

use crate::authentication::Users;
use crate::backend::Backend;
use crate::config::ServerConfig;
use crate::inflow::Inflow;
use crate::metrics::Metrics;
use crate::session::{Identifiers, SessionRegistry};
use crate::strangers::Strangers;
use crate::tenants::Asker;

/// The life of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Answers.
    Serving,
    /// Takes no new work and finishes what there is.
    Draining,
    /// Ends whatever is left.
    Stopping,
}

/// What all connections share.
pub(crate) struct Shared {
    pub config: ServerConfig,
    pub wire_limits: Limits,
    pub backend: Arc<dyn Backend>,
    pub metrics: Arc<Metrics>,
    pub inflow: Arc<Inflow>,
    pub sessions: Arc<SessionRegistry>,
    pub strangers: Arc<Strangers>,
    pub users: Option<Arc<Users>>,
    /// Whoever asks, where there are no users.
    pub anonymous: Asker,
    pub identifiers: Identifiers,
    pub phase: watch::Receiver<Phase>,
}

impl Shared {
    /// The phase the server is in.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }
}
