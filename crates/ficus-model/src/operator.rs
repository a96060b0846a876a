//! Applying [`Operator`]s: what `sack()`, `withSack()`, `withSideEffect()` and `fold()` merge values with.

use crate::{ModelError, Operator, Shared, Value, number};

/// Members of a list up to which a counted value is spelled out: a bulk set of few bytes can stand for any number.
pub const MEMBERS_MAX: usize = 10_000_000;

impl Operator {
    /// Merges `b` into `a`.
    ///
    /// `null` on one side gives the other side back for `and`, `or` and `addAll`, the first operand for arithmetic.
    /// `addAll` grows the collection in place where no one else holds it.
    /// Errors: those of [`number`], and `WrongType`.
    pub fn apply(self, a: Value, b: &Value) -> Result<Value, ModelError> {
        match self {
            Operator::Sum => number::add(&a, b),
            Operator::Minus => number::sub(&a, b),
            Operator::Mult => number::mul(&a, b),
            Operator::Div => number::div(&a, b),
            Operator::Min => number::min(&a, b),
            Operator::Max => number::max(&a, b),
            Operator::Assign => Ok(b.clone()),
            Operator::And => logical(a, b, "and", |a, b| a && b),
            Operator::Or => logical(a, b, "or", |a, b| a || b),
            Operator::AddAll => add_all(a, b),
            Operator::SumLong => match (&a, b) {
                (Value::Long(_), Value::Long(_)) => number::add(&a, b),
                (Value::Long(_), other) | (other, _) => {
                    Err(ModelError::WrongType { operation: "sumLong", expected: "longs", found: other.type_name() })
                }
            },
        }
    }
}

fn logical(a: Value, b: &Value, operation: &'static str, merge: fn(bool, bool) -> bool) -> Result<Value, ModelError> {
    match (&a, b) {
        (_, Value::Null) => Ok(a),
        (Value::Null, _) => Ok(b.clone()),
        // What decides alone decides beside anything.
        (Value::Bool(first), _) if merge(*first, true) == merge(*first, false) => Ok(a),
        (Value::Bool(a), Value::Bool(b)) => Ok(Value::Bool(merge(*a, *b))),
        (Value::Bool(_), other) | (other, _) => {
            Err(ModelError::WrongType { operation, expected: "booleans", found: other.type_name() })
        }
    }
}

fn add_all(a: Value, b: &Value) -> Result<Value, ModelError> {
    match (a, b) {
        (a, Value::Null) => Ok(a),
        (Value::Null, b) => Ok(b.clone()),
        (Value::Map(mut a), Value::Map(b)) => {
            Shared::make_mut(&mut a).extend(b.iter().map(|(key, value)| (key.clone(), value.clone())));
            Ok(Value::Map(a))
        }
        (Value::List(mut a), b) => {
            let members = members(b)?;
            // A bulk set is spelled out in a list.
            Shared::append(&mut a, |list| {
                for (member, count) in members {
                    let count = usize::try_from(count).unwrap_or(usize::MAX);
                    if count > MEMBERS_MAX.saturating_sub(list.len()).max(1) {
                        return Err(ModelError::TooManyMembers);
                    }
                    list.extend(std::iter::repeat_n(member.clone(), count));
                }
                Ok(())
            })?;
            Ok(Value::List(a))
        }
        (Value::Set(mut a), b) => {
            let members = members(b)?;
            Shared::make_mut(&mut a).extend(members.map(|(member, _)| member.clone()));
            Ok(Value::Set(a))
        }
        (Value::BulkSet(mut a), b) => {
            let members = members(b)?;
            let set = Shared::make_mut(&mut a);
            for (member, count) in members {
                let sum = set.counts.entry(member.clone()).or_insert(0);
                *sum = sum.saturating_add(count);
            }
            Ok(Value::BulkSet(a))
        }
        (a, b) => {
            let known = matches!(a, Value::Map(_));
            let found = if known { b.type_name() } else { a.type_name() };
            Err(wrong_collection(found))
        }
    }
}

