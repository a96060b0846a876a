//! Functions of two collections, `conjoin()`, and testing all members of one.
//!
//! Collections are lists, sets, bulk sets and paths. Members are the same as map keys are the same: `1` is not `1L`.

use std::collections::HashSet;
use std::fmt::Write;

use ficus_model::value::ValueHashing;
use ficus_model::{CompiledPredicate, ElementResolver, Value, text::shown};

use super::members::{
    self, MemberRefs, check_count, list_of, map_of_entries, refs, set_of, spell_out, spell_out_before,
    spell_out_behind, until_stopped,
};
use super::strings::made_text;
use super::{FunctionError, FunctionResult, check_text_length};

/// Where the second collection comes from; it decides the words of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandSource {
    /// A literal argument.
    Argument,
    /// A child traversal.
    Traversal,
}

/// The second collection of a function.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'v> {
    /// What should be a collection.
    pub value: &'v Value,
    /// Where it comes from.
    pub source: OperandSource,
}

/// Members of what a step is given.
fn incoming<'v>(value: &'v Value, step: &str) -> FunctionResult<MemberRefs<'v>> {
    if matches!(value, Value::Null) {
        return Err(FunctionError::new(format!("Incoming traverser for {step} step can't be null.")));
    }
    refs(value).ok_or_else(|| {
        FunctionError::new(format!(
            "{step} step can only take an array or an Iterable type for incoming traversers, encountered {}",
            value.type_name()
        ))
    })
}

fn operand<'v>(operand: Operand<'v>, step: &str) -> FunctionResult<MemberRefs<'v>> {
    let Operand { value, source } = operand;
    let message = match (value, source, refs(value)) {
        (_, _, Some(members)) => return Ok(members),
        (Value::Null, OperandSource::Argument, _) => format!("Argument provided for {step} step can't be null."),
        (Value::Null, OperandSource::Traversal, _) => {
            format!("Provided traversal argument for {step} step must yield an iterable type, not null")
        }
        (other, OperandSource::Argument, _) => {
            format!(
                "{step} step can only take an array or an Iterable as an argument, encountered {}",
                other.type_name()
            )
        }
        (other, OperandSource::Traversal, _) => {
            format!(
                "Provided traversal argument for {step} step must yield an iterable type, encountered {}",
                other.type_name()
            )
        }
    };
    Err(FunctionError::new(message))
}

/// Those that are there at all, each once for each place.
fn present<'v>(members: MemberRefs<'v>) -> impl Iterator<Item = &'v Value> {
    members.filter(|(_, count)| *count > 0).map(|(member, _)| member)
}

/// What is looked up while a function runs: where the members are, so that making it and freeing it touches none of them.
type LookedUp<'v> = HashSet<&'v Value, ValueHashing>;

fn looked_up<'v>(members: MemberRefs<'v>, room: usize) -> LookedUp<'v> {
    let mut set = LookedUp::with_capacity_and_hasher(room, ValueHashing::default());
    set.extend(present(members));
    set
}

/// `conjoin()`: the texts of all members but `null`s, with a delimiter between; of nothing but `null`s, `null`.
pub fn conjoin(value: &Value, delimiter: &str, resolver: &dyn ElementResolver) -> FunctionResult {
    let (mut out, mut is_first, mut any) = (String::new(), true, false);
    for (member, count) in incoming(value, "conjoin")? {
        any |= count > 0;
        if matches!(member, Value::Null) || count == 0 {
            continue;
        }
        if !is_first {
            out.push_str(delimiter);
        }
        is_first = false;
        let from = out.len();
        write!(out, "{}", shown(member, resolver)).expect("writing to a string does not fail");
        check_text_length(out.len())?;
        if count > 1 {
            let again = format!("{delimiter}{}", &out[from..]);
            let more = usize::try_from(count - 1).unwrap_or(usize::MAX);
            check_text_length(out.len().saturating_add(again.len().saturating_mul(more)))?;
            // So that it ends also if there is nothing to add.
            check_count(more)?;
            until_stopped(std::iter::repeat_n(&again, more)).for_each(|again| out.push_str(again));
        }
    }
    Ok(if any && is_first { Value::Null } else { made_text(out) })
}

/// `combine()`: one list of all members of both.
pub fn combine(value: &Value, other: Operand) -> FunctionResult {
    let more = members::places(other.value);
    let mut members = spell_out_before(incoming(value, "combine")?, more)?;
    spell_out_behind(&mut members, operand(other, "combine")?)?;
    Ok(members.into())
}

/// `difference()`: the set of members that are not in the other.
pub fn difference(value: &Value, other: Operand) -> FunctionResult {
    let members = incoming(value, "difference")?;
    let others = looked_up(operand(other, "difference")?, members::places(other.value));
    Ok(set_of(present(members).filter(|member| !others.contains(member)).cloned(), members::places(value)))
}

