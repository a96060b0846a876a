//! One argument: literals, collections, tokens, parameters, strategies, and the traversals and predicates among them.
//!
//! The place says which classes it accepts; that decides what a bare word such as `local`, `list` or `values` is. A
//! list or map stays a plain [`Value`] unless it holds a traversal or a cardinality with a value.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ficus_model::{Argument, OffsetDateTime, Shared, Value, ValueMap, ValueSet};
use indexmap::IndexMap;
use uuid::Uuid;

use super::datetime;
use super::error::{Parsed, SyntaxErrorKind};
use super::lexer::{Kind, Sign, clip};
use super::literal;
use super::parser::Parser;
use super::signature::{ClassSet, Conversion, class};
use super::steps::{predicate_index, step_index};
use super::words::{OPTION_CONSTANTS, Token, members, option_constant, owns_options, qualifier, token};

impl Parser<'_> {
    /// An argument of one of the `accepted` classes, and which it is.
    pub(super) fn argument(&mut self, accepted: ClassSet) -> Parsed<(Argument, ClassSet)> {
        if accepted & (class::STRATEGY | class::STRATEGY_NAME) != 0 {
            return self.strategy(accepted);
        }
        let place = self.current;
        let (argument, class) = match place.kind {
            Kind::Text | Kind::EscapedText | Kind::Integer => self.scalar_or_range()?,
            Kind::Decimal => {
                let value = literal::decimal(self.text, place)?;
                self.advance()?;
                (Argument::Value(value), class::FLOAT)
            }
            Kind::Word => return self.word_argument(accepted),
            Kind::OpenBracket => self.list_or_map()?,
            Kind::OpenBrace => self.set()?,
            _ => return Err(self.not_an_argument(accepted)),
        };
        if accepted & class == 0 {
            return Err(self.wrong_class(place, class));
        }
        Ok((argument, class))
    }

    /// A string, an integer, or a range that begins with one.
    fn scalar_or_range(&mut self) -> Parsed<(Argument, ClassSet)> {
        let place = self.current;
        let (first, class) = self.scalar(place)?;
        self.advance()?;
        if self.current.kind != Kind::Range {
            return Ok((Argument::Value(first), class));
        }
        self.advance()?;
        let end = self.current;
        if !matches!(end.kind, Kind::Text | Kind::EscapedText | Kind::Integer) {
            return Err(self.unexpected("the end of the range"));
        }
        let (last, _) = self.scalar(end)?;
        self.advance()?;
        let mut remaining = self.range_values;
        let values = literal::range(self.text, (place.start, end.end), &first, &last, &mut remaining)?;
        self.range_values = remaining;
        Ok((Argument::Value(Value::List(Shared::new(values))), class::LIST))
    }

    /// The string or integer at `place`.
    fn scalar(&self, place: Sign) -> Parsed<(Value, ClassSet)> {
        match place.kind {
            Kind::Integer => Ok((literal::integer(self.text, place)?, class::INTEGER)),
            _ => Ok((Value::String(literal::string(self.text, place)?), class::STRING)),
        }
    }

    /// A string; the current sign must be one.
    fn string(&mut self, what: &str) -> Parsed<Arc<str>> {
        if !matches!(self.current.kind, Kind::Text | Kind::EscapedText) {
            return Err(self.unexpected(what));
        }
        let value = literal::string(self.text, self.current)?;
        self.advance()?;
        Ok(value)
    }

    // ---- words ----

    /// An argument that begins with a word.
    fn word_argument(&mut self, accepted: ClassSet) -> Parsed<(Argument, ClassSet)> {
        match self.following() {
            b'(' => self.called_word(accepted),
            b'.' => self.qualified_word(accepted),
            _ => self.bare_word(accepted),
        }
    }

    /// A word before a parenthesis: a traversal, a predicate, or a literal such as `datetime('2024-01-01')`.
    fn called_word(&mut self, accepted: ClassSet) -> Parsed<(Argument, ClassSet)> {
        let place = self.current;
        let word = self.word();
        let refuse = |parser: &Self, class: ClassSet| Err(parser.wrong_class(place, class));
        if let Some(index) = predicate_index(word)
            && self.begins_predicate(accepted)
        {
            if accepted & class::PREDICATE == 0 {
                return refuse(self, class::PREDICATE);
            }
            return Ok((Argument::Predicate(self.predicate(index)?), class::PREDICATE));
        }
        if step_index(word).is_some() {
            if accepted & class::TRAVERSAL == 0 {
                return refuse(self, class::TRAVERSAL);
            }
            return Ok((Argument::Traversal(self.anonymous()?), class::TRAVERSAL));
        }
        let (argument, class) = match word {
            "datetime" | "DateTime" => (Argument::Value(self.date()?), class::DATE),
            "UUID" => (Argument::Value(self.uuid()?), class::UUID),
            "single" | "set" | "list" => self.cardinality_value(place)?,
            _ => return Err(self.unknown_call()),
        };
        if accepted & class == 0 { refuse(self, class) } else { Ok((argument, class)) }
    }

    /// A word before a dot: `T.id`, `P.gt(1)`, `__.out()`, `g.V().next()`, `WithOptions.tokens`.
    fn qualified_word(&mut self, accepted: ClassSet) -> Parsed<(Argument, ClassSet)> {
        let place = self.current;
        let word = self.word();
        if word == "__" {
            if accepted & class::TRAVERSAL == 0 {
                return Err(self.wrong_class(place, class::TRAVERSAL));
            }
            return Ok((Argument::Traversal(self.anonymous()?), class::TRAVERSAL));
        }
        if matches!(word, "P" | "TextP") {
            if accepted & class::PREDICATE == 0 {
                return Err(self.wrong_class(place, class::PREDICATE));
            }
            return Ok((Argument::Predicate(self.qualified_predicate()?), class::PREDICATE));
        }
        if let Some(owner) = qualifier(word) {
            return self.qualified_token(word, owner, accepted);
        }
        if owns_options(word) {
            return self.option_constant(word, accepted);
        }
        if self.is_source(word) {
            if accepted & class::TERMINATED == 0 {
                return Err(self.spawned_argument(place, accepted));
            }
            return Ok((Argument::Traversal(self.terminated()?), class::TERMINATED));
        }
        Err(self.unknown_qualifier())
    }

    /// `T.id` and its like; the current sign is the qualifier, `owner` its class.
    fn qualified_token(&mut self, word: &str, owner: ClassSet, accepted: ClassSet) -> Parsed<(Argument, ClassSet)> {
        let place = self.current;
        self.advance()?;
        self.expect(Kind::Dot, ". and a member")?;
        let Some(found) = token(self.word_or_empty(), owner) else {
            let message = format!("there is no {word}.{}", clip(self.word()));
            let expected = members(owner).into_iter().map(|member| format!("{word}.{member}")).collect();
            return Err(self.error_here(SyntaxErrorKind::UnknownToken, message).expecting(expected));
        };
        let place = Sign { end: self.current.end, ..place };
        if owner == class::CARDINALITY && self.following() == b'(' {
            let (argument, class) = self.cardinality_value(place)?;
            if accepted & class == 0 {
                return Err(self.wrong_class(place, class));
            }
            return Ok((argument, class));
        }
        if accepted & owner == 0 {
            return Err(self.wrong_class(place, owner));
        }
        self.advance()?;
        Ok((found.argument(), owner))
    }

    /// `WithOptions.tokens` and its like; the current sign is the owner.
    fn option_constant(&mut self, owner: &str, accepted: ClassSet) -> Parsed<(Argument, ClassSet)> {
        let place = self.current;
        self.advance()?;
        self.expect(Kind::Dot, ". and a member")?;
        let Some(constant) = option_constant(owner, self.word_or_empty()) else {
            let message = format!("there is no {owner}.{}", clip(self.word()));
            let expected = OPTION_CONSTANTS
                .iter()
                .filter(|constant| constant.owner == owner)
                .map(|constant| format!("{owner}.{}", constant.name))
                .collect();
            return Err(self.error_here(SyntaxErrorKind::UnknownToken, message).expecting(expected));
        };
        let class = constant.classes & accepted;
        if class == 0 {
            let place = Sign { end: self.current.end, ..place };
            return Err(self.wrong_class(place, constant.classes & (!constant.classes + 1)));
        }
        self.advance()?;
        Ok((constant.value.argument(), class))
    }

    /// A word on its own: a token, `null`, `true`, `NaN`, or a parameter.
    fn bare_word(&mut self, accepted: ClassSet) -> Parsed<(Argument, ClassSet)> {
        let place = self.current;
        let word = self.word();
        let constant = match word {
            "true" => Some((Value::Bool(true), class::BOOLEAN)),
            "false" => Some((Value::Bool(false), class::BOOLEAN)),
            "null" if accepted & class::NULL != 0 || accepted & class::GTYPE == 0 => Some((Value::Null, class::NULL)),
            "NaN" => Some((Value::Double(f64::NAN), class::FLOAT)),
            "Infinity" => Some((Value::Double(f64::INFINITY), class::FLOAT)),
            "UUID" => token("UUID", class::GTYPE).map(|token| (token.value(), class::GTYPE)),
            _ => token(word, accepted).map(|token: Token| (token.value(), token.class())),
        };
        if let Some((value, class)) = constant {
            if accepted & class == 0 {
                return Err(self.wrong_class(place, class));
            }
            self.advance()?;
            return Ok((Argument::Value(value), class));
        }
        if accepted & class::VARIABLE == 0 {
            return Err(self.misplaced_word(accepted));
        }
        let Some(value) = self.options.bindings.get(word) else { return Err(self.unbound(accepted)) };
        self.advance()?;
        let argument = match value {
            Value::P(predicate) => Argument::Predicate((*predicate).clone()),
            Value::Bytecode(bytecode) => Argument::Traversal(bytecode),
            value => Argument::Value(value),
        };
        Ok((argument, class::VARIABLE))
    }

    /// Holds the value of a parameter against the classes that its place accepts.
    pub(super) fn check_parameter(
        &self,
        argument: Argument,
        accepted: ClassSet,
        conversion: Conversion,
        place: Sign,
    ) -> Parsed<Argument> {
        if accepted & class::LITERAL == class::LITERAL {
            return Ok(argument);
        }
        let fits = match &argument {
            Argument::Value(Value::String(_)) => accepted & class::STRING != 0,
            Argument::Value(Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_)) => {
                accepted & class::INTEGER != 0
            }
            Argument::Value(Value::Map(_)) => accepted & class::MAP != 0,
            Argument::Value(Value::Null) => accepted & (class::NULL | class::MAP) != 0,
            _ => false,
        };
        if !fits {
            return Err(self.parameter_type(&argument, accepted, place));
        }
        match argument {
            Argument::Value(value) => self.convert_value(value, conversion, place).map(Argument::Value),
            other => Ok(other),
        }
    }

    // ---- literals that look like calls ----

    /// The parenthesised string, if any, of `datetime` or `UUID`; the current sign is the word before it.
    fn optional_string(&mut self, what: &str) -> Parsed<Option<(Arc<str>, Sign)>> {
        self.advance()?;
        self.expect(Kind::Open, "(")?;
        if self.current.kind == Kind::Close {
            self.advance()?;
            return Ok(None);
        }
        let place = self.current;
        let value = self.string(what)?;
        self.expect(Kind::Close, ")")?;
        Ok(Some((value, place)))
    }

    fn date(&mut self) -> Parsed<Value> {
        let moment = match self.optional_string("a date as a string, or )")? {
            Some((written, place)) => datetime::parse(&written).ok_or_else(|| {
                let message = format!("'{}' is not a date", clip(&written));
                self.error_at(place, SyntaxErrorKind::InvalidDate, message).advising(
                    "a date is written like 2024-02-29, 2024-02-29T10:30:45, 2024-02-29T10:30:45.123Z or 2024-02-29T10:30:45+01:00",
                )
            })?,
            None => self.options.now.unwrap_or_else(system_time),
        };
        Ok(Value::DateTime(moment))
    }

    fn uuid(&mut self) -> Parsed<Value> {
        let uuid = match self.optional_string("a UUID as a string, or )")? {
            Some((written, place)) => uuid_of(&written).ok_or_else(|| {
                let message = format!("'{}' is not a UUID", clip(&written));
                self.error_at(place, SyntaxErrorKind::InvalidUuid, message)
                    .advising("a UUID is written like 41d2e28a-20a4-4ab0-b379-d810dede3786")
            })?,
            None => Uuid::new_v4(),
        };
        Ok(Value::Uuid(uuid))
    }

    /// `set("x")` and its like; the current sign is the cardinality, `place` includes its qualifier.
    fn cardinality_value(&mut self, place: Sign) -> Parsed<(Argument, ClassSet)> {
        let Some(Token::Cardinality(cardinality)) = token(self.word(), class::CARDINALITY) else {
            return Err(self.unknown_call());
        };
        self.advance()?;
        self.expect(Kind::Open, "(")?;
        let mut parser = self.deeper()?;
        let (value, _) = parser.argument(class::LITERAL)?;
        if parser.current.kind != Kind::Close {
            let message = format!("{}() takes one value", cardinality.name());
            let place = Sign { end: parser.current.end, ..place };
            return Err(parser.error_at(place, SyntaxErrorKind::WrongArguments, message));
        }
        parser.advance()?;
        Ok((Argument::CardinalityValue(cardinality, Box::new(value)), class::CARDINALITY_VALUE))
    }

    // ---- collections ----

    /// `[1, 2]`, `[a: 1]`, `[]` or `[:]`.
    fn list_or_map(&mut self) -> Parsed<(Argument, ClassSet)> {
        let mut parser = self.deeper()?;
        let open = parser.current;
        parser.advance()?;
        match parser.current.kind {
            Kind::CloseBracket => {
                parser.advance()?;
                return Ok((Argument::Value(Value::List(Shared::default())), class::LIST));
            }
            Kind::Colon => {
                parser.advance()?;
                parser.expect(Kind::CloseBracket, "] after [:")?;
                return Ok((Argument::Value(Value::Map(Shared::default())), class::MAP));
            }
            Kind::Open => return parser.map(open, None),
            Kind::Word if parser.following() == b':' && parser.names_key() => return parser.map(open, None),
            _ => {}
        }
        let place = parser.current;
        let (first, class) = parser.argument(class::LITERAL)?;
        if parser.current.kind == Kind::Colon {
            let end = Sign { end: parser.current.start, ..place };
            parser.check_key(class, end)?;
            return parser.map(open, Some(first));
        }
        parser.list(open, first).map(|list| (list, class::LIST))
    }

    /// The rest of a list after its first element.
    fn list(&mut self, open: Sign, first: Argument) -> Parsed<Argument> {
        let mut collected = Collected::default();
        collected.push(first);
        while self.current.kind == Kind::Comma {
            self.advance()?;
            let (element, _) = self.argument(class::LITERAL)?;
            collected.push(element);
        }
        if self.current.kind != Kind::CloseBracket {
            return Err(self.not_in_collection(open, ']'));
        }
        self.advance()?;
        Ok(collected.into_list())
    }

    /// A map from its first key, or from the colon after `first`.
    fn map(&mut self, open: Sign, mut first: Option<Argument>) -> Parsed<(Argument, ClassSet)> {
        let mut plain = ValueMap::default();
        // Takes over as soon as a key or value is no plain value.
        let mut mixed: Option<IndexMap<Argument, Argument>> = None;
        loop {
            let key = match first.take() {
                Some(key) => key,
                None => self.key()?,
            };
            if self.current.kind != Kind::Colon {
                return Err(self.unexpected(": and a value after the key"));
            }
            self.advance()?;
            let (value, _) = self.argument(class::LITERAL)?;
            match (key, value, mixed.as_mut()) {
                (Argument::Value(key), Argument::Value(value), None) => {
                    plain.insert(key, value);
                }
                (key, value, None) => {
                    let wrap = |(key, value)| (Argument::Value(key), Argument::Value(value));
                    let mut entries: IndexMap<_, _> = std::mem::take(&mut plain).into_iter().map(wrap).collect();
                    entries.insert(key, value);
                    mixed = Some(entries);
                }
                (key, value, Some(entries)) => {
                    entries.insert(key, value);
                }
            }
            match self.current.kind {
                Kind::Comma => self.advance()?,
                Kind::CloseBracket => break,
                _ => return Err(self.not_in_collection(open, ']')),
            }
        }
        self.advance()?;
        let argument = match mixed {
            Some(entries) => Argument::Map(entries.into_iter().collect()),
            None => Argument::Value(Value::Map(Shared::new(plain))),
        };
        Ok((argument, class::MAP))
    }

    /// Whether the current word before a colon is a key as written, and not a number.
    fn names_key(&self) -> bool {
        !matches!(self.word(), "NaN" | "Infinity" | "__")
    }

    /// A key of a map: a name, a literal, or a token or literal in parentheses.
    fn key(&mut self) -> Parsed<Argument> {
        match self.current.kind {
            Kind::Word if self.following() == b':' && self.names_key() => {
                let name = Value::String(self.word().into());
                self.advance()?;
                Ok(Argument::Value(name))
            }
            Kind::Open => {
                self.advance()?;
                if self.current.kind == Kind::Word
                    && self.following() == b')'
                    && token(self.word(), class::T | class::DIRECTION).is_none()
                    && self.names_key()
                {
                    return Err(self.parenthesised_name());
                }
                let place = self.current;
                let (key, class) = self.argument(class::LITERAL)?;
                let end = Sign { end: self.current.start, ..place };
                self.check_key(class, end)?;
                self.expect(Kind::Close, ") after the key")?;
                Ok(key)
            }
            _ => {
                let place = self.current;
                let (key, class) = self.argument(class::LITERAL)?;
                let end = Sign { end: self.current.start, ..place };
                self.check_key(class, end)?;
                Ok(key)
            }
        }
    }

    fn check_key(&self, found: ClassSet, place: Sign) -> Parsed<()> {
        const KEYS: ClassSet = class::STRING
            | class::INTEGER
            | class::FLOAT
            | class::LIST
            | class::SET
            | class::MAP
            | class::T
            | class::DIRECTION;
        if found & KEYS != 0 {
            return Ok(());
        }
        let message = format!("{} cannot be the key of a map", class::describe(found));
        let expected = ["a name", "a string", "a number", "a list, set or map", "a T or Direction token"]
            .map(String::from)
            .to_vec();
        Err(self.error_at(place, SyntaxErrorKind::Unexpected, message).expecting(expected))
    }

    /// `{1, 2}`.
    fn set(&mut self) -> Parsed<(Argument, ClassSet)> {
        if let Some(error) = self.closure() {
            return Err(error);
        }
        let mut parser = self.deeper()?;
        let open = parser.current;
        parser.advance()?;
        let mut values = ValueSet::default();
        if parser.current.kind != Kind::CloseBrace {
            loop {
                let place = parser.current;
                let (element, _) = parser.argument(class::LITERAL)?;
                let Some(value) = into_value(element) else {
                    let place = Sign { end: parser.current.start, ..place };
                    let message = "a set cannot hold a Cardinality with a value";
                    return Err(parser.error_at(place, SyntaxErrorKind::WrongArguments, message));
                };
                values.insert(value);
                match parser.current.kind {
                    Kind::Comma => parser.advance()?,
                    Kind::CloseBrace => break,
                    _ => return Err(parser.not_in_collection(open, '}')),
                }
            }
        }
        parser.advance()?;
        Ok((Argument::Value(Value::Set(Shared::new(values))), class::SET))
    }

    // ---- strategies ----

    /// `ReadOnlyStrategy`, `SubgraphStrategy(vertices: __.has('x'))`, with or without `new`.
    fn strategy(&mut self, accepted: ClassSet) -> Parsed<(Argument, ClassSet)> {
        if self.word_or_empty() == "new" && accepted & class::STRATEGY != 0 {
            self.advance()?;
        }
        if self.current.kind != Kind::Word {
            return Err(self.unexpected("the name of a strategy, such as ReadOnlyStrategy"));
        }
        let name: Arc<str> = self.word().into();
        self.advance()?;
        if accepted & class::STRATEGY == 0 {
            return Ok((Argument::Strategy { name, options: Vec::new() }, class::STRATEGY_NAME));
        }
        let mut options: Vec<(Arc<str>, Argument)> = Vec::new();
        if self.current.kind == Kind::Open {
            let open = self.current;
            self.advance()?;
            let mut parser = self.deeper()?;
            while parser.current.kind != Kind::Close {
                let place = parser.current;
                if place.kind != Kind::Word {
                    return Err(parser.unexpected("the name of an option, or )"));
                }
                let key: Arc<str> = parser.word().into();
                parser.advance()?;
                parser.expect(Kind::Colon, ": and a value after the option's name")?;
                let (value, _) = parser.argument(class::LITERAL | class::VARIABLE)?;
                if options.iter().any(|(name, _)| *name == key) {
                    let message = format!("the option {} is given twice", clip(&key));
                    return Err(parser.error_at(place, SyntaxErrorKind::WrongArguments, message));
                }
                if options.len() == STRATEGY_OPTIONS_MAX {
                    let message = format!("a strategy has at most {STRATEGY_OPTIONS_MAX} options");
                    return Err(parser.error_at(place, SyntaxErrorKind::TooLarge, message));
                }
                options.push((key, value));
                match parser.current.kind {
                    Kind::Comma if parser.following() != b')' => parser.advance()?,
                    Kind::Close => break,
                    _ => return Err(parser.not_in_arguments(open)),
                }
            }
            parser.advance()?;
        }
        Ok((Argument::Strategy { name, options }, class::STRATEGY))
    }
}

