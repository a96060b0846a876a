//! Reading through an index: which elements may satisfy a condition, in batches, in either direction.

use std::sync::Arc;

use ficus_model::{KeyId, LabelId, Value, decimal};
use num_traits::ToPrimitive;

use super::{
    ElementKind, Entries, Index, IndexDefinition, IndexKind, IndexState, KeyBytes, KeyEntry, KeySpan, any_key,
    is_point, value_key,
};
use crate::Snapshot;
use crate::property_index::IndexEntry;
use crate::root::GraphRoot;
use crate::value_key::index_hash;

/// An index of a graph, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// Its number, never given twice in a graph.
    pub number: u32,
    /// What it is.
    pub definition: IndexDefinition,
    /// Whether it can be used.
    pub state: IndexState,
    /// Number of entries.
    pub entries: u64,
}

/// A condition on the values under one key of an index.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexTest {
    /// Equal to this value, as `eq` has it.
    Equal(Value),
    /// From `low` to `high`, both included; an end that is not there is open.
    Between {
        /// The smallest value.
        low: Option<Value>,
        /// The largest value.
        high: Option<Value>,
    },
    /// A text that begins so.
    StartingWith(Arc<str>),
    /// Any value.
    Any,
}

/// A question to an index: which elements may have these values under its first keys, and satisfy a condition on the next.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexQuery {
    /// The number of the index.
    pub index: u32,
    /// Values under the first keys of the index; each must be one for which [`IndexQuery::may_lead`] says yes.
    pub equal: Vec<Value>,
    /// The condition on the next key.
    pub test: IndexTest,
    /// Largest keys first; elements of one key stay in insertion order only in ascending scans.
    pub descending: bool,
}

impl IndexQuery {
    /// True if a condition on a further key may follow equality with this value. That is so for all but some numbers that
    /// are equal to numbers of other types with other keys.
    pub fn may_lead(value: &Value) -> bool {
        is_point(value)
    }
}

/// Where a scan of an index goes on; start with `IndexCursor::default()` and pass it back unchanged, with the same query.
#[derive(Clone, Debug, Default)]
pub struct IndexCursor(Place);

#[derive(Clone, Debug, Default)]
enum Place {
    /// Nothing was read.
    #[default]
    Start,
    /// The last entry that was considered.
    Behind(KeyEntry),
    /// All keys were read; what is left are elements that a composite index could not place.
    Unplaced(Option<u64>),
    /// The hash probe and the element that come next.
    Probe(usize, u64),
    /// Nothing is left.
    End,
}

/// Entries that a scan looks at for one that it hands out, at most: bounds a batch in which nothing new is found.
const LOOKS_PER_ROW: usize = 4;

impl Snapshot {
    /// All indexes, also those being built.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        let info = |index: &Index| IndexInfo {
            number: index.shape.number,
            definition: index.shape.definition(&self.root.words),
            state: index.state,
            entries: index.len(),
        };
        self.root.indexes().iter().map(info).collect()
    }

    /// True if the index can answer the query completely. A hash index cannot where numbers of other types and values
    /// count as equal, such as large integers that round to a double, and not for collections.
    pub fn can_answer(&self, query: &IndexQuery) -> bool {
        let Some(index) = self.root.index_with_number(query.index).filter(|index| index.is_ready()) else {
            return false;
        };
        match (index.shape.kind, &query.test) {
            (IndexKind::Hash, IndexTest::Equal(value)) => query.equal.is_empty() && hash_probes(value).is_some(),
            (IndexKind::Hash, _) => false,
            (IndexKind::Ordered, _) => query.equal.len() < index.shape.keys.len(),
        }
    }

    /// Appends up to `max` elements that may satisfy the query, each once, by their internal ids; true if there may be
    /// more. It leaves none out, but the caller has to test what it gets. Nothing if the index cannot answer.
    pub fn scan_index(&self, query: &IndexQuery, cursor: &mut IndexCursor, max: usize, out: &mut Vec<u64>) -> bool {
        if !self.can_answer(query) {
            return false;
        }
        let Some(index) = self.root.index_with_number(query.index) else { return false };
        if matches!(cursor.0, Place::Start) {
            self.record_query(index, query);
        }
        let end = out.len().saturating_add(max);
        match &index.entries {
            Entries::Hashed(_) => scan_hashed(index, query, cursor, end, out),
            Entries::Ordered(_) => scan_ordered(&self.root, index, query, cursor, end, out),
        }
    }
}

impl Snapshot {
    /// About how many elements there are, of one label or all. Good for choosing between ways to read, and not recorded as
    /// a read: nothing that is answered or written may depend on it.
    pub fn size_hint(&self, elements: ElementKind, label: Option<LabelId>) -> u64 {
        self.root.count_of(elements, label)
    }

