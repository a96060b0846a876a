//! Predicates: `gt(1)`, `P.within('a', 'b')`, `TextP.regex('^a').negate()`, and their chains.
//!
//! `between`, `inside` and `outside` become the comparisons they stand for; chained `and`s flatten, as do `or`s; a
//! negation moves inwards through `and` and `or` and turns a text comparison into its opposite, as TinkerPop does.

use std::sync::Arc;

use ficus_model::{Argument, Comparison, GType, P, Shared, TextComparison, Value};

use super::argument::into_value;
use super::error::{Parsed, SyntaxErrorKind};
use super::lexer::{Kind, Sign, clip};
use super::parser::Parser;
use super::signature::{ClassSet, class};
use super::steps::{PREDICATES, predicate_index};

impl Parser<'_> {
    /// Whether the word before a parenthesis begins a predicate; only `not` may also begin a traversal, and then what
    /// stands inside it decides.
    pub(super) fn begins_predicate(&self, accepted: ClassSet) -> bool {
        if self.word() != "not" {
            return true;
        }
        if accepted & class::PREDICATE == 0 {
            return false;
        }
        if accepted & class::TRAVERSAL == 0 {
            return true;
        }
        let mut ahead = self.ahead();
        // At most as many steps as the nesting that follows; each level looks again, which the depth limit bounds.
        for _ in 0..=self.options.limits.depth {
            if ahead.word_or_empty() != "not" {
                return matches!(ahead.word_or_empty(), "P" | "TextP")
                    || (ahead.following() == b'(' && predicate_index(ahead.word_or_empty()).is_some());
            }
            if ahead.advance().is_err() || ahead.current.kind != Kind::Open || ahead.advance().is_err() {
                return false;
            }
        }
        false
    }

    /// A predicate with its chain; the current sign is the name of entry `index` of [`PREDICATES`].
    pub(super) fn predicate(&mut self, index: usize) -> Parsed<P> {
        let place = self.current;
        let mut parser = self.deeper()?;
        let mut predicate = parser.simple_predicate(index)?;
        // How deep the chain nests `and` in `or` and `or` in `and`, which whatever walks the tree will feel.
        let mut height = 0;
        while parser.current.kind == Kind::Dot {
            parser.advance()?;
            let operator = parser.word_or_empty();
            match operator {
                "and" | "or" => {
                    let conjunction = operator == "and";
                    parser.advance()?;
                    parser.expect(Kind::Open, "( and a predicate")?;
                    let other = parser.nested_predicate()?;
                    parser.expect(Kind::Close, ")")?;
                    if !matches!((&predicate, conjunction), (P::And(_), true) | (P::Or(_), false)) {
                        height += 1;
                    }
                    predicate = connect(predicate, other, conjunction);
                }
                "negate" => {
                    parser.advance()?;
                    parser.expect(Kind::Open, "()")?;
                    parser.expect(Kind::Close, ")")?;
                    // Costs as much as the predicate is large, so it counts as well.
                    height += usize::from(matches!(predicate, P::And(_) | P::Or(_)));
                    predicate = negate(predicate);
                }
                _ => {
                    let message = format!("a predicate has no {}", clip(parser.word()));
                    let expected = [".and(predicate)", ".or(predicate)", ".negate()"].map(String::from).to_vec();
                    return Err(parser.error_here(SyntaxErrorKind::Unexpected, message).expecting(expected));
                }
            }
            if height > parser.options.limits.depth {
                let place = Sign { end: parser.current.start, ..place };
                let message =
                    format!("this predicate changes between and, or and negate more than {} times", height - 1);
                return Err(parser.error_at(place, SyntaxErrorKind::TooDeep, message));
            }
        }
        Ok(predicate)
    }

    /// `P.gt(1)` or `TextP.regex('x')`; the current sign is the qualifier.
    pub(super) fn qualified_predicate(&mut self) -> Parsed<P> {
        let qualifier = self.word();
        self.advance()?;
        self.expect(Kind::Dot, ". and a predicate")?;
        let word = self.word_or_empty();
        match predicate_index(word) {
            // The grammar has one list per class; P.regex and TextP.gt do not exist.
            Some(index) if is_textual(word) == (qualifier == "TextP") => self.predicate(index),
            _ => {
                let message = format!("there is no predicate {qualifier}.{}", clip(self.word()));
                let expected = PREDICATES
                    .iter()
                    .filter(|predicate| is_textual(predicate.name) == (qualifier == "TextP"))
                    .map(|predicate| format!("{qualifier}.{}", predicate.name))
                    .collect();
                Err(self.error_here(SyntaxErrorKind::UnknownToken, message).expecting(expected))
            }
        }
    }

    /// A predicate inside another; the current sign is its first.
    fn nested_predicate(&mut self) -> Parsed<P> {
        match self.argument(class::PREDICATE)? {
            (Argument::Predicate(predicate), _) => Ok(predicate),
            _ => Err(self.unexpected("a predicate")),
        }
    }

    /// A predicate without its chain.
    fn simple_predicate(&mut self, index: usize) -> Parsed<P> {
        let callable = &PREDICATES[index];
        let place = self.current;
        let mut values = Vec::new();
        for argument in self.arguments(callable)? {
            if let Argument::Predicate(predicate) = argument {
                if callable.name == "not" {
                    return Ok(negate(predicate));
                }
                values.push(Value::P(Arc::new(predicate)));
                continue;
            }
            let Some(value) = into_value(argument) else {
                let place = Sign { end: self.current.start, ..place };
                let message = format!("{}() cannot hold a Cardinality with a value", callable.name);
                return Err(self.error_at(place, SyntaxErrorKind::WrongArguments, message));
            };
            values.push(value);
        }
        let mut taken = values.drain(..);
        let mut next = || taken.next().unwrap_or(Value::Null);
        let compare = |comparison, value| P::Compare(comparison, value);
        let predicate = match callable.name {
            "eq" => compare(Comparison::Eq, next()),
            "neq" => compare(Comparison::Neq, next()),
            "lt" => compare(Comparison::Lt, next()),
            "lte" => compare(Comparison::Lte, next()),
            "gt" => compare(Comparison::Gt, next()),
            "gte" => compare(Comparison::Gte, next()),
            "inside" => P::And(vec![compare(Comparison::Gt, next()), compare(Comparison::Lt, next())]),
            "outside" => P::Or(vec![compare(Comparison::Lt, next()), compare(Comparison::Gt, next())]),
            "between" => P::And(vec![compare(Comparison::Gte, next()), compare(Comparison::Lt, next())]),
            "within" => P::Within(Shared::new(members(taken.collect()))),
            "without" => P::Without(Shared::new(members(taken.collect()))),
            "typeOf" => match next() {
                Value::GType(gtype) => P::TypeOf(gtype),
                Value::String(name) => match GType::from_class_name(&name) {
                    Some(gtype) => P::TypeOf(gtype),
                    None => {
                        let place = Sign { end: self.current.start, ..place };
                        let message = format!("'{}' is not the name of a type", clip(&name));
                        return Err(self
                            .error_at(place, SyntaxErrorKind::UnknownToken, message)
                            .advising("use a GType such as GType.INT, or a class name such as 'Integer'"));
                    }
                },
                _ => return Err(self.unexpected("a type")),
            },
            name => match (textual(name), next()) {
                (Some(comparison), Value::String(pattern)) => P::Text(comparison, pattern),
                _ => return Err(self.unexpected("a string")),
            },
        };
        Ok(predicate)
    }
}