/// `disjunct()`: the set of members that only one of both has.
pub fn disjunct(value: &Value, other: Operand) -> FunctionResult {
    let (room, other_room) = (members::places(value), members::places(other.value));
    let own = looked_up(incoming(value, "disjunct")?, room);
    let others = looked_up(operand(other, "disjunct")?, other_room);
    let of_one = present(incoming(value, "disjunct")?).filter(|member| !others.contains(member));
    let of_other = present(operand(other, "disjunct")?).filter(|member| !own.contains(member));
    Ok(set_of(of_one.chain(of_other).cloned(), room.saturating_add(other_room)))
}

/// `intersect()`: the set of members that both have.
pub fn intersect(value: &Value, other: Operand) -> FunctionResult {
    let (room, other_room) = (members::places(value), members::places(other.value));
    let own = looked_up(incoming(value, "intersect")?, room);
    let others = present(operand(other, "intersect")?);
    Ok(set_of(others.filter(|member| own.contains(member)).cloned(), room.min(other_room)))
}

/// `merge()`: the set of all members of both; of two maps, one map in which the other's entries win.
pub fn merge(value: &Value, other: Operand) -> FunctionResult {
    if let Value::Map(map) = value {
        let Value::Map(others) = other.value else {
            return Err(FunctionError::new(format!(
                "merge step expected provided argument to evaluate to a Map, encountered {}",
                other.value.type_name()
            )));
        };
        let entries = map.iter().chain(others.iter()).map(|(key, value)| (key.clone(), value.clone()));
        return Ok(map_of_entries(entries, map.len() + others.len()));
    }
    let members = incoming(value, "merge")?;
    if matches!(other, Operand { value: Value::Map(_), source: OperandSource::Argument }) {
        return Err(FunctionError::new("merge step type mismatch: expected argument to be Iterable but got Map"));
    }
    let all = present(members).chain(present(operand(other, "merge")?));
    Ok(set_of(all.cloned(), members::places(value).saturating_add(members::places(other.value))))
}

/// `product()`: a list of all pairs, first members outermost.
pub fn product(value: &Value, other: Operand) -> FunctionResult {
    let members = spell_out(incoming(value, "product")?)?;
    let others = spell_out(operand(other, "product")?)?;
    let count = members.len().saturating_mul(others.len());
    check_count(count)?;
    let pairs = members.iter().flat_map(|a| others.iter().map(|b| Value::from(vec![(*a).clone(), (*b).clone()])));
    Ok(list_of(pairs, count))
}

/// How many members have to satisfy a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// `all()`.
    All,
    /// `any()`.
    Any,
    /// `none()`.
    None,
}

/// `all()`, `any()` and `none()` of a predicate: whether the value is a collection with so many members that satisfy it.
pub fn quantify(
    quantifier: Quantifier,
    value: &Value,
    predicate: &CompiledPredicate,
    resolver: &dyn ElementResolver,
) -> FunctionResult<bool> {
    let Some(members) = refs(value) else {
        return Ok(false);
    };
    for (member, count) in members {
        if count > 0 && predicate.test(member, resolver)? == (quantifier != Quantifier::All) {
            return Ok(quantifier == Quantifier::Any);
        }
    }
    Ok(quantifier != Quantifier::Any)
}

#[cfg(test)]
mod tests {
    use ficus_model::{Comparison, InternalIds, P, Shared, TextComparison};

    use super::super::test_values::*;
    use super::*;

    type Function = fn(&Value, Operand) -> FunctionResult;

    const FUNCTIONS: [(&str, Function); 6] = [
        ("combine", combine),
        ("difference", difference),
        ("disjunct", disjunct),
        ("intersect", intersect),
        ("merge", merge),
        ("product", product),
    ];

