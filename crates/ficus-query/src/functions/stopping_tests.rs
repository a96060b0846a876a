//! Functions over very many members look all the time whether their query must stop, and end where they see it. Time has no part in this: a clock that
//! counts how often it is read says when it is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ficus_dataflow::{CancelToken, Clock, Control};
use ficus_model::{ElementResolver, P, Scope, Value, ValueMap};

use super::collections::{self, Operand, OperandSource};
use super::members::watched;
use super::{FunctionResult, local, strings};
use crate::random::Random;

const MEMBERS: i64 = 100_000;

/// Members that may be gone through between two looks.
const BETWEEN_LOOKS: u64 = 8192;

#[derive(Default)]
struct Looks(AtomicU64);

impl Clock for Looks {
    fn now_ns(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

struct Asked<'c>(&'c Control);

impl ElementResolver for Asked<'_> {
    fn is_stopped(&self) -> bool {
        self.0.check().is_err()
    }
}

/// How often it was looked in a run that ends at a look.
fn looks(end: u64, function: impl FnOnce(&dyn ElementResolver)) -> u64 {
    let clock = Arc::new(Looks::default());
    let control = Control { cancel: CancelToken::default(), deadline_ns: Some(end), clock: clock.clone() };
    watched(&control, || function(&Asked(&control)));
    clock.0.load(Ordering::Relaxed)
}

/// `passes`: how often members are gone through at least, those that are copied into the result among them.
fn check(name: &str, passes: u64, function: impl Fn(&dyn ElementResolver) -> FunctionResult) {
    let all = looks(u64::MAX, |resolver| drop(function(resolver).expect(name)));
    let expected = (passes * MEMBERS as u64).div_ceil(BETWEEN_LOOKS) - passes;
    assert!(all >= expected, "{name} looks {all} times, not {expected}");
    for end in [0, 1, all / 2, all - 1] {
        let seen = looks(end, |resolver| drop(function(resolver)));
        // What follows what has ended begins, and sees it at its first look.
        assert!(seen <= end + 1 + 2 * passes, "{name} looks {seen} times although it is over at {end}");
    }
}

#[test]
fn functions_of_collections_look_while_they_go_through_members() {
    let numbers = |from: i64| (from..from + MEMBERS).map(Value::Long).collect::<Value>();
    let (own, other, few) = (numbers(0), numbers(MEMBERS), (0..10).map(Value::Long).collect::<Value>());
    let operand = |value| Operand { value, source: OperandSource::Argument };
    let set = local::dedup(&own);
    let map: ValueMap = (0..MEMBERS).map(|number| (Value::Long(number), Value::Null)).collect();
    let map = Value::from(map);
    check("merge", 4, |_| collections::merge(&own, operand(&other)));
    check("merge of maps", 1, |_| collections::merge(&map, operand(&map)));
    check("combine", 2, |_| collections::combine(&own, operand(&other)));
    check("difference", 2, |_| collections::difference(&own, operand(&few)));
    check("disjunct", 6, |_| collections::disjunct(&own, operand(&other)));
    check("intersect", 3, |_| collections::intersect(&own, operand(&own)));
    check("product", 10, |_| collections::product(&own, operand(&few)));
    check("conjoin", 1, |resolver| collections::conjoin(&own, ";", resolver));
    check("dedup", 2, |_| Ok(local::dedup(&own)));
    check("index", 2, |_| local::index(&own, local::Indexer::List));
    check("index as a map", 2, |_| local::index(&own, local::Indexer::Map));
    check("range", 2, |_| local::range(&own, 10, MEMBERS));
    check("range of a set", 2, |_| local::range(&set, 10, MEMBERS));
    check("range of a map", 1, |_| local::range(&map, 10, MEMBERS));
    check("sample", 3, |_| local::sample(&own, MEMBERS as usize - 1, &mut Random::seeded(1)));
    check("sample of a map", 3, |_| local::sample(&map, MEMBERS as usize - 1, &mut Random::seeded(1)));
    check("reverse", 2, |_| strings::reverse(&own));
    check("text", 1, |resolver| strings::as_string(&own, Scope::Global, resolver));
    check("texts", 2, |resolver| strings::as_string(&own, Scope::Local, resolver));
    let predicate = P::eq(Value::Long(-1)).compile().expect("no expression");
    check("any", 1, |resolver| {
        collections::quantify(collections::Quantifier::Any, &own, &predicate, resolver).map(Value::Bool)
    });
}

#[test]
fn functions_of_texts_look_while_they_go_through_them() {
    let texts = (0..MEMBERS).map(|number| Value::from(number.to_string())).collect::<Value>();
    check("upper case of each", 2, |_| strings::to_upper(&texts, Scope::Local));
    check("length of each", 2, |_| strings::length(&texts, Scope::Local));
    // Eight blocks, between which it is looked.
    let text = Value::from("0123456789abcdeé".repeat((8 << 20) / 17));
    let at_least = |name: &str, expected: u64, function: &dyn Fn() -> FunctionResult| {
        let all = looks(u64::MAX, |_| drop(function().expect(name)));
        assert!(all >= expected, "{name} looks {all} times");
        let seen = looks(1, |_| drop(function()));
        assert!(seen <= 6, "{name} looks {seen} times although it is over at the first");
    };
    at_least("upper case", 7, &|| strings::to_upper(&text, Scope::Global));
    at_least("lower case", 7, &|| strings::to_lower(&text, Scope::Global));
    at_least("reverse", 500, &|| strings::reverse(&text));
    at_least("replace nothing", 7, &|| strings::replace(&text, Some("xyz"), Some("x"), Scope::Global));
    at_least("replace", 50, &|| strings::replace(&text, Some("4"), Some("x"), Scope::Global));
    at_least("split at nothing", 7, &|| strings::split(&text, Some("xyz"), Scope::Global));
    at_least("split into characters", 500, &|| strings::split(&text, Some(""), Scope::Global));
    at_least("concat", 7, &|| strings::concat(&text, std::slice::from_ref(&text)));
}