/// More options than any strategy has; keeps the search for a repeated one short.
const STRATEGY_OPTIONS_MAX: usize = 64;

/// Elements of a list: plain values as long as possible.
#[derive(Default)]
struct Collected {
    plain: Vec<Value>,
    mixed: Vec<Argument>,
}

impl Collected {
    fn push(&mut self, element: Argument) {
        match element {
            Argument::Value(value) if self.mixed.is_empty() => self.plain.push(value),
            element => {
                if self.mixed.is_empty() {
                    self.mixed = std::mem::take(&mut self.plain).into_iter().map(Argument::Value).collect();
                }
                self.mixed.push(element);
            }
        }
    }

    fn into_list(self) -> Argument {
        if self.mixed.is_empty() {
            Argument::Value(Value::List(Shared::new(self.plain)))
        } else {
            Argument::List(self.mixed)
        }
    }
}

/// The argument as a value inside a predicate or a set; a cardinality with a value and a strategy are none.
pub(super) fn into_value(argument: Argument) -> Option<Value> {
    Some(match argument {
        Argument::Value(value) => value,
        Argument::Predicate(predicate) => Value::P(Arc::new(predicate)),
        Argument::Traversal(bytecode) => Value::Bytecode(bytecode),
        Argument::List(elements) => {
            Value::List(Shared::new(elements.into_iter().map(into_value).collect::<Option<Vec<_>>>()?))
        }
        Argument::Map(entries) => {
            let entry = |(key, value)| Some((into_value(key)?, into_value(value)?));
            Value::Map(Shared::new(entries.into_iter().map(entry).collect::<Option<ValueMap>>()?))
        }
        Argument::Strategy { .. } | Argument::CardinalityValue(..) => return None,
    })
}

/// The time of day, at UTC.
fn system_time() -> OffsetDateTime {
    let (epoch_seconds, nanos) = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos()),
        // A clock before 1970; whole seconds will do.
        Err(error) => (-i64::try_from(error.duration().as_secs()).unwrap_or(i64::MAX), 0),
    };
    OffsetDateTime { epoch_seconds, nanos, offset_seconds: 0 }
}

/// Reads a UUID with hyphens. As in Java its parts may lack zeros in front, as in `1-2-3-4-5`.
fn uuid_of(written: &str) -> Option<Uuid> {
    let mut parts = written.split('-');
    let mut bits = 0u128;
    for digits in [8, 4, 4, 4, 12] {
        let part = parts.next().filter(|part| (1..=digits).contains(&part.len()))?;
        if !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        bits = bits << (4 * digits) | u128::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then(|| Uuid::from_u128(bits))
}
