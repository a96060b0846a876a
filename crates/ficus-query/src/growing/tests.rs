use std::collections::HashMap;
use std::collections::HashSet;

use super::*;
use crate::random::Random;

fn account() -> MemoryAccount {
    MemoryAccount::new(1 << 30)
}

#[test]
fn a_set_knows_what_it_has_seen_whatever_its_size() {
    for (seed, count) in [3, 500, WHOLE - 1, WHOLE + 1, 300_000].into_iter().enumerate() {
        let mut random = Random::seeded(seed as u64);
        let (mut own, mut model) = (Seen::<u64>::default(), HashSet::new());
        let account = account();
        for _ in 0..count {
            let value = random.below(count) as u64;
            let is_new = own.insert(value, |_| 8, &account).expect("room");
            assert_eq!(is_new, model.insert(value), "seed {seed}, {count}");
        }
        assert_eq!(own.table.len, model.len());
        assert!(account.used_bytes() >= model.len() * (8 + 9), "{count}: {}", account.used_bytes());
        own.clear();
        assert_eq!(account.used_bytes(), 0);
        assert!(own.insert(1, |_| 0, &account).expect("room"), "it begins anew");
    }
}

#[test]
fn shards_grow_one_after_another_and_what_an_entry_takes_stays_the_same() {
    let (account, mut seen) = (account(), Seen::<u64>::default());
    let (mut before, mut largest) = (0, 0);
    for value in 0..2_000_000u64 {
        seen.insert(value, |_| 0, &account).expect("room");
        let used = account.used_bytes();
        if value > 200_000 {
            largest = largest.max((used - before) * 1000 / used);
            // 8 bytes and a byte of the table's own, of which a part is free.
            assert!((9..18).contains(&(used as u64 / value)), "{value}: {used}");
        }
        before = used;
    }
    assert!(largest <= 40, "one step of growth is a small part of the whole: {largest} of 1000");
}

#[test]
fn what_is_held_is_what_the_tables_have() {
    let hashes = DefaultHashBuilder::default();
    held_is_what_tables_have(|value| hashes.hash_one(value), 100_000);
    // Hashes that fill few shards, and these beyond what they are made with.
    held_is_what_tables_have(|value| value & 0xF, 2 * WHOLE as u64);
}

fn held_is_what_tables_have(hash_of: impl Fn(u64) -> u64, count: u64) {
    let (account, mut table, mut held) = (account(), Table::<u64>::default(), Held::default());
    for value in 0..count {
        table.insert(hash_of(value), value, |value| hash_of(*value), &mut held, &account).expect("room");
        if value % 997 == 0 || value == WHOLE as u64 {
            let real: usize = table.shards.iter().chain([&table.whole]).map(HashTable::allocation_size).sum();
            assert_eq!(held.bytes(), real, "at {value}");
        }
    }
}

#[test]
fn hashes_of_numbers_in_a_row_fill_all_shards() {
    for builder in 0..200 {
        let (hashes, mut counts) = (DefaultHashBuilder::default(), [0; SHARDS]);
        for value in 0..WHOLE as u64 {
            counts[shard_of(hashes.hash_one(value))] += 1;
        }
        let most = counts.into_iter().max().expect("there are shards");
        assert!(most < 2 * WHOLE / SHARDS + 24, "builder {builder}: {most} of {WHOLE} are in one");
    }
}

#[test]
fn what_there_is_no_room_for_is_not_added() {
    let (account, mut seen) = (MemoryAccount::new(1 << 20), Seen::<u64>::default());
    let refused = (0..).find(|value| seen.insert(*value, |_| 0, &account).is_err()).expect("it is bounded");
    assert!((20_000..120_000).contains(&refused), "{refused}");
    assert!(seen.table.len as u64 == refused);
}

#[test]
fn a_large_table_is_freed_in_slices() {
    let counted = std::sync::Arc::new(());
    let (account, mut held) = (account(), Held::default());
    let mut table: Table<(u64, std::sync::Arc<()>)> = Table::default();
    let hashes = DefaultHashBuilder::default();
    for number in 0..50_000u64 {
        let hash = |entry: &(u64, std::sync::Arc<()>)| hashes.hash_one(entry.0);
        let entry = (number, counted.clone());
        table.insert(hash(&entry), entry, hash, &mut held, &account).expect("room");
    }
    let mut remains = Vec::new();
    surrender(table, &mut held, &mut remains);
    let mut before = 50_001;
    while remains[0].free_some(1000) == 0 {
        let left = std::sync::Arc::strong_count(&counted);
        assert!(before - left <= 1000, "{before} {left}");
        before = left;
        assert!(account.used_bytes() > 0, "the account goes last");
    }
    assert_eq!(std::sync::Arc::strong_count(&counted), 1);
    drop(remains);
    assert_eq!(account.used_bytes(), 0);
}

#[test]
fn what_is_not_flat_is_dropped_wherever_a_table_ends() {
    let text: std::sync::Arc<str> = "text".into();
    for count in [10u64, 100_000] {
        for end in 0..4 {
            let (account, mut seen) = (account(), Seen::<(u64, Value)>::default());
            for number in 0..count {
                let value = if number == 7 { Value::String(text.clone()) } else { Value::Long(0) };
                seen.insert((number, value), |_| 0, &account).expect("room");
            }
            assert_eq!(std::sync::Arc::strong_count(&text), 2);
            assert!(!seen.table.is_flat);
            let mut remains = Vec::new();
            match end {
                0 => seen.clear(),
                1 => drop(seen),
                // In the midst of it, and to its end.
                2 => {
                    seen.surrender(&mut remains);
                    remains[0].free_some(1);
                }
                _ => {
                    seen.surrender(&mut remains);
                    while remains[0].free_some(1000) == 0 {}
                }
            }
            drop(remains);
            assert_eq!(std::sync::Arc::strong_count(&text), 1, "{count}, {end}");
            assert_eq!(account.used_bytes(), 0);
        }
    }
}

#[test]
fn values_under_keys_stay_in_the_order_in_which_keys_came() {
    for (seed, count) in [10, 3000, 100_000].into_iter().enumerate() {
        let mut random = Random::seeded(seed as u64);
        let (account, mut own) = (account(), Keyed::<u64>::default());
        let (mut order, mut model) = (Vec::new(), HashMap::<i64, u64>::new());
        for _ in 0..count {
            let key = random.below(count / 2) as i64;
            *own.entry(Value::Long(key), 0, &account, || 0).expect("room").0 += 1;
            let known = model.entry(key).or_insert(0);
            if *known == 0 {
                order.push(key);
            }
            *known += 1;
        }
        let expected = order.iter().map(|key| (Value::Long(*key), model[key]));
        assert!(own.iter().cloned().eq(expected), "seed {seed}");
        let first = own.pop_front().expect("there are some");
        assert_eq!(first, (Value::Long(order[0]), model[&order[0]]));
        assert_eq!(own.entries.len(), order.len() - 1);
        own.clear();
        assert_eq!(account.used_bytes(), 0);
    }
}