    fn argument(value: &Value) -> Operand<'_> {
        Operand { value, source: OperandSource::Argument }
    }

    fn traversal(value: &Value) -> Operand<'_> {
        Operand { value, source: OperandSource::Traversal }
    }

    #[test]
    fn functions_of_two_collections() {
        let mixed = Value::from(vec![text("a"), Value::Null, text("b")]);
        let cases: [(Function, Value, Value, Value); 16] = [
            (combine, list(&[1, 2]), set(&[2, 3]), list(&[1, 2, 2, 3])),
            (combine, list::<i32>(&[]), list(&[1]), list(&[1])),
            (difference, list(&[1, 2, 1]), list(&[2]), set(&[1])),
            (
                difference,
                mixed.clone(),
                list(&["a", "c"]),
                Value::Set(Shared::new([Value::Null, text("b")].into_iter().collect())),
            ),
            (difference, list(&[1]), Value::from(vec![Value::Long(1)]), set(&[1])),
            (disjunct, list(&[1, 2]), list(&[2, 3]), set(&[1, 3])),
            (disjunct, list::<i32>(&[]), list(&[2, 2]), set(&[2])),
            (intersect, list(&[1, 2, 2]), list(&[2, 2, 3]), set(&[2])),
            (intersect, mixed.clone(), list(&["a"]), set(&["a"])),
            (merge, list(&[1, 2]), list(&[2, 3]), set(&[1, 2, 3])),
            (merge, bulk_set(&[(1, 2)]), list::<i32>(&[]), set(&[1])),
            (merge, map(&[("a", 1), ("b", 2)]), map(&[("b", 3)]), map(&[("a", 1), ("b", 3)])),
            (product, list(&[1, 2]), list(&[3]), list(&[list(&[1, 3]), list(&[2, 3])])),
            (product, list(&[1]), list::<i32>(&[]), list::<i32>(&[])),
            (product, list(&[1, 1]), list(&[2]), list(&[list(&[1, 2]), list(&[1, 2])])),
            (combine, mixed, list::<i32>(&[]), Value::from(vec![text("a"), Value::Null, text("b")])),
        ];
        for (index, (function, a, b, expected)) in cases.into_iter().enumerate() {
            assert_eq!(function(&a, argument(&b)).unwrap(), expected, "case {index}");
            assert_eq!(function(&a, traversal(&b)).unwrap(), expected, "case {index}");
        }
    }

    #[test]
    fn errors_name_the_step_and_the_culprit() {
        let collection = list(&[1]);
        for (step, function) in FUNCTIONS {
            let message = |value: &Value, operand: Operand| function(value, operand).unwrap_err().message().to_string();
            assert_eq!(
                message(&Value::Null, argument(&collection)),
                format!("Incoming traverser for {step} step can't be null.")
            );
            assert!(message(&text("a"), argument(&collection)).contains(&format!(
                "{step} step can only take an array or an Iterable type for incoming traversers, encountered"
            )));
            assert!(
                message(&collection, argument(&Value::Null))
                    .contains(&format!("Argument provided for {step} step can't be null"))
            );
            assert!(
                message(&collection, argument(&int(2))).contains(&format!(
                    "{step} step can only take an array or an Iterable as an argument, encountered"
                ))
            );
            assert!(
                message(&collection, traversal(&Value::Null))
                    .contains(&format!("traversal argument for {step} step must yield an iterable type, not null"))
            );
            assert!(
                message(&collection, traversal(&int(2)))
                    .contains(&format!("traversal argument for {step} step must yield an iterable type, encountered"))
            );
        }
        let message = |value: &Value, operand: Operand| merge(value, operand).unwrap_err().message().to_string();
        let a_map = map(&[("k", "v")]);
        assert!(
            message(&collection, argument(&a_map))
                .contains("step type mismatch: expected argument to be Iterable but got Map")
        );
        assert!(message(&collection, traversal(&a_map)).contains("must yield an iterable type, encountered"));
        assert!(
            message(&a_map, traversal(&text("a")))
                .contains("merge step expected provided argument to evaluate to a Map, encountered")
        );
        let many = list(&vec![1; 100_000]);
        assert!(product(&many, argument(&many)).is_err());
    }

    #[test]
    fn conjoin_joins_texts() {
        let null = || Value::Null;
        for (value, delimiter, expected) in [
            (list::<i32>(&[]), ";", ""),
            (list(&[27, 29]), ";", "27;29"),
            (list(&["marko"]), "-", "marko"),
            (list(&["a", "b"]), "", "ab"),
            (Value::from(vec![text("a"), null(), text("b")]), "xyz", "axyzb"),
            (Value::from(vec![null(), text("a"), null()]), "+", "a"),
            (Value::from(vec![int(3), text("three")]), ";", "3;three"),
        ] {
            assert_eq!(conjoin(&value, delimiter, &InternalIds).unwrap(), text(expected));
        }
        assert_eq!(conjoin(&Value::from(vec![null(), null()]), "+", &InternalIds).unwrap(), null());
        let error = conjoin(&Value::Null, ",", &InternalIds).unwrap_err();
        assert_eq!(error.message(), "Incoming traverser for conjoin step can't be null.");
    }

    #[test]
    fn quantifiers_filter_collections() {
        use Quantifier::*;
        let gte = P::Compare(Comparison::Gte, int(7)).compile().unwrap();
        let is_null = P::eq(Value::Null).compile().unwrap();
        let starts = P::Text(TextComparison::StartingWith, "a".into()).compile().unwrap();
        let test = |quantifier, value: &Value, predicate: &CompiledPredicate| {
            quantify(quantifier, value, predicate, &InternalIds)
        };
        for (value, predicate, all, any, none) in [
            (list(&[5, 8, 10]), &gte, false, true, false),
            (list(&[10, 7]), &gte, true, true, false),
            (list(&[1, 2]), &gte, false, false, true),
            (list::<i32>(&[]), &gte, true, false, true),
            (bulk_set(&[(8, 1 << 60)]), &gte, true, true, false),
            (Value::Null, &is_null, false, false, false),
            (int(7), &gte, false, false, false),
            (Value::from(vec![Value::Null, Value::Null]), &is_null, true, true, false),
            (Value::from(vec![Value::Null, text("abc")]), &starts, false, true, false),
            (map(&[("a", 7)]), &gte, false, false, false),
        ] {
            assert_eq!(test(All, &value, predicate), Ok(all), "all {value:?}");
            assert_eq!(test(Any, &value, predicate), Ok(any), "any {value:?}");
            assert_eq!(test(None, &value, predicate), Ok(none), "none {value:?}");
        }
        assert!(test(All, &list(&[1]), &starts).is_err());
    }
}