    /// Records what the answer to a query depends on: all that happens under its keys, or to single values where a value
    /// is equal to no other.
    fn record_query(&self, index: &Index, query: &IndexQuery) {
        let shape = &index.shape;
        self.reads.record(|reads| match (shape.elements, shape.label) {
            (ElementKind::Vertex, _) => {
                for (position, key) in shape.keys.iter().enumerate() {
                    let Some(key) = self.root.words.keys.name(key.0) else { continue };
                    let value = match &query.test {
                        IndexTest::Equal(value) if position == query.equal.len() => Some(value),
                        _ => query.equal.get(position),
                    };
                    match value.filter(|value| is_like_no_other(value)) {
                        Some(value) => reads.key_value(key, value),
                        None if position <= query.equal.len() => reads.key(key),
                        None => {}
                    }
                }
            }
            (ElementKind::Edge, label) => {
                reads.any_edge();
                match label.and_then(|label| self.root.words.labels.name(label.0)) {
                    Some(label) => reads.edges_with_label(label),
                    None => reads.all_edges(),
                }
            }
        });
    }
}

/// True if all values that equal this one in a predicate have one form as an index key, so that it can stand for them in a
/// read set.
fn is_like_no_other(value: &Value) -> bool {
    const FLOAT_LIMIT: u64 = 1 << 24;
    match value {
        Value::Int(number) => u64::from(number.unsigned_abs()) < FLOAT_LIMIT,
        Value::Long(number) => number.unsigned_abs() < FLOAT_LIMIT,
        Value::Double(number) => number.abs() < FLOAT_LIMIT as f64,
        Value::Float(_) | Value::BigInteger(_) | Value::BigDecimal(_) => false,
        value => !value.holds_others(),
    }
}

impl GraphRoot {
    /// The index with this number.
    pub(crate) fn index_with_number(&self, number: u32) -> Option<&Index> {
        self.indexes().iter().find(|index| index.shape.number == number)
    }
}

fn scan_hashed(index: &Index, query: &IndexQuery, cursor: &mut IndexCursor, end: usize, out: &mut Vec<u64>) -> bool {
    let IndexTest::Equal(value) = &query.test else { return false };
    let probes = hash_probes(value).unwrap_or_default();
    let (first, mut next) = match cursor.0 {
        Place::Start => (0, 0),
        Place::Probe(probe, element) => (probe, element),
        _ => return false,
    };
    for (position, hash) in probes.iter().enumerate().skip(first) {
        let mut full = None;
        let Entries::Hashed(entries) = &index.entries else { return false };
        entries.visit_from(&IndexEntry { hash: *hash, element: next }, |entry| {
            if entry.hash != *hash {
                return false;
            }
            // Another of its values was what an earlier probe looks for.
            if probes[..position].iter().any(|earlier| entries.contains(&IndexEntry { hash: *earlier, ..*entry })) {
                return true;
            }
            if out.len() >= end {
                full = Some(entry.element);
                return false;
            }
            out.push(entry.element);
            true
        });
        if let Some(element) = full {
            cursor.0 = Place::Probe(position, element);
            return true;
        }
        next = 0;
    }
    cursor.0 = Place::End;
    false
}

