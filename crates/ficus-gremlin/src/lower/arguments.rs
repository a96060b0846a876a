//! Reading arguments: what the official drivers send for one meaning differs, and is made equal here.
//!
//! Integers come in any width, varargs as single arguments or as a list, predicates and traversals as arguments of their
//! own or as values (bound parameters). A null where a name is wanted becomes the empty name, which no label and no property
//! key can have: it matches nothing.

use std::sync::Arc;

use ficus_model::{Argument, Bytecode, Cardinality, Instruction, Operator, P, Scope, Shared, Value};
use ficus_query::logical::Name;

use super::error::{LowerError, LowerErrorKind, Lowered};

/// An argument with the wrappings of the wire taken off.
#[derive(Clone, Copy, Debug)]
pub(super) enum Given<'a> {
    /// Anything plain.
    Value(&'a Value),
    /// A predicate.
    Predicate(&'a P),
    /// A traversal.
    Traversal(&'a Arc<Bytecode>),
    /// A list that holds traversals or predicates.
    List(&'a [Argument]),
    /// A map that holds traversals or cardinalities.
    Map(&'a [(Argument, Argument)]),
    /// A value with a cardinality.
    Cardinality(Cardinality, &'a Argument),
    /// A strategy.
    Strategy(&'a Arc<str>, &'a [(Arc<str>, Argument)]),
}

/// What `argument` is.
pub(super) fn given(argument: &Argument) -> Given<'_> {
    match argument {
        Argument::Value(Value::P(predicate)) => Given::Predicate(predicate),
        Argument::Value(Value::Bytecode(bytecode)) => traversal_or_cardinality(bytecode),
        Argument::Value(value) => Given::Value(value),
        Argument::Predicate(predicate) => Given::Predicate(predicate),
        Argument::Traversal(bytecode) => traversal_or_cardinality(bytecode),
        Argument::List(members) => Given::List(members),
        Argument::Map(entries) => Given::Map(entries),
        Argument::CardinalityValue(cardinality, value) => Given::Cardinality(*cardinality, value),
        Argument::Strategy { name, options } => Given::Strategy(name, options),
    }
}

/// `Cardinality.set(x)` travels as the bytecode of a traversal that only it can be.
fn traversal_or_cardinality(bytecode: &Arc<Bytecode>) -> Given<'_> {
    if let [Instruction { name, args, .. }] = bytecode.source.as_slice()
        && &**name == "CardinalityValueTraversal"
        && let [Argument::Value(cardinality), value] = args.as_slice()
    {
        let cardinality = match cardinality {
            Value::Cardinality(cardinality) => Some(*cardinality),
            Value::String(name) => Cardinality::from_name(name),
            _ => None,
        };
        if let Some(cardinality) = cardinality {
            return Given::Cardinality(cardinality, value);
        }
    }
    Given::Traversal(bytecode)
}

impl Given<'_> {
    /// What a user would call it, for messages.
    pub(super) fn describe(self) -> String {
        match self {
            Given::Value(value) => describe(value),
            Given::Predicate(_) => "a predicate".into(),
            Given::Traversal(_) => "a traversal".into(),
            Given::List(_) => "a list".into(),
            Given::Map(_) => "a map".into(),
            Given::Cardinality(cardinality, _) => format!("a value of cardinality {cardinality}"),
            Given::Strategy(name, _) => name.to_string(),
        }
    }
}

/// What a user would call a value, for messages.
pub(super) fn describe(value: &Value) -> String {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) | Value::BigInteger(_) => "an integer",
        Value::Float(_) | Value::Double(_) | Value::BigDecimal(_) => "a decimal number",
        Value::Char(_) | Value::String(_) => "a string",
        Value::Uuid(_) => "a UUID",
        Value::DateTime(_) => "a date",
        Value::Duration(_) => "a duration",
        Value::Binary(_) => "bytes",
        Value::List(_) | Value::BulkSet(_) => "a list",
        Value::Set(_) => "a set",
        Value::Map(_) | Value::Tree(_) => "a map",
        Value::Vertex(_) | Value::Edge(_) | Value::Element(_) => "an element",
        Value::VertexProperty(_) | Value::Property(_) => "a property",
        Value::T(token) => return format!("T.{token}"),
        Value::Direction(token) => return format!("Direction.{token}"),
        Value::Order(token) => return format!("Order.{token}"),
        Value::Scope(token) => return format!("Scope.{token}"),
        Value::Pop(token) => return format!("Pop.{token}"),
        Value::Column(token) => return format!("Column.{token}"),
        Value::Cardinality(token) => return format!("Cardinality.{token}"),
        Value::Merge(token) => return format!("Merge.{token}"),
        Value::Pick(token) => return format!("Pick.{token}"),
        Value::Operator(token) => return format!("Operator.{token}"),
        Value::DateUnit(token) => return format!("DT.{token}"),
        Value::GType(token) => return format!("GType.{token}"),
        _ => "a value",
    };
    name.into()
}

