//! Large values that steps make and pass on: counted once, where they are made, for as long as anybody refers to them.
//!
//! A text of megabytes in a traverser is kept by nobody in particular: it lies in queues, paths, sacks and maps, and shares its memory
//! with its copies. Whoever makes such a value enters it here. The entry does not keep the value alive; entries are looked through when
//! they have doubled in number, or when the query's account has no room, and what is gone is handed back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ficus_model::{Shared, Value};

use crate::budget::{Held, MemoryAccount};
use crate::error::QueryError;
use crate::freeing;

/// Values smaller than this are not entered: batches bound how many of them are on their way, and who keeps them counts them.
pub const LARGE_VALUE_BYTES: usize = 16 << 10;

/// Refers to a value without keeping it.
enum Reference {
    Text(Weak<str>),
    Bytes(Weak<[u8]>),
    Other(Weak<dyn Send + Sync>),
}

impl Reference {
    fn of(value: &Value) -> Option<Reference> {
        fn other<T: Send + Sync + 'static>(shared: &Arc<T>) -> Option<Reference> {
            let weak: Weak<T> = Arc::downgrade(shared);
            Some(Reference::Other(weak))
        }
        match value {
            Value::String(text) => Some(Reference::Text(Arc::downgrade(text))),
            Value::Binary(bytes) => Some(Reference::Bytes(Arc::downgrade(bytes))),
            Value::BigInteger(integer) => other(integer),
            Value::BigDecimal(decimal) => other(decimal),
            Value::List(list) => Some(Reference::Other(Shared::downgrade(list))),
            Value::Set(set) => Some(Reference::Other(Shared::downgrade(set))),
            Value::Map(map) => Some(Reference::Other(Shared::downgrade(map))),
            Value::BulkSet(set) => Some(Reference::Other(Shared::downgrade(set))),
            Value::Path(path) => Some(Reference::Other(Shared::downgrade(path))),
            Value::Tree(tree) => Some(Reference::Other(Shared::downgrade(tree))),
            Value::Graph(graph) => other(graph),
            _ => None,
        }
    }

    fn is_gone(&self) -> bool {
        let owners = match self {
            Reference::Text(text) => text.strong_count(),
            Reference::Bytes(bytes) => bytes.strong_count(),
            Reference::Other(other) => other.strong_count(),
        };
        owners == 0
    }
}

/// The large values that a query has made. Clones are the same, for the parts of a query on several executors.
#[derive(Clone, Default)]
pub struct LargeValues(Arc<Mutex<Entries>>);

/// Taken for large values only, and never beside another lock but that of the account, which is none.
#[derive(Default)]
struct Entries {
    entries: Vec<(Reference, Held)>,
    /// Entries at which they are looked through next.
    crowd: usize,
}

impl Entries {
    /// Forgets values that are gone, and hands back what they took.
    fn sweep(&mut self) {
        self.entries.retain(|(reference, _)| !reference.is_gone());
        self.crowd = 2 * self.entries.len();
    }
}

impl LargeValues {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        // Entries are added and removed one by one: a panic in between leaves them as they should be.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a value that was just made, if it is large; says how many bytes it holds then, else 0.
    ///
    /// Cost: O(1) amortised. Errors: as [`Held::add`], when what is gone has been handed back and there is still no room.
    pub fn enter(&self, value: &Value, account: &MemoryAccount) -> Result<usize, QueryError> {
        if !may_be_large(value) {
            return Ok(0);
        }
        let bytes = value.size_hint_bytes();
        let Some(reference) = (bytes >= LARGE_VALUE_BYTES).then(|| Reference::of(value)).flatten() else {
            return Ok(0);
        };
        let mut own = self.lock();
        if own.entries.len() >= own.crowd.max(16) {
            own.sweep();
        }
        if account.check_room(bytes).is_err() {
            freeing::settle();
            own.sweep();
        }
        let mut held = Held::default();
        held.add(account, bytes)?;
        own.entries.push((reference, held));
        Ok(bytes)
    }

    /// Enters a value that `held` counts already, whatever its size.
    pub fn adopt(&self, value: &Value, held: Held) {
        if let Some(reference) = Reference::of(value).filter(|_| held.bytes() >= LARGE_VALUE_BYTES) {
            let mut own = self.lock();
            if own.entries.len() >= own.crowd.max(16) {
                own.sweep();
            }
            own.entries.push((reference, held));
        }
    }
}

/// Whether a look at the size pays.
fn may_be_large(value: &Value) -> bool {
    const MEMBERS: usize = LARGE_VALUE_BYTES / 256;
    match value {
        Value::String(text) => text.len() >= LARGE_VALUE_BYTES / 2,
        Value::Binary(bytes) => bytes.len() >= LARGE_VALUE_BYTES / 2,
        Value::BigInteger(integer) => integer.bits() as usize / 8 >= LARGE_VALUE_BYTES / 2,
        Value::BigDecimal(_) | Value::Tree(_) | Value::Graph(_) => true,
        Value::List(list) => list.len() >= MEMBERS,
        Value::Set(set) => set.len() >= MEMBERS,
        Value::Map(map) => map.len() >= MEMBERS,
        Value::BulkSet(set) => set.counts.len() >= MEMBERS,
        Value::Path(path) => path.objects.len() >= MEMBERS,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_once_for_as_long_as_somebody_has_it() {
        let account = MemoryAccount::new(1 << 20);
        let values = LargeValues::default();
        let text = Value::from("x".repeat(400 << 10));
        let copies = vec![text.clone(); 100];
        assert!(values.enter(&text, &account).expect("room") >= 400 << 10);
        assert_eq!(values.enter(&Value::from("small"), &account), Ok(0));
        let used = account.used_bytes();
        assert!((400 << 10..500 << 10).contains(&used), "{used}");
        drop(text);
        let other = Value::from("y".repeat(800 << 10));
        assert!(values.enter(&other, &account).is_err(), "copies still refer to it");
        drop(copies);
        assert!(values.enter(&other, &account).is_ok(), "nobody has the first one any more");
        drop(values);
        assert_eq!(account.used_bytes(), 0);
    }
}
