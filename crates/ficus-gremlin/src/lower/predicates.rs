//! Predicates of `has()` and its like, and those of `where()`, whose right-hand sides are labels.

use ficus_model::{P, Shared, T, Value};
use ficus_query::logical::{HasContainer, HasKey, Name, Node, WherePredicate};

use super::arguments::{Given, Step, describe};
use super::builder::Builder;
use super::error::Lowered;

/// How deep predicates may be nested.
const NESTING_MAX: usize = 256;

/// `eq` of a single value, `within` of several.
fn equal_or_within(mut values: Vec<Value>) -> P {
    match values.len() {
        1 => P::eq(values.remove(0)),
        _ => P::Within(Shared::new(values)),
    }
}

/// Adds a condition; one that follows another joins it, so that a scan sees them all at once.
fn push_condition(builder: &mut Builder<'_>, step: Step<'_>, key: HasKey, predicate: P) -> Lowered {
    let container = HasContainer { key, predicate };
    if let Some(Node::Has { containers }) = builder.last() {
        containers.push(container);
        return Ok(());
    }
    builder.push(step, Node::Has { containers: vec![container] })
}

/// The predicate at `index`, or equality with the value there.
fn predicate_or_equality(step: Step<'_>, index: usize) -> Lowered<P> {
    match step.given(index) {
        Some(Given::Predicate(predicate)) => Ok(predicate.clone()),
        Some(Given::Traversal(_)) => Err(step.wrong(format!(
            "{}() does not take a traversal as value: use where(values(key).is(…)) or filter(…) instead",
            step.name()
        ))),
        _ => Ok(P::eq(step.value(index)?)),
    }
}

/// What a key names: the accessors that TinkerPop hides behind a tilde, or a property.
fn has_key(key: &Name) -> HasKey {
    match &**key {
        "~id" => HasKey::Id,
        "~label" => HasKey::Label,
        "~key" => HasKey::PropertyKey,
        "~value" => HasKey::PropertyValue,
        _ => HasKey::Key(key.clone()),
    }
}

fn key_of_token(token: T) -> HasKey {
    match token {
        T::Id => HasKey::Id,
        T::Label => HasKey::Label,
        T::Key => HasKey::PropertyKey,
        T::Value => HasKey::PropertyValue,
    }
}

fn key_at(step: Step<'_>, index: usize) -> Lowered<HasKey> {
    match step.given(index) {
        Some(Given::Value(Value::T(token))) => Ok(key_of_token(*token)),
        Some(Given::Value(Value::String(key))) => Ok(has_key(key)),
        // No element has a null key, nor an empty one.
        Some(Given::Value(Value::Null)) => Ok(HasKey::Key("".into())),
        _ => Err(step.expected(index, "a property key or a T")),
    }
}

/// `has(key)`, `has(key or T, value or P)`, `has(label, key, value or P)`.
pub(super) fn has(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    match step.count() {
        1 => property_exists(builder, step, false),
        2 => push_condition(builder, step, key_at(step, 0)?, predicate_or_equality(step, 1)?),
        3 => {
            let label = match step.given(0) {
                Some(Given::Value(Value::String(_) | Value::Null)) => P::eq(step.value(0)?),
                Some(Given::Predicate(predicate)) => predicate.clone(),
                _ => return Err(step.expected(0, "a label")),
            };
            let (key, predicate) = (key_at(step, 1)?, predicate_or_equality(step, 2)?);
            push_condition(builder, step, HasKey::Label, label)?;
            push_condition(builder, step, key, predicate)
        }
        _ => Err(step.misused("has() takes (key), (key, value) or (label, key, value)")),
    }
}

pub(super) fn has_not(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    property_exists(builder, step, true)
}

fn property_exists(builder: &mut Builder<'_>, step: Step<'_>, negated: bool) -> Lowered {
    let key: Name = match step.given(0) {
        Some(Given::Value(Value::String(key))) => key.clone(),
        Some(Given::Value(Value::Null)) => "".into(),
        _ => return Err(step.expected(0, "a property key")),
    };
    builder.push(step, Node::HasProperty { key, negated })
}

pub(super) fn has_label(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    names_or_predicate(builder, step, HasKey::Label)
}

pub(super) fn has_property_key(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    names_or_predicate(builder, step, HasKey::PropertyKey)
}

