//! Predicates by name and operands, as every format has them.

use std::sync::Arc;

use ficus_model::{Comparison, GType, P, Shared, TextComparison, Value};

use crate::strategy::simple_name;

/// The operands of a predicate, for writing.
pub(crate) enum Operands<'a> {
    /// One value.
    One(&'a Value),
    /// A text; such a predicate is a `TextP`.
    Text(&'a str),
    /// A type name.
    Type(GType),
    /// Any number of values.
    Many(&'a [Value]),
    /// Predicates, joined by `and` or `or`.
    Joined(&'a [P]),
    /// The predicate that `not` negates.
    Negated(&'a P),
}

/// Name and operands of `predicate`.
pub(crate) fn parts(predicate: &P) -> (&'static str, Operands<'_>) {
    match predicate {
        P::Compare(comparison, value) => (comparison.name(), Operands::One(value)),
        P::Text(comparison, pattern) => (comparison.name(), Operands::Text(pattern)),
        P::Within(values) => ("within", Operands::Many(values)),
        P::Without(values) => ("without", Operands::Many(values)),
        P::TypeOf(name) => ("typeOf", Operands::Type(*name)),
        P::And(all) => ("and", Operands::Joined(all)),
        P::Or(any) => ("or", Operands::Joined(any)),
        P::Not(inner) => ("not", Operands::Negated(inner)),
    }
}

fn comparison_of(name: &str) -> Option<Comparison> {
    use Comparison::*;
    [Eq, Neq, Lt, Lte, Gt, Gte].into_iter().find(|comparison| comparison.name() == name)
}

fn text_comparison_of(name: &str) -> Option<TextComparison> {
    use TextComparison::*;
    [StartingWith, NotStartingWith, EndingWith, NotEndingWith, Containing, NotContaining, Regex, NotRegex]
        .into_iter()
        .find(|comparison| comparison.name() == name)
}

/// Builds a predicate from the flat operands of GraphBinary, where `eq([1,2])` and `within(1,2)` look alike.
///
/// The error says what was expected.
pub(crate) fn from_operands(name: &str, mut operands: Vec<Value>) -> Result<P, &'static str> {
    let takes_many = matches!(name, "and" | "or" | "within" | "without" | "between" | "inside" | "outside");
    let is_pair = matches!(name, "between" | "inside" | "outside");
    match operands.len() {
        1 if !takes_many || (is_pair && matches!(operands[0], Value::List(_))) => {
            from_value(name, operands.pop().expect("there is one"))
        }
        _ => from_value(name, Value::List(Shared::new(operands))),
    }
}

/// Builds a predicate from the single value of GraphSON. The error says what was expected.
pub(crate) fn from_value(name: &str, value: Value) -> Result<P, &'static str> {
    if let Some(comparison) = comparison_of(name) {
        return Ok(P::Compare(comparison, value));
    }
    if let Some(comparison) = text_comparison_of(name) {
        return match value {
            Value::String(pattern) => Ok(P::Text(comparison, pattern)),
            _ => Err("a string as the operand of a text predicate"),
        };
    }
    match name {
        "within" => Ok(P::Within(members(value))),
        "without" => Ok(P::Without(members(value))),
        "and" => joined(value).map(P::And),
        "or" => joined(value).map(P::Or),
        "not" => match value {
            Value::P(inner) => Ok(P::Not(Box::new(Arc::unwrap_or_clone(inner)))),
            _ => Err("a predicate as the operand of not"),
        },
        "between" => pair(value).map(|(low, high)| P::And(vec![gte(low), lt(high)])),
        "inside" => pair(value).map(|(low, high)| P::And(vec![gt(low), lt(high)])),
        "outside" => pair(value).map(|(low, high)| P::Or(vec![lt(low), gt(high)])),
        "typeOf" => type_name(&value).map(P::TypeOf).ok_or("a type name of GType as the operand of typeOf"),
        _ => Err("the name of a predicate of P or TextP"),
    }
}

fn gt(value: Value) -> P {
    P::Compare(Comparison::Gt, value)
}

fn gte(value: Value) -> P {
    P::Compare(Comparison::Gte, value)
}

fn lt(value: Value) -> P {
    P::Compare(Comparison::Lt, value)
}

fn members(value: Value) -> Shared<Vec<Value>> {
    match value {
        Value::List(members) => members,
        Value::Set(members) => Shared::new(members.iter().cloned().collect()),
        single => Shared::new(vec![single]),
    }
}

fn joined(value: Value) -> Result<Vec<P>, &'static str> {
    let predicates = match &value {
        Value::List(members) if !members.is_empty() => members.as_slice(),
        _ => std::slice::from_ref(&value),
    };
    let predicate = |member: &Value| match member {
        Value::P(inner) => Ok((**inner).clone()),
        _ => Err("predicates as the operands of and, or"),
    };
    predicates.iter().map(predicate).collect()
}

fn pair(value: Value) -> Result<(Value, Value), &'static str> {
    match value {
        Value::List(members) => match members.as_slice() {
            [low, high] => Ok((low.clone(), high.clone())),
            _ => Err("two operands"),
        },
        _ => Err("two operands"),
    }
}

