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

/// The places of keys of these hashes in a `ConcurrentHashMap` into which they went in this order: the first place comes first. Unlike the place of a
/// bucket, that inside one depends on all others, since a bucket that is divided is turned around up to the last entries that stay together.
/// Cost: linear.
pub fn places_in_concurrent(hashes: &[i32]) -> Vec<u32> {
    let mut table: Vec<Vec<u32>> = vec![Vec::new(); BUCKETS_MIN];
    for (number, hash) in hashes.iter().enumerate() {
        let place = bucket(*hash, table.len()) as usize;
        let of_hash = &mut table[place];
        let is_long = of_hash.len() >= BUCKET_ENTRIES_MAX;
        of_hash.push(number as u32);
        if is_long && table.len() < BUCKETS_SORTED {
            let enough = (table.len() * 3 + 1).next_power_of_two();
            while table.len() * 3 < enough * 4 {
                table = divided(table, hashes);
            }
        }
        while (number + 1) * 4 >= table.len() * 3 {
            table = divided(table, hashes);
        }
    }
    let mut places = vec![0; hashes.len()];
    for (place, number) in table.into_iter().flatten().enumerate() {
        places[number as usize] = place as u32;
    }
    places
}

/// The table with twice as many buckets.
fn divided(table: Vec<Vec<u32>>, hashes: &[i32]) -> Vec<Vec<u32>> {
    let buckets = table.len();
    let mut wider: Vec<Vec<u32>> = vec![Vec::new(); 2 * buckets];
    for entries in table {
        let place_of = |number: u32| bucket(hashes[number as usize], 2 * buckets) as usize;
        let Some(last) = entries.last().map(|number| place_of(*number)) else { continue };
        let behind = entries.iter().rev().take_while(|number| place_of(**number) == last).count();
        let (turned, kept) = entries.split_at(entries.len() - behind);
        for number in turned.iter().rev().chain(kept) {
            wider[place_of(*number)].push(*number);
        }
    }
    wider
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
        assert_eq!(place_concurrent(&Value::Int(20), 12, &InternalIds), Some(20));
        assert_eq!(place(&Value::Int(20), 12, &InternalIds), Some(4));
        assert_eq!(place(&Value::Int(20), 13, &InternalIds), Some(20));
    }
    #[test]
    fn a_map_grows_where_many_keys_share_a_bucket() {
        // Eight multiples of 16 are in one bucket, the ninth doubles the map.
        let multiples = |count: i32| (0..count).map(|number| number * 16);
        assert_eq!([8, 9, 12, 13].map(|count| buckets_of(multiples(count))), [16, 32, 32, 32]);
        assert_eq!([12, 13, 24, 25].map(|count| buckets_of(0..count)), [16, 32, 32, 64]);
    }

    #[test]
    fn entries_of_a_concurrent_map_turn_around() {
        // 1, 17 and 33 are in one bucket of 16. At the twelfth key the map has 32: 17 goes to another bucket, and 1 in front of 33.
        let keys = [1, 17, 33, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(places_in_concurrent(&keys)[..3], [0, 1, 2]);
        let keys = [1, 17, 33, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        assert_eq!(places_in_concurrent(&keys)[..4], [0, 11, 1, 2]);
        // 33 comes before 1 where the last one to stay is neither.
        let keys = [1, 33, 17, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        assert_eq!(places_in_concurrent(&keys)[..3], [1, 0, 11]);
    }
}
