//! Plans of texts that come again: drivers repeat themselves.
//!
//! A text is kept from its second time on. Those that come once, each with a value of its own in it, would else turn out what is worth keeping, and
//! have every plan made in memory that no cache of the processor knows.
//!
//! Texts have places by their hash, in sets of a few; in each the one that was asked for longest ago makes room. So nothing is ever gone through or
//! freed all at once, and no two connections wait for each other unless their texts share a set.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use super::program::Ready;

/// Sets. With [`TEXTS_MAX`] they hold 4,096 texts.
const SETS: usize = 512;

/// Texts of a set at most.
const TEXTS_MAX: usize = 8;

/// Weight of all plans of a set at most: an operator or 16 bytes of text, such as seven values of a list, weigh 1. Either takes some hundred bytes to two
/// kilobytes of a plan, so that the cache stays below 128 MiB whatever clients ask.
const WEIGHT_MAX: usize = 128;

/// Bytes of a text that weigh as much as an operator.
const TEXT_BYTES_PER_WEIGHT: usize = 16;

/// Texts that a set remembers to have seen once.
const SEEN_MAX: usize = 16;

/// Longest text that is looked for, in bytes: no plan of a longer one is kept.
pub const TEXT_BYTES_MAX: usize = WEIGHT_MAX * TEXT_BYTES_PER_WEIGHT;

/// The statements of a text.
type Statements = Arc<Vec<Ready>>;

/// Plans of texts without parameters, by text.
pub struct ProgramCache {
    /// Each protects its texts; held for a look-up or an insertion.
    sets: Box<[Mutex<Set>]>,
    hasher: RandomState,
    /// Whether walks of several hops are streams unless a query asks for searches.
    pub(super) streams_walks: bool,
}

#[derive(Default)]
struct Set {
    /// Those asked for last are in front.
    texts: VecDeque<(Arc<str>, Statements)>,
    /// Hashes of the texts that came last and are not kept, the newest in front.
    seen: VecDeque<u64>,
}

/// What the cache knows of a text.
pub enum Known {
    /// Its statements.
    Kept(Statements),
    /// It has come before: its statements are worth keeping.
    Seen,
    /// Nothing.
    New,
}

impl Default for ProgramCache {
    fn default() -> ProgramCache {
        ProgramCache {
            sets: (0..SETS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            streams_walks: false,
        }
    }
}

impl ProgramCache {
    /// What is known of a text, which has come now.
    pub fn get(&self, text: &str) -> Known {
        let hash = self.hasher.hash_one(text);
        let mut set = self.set(hash).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = set.texts.iter().position(|(own, _)| **own == *text) {
            set.texts.make_contiguous()[..=place].rotate_right(1);
            return Known::Kept(set.texts[0].1.clone());
        }
        if let Some(place) = set.seen.iter().position(|own| *own == hash) {
            set.seen.remove(place);
            return Known::Seen;
        }
        set.seen.truncate(SEEN_MAX - 1);
        set.seen.push_front(hash);
        Known::New
    }

    /// Keeps the statements of a text.
    pub fn put(&self, text: &Arc<str>, statements: &Statements) {
        let own = weight(text, statements);
        if own > WEIGHT_MAX {
            return;
        }
        let mut forgotten = Vec::new();
        let mut set = self.set(self.hasher.hash_one(&**text)).lock().unwrap_or_else(PoisonError::into_inner);
        // Another request may have made them meanwhile.
        set.texts.retain(|(own, _)| **own != **text);
        while set.texts.len() >= TEXTS_MAX || set.weight() + own > WEIGHT_MAX {
            forgotten.extend(set.texts.pop_back());
        }
        set.texts.push_front((text.clone(), statements.clone()));
        // Freed when the set is open to others.
        drop(set);
    }

    fn set(&self, hash: u64) -> &Mutex<Set> {
        &self.sets[hash as usize % SETS]
    }
}

impl Set {
    fn weight(&self) -> usize {
        self.texts.iter().map(|(text, statements)| weight(text, statements)).sum()
    }
}

/// What it takes to keep a text.
fn weight(text: &str, statements: &[Ready]) -> usize {
    let of_one = |statement: &Ready| match statement {
        Ready::Query { prepared, .. } | Ready::Explain(prepared) => prepared.physical.nodes.len(),
        Ready::Transaction(_) | Ready::Value(_) => 0,
    };
    text.len() / TEXT_BYTES_PER_WEIGHT + statements.iter().map(|statement| 1 + of_one(statement)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use ficus_model::Value;
    use ficus_query::engine::Prepared;
    use ficus_query::logical::{LogicalPlan, Node};

    use super::*;
    use crate::engine::program::Answer;

    fn value(number: i32) -> Statements {
        Arc::new(vec![Ready::Value(Value::Int(number))])
    }

    fn steps(count: usize) -> Statements {
        let mut plan = LogicalPlan::default();
        plan.root.nodes = vec![Node::Constant { value: Value::Int(1) }.into(); count];
        let prepared = Arc::new(Prepared::new(plan).expect("it can be carried out"));
        Arc::new(vec![Ready::Query { prepared, answer: Answer::Rows }])
    }

    fn is_kept(cache: &ProgramCache, text: &str) -> bool {
        matches!(cache.get(text), Known::Kept(_))
    }

    #[test]
    fn a_text_is_worth_keeping_the_second_time() {
        let (cache, text) = (ProgramCache::default(), Arc::from("g.V()"));
        assert!(matches!(cache.get(&text), Known::New));
        assert!(matches!(cache.get(&text), Known::Seen));
        cache.put(&text, &value(1));
        cache.put(&text, &value(2));
        let Known::Kept(kept) = cache.get(&text) else { panic!("it is not kept") };
        assert!(matches!(kept[..], [Ready::Value(Value::Int(2))]));
        assert!(matches!(cache.get("g.E()"), Known::New));
    }

    #[test]
    fn what_is_asked_for_stays_and_the_number_of_texts_is_bounded() {
        let cache = ProgramCache::default();
        let texts: Vec<Arc<str>> = (0..20_000).map(|number| format!("g.V({number})").into()).collect();
        for text in &texts {
            cache.put(text, &value(0));
            assert!(is_kept(&cache, text));
            assert!(is_kept(&cache, &texts[0]), "the one that is always asked for is gone");
        }
        let kept = texts.iter().filter(|text| is_kept(&cache, text)).count();
        assert!((TEXTS_MAX..=SETS * TEXTS_MAX).contains(&kept), "{kept}");
    }

    #[test]
    fn the_size_of_plans_is_bounded() {
        let cache = ProgramCache::default();
        let large = Arc::from("large");
        cache.put(&large, &steps(WEIGHT_MAX));
        assert!(!is_kept(&cache, &large));
        let long = "1".repeat(TEXT_BYTES_MAX).into();
        cache.put(&long, &value(1));
        assert!(!is_kept(&cache, &long));
        for number in 0..10 * SETS {
            cache.put(&format!("{number}").into(), &steps(WEIGHT_MAX / 2 - 1));
            cache.put(&format!("{number:01000}").into(), &value(1));
        }
        let most = cache.sets.iter().map(|set| set.lock().unwrap().weight()).max();
        assert!(most > Some(0) && most <= Some(WEIGHT_MAX), "{most:?}");
    }
}
