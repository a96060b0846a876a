//! Lets equal short texts share their memory: browser names, languages, addresses.
//!
//! A direct-mapped cache: each text has one place, and the newest text of a place stays. So it costs one look-up, never
//! grows, and finds what repeats often. It changes where a text lies and nothing else.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ficus_model::Value;

const PLACES: usize = 1 << 15;

/// Bytes of the longest text that is looked for.
const SHARED_BYTES_LIMIT: usize = 40;

/// A cache of texts.
#[derive(Debug, Default)]
pub(crate) struct StringPool {
    places: Vec<Option<Arc<str>>>,
}

impl StringPool {
    /// The value, or an equal one that is in use already.
    pub(crate) fn share(&mut self, value: Value) -> Value {
        let Value::String(text) = &value else { return value };
        if text.len() > SHARED_BYTES_LIMIT {
            return value;
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        if self.places.is_empty() {
            self.places.resize(PLACES, None);
        }
        let place = &mut self.places[hasher.finish() as usize % PLACES];
        match place {
            Some(shared) if shared == text => Value::String(shared.clone()),
            _ => {
                *place = Some(text.clone());
                value
            }
        }
    }
}
