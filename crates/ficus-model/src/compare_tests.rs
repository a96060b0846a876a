//! Tests of comparison: cases by hand, and the laws of an order on random values.

use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::*;
use crate::Path;
use crate::{DetachedVertex, Duration, InternalIds, OffsetDateTime, Shared, T, VertexId};

fn dec(text: &str) -> Value {
    Value::BigDecimal(Arc::new(decimal::parse(text).unwrap()))
}

fn big(text: &str) -> Value {
    Value::BigInteger(Arc::new(text.parse().unwrap()))
}

fn list(members: &[Value]) -> Value {
    Value::from(members.to_vec())
}

fn set(members: &[Value]) -> Value {
    Value::Set(Shared::new(members.iter().cloned().collect()))
}

fn map(entries: &[(Value, Value)]) -> Value {
    Value::Map(Shared::new(entries.iter().cloned().collect()))
}

fn text(text: &str) -> Value {
    Value::from(text)
}

fn int(int: i32) -> Value {
    Value::Int(int)
}

fn vertex(id: Value) -> Value {
    Value::Element(Arc::new(Element::Vertex(DetachedVertex { id, label: "v".into(), properties: Vec::new() })))
}

#[test]
fn comparability_stays_within_a_family() {
    use Value::*;
    let cases = [
        (int(1), Long(1), Some(Equal)),
        (Byte(1), dec("1.0"), Some(Equal)),
        (Short(1), Double(1.0), Some(Equal)),
        (big("1"), Float(1.0), Some(Equal)),
        (int(16_777_217), Float(16_777_216.0), Some(Equal)),
        (Long(16_777_217), Float(16_777_216.0), Some(Greater)),
        (dec("0.1"), Double(0.1), Some(Equal)),
        (Double(0.0), Double(-0.0), Some(Equal)),
        (Double(f64::INFINITY), dec("1e400"), Some(Greater)),
        (Float(f32::NEG_INFINITY), big("-9"), Some(Less)),
        (Double(f64::INFINITY), Float(f32::INFINITY), Some(Equal)),
        (Double(f64::NAN), Double(f64::NAN), None),
        (Double(f64::NAN), int(1), None),
        (Null, Null, Some(Equal)),
        (Null, int(1), None),
        (Bool(false), Bool(true), Some(Less)),
        (text("a"), int(1), None),
        (text("a"), text("b"), Some(Less)),
        (list(&[]), list(&[int(1)]), Some(Less)),
        (list(&[int(1), int(2)]), list(&[Double(1.0), Double(2.0)]), Some(Equal)),
        (list(&[int(1), text("a")]), list(&[int(1), text("b")]), Some(Less)),
        (list(&[int(1)]), list(&[text("a")]), None),
        (list(&[int(1), text("a")]), list(&[int(2), int(3)]), None),
        (list(&[int(1), text("a")]), list(&[int(2)]), Some(Less)),
        (set(&[int(1), int(2)]), set(&[int(2), int(1)]), Some(Equal)),
        (set(&[int(1), text("foo")]), set(&[text("foo"), int(1)]), Some(Equal)),
        (set(&[int(1), int(2)]), set(&[Double(1.0), Double(2.0)]), Some(Equal)),
        (set(&[int(1)]), list(&[int(1)]), None),
        (
            map(&[(text("a"), int(1)), (text("b"), int(2))]),
            map(&[(text("b"), Long(2)), (text("a"), Long(1))]),
            Some(Equal),
        ),
        (map(&[(text("a"), int(1))]), map(&[(text("a"), text("x"))]), None),
        (vertex(int(1)), vertex(Long(1)), Some(Equal)),
        (vertex(int(1)), vertex(text("1")), None),
        (vertex(int(1)), int(1), None),
        (Value::Vertex(VertexId(1)), vertex(int(1)), Some(Equal)),
        (Value::T(crate::T::Id), Value::T(crate::T::Label), Some(Less)),
        (Char('a'), Char('b'), Some(Less)),
    ];
    for (a, b, expected) in cases {
        assert_eq!(compare(&a, &b, &InternalIds), expected, "{a:?} and {b:?}");
        assert_eq!(compare(&b, &a, &InternalIds), expected.map(Ordering::reverse), "{b:?} and {a:?}");
        assert_eq!(equals(&a, &b, &InternalIds), expected == Some(Equal), "{a:?} and {b:?}");
    }
}