/// The hashes of all values that may be equal to `value` where numbers meet in the wider of their types; `None` if they are
/// too many to name.
fn hash_probes(value: &Value) -> Option<Vec<u64>> {
    /// From here on integers round to floats, and to doubles.
    const FLOAT_LIMIT: f32 = (1 << 24) as f32;
    const DOUBLE_LIMIT: f64 = (1u64 << 53) as f64;
    let mut probes = vec![value.clone()];
    match value {
        // Their members compare by value as well, and may be numbers of any type.
        value if value.holds_others() => return None,
        Value::Int(number) => probes.push(Value::Float(*number as f32)),
        Value::Long(number) => probes.push(Value::Double(*number as f64)),
        Value::Float(number) if number.abs() >= FLOAT_LIMIT && number.is_finite() => return None,
        Value::Float(number) => {
            probes.extend(decimal::from_float(*number).map(|decimal| Value::BigDecimal(Arc::new(decimal))));
        }
        Value::Double(number) if number.abs() >= DOUBLE_LIMIT && number.is_finite() => return None,
        Value::BigInteger(number) => {
            probes.extend(number.to_f32().map(Value::Float));
            probes.extend(number.to_f64().map(Value::Double));
        }
        Value::BigDecimal(number) => {
            probes.push(Value::Float(decimal::to_float(number)));
            probes.push(Value::Double(decimal::to_double(number)));
        }
        _ => {}
    }
    let mut hashes: Vec<u64> = probes.iter().filter_map(index_hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    Some(hashes)
}

fn scan_ordered(
    root: &GraphRoot,
    index: &Index,
    query: &IndexQuery,
    cursor: &mut IndexCursor,
    end: usize,
    out: &mut Vec<u64>,
) -> bool {
    let mut prefix = Vec::new();
    query.equal.iter().for_each(|value| super::put_component(value, &mut prefix));
    let span = match &query.test {
        IndexTest::Equal(value) => KeySpan::equal(&prefix, value),
        IndexTest::Between { low, high } => KeySpan::between(&prefix, low.as_ref(), high.as_ref()),
        IndexTest::StartingWith(text) => KeySpan::starting_with(&prefix, text),
        IndexTest::Any => KeySpan::of_prefix(prefix),
    };
    // Elements of one key of an index of several keys have one entry, and those that could not be placed another.
    let single = (!index.shape.is_composite()).then(|| index.shape.keys[0]);
    let looks = (end - out.len()).saturating_mul(LOOKS_PER_ROW);
    if !matches!(cursor.0, Place::Unplaced(_) | Place::End) {
        let take = |entry: &KeyEntry| match single {
            Some(key) => is_first(root, index, key, entry, &span, query.descending),
            None => entry.key != any_key(),
        };
        if let Some(last) = read_span(index, &span, &cursor.0, query.descending, (end, looks), out, take) {
            cursor.0 = last.map_or(Place::Start, Place::Behind);
            return true;
        }
        cursor.0 = if single.is_some() { Place::End } else { Place::Unplaced(None) };
    }
    let Place::Unplaced(last) = cursor.0 else { return false };
    let unplaced = KeySpan::of_prefix(any_key().as_slice().to_vec());
    let place = last.map_or(Place::Start, |element| Place::Behind(KeyEntry { key: any_key(), element }));
    match read_span(index, &unplaced, &place, false, (end, looks), out, |_| true) {
        Some(last) => {
            cursor.0 = Place::Unplaced(last.map(|entry| entry.element));
            true
        }
        None => {
            cursor.0 = Place::End;
            false
        }
    }
}

/// Reads the entries of a span behind `place` until `out` has `end` elements or enough entries were looked at; then the
/// last entry considered, if any was. `None` if nothing is left.
fn read_span(
    index: &Index,
    span: &KeySpan,
    place: &Place,
    descending: bool,
    (end, looks): (usize, usize),
    out: &mut Vec<u64>,
    take: impl Fn(&KeyEntry) -> bool,
) -> Option<Option<KeyEntry>> {
    let Entries::Ordered(entries) = &index.entries else { return None };
    if span.is_empty() {
        return None;
    }
    let mut left = looks.max(1);
    let mut last: Option<KeyEntry> = match place {
        Place::Behind(entry) => Some(entry.clone()),
        _ => None,
    };
    let mut full = false;
    let mut consider = |entry: &KeyEntry| {
        if left == 0 || out.len() >= end {
            full = true;
            return false;
        }
        left -= 1;
        if take(entry) {
            out.push(entry.element);
        }
        last = Some(entry.clone());
        true
    };
    if descending {
        let before = match place {
            Place::Behind(entry) => Some(entry.clone()),
            _ => span.to.as_ref().map(|to| KeyEntry { key: KeyBytes::new(to), element: 0 }),
        };
        entries.visit_before(before.as_ref(), |entry| entry.key.as_slice() >= span.from.as_slice() && consider(entry));
    } else {
        let from = match place {
            Place::Behind(entry) => KeyEntry { key: entry.key.clone(), element: entry.element + 1 },
            _ => KeyEntry { key: KeyBytes::new(&span.from), element: 0 },
        };
        entries.visit_from(&from, |entry| {
            span.to.as_ref().is_none_or(|to| entry.key.as_slice() < to.as_slice()) && consider(entry)
        });
    }
    full.then_some(last)
}

/// True unless an element with several values has another entry in the span that the scan meets before this one.
fn is_first(root: &GraphRoot, index: &Index, key: KeyId, entry: &KeyEntry, span: &KeySpan, descending: bool) -> bool {
    let mut count = 0;
    root.visit_values(index.shape.elements, entry.element, key, &mut |_| count += 1);
    if count <= 1 {
        return true;
    }
    let mut first = true;
    root.visit_values(index.shape.elements, entry.element, key, &mut |value| {
        let other = value_key(value);
        let bytes = other.as_slice();
        let inside = bytes >= span.from.as_slice() && span.to.as_ref().is_none_or(|to| bytes < to.as_slice());
        let sooner = if descending { other > entry.key } else { other < entry.key };
        first &= !(inside && sooner);
    });
    first
}
