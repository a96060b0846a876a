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

    /// The most the query held so far.
    pub fn peak_bytes(&self) -> usize {
        self.peak_bytes.unsigned_abs()
    }
}