#[test]
fn bulk_sets_compare_as_if_spelled_out() {
    let bulk = |counts: &[(i32, u64)]| {
        let counts = counts.iter().map(|(value, count)| (int(*value), *count)).collect();
        Value::BulkSet(Shared::new(BulkSet { counts }))
    };
    let cases = [
        (bulk(&[(1, 1), (2, 1)]), set(&[int(2), int(1)]), Some(Equal)),
        (bulk(&[(1, 1 << 60)]), bulk(&[(1, 1 << 60)]), Some(Equal)),
        (bulk(&[(1, 1 << 60)]), bulk(&[(1, 1 << 61)]), Some(Less)),
        (bulk(&[(1, 2), (3, 1)]), bulk(&[(1, 1), (2, 1)]), Some(Less)),
    ];
    for (a, b, expected) in cases {
        assert_eq!(compare(&a, &b, &InternalIds), expected, "{a:?} and {b:?}");
    }
}

#[test]
fn order_ranks_families_as_gremlin_does() {
    let date = |seconds| Value::DateTime(OffsetDateTime { epoch_seconds: seconds, nanos: 0, offset_seconds: 0 });
    let uuid = |text: &str| Value::Uuid(uuid::Uuid::parse_str(text).unwrap());
    let path = Value::Path(Shared::new(Path::unlabelled(vec![int(1)])));
    let sorted = vec![
        Value::Null,
        Value::Bool(false),
        Value::Bool(true),
        Value::Double(f64::NEG_INFINITY),
        int(1),
        Value::Double(2.0),
        big("99999999999999999999"),
        Value::Double(f64::INFINITY),
        Value::Double(f64::NAN),
        date(1),
        date(2),
        text("bar"),
        text("foo"),
        Value::T(T::Id),
        text("zzz"),
        uuid("5100808b-62f9-42b7-957e-ed66c30f40d1"),
        uuid("6100808b-62f9-42b7-957e-ed66c30f40d1"),
        vertex(int(1)),
        vertex(text("a")),
        path,
        set(&[text("x"), text("y"), text("z")]),
        list(&[text("a"), text("b"), text("c")]),
        list(&[text("a"), text("b"), text("c"), text("d")]),
        map(&[(text("a"), Value::Bool(false))]),
        map(&[(text("a"), text("a")), (text("b"), text("b"))]),
        Value::Entry(Shared::new((int(1), int(1)))),
        Value::Char('a'),
        Value::Duration(Duration { seconds: 1, nanos: 0 }),
    ];
    for (a_index, a) in sorted.iter().enumerate() {
        for (b_index, b) in sorted.iter().enumerate() {
            assert_eq!(order(a, b, &InternalIds), a_index.cmp(&b_index), "{a:?} and {b:?}");
        }
    }
}

#[test]
fn deep_nesting_does_not_exhaust_the_stack() {
    // Not deeper: dropping such a value recurses too, and is not what is tested here.
    let nested = |inner: i32| (0..2000).fold(int(inner), |value, _| list(&[value]));
    assert_eq!(order(&nested(1), &nested(2), &InternalIds), Equal);
    assert_eq!(compare(&nested(1), &nested(2), &InternalIds), Some(Equal));
}

