//! When a result is the expected one: same type, same value; labels of paths are not part of the notation, and the last
//! bit of a double may differ.

use ficus_model::{Element, Shared, Value, ValueMap};

/// Doubles that are this close are the same result.
const DOUBLE_DISTANCE_MAX: f64 = 1e-15;

/// True when `actual` is what `expected` asks for.
pub fn same(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Double(e), Value::Double(a)) if e.is_finite() => (e - a).abs() <= DOUBLE_DISTANCE_MAX,
        (Value::Path(e), Value::Path(a)) => all_same(&e.objects, &a.objects),
        (Value::List(e), Value::List(a)) => all_same(e, a),
        (Value::Map(e), Value::Entry(a)) => {
            e.len() == 1 && e.iter().all(|(key, value)| key == &a.0 && same(value, &a.1))
        }
        (Value::Map(e), Value::Map(a)) => {
            let found = |key: &Value| a.get(key).or_else(|| find(a, key));
            e.len() == a.len() && e.iter().all(|(key, value)| found(key).is_some_and(|found| same(value, found)))
        }
        _ => expected == actual,
    }
}

/// Keys that are the same without being equal (paths with labels).
fn find<'a>(map: &'a ValueMap, wanted: &Value) -> Option<&'a Value> {
    map.iter().find(|(key, _)| same(wanted, key)).map(|(_, value)| value)
}

fn all_same(expected: &[Value], actual: &[Value]) -> bool {
    expected.len() == actual.len() && expected.iter().zip(actual).all(|(e, a)| same(e, a))
}

/// True when the results are the expected ones in that order.
pub fn ordered(expected: &[Value], actual: &[Value]) -> bool {
    all_same(expected, actual)
}

/// True when the results are the expected ones in some order.
pub fn unordered(expected: &[Value], actual: &[Value]) -> bool {
    let mut left: Vec<&Value> = actual.iter().collect();
    expected.len() == actual.len()
        && expected.iter().all(|wanted| match left.iter().position(|found| same(wanted, found)) {
            Some(index) => {
                left.swap_remove(index);
                true
            }
            None => false,
        })
}

/// True when each result is one of the expected ones.
pub fn among(expected: &[Value], actual: &[Value]) -> bool {
    actual.iter().all(|found| expected.iter().any(|wanted| same(wanted, found)))
}

/// What a result holds when it is looked into: the members of a collection, the entries of a map, else itself.
pub fn members(value: &Value) -> Vec<Value> {
    match value {
        Value::List(list) => list.to_vec(),
        Value::Set(set) => set.iter().cloned().collect(),
        Value::BulkSet(bulks) => {
            let repeat = |(value, count): (&Value, &u64)| (0..*count).map(|_| value.clone()).collect::<Vec<_>>();
            bulks.counts.iter().flat_map(repeat).collect()
        }
        Value::Path(path) => path.objects.clone(),
        Value::Map(map) => {
            map.iter().map(|(key, value)| Value::Entry(Shared::new((key.clone(), value.clone())))).collect()
        }
        other => vec![other.clone()],
    }
}

/// A value as failures show it, in the notation of the feature files as far as that has a word for it.
pub fn show(value: &Value) -> String {
    let list = |values: &mut dyn Iterator<Item = &Value>| values.map(show).collect::<Vec<_>>().join(",");
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Byte(value) => format!("d[{value}].b"),
        Value::Short(value) => format!("d[{value}].s"),
        Value::Int(value) => format!("d[{value}].i"),
        Value::Long(value) => format!("d[{value}].l"),
        Value::Float(value) => format!("d[{value:?}].f"),
        Value::Double(value) => format!("d[{value:?}].d"),
        Value::BigInteger(value) => format!("d[{value}].n"),
        Value::BigDecimal(value) => format!("d[{value}].m"),
        Value::String(text) => format!("{text:?}"),
        Value::Uuid(uuid) => format!("uuid[{uuid}]"),
        Value::List(values) => format!("l[{}]", list(&mut values.iter())),
        Value::Set(values) => format!("s[{}]", list(&mut values.iter())),
        Value::Path(path) => format!("p[{}]", list(&mut path.objects.iter())),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", show(key), show(value)));
            format!("m[{{{}}}]", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Entry(entry) => format!("entry[{}: {}]", show(&entry.0), show(&entry.1)),
        Value::BulkSet(bulks) => {
            let entries = bulks.counts.iter().map(|(value, count)| format!("{} x{count}", show(value)));
            format!("bulkset[{}]", entries.collect::<Vec<_>>().join(","))
        }
        Value::T(token) => format!("t[{token}]"),
        Value::Direction(direction) => format!("D[{direction}]"),
        Value::Element(element) => match &**element {
            Element::Vertex(vertex) => format!("v[id {}]", show(&vertex.id)),
            Element::Edge(edge) => {
                format!("e[id {}: {}-{}->{}]", show(&edge.id), show(&edge.out_id), edge.label, show(&edge.in_id))
            }
            Element::VertexProperty(property) => format!("vp[{}->{}]", property.key, show(&property.value)),
            Element::Property(property) => format!("property[{}->{}]", property.key, show(&property.value)),
        },
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ficus_model::Path;

    #[test]
    fn types_count_and_the_last_bit_of_a_double_does_not() {
        assert!(same(&Value::Int(1), &Value::Int(1)));
        assert!(!same(&Value::Int(1), &Value::Long(1)));
        assert!(!same(&Value::Double(1.0), &Value::Float(1.0)));
        assert!(same(&Value::Double(0.3), &Value::Double(0.1 + 0.2)));
        assert!(!same(&Value::Double(0.3), &Value::Double(0.3001)));
        assert!(same(&Value::Double(f64::NAN), &Value::Double(f64::NAN)));
        let list = |values: &[i32]| Value::List(Shared::new(values.iter().copied().map(Value::Int).collect()));
        let set = Value::Set(Shared::new([Value::Int(1)].into_iter().collect()));
        assert!(!same(&list(&[1]), &set));
    }

    #[test]
    fn labels_of_a_path_do_not_count() {
        let path = |label: &str| {
            Value::Path(Shared::new(Path::labelled(vec![Value::Int(1)], vec![Some([label.into()].into())])))
        };
        assert!(same(&path("a"), &path("b")));
    }

    #[test]
    fn multisets_are_compared_with_their_multiplicities() {
        let values = |numbers: &[i32]| numbers.iter().copied().map(Value::Int).collect::<Vec<_>>();
        assert!(unordered(&values(&[1, 2, 2]), &values(&[2, 1, 2])));
        assert!(!unordered(&values(&[1, 2, 2]), &values(&[2, 1, 1])));
        assert!(!unordered(&values(&[1]), &values(&[1, 1])));
        assert!(!ordered(&values(&[1, 2]), &values(&[2, 1])));
        assert!(among(&values(&[1, 2]), &values(&[2, 2])));
        assert!(!among(&values(&[1, 2]), &values(&[3])));
    }
}
