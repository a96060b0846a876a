//! Memory a query may hold.

use crate::error::{QueryError, QueryErrorKind};

/// Counts what a query's operators keep; refuses to grow past its limit.
///
/// The count is an estimate by the sizes of values; what is freed is handed back.
#[derive(Debug)]
pub struct MemoryAccount {
    used_bytes: isize,
    peak_bytes: isize,
    limit_bytes: isize,
}

impl MemoryAccount {
    /// An empty account.
    pub fn new(limit_bytes: usize) -> MemoryAccount {
        MemoryAccount { used_bytes: 0, peak_bytes: 0, limit_bytes: isize::try_from(limit_bytes).unwrap_or(isize::MAX) }
    }

    /// Adds (or hands back) bytes.
    ///
    /// Errors: `Budget` if the account would pass its limit.
    #[inline]
    pub fn adjust(&mut self, bytes: isize) -> Result<(), QueryError> {
        self.used_bytes = self.used_bytes.saturating_add(bytes);
        if self.used_bytes > self.peak_bytes {
            self.peak_bytes = self.used_bytes;
            if self.used_bytes > self.limit_bytes {
                return Err(QueryError::new(
                    QueryErrorKind::Budget,
                    format!(
                        "the query needs more than its memory budget of {} MiB; narrow it, aggregate earlier or raise \
                         the budget (engine.memory_limit_bytes)",
                        self.limit_bytes >> 20
                    ),
                ));
            }
        }
        Ok(())
    }

    fn hand_back(&mut self, bytes: isize) {
        self.used_bytes -= bytes;
    }

    /// The most the query held so far.
    pub fn peak_bytes(&self) -> usize {
        self.peak_bytes.unsigned_abs()
    }
}

/// What one operator keeps on its query's account, so that it can be handed back when the operator ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held(isize);

impl Held {
    /// Adds bytes to the account.
    ///
    /// Errors: `Budget` if the account would pass its limit.
    #[inline]
    pub fn add(&mut self, account: &mut MemoryAccount, bytes: usize) -> Result<(), QueryError> {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
        self.0 = self.0.saturating_add(bytes);
        account.adjust(bytes)
    }

    /// Hands back some.
    pub fn subtract(&mut self, account: &mut MemoryAccount, bytes: usize) {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX).min(self.0);
        self.0 -= bytes;
        account.hand_back(bytes);
    }

    /// Hands back all.
    pub fn give_back(&mut self, account: &mut MemoryAccount) {
        account.hand_back(std::mem::take(&mut self.0));
    }
}
