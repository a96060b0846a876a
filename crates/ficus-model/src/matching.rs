//! Testing predicates: `P` as data becomes a [`CompiledPredicate`] once and is then tested against many values.
//!
//! Comparisons never fail, they are false where two values cannot be compared. Only text predicates can: on anything but
//! a string (and `null`, which begins, ends and contains nothing). Regular expressions run in time linear in the text,
//! and are refused if they would need more than [`REGEX_BYTES_MAX`] when compiled.

use std::cmp::Ordering;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use crate::compare::{compare, equals};
use crate::java_regex;
use crate::{
    Comparison, ElementResolver, GType, InternalIds, Membership, ModelError, P, Shared, TextComparison, Value,
};

/// Memory a compiled regular expression may take, in bytes.
pub const REGEX_BYTES_MAX: usize = 1 << 20;

/// From this many literals on, `within` looks up instead of scanning.
const LOOKED_UP_FROM: usize = 8;

impl Comparison {
    /// The name in gremlin-lang.
    pub const fn name(self) -> &'static str {
        match self {
            Comparison::Eq => "eq",
            Comparison::Neq => "neq",
            Comparison::Lt => "lt",
            Comparison::Lte => "lte",
            Comparison::Gt => "gt",
            Comparison::Gte => "gte",
        }
    }

    /// Whether `value` stands so to `literal`; false where they cannot be compared.
    pub fn test(self, value: &Value, literal: &Value, resolver: &dyn ElementResolver) -> bool {
        match self {
            Comparison::Eq => equals(value, literal, resolver),
            Comparison::Neq => !equals(value, literal, resolver),
            Comparison::Lt => compare(value, literal, resolver) == Some(Ordering::Less),
            Comparison::Lte => compare(value, literal, resolver).is_some_and(Ordering::is_le),
            Comparison::Gt => compare(value, literal, resolver) == Some(Ordering::Greater),
            Comparison::Gte => compare(value, literal, resolver).is_some_and(Ordering::is_ge),
        }
    }
}

impl TextComparison {
    /// The name in gremlin-lang.
    pub const fn name(self) -> &'static str {
        match self {
            TextComparison::StartingWith => "startingWith",
            TextComparison::NotStartingWith => "notStartingWith",
            TextComparison::EndingWith => "endingWith",
            TextComparison::NotEndingWith => "notEndingWith",
            TextComparison::Containing => "containing",
            TextComparison::NotContaining => "notContaining",
            TextComparison::Regex => "regex",
            TextComparison::NotRegex => "notRegex",
        }
    }

    /// Whether it holds where its positive form does not.
    pub const fn is_negative(self) -> bool {
        matches!(
            self,
            TextComparison::NotStartingWith
                | TextComparison::NotEndingWith
                | TextComparison::NotContaining
                | TextComparison::NotRegex
        )
    }
}

impl P {
    /// Prepares the predicate for testing many values.
    ///
    /// Errors: `Regex` if an expression is malformed or too large.
    pub fn compile(&self) -> Result<CompiledPredicate, ModelError> {
        let all = |predicates: &[P]| predicates.iter().map(P::compile).collect::<Result<Vec<_>, _>>();
        let test = match self {
            P::Compare(comparison, literal) => Test::Compare(*comparison, literal.clone()),
            P::Text(comparison, pattern) => {
                let pattern = match comparison {
                    TextComparison::Regex | TextComparison::NotRegex => Pattern::Regex(compile_regex(pattern)?),
                    _ => Pattern::Plain(pattern.clone()),
                };
                Test::Text(*comparison, pattern)
            }
            P::Within(literals) => Test::Within(Literals::new(literals), true),
            P::Without(literals) => Test::Within(Literals::new(literals), false),
            P::TypeOf(token) => Test::TypeOf(*token),
            P::And(predicates) => Test::And(all(predicates)?),
            P::Or(predicates) => Test::Or(all(predicates)?),
            P::Not(predicate) => Test::Not(Box::new(predicate.compile()?)),
        };
        Ok(CompiledPredicate { test })
    }

    /// Tests one value, elements by internal id. For many values [`P::compile`] first.
    pub fn test(&self, value: &Value) -> Result<bool, ModelError> {
        self.test_with(value, &InternalIds)
    }

    /// Tests one value. For many values [`P::compile`] first.
    pub fn test_with(&self, value: &Value, resolver: &dyn ElementResolver) -> Result<bool, ModelError> {
        match self {
            P::Compare(comparison, literal) => Ok(comparison.test(value, literal, resolver)),
            P::TypeOf(token) => Ok(value.has_gtype(*token)),
            _ => self.compile()?.test(value, resolver),
        }
    }

