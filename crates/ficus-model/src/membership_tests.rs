//! A membership against comparing with all members one by one.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use num_bigint::BigInt;

use super::*;
use crate::{BulkSet, DetachedVertex, EdgeId, Element, InternalIds, OffsetDateTime, Path, Shared, VertexId};

/// Values that are equal to others of other types, or only seem so.
fn simple() -> Vec<Value> {
    let mut values =
        vec![Value::Null, Value::Bool(true), Value::Bool(false), Value::Char('a'), Value::from("a"), Value::from("1")];
    let integers = [
        0i64,
        1,
        -1,
        127,
        16_777_215,
        16_777_216,
        16_777_217,
        16_777_219,
        i64::from(i32::MAX),
        (1 << 53) - 1,
        1 << 53,
        (1 << 53) + 1,
        i64::MAX,
        i64::MIN,
    ];
    for integer in integers {
        values.extend(i8::try_from(integer).ok().map(Value::Byte));
        values.extend(i16::try_from(integer).ok().map(Value::Short));
        values.extend(i32::try_from(integer).ok().map(Value::Int));
        values.push(Value::Long(integer));
        values.push(Value::BigInteger(Arc::new(BigInt::from(integer))));
        values.push(Value::BigDecimal(Arc::new(BigDecimal::new(BigInt::from(integer) * 10, 1))));
        values.push(Value::Float(integer as f32));
        values.push(Value::Double(integer as f64));
    }
    for double in [-0.0, 0.1, 0.5, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::from(0.1f32)] {
        values.push(Value::Double(double));
        values.push(Value::Float(double as f32));
    }
    values.extend(["0.1", "0.50", "1e300"].map(|text| Value::BigDecimal(Arc::new(text.parse().unwrap()))));
    values.extend([1, 2].map(|id| Value::Vertex(VertexId(id))));
    values.push(Value::Edge(EdgeId(1)));
    let detached = DetachedVertex { id: Value::Long(1), label: "person".into(), properties: Vec::new() };
    values.push(Value::Element(Arc::new(Element::Vertex(detached))));
    let day = |offset_seconds| OffsetDateTime { epoch_seconds: 1, nanos: 0, offset_seconds };
    values.extend([0, 3600].map(|offset| Value::DateTime(day(offset))));
    values
}

/// Collections of them: one, two in both orders, and nested.
fn nested(simple: &[Value]) -> Vec<Value> {
    let mut values = Vec::new();
    for (a, b) in simple.iter().zip(simple.iter().cycle().skip(7)) {
        let (list, swapped) = (vec![a.clone(), b.clone()], vec![b.clone(), a.clone()]);
        values.push(Value::List(Shared::new(vec![a.clone()])));
        values.push(Value::Set(Shared::new(list.iter().cloned().collect())));
        values.push(Value::Set(Shared::new(swapped.iter().cloned().collect())));
        let counts = list.iter().map(|value| (value.clone(), 1)).collect();
        values.push(Value::BulkSet(Shared::new(BulkSet { counts })));
        values.push(Value::Map(Shared::new([(a.clone(), b.clone()), (b.clone(), a.clone())].into_iter().collect())));
        values.push(Value::Map(Shared::new([(b.clone(), a.clone()), (a.clone(), b.clone())].into_iter().collect())));
        values.push(Value::Path(Shared::new(Path::unlabelled(list.clone()))));
        let inner = Value::List(Shared::new(list));
        values.push(Value::List(Shared::new(vec![
            inner.clone(),
            Value::Set(Shared::new([inner].into_iter().collect())),
        ])));
    }
    values
}

fn check(members: &[Value], values: &[Value]) {
    let mut known = Membership::default();
    for (place, member) in members.iter().enumerate() {
        known.push(member, |place| members.get(place));
        assert_eq!(known.count(), place + 1);
    }
    for value in values {
        let expected = members.iter().any(|member| equals(value, member, &InternalIds));
        assert_eq!(
            known.contains(value, |place| members.get(place), &InternalIds),
            expected,
            "{value:?} among {members:?}"
        );
    }
}

#[test]
fn says_what_comparing_one_by_one_says() {
    let simple = simple();
    let nested = nested(&simple);
    let all: Vec<Value> = simple.iter().chain(&nested).cloned().collect();
    for member in &all {
        check(std::slice::from_ref(member), &all);
    }
    for members in all.chunks(5).chain(all.chunks(23)) {
        check(members, &all);
    }
    check(&all, &all);
}

#[test]
fn says_so_of_equal_hashes_too() {
    // Sets of more members than are hashed.
    let set = |first: i32| Value::Set(Shared::new((first..first + 70).map(Value::Int).collect()));
    let members: Vec<Value> = (0..200).map(set).collect();
    let values: Vec<Value> = (190..210).map(set).collect();
    check(&members, &values);
}