/// How deep lists and maps inside arguments may be nested.
const NESTING_MAX: usize = 64;

/// `argument` as a value, if it holds nothing that is none. In a map, as `mergeV()` takes it, a value with its own cardinality becomes an entry of the
/// cardinality and the value.
pub(super) fn to_value(argument: &Argument) -> Option<Value> {
    value_within(argument, NESTING_MAX)
}

fn value_within(argument: &Argument, levels: usize) -> Option<Value> {
    let levels = levels.checked_sub(1)?;
    match argument {
        Argument::Value(Value::Bytecode(_)) => None,
        Argument::Value(Value::Map(map)) if map.values().any(|value| matches!(value, Value::Bytecode(_))) => {
            let values = map.iter().map(|(key, value)| (key.clone(), Argument::Value(value.clone())));
            let entries: Option<ficus_model::ValueMap> =
                values.map(|(key, value)| Some((key, value_of_key(&value, levels)?))).collect();
            Some(Value::Map(Shared::new(entries?)))
        }
        Argument::Value(value) => Some(value.clone()),
        Argument::List(members) => {
            let members: Option<Vec<Value>> = members.iter().map(|member| value_within(member, levels)).collect();
            Some(Value::List(Shared::new(members?)))
        }
        Argument::Map(entries) => {
            let entries: Option<ficus_model::ValueMap> = entries
                .iter()
                .map(|(key, value)| Some((value_within(key, levels)?, value_of_key(value, levels)?)))
                .collect();
            Some(Value::Map(Shared::new(entries?)))
        }
        Argument::Predicate(_)
        | Argument::Traversal(_)
        | Argument::Strategy { .. }
        | Argument::CardinalityValue(..) => None,
    }
}

/// A value of a map.
fn value_of_key(value: &Argument, levels: usize) -> Option<Value> {
    match given(value) {
        Given::Cardinality(cardinality, inner) => {
            Some(Value::Entry(Shared::new((Value::Cardinality(cardinality), value_within(inner, levels)?))))
        }
        _ => value_within(value, levels),
    }
}

/// Any integer type as a 64 bit one, if it fits.
pub(super) fn to_integer(value: &Value) -> Option<i64> {
    match value {
        Value::Byte(value) => Some(i64::from(*value)),
        Value::Short(value) => Some(i64::from(*value)),
        Value::Int(value) => Some(i64::from(*value)),
        Value::Long(value) => Some(*value),
        Value::BigInteger(value) => i64::try_from(&**value).ok(),
        _ => None,
    }
}

/// One instruction, with the reading of its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    instruction: &'a Instruction,
}

impl<'a> Step<'a> {
    pub(super) fn new(instruction: &'a Instruction) -> Step<'a> {
        Step { instruction }
    }

    pub(super) fn name(self) -> &'a str {
        &self.instruction.name
    }

