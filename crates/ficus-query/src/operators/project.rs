//! Steps that combine several values: dispatches to their files.

use crate::context::Result;
use crate::error::QueryError;
use crate::logical::Node;
use crate::physical::{Builder, Chain};
use crate::traverser::StepInfo;

/// Adds the operator of a combining node.
pub fn build(_builder: &mut Builder, node: &Node, _step: &StepInfo, _chain: &mut Chain) -> Result<()> {
    Err(QueryError::invalid(format!("{node} has no operator yet")))
}
