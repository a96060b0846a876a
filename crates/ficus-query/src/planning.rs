//! What may end a query before it runs: it was cancelled, or its time is up while its plan is still being made.
//!
//! Who makes the plan looks here between the steps, statements and rules that it works through, and leaves with what [`Planning::check`] says.

use std::fmt;

use ficus_dataflow::Control;

use crate::context::Result;

/// The outside limits of a query whose plan is being made.
#[derive(Clone, Default)]
pub struct Planning(Option<Control>);

/// Nobody ends it.
pub static UNLIMITED: Planning = Planning(None);

impl Planning {
    /// Planning that ends with the query.
    pub fn under(control: Control) -> Planning {
        Planning(Some(control))
    }

    /// Fails if the query must stop. Cost: some tens of nanoseconds; for each step, not for each sign.
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            None => Ok(()),
            Some(control) => Ok(control.check()?),
        }
    }
}

impl fmt::Debug for Planning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Planning" } else { "Planning(unlimited)" })
    }
}