    pub(super) fn arguments(self) -> &'a [Argument] {
        &self.instruction.args
    }

    /// How many arguments there are.
    pub(super) fn count(self) -> usize {
        self.instruction.args.len()
    }

    pub(super) fn given(self, index: usize) -> Option<Given<'a>> {
        self.instruction.args.get(index).map(given)
    }

    // ---- errors ------------------------------------------------------------------------------------------------

    pub(super) fn error(self, kind: LowerErrorKind, message: impl Into<String>) -> LowerError {
        LowerError::new(kind, self.name(), self.instruction.offset, message)
    }

    pub(super) fn illegal(self, message: impl Into<String>) -> LowerError {
        self.error(LowerErrorKind::IllegalUse, message)
    }

    pub(super) fn wrong(self, message: impl Into<String>) -> LowerError {
        self.error(LowerErrorKind::WrongArguments, message)
    }

    /// The argument at `index` is not what the step takes there.
    pub(super) fn expected(self, index: usize, what: &str) -> LowerError {
        let name = self.name();
        match self.given(index) {
            Some(given) => {
                self.wrong(format!("{name}() takes {what} as argument {}, but got {}", index + 1, given.describe()))
            }
            None => self.wrong(format!(
                "{name}() needs {what} as argument {}, but got {} arguments",
                index + 1,
                self.count()
            )),
        }
    }

    /// The arguments as a whole fit none of the ways to call the step.
    pub(super) fn misused(self, usage: &str) -> LowerError {
        let given: Vec<String> = self.arguments().iter().map(|argument| given(argument).describe()).collect();
        self.wrong(format!("{usage}, but {}() got ({})", self.name(), given.join(", ")))
    }

    // ---- counts ------------------------------------------------------------------------------------------------

    /// Fails unless there are at most `most` arguments.
    pub(super) fn at_most(self, most: usize) -> Lowered {
        if self.count() <= most {
            return Ok(());
        }
        let plural = if most == 1 { "" } else { "s" };
        Err(self.wrong(format!("{}() takes at most {most} argument{plural}, but got {}", self.name(), self.count())))
    }

    pub(super) fn no_arguments(self) -> Lowered {
        if self.count() == 0 { Ok(()) } else { Err(self.wrong(format!("{}() takes no arguments", self.name()))) }
    }

    // ---- single arguments --------------------------------------------------------------------------------------

    pub(super) fn value(self, index: usize) -> Lowered<Value> {
        let argument = self.arguments().get(index).ok_or_else(|| self.expected(index, "a value"))?;
        to_value(argument).ok_or_else(|| self.expected(index, "a value"))
    }

    /// A name; null and other types are errors.
    pub(super) fn name_at(self, index: usize) -> Lowered<Name> {
        match self.given(index) {
            Some(Given::Value(Value::String(name))) => Ok(name.clone()),
            _ => Err(self.expected(index, "a string")),
        }
    }

    pub(super) fn optional_name(self, index: usize) -> Lowered<Option<Name>> {
        if index < self.count() { self.name_at(index).map(Some) } else { Ok(None) }
    }

    pub(super) fn integer(self, index: usize) -> Lowered<i64> {
        match self.given(index) {
            Some(Given::Value(value)) => to_integer(value),
            _ => None,
        }
        .ok_or_else(|| self.expected(index, "an integer"))
    }

    pub(super) fn integer32(self, index: usize) -> Lowered<i32> {
        i32::try_from(self.integer(index)?).map_err(|_| self.expected(index, "an integer of 32 bits"))
    }

    pub(super) fn traversal(self, index: usize) -> Lowered<&'a Arc<Bytecode>> {
        match self.given(index) {
            Some(Given::Traversal(bytecode)) => Ok(bytecode),
            _ => Err(self.expected(index, "a traversal")),
        }
    }

    pub(super) fn predicate(self, index: usize) -> Lowered<P> {
        match self.given(index) {
            Some(Given::Predicate(predicate)) => Ok(predicate.clone()),
            _ => Err(self.expected(index, "a predicate")),
        }
    }

    pub(super) fn operator(self, index: usize) -> Lowered<Operator> {
        match self.given(index) {
            Some(Given::Value(Value::Operator(operator))) => Ok(*operator),
            _ => Err(self.expected(index, "an Operator")),
        }
    }

    /// The scope, if it is the first argument, and the index of the argument after it.
    pub(super) fn scope(self) -> (Scope, usize) {
        match self.given(0) {
            Some(Given::Value(Value::Scope(scope))) => (*scope, 1),
            _ => (Scope::Global, 0),
        }
    }

    // ---- varargs -----------------------------------------------------------------------------------------------

    /// The names from `index` on; a list among them stands for its members.
    pub(super) fn names(self, index: usize) -> Lowered<Vec<Name>> {
        let mut names = Vec::with_capacity(self.count().saturating_sub(index));
        for position in index..self.count() {
            match self.given(position) {
                Some(Given::Value(Value::String(name))) => names.push(name.clone()),
                Some(Given::Value(Value::Null)) => names.push("".into()),
                Some(Given::Value(Value::List(members))) => {
                    for member in members.iter() {
                        names.push(self.member_name(member, position)?);
                    }
                }
                Some(Given::Value(Value::Set(members))) => {
                    for member in members.iter() {
                        names.push(self.member_name(member, position)?);
                    }
                }
                _ => return Err(self.expected(position, "a string")),
            }
        }
        Ok(names)
    }

    fn member_name(self, member: &Value, position: usize) -> Lowered<Name> {
        match member {
            Value::String(name) => Ok(name.clone()),
            Value::Null => Ok("".into()),
            _ => Err(self.expected(position, "strings")),
        }
    }

    /// At least one name from `index` on, none of them null.
    pub(super) fn some_names(self, index: usize) -> Lowered<Vec<Name>> {
        let names = self.names(index)?;
        if names.is_empty() {
            return Err(self.expected(index, "a string"));
        }
        if names.iter().any(|name| name.is_empty()) && self.has_null() {
            return Err(self.wrong(format!("{}() does not take null", self.name())));
        }
        Ok(names)
    }

    fn has_null(self) -> bool {
        self.arguments().iter().any(|argument| match given(argument) {
            Given::Value(Value::Null) => true,
            Given::Value(Value::List(members)) => members.contains(&Value::Null),
            _ => false,
        })
    }

    /// The values of all arguments; a single collection stands for its members.
    pub(super) fn values_or_members(self) -> Lowered<Vec<Value>> {
        if let [argument] = self.arguments() {
            match to_value(argument) {
                Some(Value::List(members)) => return Ok(Shared::unwrap_or_clone(members)),
                Some(Value::Set(members)) => return Ok(members.iter().cloned().collect()),
                _ => {}
            }
        }
        (0..self.count()).map(|index| self.value(index)).collect()
    }

    /// The traversals from `index` on; a list among them stands for its members.
    pub(super) fn traversals(self, index: usize) -> Lowered<Vec<&'a Arc<Bytecode>>> {
        let mut traversals = Vec::with_capacity(self.count().saturating_sub(index));
        for position in index..self.count() {
            match self.given(position) {
                Some(Given::Traversal(bytecode)) => traversals.push(bytecode),
                Some(Given::List(members)) => {
                    for member in members {
                        match given(member) {
                            Given::Traversal(bytecode) => traversals.push(bytecode),
                            _ => return Err(self.expected(position, "traversals")),
                        }
                    }
                }
                Some(Given::Value(Value::List(members))) => {
                    for member in members.iter() {
                        match member {
                            Value::Bytecode(bytecode) => traversals.push(bytecode),
                            _ => return Err(self.expected(position, "traversals")),
                        }
                    }
                }
                _ => return Err(self.expected(position, "a traversal")),
            }
        }
        Ok(traversals)
    }
}
