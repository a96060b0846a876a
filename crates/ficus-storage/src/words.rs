//! The labels and property keys of one graph, numbered in the order of their first use.

use std::collections::HashMap;
use std::sync::Arc;

use ficus_model::{KeyId, LabelId};

use crate::StoreError;

/// Labels, and keys, a graph may have. Each distinct one is kept for ever, and a row names its key in 20 bits.
pub(crate) const WORD_LIMIT: usize = 1 << 20;

/// Bytes of a label or key.
pub(crate) const WORD_BYTES_LIMIT: usize = 64 * 1024;

/// Texts by number and numbers by text.
#[derive(Clone, Debug, Default)]
pub(crate) struct WordList {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl WordList {
    /// The number of a word, if it is known.
    pub(crate) fn number(&self, word: &str) -> Option<u32> {
        self.numbers.get(word).copied()
    }

    /// The word of a number.
    pub(crate) fn name(&self, number: u32) -> Option<&Arc<str>> {
        self.names.get(number as usize)
    }

    /// All words, by number.
    pub(crate) fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// Adds a word that is not there.
    pub(crate) fn push(&mut self, word: Arc<str>) -> u32 {
        let number = self.names.len() as u32;
        self.numbers.insert(word.clone(), number);
        self.names.push(word);
        number
    }
}

/// The labels and property keys of one graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// Vertex and edge labels.
    pub(crate) labels: WordList,
    /// Property keys.
    pub(crate) keys: WordList,
}

impl Words {
    /// The number of a label, which is given one if it is new.
    pub(crate) fn intern_label(self: &mut Arc<Words>, label: &Arc<str>) -> LabelId {
        match self.labels.number(label) {
            Some(number) => LabelId(number),
            None => LabelId(Arc::make_mut(self).labels.push(label.clone())),
        }
    }

    /// The number of a key, which is given one if it is new.
    pub(crate) fn intern_key(self: &mut Arc<Words>, key: &Arc<str>) -> KeyId {
        match self.keys.number(key) {
            Some(number) => KeyId(number),
            None => KeyId(Arc::make_mut(self).keys.push(key.clone())),
        }
    }

    /// Refuses a word that is too long, or one word too many.
    pub(crate) fn check_word(words: &WordList, what: &'static str, word: &str) -> Result<(), StoreError> {
        if word.len() > WORD_BYTES_LIMIT {
            return Err(StoreError::LimitReached {
                what: format!("bytes in a {what}"),
                limit: WORD_BYTES_LIMIT as u64,
            });
        }
        if words.names.len() >= WORD_LIMIT && words.number(word).is_none() {
            return Err(StoreError::LimitReached { what: format!("different {what}s"), limit: WORD_LIMIT as u64 });
        }
        Ok(())
    }

    /// Refuses a word that is too long.
    pub(crate) fn check_length(what: &'static str, word: &str) -> Result<(), StoreError> {
        if word.len() > WORD_BYTES_LIMIT {
            return Err(StoreError::LimitReached {
                what: format!("bytes in a {what}"),
                limit: WORD_BYTES_LIMIT as u64,
            });
        }
        Ok(())
    }
}