/// Deterministic random numbers: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// Few different contents, so that equal ones meet often.
fn random_value(random: &mut Random, depth: u32) -> Value {
    const DOUBLES: [f64; 9] =
        [0.0, -0.0, 1.0, 0.1, 16_777_217.0, 9_007_199_254_740_993.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    const FLOATS: [f32; 7] = [0.0, 1.0, 0.1, 16_777_216.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    const LONGS: [i64; 6] = [0, 1, 16_777_217, (1 << 53) + 1, i64::MAX, i64::MIN];
    const DECIMALS: [&str; 8] = ["0", "0.10", "0.1", "1.0", "16777216.5", "9007199254740992.5", "1e40", "-1e-40"];
    let size = |random: &mut Random| random.below(3) as usize;
    match random.below(if depth == 0 { 14 } else { 20 }) {
        0 => Value::Null,
        1 => Value::Bool(random.below(2) == 0),
        2 => Value::Byte(random.below(3) as i8 - 1),
        3 => Value::Int([0, 1, 16_777_216, 16_777_217][random.below(4) as usize]),
        4 | 5 => Value::Long(LONGS[random.below(6) as usize]),
        6 => Value::Float(FLOATS[random.below(7) as usize]),
        7 | 8 => Value::Double(DOUBLES[random.below(9) as usize]),
        9 => big(["0", "1", "9007199254740993", "9223372036854775808", "10000000000000000000000000000000000000000"]
            [random.below(5) as usize]),
        10 => dec(DECIMALS[random.below(8) as usize]),
        11 => text(["", "a", "b", "id"][random.below(4) as usize]),
        12 => Value::Vertex(VertexId(random.below(3))),
        13 => Value::T(T::ALL[random.below(4) as usize]),
        14 | 15 => Value::List(Shared::new((0..size(random)).map(|_| random_value(random, depth - 1)).collect())),
        16 => Value::Set(Shared::new((0..size(random)).map(|_| random_value(random, depth - 1)).collect())),
        17 => {
            let entry = |random: &mut Random| (random_value(random, depth - 1), random_value(random, depth - 1));
            Value::Map(Shared::new((0..size(random)).map(|_| entry(random)).collect()))
        }
        18 => Value::Entry(Shared::new((random_value(random, depth - 1), random_value(random, depth - 1)))),
        _ => vertex(random_value(random, 0)),
    }
}

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn laws_hold_on_random_values() {
    let seed = 20_261_121;
    let mut random = Random(seed);
    let ids = InternalIds;
    for round in 0..60_000 {
        let [a, b, c] = [(); 3].map(|()| random_value(&mut random, 2));
        let context = || format!("seed {seed} round {round}: {a:?}, {b:?}, {c:?}");
        let ab = order(&a, &b, &ids);
        assert_eq!(order(&a, &a, &ids), Equal, "reflexive: {}", context());
        assert_eq!(order(&b, &a, &ids), ab.reverse(), "antisymmetric: {}", context());
        if ab == order(&b, &c, &ids) {
            assert_eq!(order(&a, &c, &ids), ab, "transitive: {}", context());
        }
        if ab == Equal {
            assert_eq!(order(&a, &c, &ids), order(&b, &c, &ids), "equal values order alike: {}", context());
        }
        assert_eq!(
            compare(&a, &b, &ids).map(Ordering::reverse),
            compare(&b, &a, &ids),
            "comparable both ways: {}",
            context()
        );
        assert_eq!(equals(&a, &b, &ids), equals(&b, &a, &ids), "equal both ways: {}", context());
        if a == b {
            assert_eq!(hash(&a), hash(&b), "equal values hash alike: {}", context());
            assert_eq!(ab, Equal, "the same key orders alike: {}", context());
        }
    }
}

/// Nobody wants to know any more from so many questions on.
struct Until {
    end: usize,
    asked: std::cell::Cell<usize>,
}

impl ElementResolver for Until {
    fn is_stopped(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.asked.get() >= self.end
    }
}

#[test]
fn comparisons_of_very_many_members_ask_whether_somebody_still_wants_to_know() {
    const MEMBERS: i64 = 100_000;
    let scattered = |number: i64| Value::Long(number.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64));
    let list = || (0..MEMBERS).map(scattered).collect::<Value>();
    let set = || Value::from((0..MEMBERS).map(scattered).collect::<crate::ValueSet>());
    let map = || Value::from((0..MEMBERS).map(|number| (scattered(number), Value::Null)).collect::<ValueMap>());
    for (name, a, b) in [("lists", list(), list()), ("sets", set(), set()), ("maps", map(), map())] {
        let asked = |end: usize, total: bool| {
            let resolver = Until { end, asked: std::cell::Cell::new(0) };
            let found = if total { Some(order(&a, &b, &resolver)) } else { compare(&a, &b, &resolver) };
            (found, resolver.asked.get())
        };
        for total in [false, true] {
            let (found, all) = asked(usize::MAX, total);
            assert_eq!(found, Some(Ordering::Equal), "{name}");
            assert!(all >= MEMBERS as usize / MEMBERS_BETWEEN_LOOKS, "{name} ask {all} times");
            for end in [1, all / 2, all] {
                assert!(asked(end.max(1), total).1 <= end.max(1) + 1, "{name} go on behind {end} of {all}");
            }
        }
        assert_eq!(asked_text(&a, 1), 1, "{name}");
        assert!(asked_text(&a, usize::MAX) >= MEMBERS as usize / MEMBERS_BETWEEN_LOOKS, "{name}");
    }
}

/// How often somebody is asked who wants a text.
fn asked_text(value: &Value, end: usize) -> usize {
    let resolver = Until { end, asked: std::cell::Cell::new(0) };
    crate::text::text(value, &resolver);
    resolver.asked.get()
}
