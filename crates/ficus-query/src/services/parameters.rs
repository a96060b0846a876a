//! What a service is called with.

use std::sync::Arc;

use ficus_model::{Direction, Value, ValueMap, number};

use super::Service;
use crate::context::Result;
use crate::error::QueryError;

/// The parameters of one call.
pub(super) struct Parameters<'a> {
    service: &'a dyn Service,
    parameters: &'a ValueMap,
}

impl<'a> Parameters<'a> {
    /// Those of a call of this service.
    ///
    /// Errors: `Invalid` for one that the service does not have.
    pub(super) fn of(service: &'a dyn Service, parameters: &'a ValueMap) -> Result<Parameters<'a>> {
        let given = Parameters { service, parameters };
        given.check()?;
        Ok(given)
    }

    pub(super) fn invalid(&self, message: impl std::fmt::Display) -> QueryError {
        QueryError::invalid(format!("{}: {message}", self.service.name()))
    }

    /// Refuses parameters that the service does not have.
    fn check(&self) -> Result<()> {
        let known: Vec<&str> = self.service.parameters().into_iter().map(|(name, _)| name).collect();
        for key in self.parameters.keys() {
            match key {
                Value::String(key) if known.contains(&&**key) => {}
                other => {
                    return Err(self.invalid(format!("there is no parameter [{other}]; it has [{}]", known.join(", "))));
                }
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.parameters.get(&Value::String(Arc::from(name)))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<Arc<str>>> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.invalid(format!("[{name}] is a string, not a {}", other.type_name()))),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<Arc<str>> {
        self.optional_text(name)?.ok_or_else(|| self.invalid(format!("it needs the parameter [{name}], a string")))
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        match self.get(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.invalid(format!("[{name}] is true or false, not a {}", other.type_name()))),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<u64> {
        let number = match self.get(name) {
            Some(Value::Int(number)) => u64::try_from(*number).ok(),
            Some(Value::Long(number)) => u64::try_from(*number).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.invalid(format!("it needs the parameter [{name}], a number")))
    }

    /// A string, or a list of strings.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<Arc<str>>> {
        let single = |value: &Value| match value {
            Value::String(text) => Ok(text.clone()),
            other => Err(self.invalid(format!("[{name}] holds strings, not a {}", other.type_name()))),
        };
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::List(list)) => list.iter().map(single).collect(),
            Some(Value::Set(set)) => set.iter().map(single).collect(),
            Some(value) => Ok(vec![single(value)?]),
        }
    }

    /// A number of any type.
    pub(super) fn double(&self, name: &str) -> Result<Option<f64>> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) if number::is_number(value) => Ok(Some(number::to_double(value))),
            Some(other) => Err(self.invalid(format!("[{name}] is a number, not a {}", other.type_name()))),
        }
    }

    /// A whole number, or this one.
    pub(super) fn count(&self, name: &str, default: u32) -> Result<u32> {
        let given = match self.get(name) {
            None | Some(Value::Null) => return Ok(default),
            Some(Value::Int(number)) => u32::try_from(*number).ok(),
            Some(Value::Long(number)) => u32::try_from(*number).ok(),
            Some(_) => None,
        };
        given.ok_or_else(|| self.invalid(format!("[{name}] is a whole number from 0 to {}", u32::MAX)))
    }

    /// `IN`, `OUT` or `BOTH`, or this one.
    pub(super) fn direction(&self, default: Direction) -> Result<Direction> {
        let wrong = |given: &str| self.invalid(format!("[direction] is IN, OUT or BOTH, not {given}"));
        match self.get("direction") {
            None | Some(Value::Null) => Ok(default),
            Some(Value::Direction(direction)) => Ok(*direction),
            Some(Value::String(name)) => Direction::from_name(name).ok_or_else(|| wrong(name)),
            Some(other) => Err(wrong(other.type_name())),
        }
    }
}
