//! Plain JSON to values, as people write it in HTTP requests: whole numbers are longs, others doubles.
//!
//! Bounded: the parser follows 128 levels, and no more values are made than the limits allow.

use std::cell::Cell;
use std::fmt;

use ficus_model::{Shared, Value, ValueMap};
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

/// Reads one JSON text of at most `values_max` values.
pub(crate) fn read(bytes: &[u8], values_max: usize) -> Result<Value, String> {
    let budget = Cell::new(values_max);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Seed { budget: &budget }.deserialize(&mut deserializer).map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    /// Values that may still be made.
    budget: &'a Cell<usize>,
}

impl Seed<'_> {
    fn spend<E: Error>(self) -> Result<(), E> {
        match self.budget.get().checked_sub(1) {
            Some(left) => {
                self.budget.set(left);
                Ok(())
            }
            None => Err(E::custom("more values than the server accepts")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.spend().map(|()| Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.spend().map(|()| Value::Long(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.spend()?;
        i64::try_from(value).map(Value::Long).map_err(|_| E::custom("a whole number outside 64 bits"))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.spend().map(|()| Value::Double(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.spend().map(|()| Value::String(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.spend().map(|()| Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.spend()?;
        let mut values = Vec::new();
        while let Some(value) = members.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::List(Shared::new(values)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.spend()?;
        let mut map = ValueMap::default();
        while let Some(key) = entries.next_key_seed(self)? {
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
        }
        Ok(Value::Map(Shared::new(map)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_values() {
        let check = |text: &str, expected: &str| {
            let found = read(text.as_bytes(), 100).map_or_else(|error| error, |value| format!("{value:?}"));
            assert!(found.contains(expected), "{text}: {found}");
        };
        check("1", "Long(1)");
        check("-1.5", "Double(-1.5)");
        check("\"x\"", "String(\"x\")");
        check("[true, null]", "[Bool(true), Null]");
        check("{\"a\": 1}", "{String(\"a\"): Long(1)}");
        check("18446744073709551615", "outside 64 bits");
        check("{\"a\": 1} x", "trailing characters");
        check("{\"a\": }", "expected value");
        check("", "EOF");
    }

    #[test]
    fn depth_and_number_are_bounded() {
        assert!(read("[".repeat(100_000).as_bytes(), 1_000_000).is_err_and(|error| error.contains("recursion")));
        let many = format!("[{}]", vec!["1"; 100].join(","));
        assert!(read(many.as_bytes(), 101).is_ok());
        assert!(read(many.as_bytes(), 100).is_err_and(|error| error.contains("more values")));
    }
}