/// A type by token, by name, or by the Java class that TinkerPop maps to it.
fn type_name(value: &Value) -> Option<GType> {
    let text = match value {
        Value::GType(name) => return Some(*name),
        Value::String(text) => text,
        _ => return None,
    };
    let simple = simple_name(text);
    GType::from_name(simple).or_else(|| GType::from_name(&simple.to_ascii_uppercase())).or(match simple {
        "Integer" => Some(GType::Int),
        "BigInteger" => Some(GType::BigInt),
        "Character" => Some(GType::Char),
        "OffsetDateTime" => Some(GType::DateTime),
        "ByteBuffer" => Some(GType::Binary),
        "VertexProperty" => Some(GType::VProperty),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(values: &[i32]) -> Vec<Value> {
        values.iter().map(|&value| Value::Int(value)).collect()
    }

    #[test]
    fn ranges_become_what_they_stand_for() {
        let check = |name: &str, expected: P| {
            assert_eq!(from_operands(name, ints(&[1, 2])), Ok(expected.clone()));
            assert_eq!(from_value(name, Value::List(Shared::new(ints(&[1, 2])))), Ok(expected));
        };
        check("between", P::And(vec![gte(Value::Int(1)), lt(Value::Int(2))]));
        check("inside", P::And(vec![gt(Value::Int(1)), lt(Value::Int(2))]));
        check("outside", P::Or(vec![lt(Value::Int(1)), gt(Value::Int(2))]));
        assert!(from_operands("between", ints(&[1])).is_err());
    }

    #[test]
    fn flat_operands_of_equality_are_a_list() {
        let list = Value::List(Shared::new(ints(&[1, 2])));
        assert_eq!(from_operands("eq", ints(&[1, 2])), Ok(P::eq(list.clone())));
        assert_eq!(from_operands("eq", ints(&[1])), Ok(P::eq(Value::Int(1))));
        assert_eq!(from_operands("within", vec![list.clone()]), Ok(P::Within(Shared::new(vec![list]))));
        assert_eq!(from_operands("within", Vec::new()), Ok(P::Within(Shared::default())));
    }

    #[test]
    fn types_are_found_by_token_name_and_class() {
        let check = |value: Value, expected| assert_eq!(from_value("typeOf", value).ok(), expected);
        check(Value::GType(GType::Int), Some(P::TypeOf(GType::Int)));
        check(Value::String("String".into()), Some(P::TypeOf(GType::String)));
        check(Value::String("java.lang.Integer".into()), Some(P::TypeOf(GType::Int)));
        check(Value::String("Thread".into()), None);
    }
}
