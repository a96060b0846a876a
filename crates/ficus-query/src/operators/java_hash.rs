//! Where the keys of a map are in a hash map of TinkerPop's, which is Java's: groups are ended and elements handed out in this order there, which nobody
//! sees but who draws random numbers from a seed meanwhile.
//!
//! Source: the specifications of `hashCode()` in the documentation of the Java platform, for each class.

use ficus_model::{ElementResolver, Value};

/// Buckets of a map with its first entry.
const BUCKETS_MIN: usize = 16;

/// A map with a bucket of more than so many entries doubles, as long as it has less than [`BUCKETS_SORTED`].
const BUCKET_ENTRIES_MAX: usize = 8;

/// From so many buckets on long ones become trees. Nine of the same are too rare to be looked at: their entries stay in the order in which they came.
const BUCKETS_SORTED: usize = 64;

/// The bucket of a key in a map of so many entries; `None` where the hash of the key is no function of it.
pub fn place(key: &Value, entries: usize, resolver: &dyn ElementResolver) -> Option<u32> {
    let mut buckets = BUCKETS_MIN;
    // Three quarters of them may be in use.
    while entries.saturating_mul(4) > buckets.saturating_mul(3) {
        buckets *= 2;
    }
    Some(bucket(hash(key, resolver)?, buckets))
}

/// As [`place`], in a `ConcurrentHashMap`, which doubles once three quarters are in use.
pub fn place_concurrent(key: &Value, entries: usize, resolver: &dyn ElementResolver) -> Option<u32> {
    place(key, entries.saturating_add(1), resolver)
}

/// How many buckets a map has into which keys of these hashes went in this order.
pub fn buckets_of(hashes: impl ExactSizeIterator<Item = i32> + Clone) -> usize {
    let (entries, mut buckets) = (hashes.len(), BUCKETS_MIN);
    for (before, hash) in hashes.clone().enumerate() {
        if buckets >= BUCKETS_SORTED {
            break;
        }
        let is_same = |other: &i32| bucket(*other, buckets) == bucket(hash, buckets);
        if hashes.clone().take(before).filter(is_same).count() >= BUCKET_ENTRIES_MAX {
            buckets *= 2;
        }
        if (before + 1) * 4 > buckets * 3 {
            buckets *= 2;
        }
    }
    while entries.saturating_mul(4) > buckets.saturating_mul(3) {
        buckets *= 2;
    }
    buckets
}

/// The bucket of a key with this hash among so many.
pub fn bucket(hash: i32, buckets: usize) -> u32 {
    let spread = (hash ^ (hash.cast_unsigned() >> 16).cast_signed()).cast_unsigned();
    (u64::from(spread) & (buckets as u64 - 1)) as u32
}

/// `hashCode()` of a value; `None` where it is no function of the value.
pub fn hash(value: &Value, resolver: &dyn ElementResolver) -> Option<i32> {
    let of_64 = |bits: u64| (bits ^ (bits >> 32)) as u32 as i32;
    Some(match value {
        Value::Null => 0,
        Value::Bool(is_true) => {
            if *is_true {
                1231
            } else {
                1237
            }
        }
        Value::Byte(number) => i32::from(*number),
        Value::Short(number) => i32::from(*number),
        Value::Int(number) => *number,
        Value::Long(number) => of_64(number.cast_unsigned()),
        Value::Float(number) => if number.is_nan() { 0x7fc0_0000 } else { number.to_bits() }.cast_signed(),
        Value::Double(number) => of_64(if number.is_nan() { 0x7ff8_0000_0000_0000 } else { number.to_bits() }),
        Value::String(text) => {
            text.encode_utf16().fold(0i32, |sum, unit| sum.wrapping_mul(31).wrapping_add(i32::from(unit)))
        }
        Value::Uuid(uuid) => {
            let (high, low) = uuid.as_u64_pair();
            of_64(high ^ low)
        }
        Value::List(list) => list
            .iter()
            .try_fold(1i32, |sum, member| Some(sum.wrapping_mul(31).wrapping_add(hash(member, resolver)?)))?,
        Value::Set(set) => set.iter().try_fold(0i32, |sum, member| Some(sum.wrapping_add(hash(member, resolver)?)))?,
        Value::Map(map) => map.iter().try_fold(0i32, |sum, (key, value)| {
            Some(sum.wrapping_add(hash(key, resolver)? ^ hash(value, resolver)?))
        })?,
        Value::Entry(entry) => hash(&entry.0, resolver)? ^ hash(&entry.1, resolver)?,
        Value::Vertex(vertex) => hash(&resolver.vertex_id(*vertex), resolver)?,
        Value::Edge(edge) => hash(&resolver.edge_id(*edge), resolver)?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use ficus_model::InternalIds;

    use super::*;

    #[test]
    fn places_are_those_of_java() {
        let hashes = [
            (Value::from("software"), 1_319_330_215),
            (Value::from("person"), -991_716_523),
            (Value::from(""), 0),
            (Value::from("\u{1f600}"), 1_772_899),
            (Value::Long(-1), 0),
            (Value::Long(1 << 32 | 5), 4),
            (Value::Double(1.5), 1_073_217_536),
            (Value::Bool(true), 1231),
            (Value::from(vec![Value::Int(1), Value::Null, Value::Int(3)]), 30_755),
        ];
        for (value, expected) in hashes {
            assert_eq!(hash(&value, &InternalIds), Some(expected), "{value:?}");
        }
        // The first two in a map of two: software comes first.
        let places = ["software", "person"].map(|label| place(&Value::from(label), 2, &InternalIds));
        assert!(places[0] < places[1], "{places:?}");
        assert_eq!(place(&Value::Int(20), 12, &InternalIds), Some(4));
        assert_eq!(place(&Value::Int(20), 13, &InternalIds), Some(20));
    }
}