    /// The predicate that holds where this one does not: `and` and `or` by de Morgan, a negation unwrapped, all else
    /// wrapped (`not(lt(3))` is not `gte(3)`: it also holds for what cannot be compared with 3).
    pub fn negate(&self) -> P {
        match self {
            P::And(predicates) => P::Or(predicates.iter().map(P::negate).collect()),
            P::Or(predicates) => P::And(predicates.iter().map(P::negate).collect()),
            P::Not(predicate) => (**predicate).clone(),
            other => P::Not(Box::new(other.clone())),
        }
    }
}

/// A predicate ready to be tested.
#[derive(Clone, Debug)]
pub struct CompiledPredicate {
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Compare(Comparison, Value),
    Text(TextComparison, Pattern),
    /// The literals, and whether to be or not to be among them.
    Within(Literals, bool),
    TypeOf(GType),
    And(Vec<CompiledPredicate>),
    Or(Vec<CompiledPredicate>),
    Not(Box<CompiledPredicate>),
}

#[derive(Clone, Debug)]
enum Pattern {
    Plain(Arc<str>),
    Regex(Regex),
}

impl CompiledPredicate {
    /// Whether the value satisfies the predicate.
    ///
    /// Errors: `TextOnOther` if a text predicate meets something other than a string or `null`.
    pub fn test(&self, value: &Value, resolver: &dyn ElementResolver) -> Result<bool, ModelError> {
        match &self.test {
            Test::Compare(comparison, literal) => Ok(comparison.test(value, literal, resolver)),
            Test::Text(comparison, pattern) => test_text(*comparison, pattern, value),
            Test::Within(literals, wanted) => Ok(literals.contain(value, resolver) == *wanted),
            Test::TypeOf(token) => Ok(value.has_gtype(*token)),
            Test::And(predicates) => {
                for predicate in predicates {
                    if !predicate.test(value, resolver)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Test::Or(predicates) => {
                for predicate in predicates {
                    if predicate.test(value, resolver)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::Not(predicate) => Ok(!predicate.test(value, resolver)?),
        }
    }

    /// What a text predicate says of texts; `None` for other predicates.
    pub fn of_texts(&self) -> Option<impl Fn(&str) -> bool> {
        match &self.test {
            Test::Text(comparison, pattern) => Some(|text: &str| holds(*comparison, pattern, text)),
            _ => None,
        }
    }
}

fn test_text(comparison: TextComparison, pattern: &Pattern, value: &Value) -> Result<bool, ModelError> {
    let text = match value {
        Value::String(text) => &**text,
        Value::Null if matches!(pattern, Pattern::Plain(_)) => return Ok(comparison.is_negative()),
        other => return Err(ModelError::TextOnOther { comparison, found: other.type_name() }),
    };
    Ok(holds(comparison, pattern, text))
}

fn holds(comparison: TextComparison, pattern: &Pattern, text: &str) -> bool {
    let holds = match (comparison, pattern) {
        (_, Pattern::Regex(regex)) => regex.is_match(text),
        (TextComparison::StartingWith | TextComparison::NotStartingWith, Pattern::Plain(part)) => {
            text.starts_with(&**part)
        }
        (TextComparison::EndingWith | TextComparison::NotEndingWith, Pattern::Plain(part)) => text.ends_with(&**part),
        (_, Pattern::Plain(part)) => text.contains(&**part),
    };
    holds != comparison.is_negative()
}

/// The literals of a `within`, and where they are, if they are many.
#[derive(Clone, Debug)]
struct Literals {
    values: Shared<Vec<Value>>,
    places: Option<Arc<Membership>>,
}

impl Literals {
    fn new(values: &Shared<Vec<Value>>) -> Literals {
        let places = (values.len() >= LOOKED_UP_FROM).then(|| {
            let mut places = Membership::default();
            for value in values.iter() {
                places.push(value, |place| values.get(place));
            }
            Arc::new(places)
        });
        Literals { values: values.clone(), places }
    }

    fn contain(&self, value: &Value, resolver: &dyn ElementResolver) -> bool {
        match &self.places {
            Some(places) => places.contains(value, |place| self.values.get(place), resolver),
            None => self.values.iter().any(|literal| equals(value, literal, resolver)),
        }
    }
}

/// Compiles an expression in Java's syntax as far as it can be matched in linear time: no look-around, no back references.
pub fn compile_regex(pattern: &str) -> Result<Regex, ModelError> {
    let wrong = |reason: String| ModelError::Regex { pattern: pattern.into(), reason: reason.into() };
    RegexBuilder::new(&java_regex::translate(pattern).map_err(wrong)?)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX)
        .nest_limit(100)
        .build()
        .map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VertexId;

    fn int(int: i32) -> Value {
        Value::Int(int)
    }

    fn compared(comparison: Comparison, literal: Value) -> P {
        P::Compare(comparison, literal)
    }

    #[test]
    fn comparisons_are_false_across_types() {
        use Comparison::*;
        let nan = Value::Double(f64::NAN);
        for (comparison, value, literal, expected) in [
            (Eq, int(1), Value::Long(1), true),
            (Neq, int(1), Value::from("1"), true),
            (Lt, int(1), Value::from("1"), false),
            (Gte, int(1), Value::from("1"), false),
            (Lte, Value::Null, Value::Null, true),
            (Gt, Value::Null, int(1), false),
            (Eq, nan.clone(), nan.clone(), false),
            (Neq, nan.clone(), nan.clone(), true),
            (Gte, nan.clone(), nan, false),
        ] {
            let predicate = compared(comparison, literal);
            assert_eq!(predicate.test(&value), Ok(expected), "{value:?} {predicate:?}");
            assert_eq!(predicate.negate().test(&value), Ok(!expected), "{value:?} not {predicate:?}");
            assert_eq!(predicate.negate().negate(), predicate);
        }
    }

    #[test]
    fn text_needs_text() {
        use TextComparison::*;
        let test = |comparison, pattern: &str, value: &Value| P::Text(comparison, pattern.into()).test(value);
        for (comparison, pattern, text, expected) in [
            (StartingWith, "mar", "marko", true),
            (NotStartingWith, "mar", "marko", false),
            (EndingWith, "ko", "marko", true),
            (NotEndingWith, "x", "marko", true),
            (Containing, "ark", "marko", true),
            (NotContaining, "ark", "marko", false),
            (Regex, "^mar", "marko", true),
            (Regex, "r", "marko", true),
            (NotRegex, "^r", "marko", true),
            (Regex, r"\d{2}", "a42", true),
            (Regex, r"^\w+$", "é", false),
            (Regex, r"[\d.]+", "1.5", true),
            (Regex, r"\Qa.b\E$", "axb", false),
            (Regex, r"\\d", r"\d", true),
        ] {
            assert_eq!(test(comparison, pattern, &Value::from(text)), Ok(expected), "{comparison:?} {pattern} {text}");
        }
        assert_eq!(test(StartingWith, "a", &Value::Null), Ok(false));
        assert_eq!(test(NotStartingWith, "a", &Value::Null), Ok(true));
        let error = test(StartingWith, "a", &int(1)).unwrap_err();
        assert_eq!(error, ModelError::TextOnOther { comparison: StartingWith, found: "Integer" });
        assert!(test(Regex, "a", &Value::Null).is_err());
        assert!(matches!(test(Regex, "(", &Value::from("a")), Err(ModelError::Regex { .. })));
        assert!(matches!(test(Regex, "(a{1000}){1000}", &Value::from("a")), Err(ModelError::Regex { .. })));
    }

    #[test]
    fn within_finds_the_same_with_and_without_index() {
        let literal_lists: [Vec<Value>; 5] = [
            (0..20).map(int).collect(),
            (0..20).map(|number| Value::from(format!("s{number}"))).collect(),
            (0..20).map(|number| Value::Double(f64::from(number))).collect(),
            (0..20).map(|number| Value::Vertex(VertexId(number))).collect(),
            vec![Value::Null, int(1), Value::from("s1")],
        ];
        let values =
            [int(1), int(99), Value::Long(1), Value::Double(1.0), Value::Double(1.5), Value::from("s1"), Value::Null];
        let vertices = [Value::Vertex(VertexId(1)), Value::Vertex(VertexId(99)), Value::Edge(crate::EdgeId(1))];
        for literals in literal_lists.map(Shared::new) {
            for value in values.iter().chain(&vertices) {
                let expected = literals.iter().any(|literal| equals(value, literal, &InternalIds));
                assert_eq!(P::Within(literals.clone()).test(value), Ok(expected), "{value:?} in {literals:?}");
                assert_eq!(P::Without(literals.clone()).test(value), Ok(!expected), "{value:?} in {literals:?}");
            }
        }
    }

    #[test]
    fn connectives_stop_early_and_negate_inwards() {
        let text = P::Text(TextComparison::StartingWith, "a".into());
        let and = P::And(vec![P::TypeOf(GType::String), text.clone()]);
        assert_eq!(and.test(&int(1)), Ok(false));
        let or = P::Or(vec![P::TypeOf(GType::Number), text]);
        assert_eq!(or.test(&int(1)), Ok(true));
        assert_eq!(or.test(&Value::from("abc")), Ok(true));
        assert_eq!(or.negate().test(&Value::from("abc")), Ok(false));
        assert!(matches!(and.negate(), P::Or(parts) if matches!(parts[..], [P::Not(_), P::Not(_)])));
    }
}