fn names_or_predicate(builder: &mut Builder<'_>, step: Step<'_>, key: HasKey) -> Lowered {
    if let (1, Some(Given::Predicate(predicate))) = (step.count(), step.given(0)) {
        return push_condition(builder, step, key, predicate.clone());
    }
    if step.count() == 0 {
        return Err(step.expected(0, "a string"));
    }
    let mut values = Vec::with_capacity(step.count());
    for index in 0..step.count() {
        match step.given(index) {
            Some(Given::Value(value @ (Value::String(_) | Value::Null))) => values.push(value.clone()),
            Some(Given::Value(Value::List(members))) => values.extend(members.iter().cloned()),
            Some(Given::Value(Value::Set(members))) => values.extend(members.iter().cloned()),
            _ => return Err(step.expected(index, "a string")),
        }
    }
    push_condition(builder, step, key, equal_or_within(values))
}

/// `hasId(ids…)`; a collection among them stands for its members.
pub(super) fn has_id(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let predicate = match (step.count(), step.given(0)) {
        (0, _) => return Err(step.expected(0, "an id")),
        (1, Some(Given::Predicate(predicate))) => predicate.clone(),
        (count, _) => {
            let mut ids = Vec::with_capacity(count);
            for index in 0..count {
                match step.value(index)? {
                    Value::List(members) => ids.extend(members.iter().cloned()),
                    Value::Set(members) => ids.extend(members.iter().cloned()),
                    id => ids.push(id),
                }
            }
            equal_or_within(ids)
        }
    };
    push_condition(builder, step, HasKey::Id, predicate)
}

/// `hasValue(values…)`; a collection is a value like any other.
pub(super) fn has_value(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let predicate = match (step.count(), step.given(0)) {
        (0, _) => return Err(step.expected(0, "a value")),
        (1, Some(Given::Predicate(predicate))) => predicate.clone(),
        (count, _) => equal_or_within((0..count).map(|index| step.value(index)).collect::<Lowered<_>>()?),
    };
    push_condition(builder, step, HasKey::PropertyValue, predicate)
}

pub(super) fn is(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let predicate = predicate_or_equality(step, 0)?;
    builder.push(step, Node::Is { predicate })
}

/// The predicate of a `where()`: its values are the labels (or side-effect keys) to compare with.
pub(super) fn where_predicate(step: Step<'_>, predicate: &P) -> Lowered<WherePredicate> {
    convert(step, predicate, NESTING_MAX)
}

fn convert(step: Step<'_>, predicate: &P, levels: usize) -> Lowered<WherePredicate> {
    let Some(levels) = levels.checked_sub(1) else {
        return Err(step.wrong(format!("the predicate is nested deeper than {NESTING_MAX}")));
    };
    let all = |parts: &[P]| parts.iter().map(|part| convert(step, part, levels)).collect::<Lowered<Vec<_>>>();
    Ok(match predicate {
        P::Compare(comparison, value) => WherePredicate::Compare(*comparison, label(step, value)?),
        P::Text(comparison, label) => WherePredicate::Text(*comparison, label.clone()),
        P::Within(labels) => WherePredicate::Within(labels_of(step, labels)?),
        P::Without(labels) => WherePredicate::Without(labels_of(step, labels)?),
        P::And(parts) => WherePredicate::And(all(parts)?),
        P::Or(parts) => WherePredicate::Or(all(parts)?),
        P::Not(inner) => WherePredicate::Not(Box::new(convert(step, inner, levels)?)),
        P::TypeOf(gtype) => {
            return Err(step.wrong(format!(
                "where(P) requires a String scope key but encountered the type {gtype}; use is(P) to compare values"
            )));
        }
    })
}

fn labels_of(step: Step<'_>, values: &[Value]) -> Lowered<Vec<Name>> {
    if values.is_empty() {
        return Err(step.wrong("where(P) requires a String scope key but encountered none"));
    }
    values.iter().map(|value| label(step, value)).collect()
}

fn label(step: Step<'_>, value: &Value) -> Lowered<Name> {
    match value {
        Value::String(label) => Ok(label.clone()),
        other => Err(step.wrong(format!(
            "where(P) requires a String scope key but encountered {}; use is(P) to compare values",
            describe(other)
        ))),
    }
}