/// The members that `within(…)` is given: those of a single collection, or the arguments themselves.
fn members(mut values: Vec<Value>) -> Vec<Value> {
    match values.as_slice() {
        [Value::List(_) | Value::Set(_)] => match values.remove(0) {
            Value::List(members) => Shared::unwrap_or_clone(members),
            Value::Set(members) => members.iter().cloned().collect(),
            other => vec![other],
        },
        _ => values,
    }
}

fn textual(name: &str) -> Option<TextComparison> {
    Some(match name {
        "startingWith" => TextComparison::StartingWith,
        "notStartingWith" => TextComparison::NotStartingWith,
        "endingWith" => TextComparison::EndingWith,
        "notEndingWith" => TextComparison::NotEndingWith,
        "containing" => TextComparison::Containing,
        "notContaining" => TextComparison::NotContaining,
        "regex" => TextComparison::Regex,
        "notRegex" => TextComparison::NotRegex,
        _ => return None,
    })
}

fn is_textual(name: &str) -> bool {
    textual(name).is_some()
}

/// `left.and(right)` or `left.or(right)`, flat.
fn connect(left: P, right: P, conjunction: bool) -> P {
    let mut members = Vec::new();
    for side in [left, right] {
        match (side, conjunction) {
            (P::And(inner), true) | (P::Or(inner), false) if members.is_empty() => members = inner,
            (P::And(inner), true) | (P::Or(inner), false) => members.extend(inner),
            (side, _) => members.push(side),
        }
    }
    if conjunction { P::And(members) } else { P::Or(members) }
}

/// The opposite of `predicate`, with the negation as far inside as it goes.
fn negate(predicate: P) -> P {
    match predicate {
        P::And(members) => P::Or(members.into_iter().map(negate).collect()),
        P::Or(members) => P::And(members.into_iter().map(negate).collect()),
        P::Not(inner) => *inner,
        P::Text(comparison, pattern) => {
            let opposite = match comparison {
                TextComparison::StartingWith => TextComparison::NotStartingWith,
                TextComparison::NotStartingWith => TextComparison::StartingWith,
                TextComparison::EndingWith => TextComparison::NotEndingWith,
                TextComparison::NotEndingWith => TextComparison::EndingWith,
                TextComparison::Containing => TextComparison::NotContaining,
                TextComparison::NotContaining => TextComparison::Containing,
                TextComparison::Regex => TextComparison::NotRegex,
                TextComparison::NotRegex => TextComparison::Regex,
            };
            P::Text(opposite, pattern)
        }
        other => P::Not(Box::new(other)),
    }
}
