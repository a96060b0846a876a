//! Who asks a query.

use std::sync::Arc;

/// A user who asks, and what the user may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name.
    pub user: Arc<str>,
    /// May look at the queries of others and end them.
    pub is_administrator: bool,
}