fn wrong_collection(found: &'static str) -> ModelError {
    ModelError::WrongType { operation: "addAll", expected: "two maps or two collections", found }
}

/// Members with their multiplicities.
fn members(collection: &Value) -> Result<Box<dyn Iterator<Item = (&Value, u64)> + '_>, ModelError> {
    match collection {
        Value::List(list) => Ok(Box::new(list.iter().map(|member| (member, 1)))),
        Value::Set(set) => Ok(Box::new(set.iter().map(|member| (member, 1)))),
        Value::BulkSet(set) => Ok(Box::new(set.counts.iter().map(|(member, count)| (member, *count)))),
        other => Err(wrong_collection(other.type_name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_merge_and_pass_nulls_over() {
        let list = |members: &[i32]| members.iter().map(|member| Value::Int(*member)).collect::<Value>();
        let set = |members: &[i32]| Value::Set(Shared::new(members.iter().map(|member| Value::Int(*member)).collect()));
        let map = |pairs: &[(i32, i32)]| {
            Value::from(pairs.iter().map(|(a, b)| (Value::Int(*a), Value::Int(*b))).collect::<crate::ValueMap>())
        };
        for (operator, a, b, expected) in [
            (Operator::Sum, Value::Int(1), Value::Long(2), Value::Long(3)),
            (Operator::Minus, Value::Int(1), Value::Int(2), Value::Int(-1)),
            (Operator::Mult, Value::Int(3), Value::Double(0.5), Value::Double(1.5)),
            (Operator::Div, Value::Int(3), Value::Int(2), Value::Int(1)),
            (Operator::Min, Value::Int(3), Value::Int(2), Value::Int(2)),
            (Operator::Max, Value::Int(3), Value::Int(2), Value::Int(3)),
            (Operator::Assign, Value::Int(3), Value::Null, Value::Null),
            (Operator::And, Value::Bool(true), Value::Bool(false), Value::Bool(false)),
            (Operator::And, Value::Bool(true), Value::Null, Value::Bool(true)),
            (Operator::Or, Value::Null, Value::Bool(false), Value::Bool(false)),
            (Operator::Or, Value::Null, Value::Null, Value::Null),
            (Operator::And, Value::Bool(false), Value::Int(1), Value::Bool(false)),
            (Operator::Or, Value::Bool(true), Value::Int(1), Value::Bool(true)),
            (Operator::AddAll, list(&[1]), set(&[2, 3]), list(&[1, 2, 3])),
            (Operator::AddAll, set(&[1]), list(&[1, 2]), set(&[1, 2])),
            (Operator::AddAll, map(&[(1, 1), (2, 2)]), map(&[(1, 3)]), map(&[(1, 3), (2, 2)])),
            (Operator::AddAll, Value::Null, list(&[1]), list(&[1])),
            (Operator::SumLong, Value::Long(1), Value::Long(2), Value::Long(3)),
        ] {
            assert_eq!(operator.apply(a.clone(), &b).unwrap(), expected, "{operator} of {a:?} and {b:?}");
        }
        for (operator, a, b) in [
            (Operator::Sum, Value::from("a"), Value::Int(1)),
            (Operator::And, Value::Int(1), Value::Bool(true)),
            (Operator::And, Value::Bool(true), Value::Int(1)),
            (Operator::Sum, Value::from("a"), Value::Null),
            (Operator::Mult, Value::Null, Value::from("a")),
            (Operator::AddAll, Value::Int(1), list(&[1])),
            (Operator::AddAll, map(&[]), list(&[1])),
            (Operator::SumLong, Value::Long(1), Value::Int(1)),
        ] {
            assert!(operator.apply(a.clone(), &b).is_err(), "{operator} of {a:?} and {b:?}");
        }
    }
}
