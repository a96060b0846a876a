//! Arithmetic over mixed number types, with Gremlin's promotion.
//!
//! Two numbers meet in the narrowest type that is at least as wide as both; any floating point makes the result floating
//! point. What does not fit widens: byte → short → int → long and then fails, float → double and then is an infinity.
//! BigInteger and BigDecimal take everything narrower in. `null` as either operand gives the first operand back; what is no
//! number is refused beside it too.
//!
//! Two things differ from TinkerPop on purpose, where its answers are accidents: NaN stays NaN (there it vanishes beside
//! an integer), and a BigDecimal divided by zero is an error (there it is the integer 0).

use std::cmp::Ordering;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive, Zero};

use crate::{ModelError, Value, decimal};

/// The four operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// The type two numbers meet in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Width {
    /// 8, 16, 32, 64, or 128 for the unbounded ones.
    pub(crate) bits: u8,
    /// Whether it is floating point.
    pub(crate) floating: bool,
}

impl Width {
    /// Of one number; `None` for anything else.
    pub(crate) fn of(value: &Value) -> Option<Width> {
        let (bits, floating) = match value {
            Value::Byte(_) => (8, false),
            Value::Short(_) => (16, false),
            Value::Int(_) => (32, false),
            Value::Long(_) => (64, false),
            Value::BigInteger(_) => (128, false),
            Value::Float(_) => (32, true),
            Value::Double(_) => (64, true),
            Value::BigDecimal(_) => (128, true),
            _ => return None,
        };
        Some(Width { bits, floating })
    }

    /// The narrowest that takes both in.
    pub(crate) fn common(self, other: Width) -> Width {
        Width { bits: self.bits.max(other.bits), floating: self.floating || other.floating }
    }
}

/// Whether this is a number.
pub fn is_number(value: &Value) -> bool {
    Width::of(value).is_some()
}

/// Whether this is a float or double that is not a number.
pub fn is_nan(value: &Value) -> bool {
    match value {
        Value::Float(float) => float.is_nan(),
        Value::Double(double) => double.is_nan(),
        _ => false,
    }
}

/// The sum.
pub fn add(a: &Value, b: &Value) -> Result<Value, ModelError> {
    // What most sums are of.
    match (a, b) {
        (Value::Long(a), Value::Long(b)) => {
            return a.checked_add(*b).map(Value::Long).ok_or(ModelError::Overflow { type_name: "long" });
        }
        (Value::Int(a), Value::Int(b)) => {
            if let Some(sum) = a.checked_add(*b) {
                return Ok(Value::Int(sum));
            }
        }
        (Value::Double(a), Value::Double(b)) => return Ok(Value::Double(a + b)),
        _ => {}
    }
    calculate(Operation::Add, a, b, false)
}

/// The difference.
pub fn sub(a: &Value, b: &Value) -> Result<Value, ModelError> {
    calculate(Operation::Subtract, a, b, false)
}

/// The product.
pub fn mul(a: &Value, b: &Value) -> Result<Value, ModelError> {
    calculate(Operation::Multiply, a, b, false)
}

/// The quotient; integers divide towards zero.
pub fn div(a: &Value, b: &Value) -> Result<Value, ModelError> {
    calculate(Operation::Divide, a, b, false)
}

/// The quotient in floating point, even of integers: what means are made of.
pub fn div_floating(a: &Value, b: &Value) -> Result<Value, ModelError> {
    calculate(Operation::Divide, a, b, true)
}

fn calculate(operation: Operation, a: &Value, b: &Value, floating: bool) -> Result<Value, ModelError> {
    if matches!(a, Value::Null) || matches!(b, Value::Null) {
        check_operand(a)?;
        check_operand(b)?;
        return Ok(a.clone());
    }
    let mut width = width_of(a)?.common(width_of(b)?);
    width.floating |= floating;
    loop {
        let result = calculate_in(operation, width, a, b);
        let widens = width.bits < 64
            && match &result {
                Ok(Value::Float(float)) => float.is_infinite(),
                Ok(_) => false,
                Err(ModelError::Overflow { .. }) => true,
                Err(_) => return result,
            };
        if !widens {
            return result;
        }
        width.bits *= 2;
    }
}

/// Refuses what arithmetic cannot take: all but numbers and `null`.
pub fn check_operand(value: &Value) -> Result<(), ModelError> {
    if matches!(value, Value::Null) { Ok(()) } else { width_of(value).map(|_| ()) }
}

fn width_of(value: &Value) -> Result<Width, ModelError> {
    Width::of(value).ok_or(ModelError::WrongType {
        operation: "arithmetic",
        expected: "numbers",
        found: value.type_name(),
    })
}

fn calculate_in(operation: Operation, width: Width, a: &Value, b: &Value) -> Result<Value, ModelError> {
    match width {
        Width { bits: 128, floating: true } => {
            let (a, b) = (to_decimal(a)?, to_decimal(b)?);
            let result = match operation {
                Operation::Add => decimal::add(&a, &b),
                Operation::Subtract => decimal::subtract(&a, &b),
                Operation::Multiply => decimal::multiply(&a, &b),
                Operation::Divide => decimal::divide(&a, &b),
            }?;
            Ok(Value::BigDecimal(Arc::new(result)))
        }
        Width { bits: 128, floating: false } => {
            let (a, b) = (to_big_integer(a)?, to_big_integer(b)?);
            let result = match operation {
                Operation::Add => decimal::check_size(a + b)?,
                Operation::Subtract => decimal::check_size(a - b)?,
                Operation::Multiply => decimal::multiply_integers(&a, &b)?,
                Operation::Divide if b.is_zero() => return Err(ModelError::DivisionByZero),
                Operation::Divide => a / b,
            };
            Ok(Value::BigInteger(Arc::new(result)))
        }
        Width { bits: 64, floating: true } => {
            let (a, b) = (to_double(a), to_double(b));
            Ok(Value::Double(match operation {
                Operation::Add => a + b,
                Operation::Subtract => a - b,
                Operation::Multiply => a * b,
                Operation::Divide => a / b,
            }))
        }
        Width { floating: true, .. } => {
            let (a, b) = (to_float(a), to_float(b));
            Ok(Value::Float(match operation {
                Operation::Add => a + b,
                Operation::Subtract => a - b,
                Operation::Multiply => a * b,
                Operation::Divide => a / b,
            }))
        }
        Width { bits, floating: false } => {
            let (a, b) = (to_integer(a), to_integer(b));
            let overflow = ModelError::Overflow { type_name: integer_name(bits) };
            let result = match operation {
                Operation::Add => a.checked_add(b),
                Operation::Subtract => a.checked_sub(b),
                Operation::Multiply => a.checked_mul(b),
                Operation::Divide if b == 0 => return Err(ModelError::DivisionByZero),
                Operation::Divide => a.checked_div(b),
            };
            result.and_then(|integer| narrow(integer, bits)).ok_or(overflow)
        }
    }
}

fn integer_name(bits: u8) -> &'static str {
    match bits {
        8 => "byte",
        16 => "short",
        32 => "integer",
        _ => "long",
    }
}

/// An integer of so many bits, if it fits.
pub(crate) fn narrow(integer: i64, bits: u8) -> Option<Value> {
    match bits {
        8 => i8::try_from(integer).ok().map(Value::Byte),
        16 => i16::try_from(integer).ok().map(Value::Short),
        32 => i32::try_from(integer).ok().map(Value::Int),
        _ => Some(Value::Long(integer)),
    }
}

/// A byte, short, int or long as an integer; zero for anything else, which callers have ruled out by width.
pub(crate) fn to_integer(value: &Value) -> i64 {
    match value {
        Value::Byte(integer) => i64::from(*integer),
        Value::Short(integer) => i64::from(*integer),
        Value::Int(integer) => i64::from(*integer),
        Value::Long(integer) => *integer,
        _ => 0,
    }
}

/// Any number as the nearest double; NaN for anything else.
pub fn to_double(value: &Value) -> f64 {
    match value {
        Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) => to_integer(value) as f64,
        Value::BigInteger(integer) => integer.to_f64().unwrap_or(f64::NAN),
        Value::Float(float) => f64::from(*float),
        Value::Double(double) => *double,
        Value::BigDecimal(decimal) => decimal::to_double(decimal),
        _ => f64::NAN,
    }
}

/// Any number as the nearest float; NaN for anything else.
pub(crate) fn to_float(value: &Value) -> f32 {
    match value {
        Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) => to_integer(value) as f32,
        Value::BigInteger(integer) => integer.to_f32().unwrap_or(f32::NAN),
        Value::Float(float) => *float,
        Value::Double(double) => *double as f32,
        Value::BigDecimal(decimal) => decimal::to_float(decimal),
        _ => f32::NAN,
    }
}

/// Any number as a BigInteger, fractions cut off.
pub(crate) fn to_big_integer(value: &Value) -> Result<BigInt, ModelError> {
    match value {
        Value::BigInteger(integer) => Ok((**integer).clone()),
        Value::BigDecimal(decimal) => decimal::truncate(decimal),
        Value::Double(double) => decimal::truncate(&decimal::from_double(*double).ok_or(ModelError::NotFinite)?),
        Value::Float(float) => BigInt::from_f32(*float).ok_or(ModelError::NotFinite),
        _ => Ok(BigInt::from(to_integer(value))),
    }
}

/// Any number as a BigDecimal; doubles and floats become what they are written as.
pub(crate) fn to_decimal(value: &Value) -> Result<BigDecimal, ModelError> {
    match value {
        Value::BigDecimal(decimal) => Ok((**decimal).clone()),
        Value::BigInteger(integer) => Ok(BigDecimal::new((**integer).clone(), 0)),
        Value::Float(float) => decimal::from_float(*float).ok_or(ModelError::NotFinite),
        Value::Double(double) => decimal::from_double(*double).ok_or(ModelError::NotFinite),
        _ => Ok(BigDecimal::new(BigInt::from(to_integer(value)), 0)),
    }
}

/// The smaller of two comparable values, as `min()` picks it.
///
/// Numbers come back in the type both meet in (`min(1, 2.5f)` is `1.0f`); `null` and NaN lose against anything. Strings,
/// booleans, dates and other simple values compare within their own type only; anything else is an error.
pub fn min(a: &Value, b: &Value) -> Result<Value, ModelError> {
    pick(a, b, "min()", Ordering::Less)
}

/// The larger of two comparable values, as `max()` picks it; see [`min`].
pub fn max(a: &Value, b: &Value) -> Result<Value, ModelError> {
    pick(a, b, "max()", Ordering::Greater)
}

fn pick(a: &Value, b: &Value, operation: &'static str, wanted: Ordering) -> Result<Value, ModelError> {
    for value in [a, b] {
        if !(matches!(value, Value::Null) || is_naturally_ordered(value)) {
            return Err(ModelError::WrongType {
                operation,
                expected: "numbers, strings, booleans, dates and other values with an order of their own",
                found: value.type_name(),
            });
        }
    }
    if matches!(a, Value::Null) || is_nan(a) && !matches!(b, Value::Null) {
        return Ok(b.clone());
    }
    if matches!(b, Value::Null) || is_nan(b) {
        return Ok(a.clone());
    }
    let Some(ordering) = crate::compare::compare(a, b, &crate::InternalIds) else {
        return Err(ModelError::WrongType { operation, expected: a.type_name(), found: b.type_name() });
    };
    let chosen = if ordering == wanted { a } else { b };
    match (Width::of(a), Width::of(b)) {
        // An infinity has no unbounded form and stays what it is.
        (Some(a_width), Some(b_width)) => {
            Ok(in_width(chosen, a_width.common(b_width)).unwrap_or_else(|_| chosen.clone()))
        }
        _ => Ok(chosen.clone()),
    }
}

fn is_naturally_ordered(value: &Value) -> bool {
    use Value::*;
    is_number(value)
        || matches!(value, Bool(_) | Char(_) | String(_) | Uuid(_) | DateTime(_) | Duration(_) | Binary(_) | T(_))
}

/// A number in a type at least as wide.
fn in_width(value: &Value, width: Width) -> Result<Value, ModelError> {
    if Width::of(value) == Some(width) {
        return Ok(value.clone());
    }
    Ok(match width {
        Width { bits: 128, floating: true } => Value::BigDecimal(Arc::new(to_decimal(value)?)),
        Width { bits: 128, floating: false } => Value::BigInteger(Arc::new(to_big_integer(value)?)),
        Width { bits: 64, floating: true } => Value::Double(to_double(value)),
        Width { floating: true, .. } => Value::Float(to_float(value)),
        Width { bits, floating: false } => {
            narrow(to_integer(value), bits).expect("a wider type takes every narrower value")
        }
    })
}

/// A value counted `bulk` times, as `sum()` adds a bulked traverser: the product in the type of the value, wider only
/// if it has to be. `null` stays `null`.
pub fn times_bulk(value: &Value, bulk: i64) -> Result<Value, ModelError> {
    if bulk == 1 && is_number(value) {
        return Ok(value.clone());
    }
    let factor = match Width::of(value) {
        Some(width @ Width { bits: 128, .. } | width @ Width { floating: true, .. }) => {
            in_width(&Value::Long(bulk), width)?
        }
        Some(width) => narrow(bulk, width.bits).unwrap_or(Value::Long(bulk)),
        None => Value::Long(bulk),
    };
    mul(value, &factor)
}

/// Adds integers to a sum of theirs until it would be too large, and says how many.
pub fn sum_ahead(sum: &mut i64, numbers: &[i64]) -> usize {
    for (taken, number) in numbers.iter().enumerate() {
        let Some(next) = sum.checked_add(*number) else { return taken };
        *sum = next;
    }
    numbers.len()
}

/// A running mean: sum and count, in the types `mean()` uses (double for the bounded numbers, BigDecimal else).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mean {
    sum: Value,
    count: i64,
}

impl Mean {
    /// Of one value counted `bulk` times; `None` for `null`, which a mean passes over.
    pub fn of(value: &Value, bulk: i64) -> Result<Option<Mean>, ModelError> {
        if matches!(value, Value::Null) {
            return Ok(None);
        }
        Ok(Some(Mean { sum: mul(value, &Value::Long(bulk))?, count: bulk }))
    }

    /// Takes another mean in.
    pub fn merge(&mut self, other: &Mean) -> Result<(), ModelError> {
        self.sum = add(&self.sum, &other.sum)?;
        self.count = self.count.checked_add(other.count).ok_or(ModelError::Overflow { type_name: "long" })?;
        Ok(())
    }

    /// Takes one value in, counted `bulk` times.
    pub fn add(&mut self, value: &Value, bulk: i64) -> Result<(), ModelError> {
        match Mean::of(value, bulk)? {
            Some(other) => self.merge(&other),
            None => Ok(()),
        }
    }

    /// Takes integers in until a sum would be too large, and says how many: what [`Mean::add`] does with each, in one loop.
    pub fn add_integers(&mut self, numbers: &[i64]) -> usize {
        let Value::Long(sum) = &mut self.sum else { return 0 };
        let taken = sum_ahead(sum, numbers);
        self.count = self.count.saturating_add(taken as i64);
        taken
    }

    /// The mean so far.
    pub fn finish(&self) -> Result<Value, ModelError> {
        div_floating(&self.sum, &Value::Long(self.count))
    }

    /// Sum and count, for sending a partial mean elsewhere.
    pub fn parts(&self) -> (&Value, i64) {
        (&self.sum, self.count)
    }

    /// A partial mean from [`Mean::parts`].
    pub fn from_parts(sum: Value, count: i64) -> Mean {
        Mean { sum, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn big(text: &str) -> Value {
        Value::BigInteger(Arc::new(text.parse().unwrap()))
    }

    fn dec(text: &str) -> Value {
        Value::BigDecimal(Arc::new(decimal::parse(text).unwrap()))
    }

    #[test]
    fn meets_in_the_narrowest_common_type() {
        use Value::*;
        let cases = [
            (add(&Byte(1), &Byte(2)), Byte(3)),
            (add(&Byte(1), &Short(2)), Short(3)),
            (add(&Byte(100), &Byte(100)), Short(200)),
            (mul(&Short(30_000), &Short(2)), Int(60_000)),
            (add(&Int(i32::MAX), &Int(1)), Long(1 << 31)),
            (mul(&Byte(100), &Int(1 << 30)), Long(100 << 30)),
            (add(&Int(1), &Float(0.5)), Float(1.5)),
            (add(&Long(1), &Float(0.5)), Double(1.5)),
            (add(&Float(f32::MAX), &Float(f32::MAX)), Double(f64::from(f32::MAX) * 2.0)),
            (add(&Double(f64::MAX), &Double(f64::MAX)), Double(f64::INFINITY)),
            (add(&big("5"), &Long(1)), big("6")),
            (add(&big("5"), &Float(0.5)), dec("5.5")),
            (add(&dec("1.10"), &Double(0.1)), dec("1.20")),
            (div(&Int(7), &Int(2)), Int(3)),
            (div(&Int(-7), &Int(2)), Int(-3)),
            (div(&Byte(-128), &Byte(-1)), Short(128)),
            (div(&Double(1.0), &Int(0)), Double(f64::INFINITY)),
            (div(&Float(1.0), &Float(0.0)), Double(f64::INFINITY)),
            (div_floating(&Int(7), &Int(2)), Float(3.5)),
            (div_floating(&Long(7), &Long(2)), Double(3.5)),
            (sub(&Int(3), &Int(5)), Int(-2)),
            (add(&Null, &Int(1)), Null),
            (add(&Int(1), &Null), Int(1)),
            (add(&Int(1), &Double(f64::NAN)), Double(f64::NAN)),
        ];
        for (index, (result, expected)) in cases.into_iter().enumerate() {
            assert_eq!(result.unwrap(), expected, "case {index}");
        }
    }

    #[test]
    fn fails_where_nothing_wider_is_left() {
        use Value::*;
        let overflow = Err(ModelError::Overflow { type_name: "long" });
        assert_eq!(add(&Long(i64::MAX), &Int(1)), overflow);
        assert_eq!(mul(&Long(i64::MAX), &Long(2)), overflow);
        assert_eq!(div(&Long(i64::MIN), &Byte(-1)), overflow);
        assert_eq!(div(&Int(1), &Int(0)), Err(ModelError::DivisionByZero));
        assert_eq!(div(&big("1"), &Int(0)), Err(ModelError::DivisionByZero));
        assert_eq!(div(&dec("1"), &Int(0)), Err(ModelError::DivisionByZero));
        assert_eq!(add(&dec("1"), &Double(f64::INFINITY)), Err(ModelError::NotFinite));
        assert!(matches!(add(&Int(1), &Value::from("a")), Err(ModelError::WrongType { .. })));
        let huge = big(&format!("1{}", "0".repeat(60_000)));
        assert_eq!(mul(&huge, &huge), Err(ModelError::TooManyDigits));
    }

    #[test]
    fn picks_smaller_and_larger() {
        use Value::*;
        assert_eq!(min(&Int(1), &Float(2.5)).unwrap(), Float(1.0));
        assert_eq!(max(&Int(1), &Long(2)).unwrap(), Long(2));
        assert_eq!(max(&Int(3), &Long(2)).unwrap(), Long(3));
        assert_eq!(min(&Double(f64::NAN), &Int(1)).unwrap(), Int(1));
        assert_eq!(min(&Null, &Int(1)).unwrap(), Int(1));
        assert_eq!(max(&Int(1), &Null).unwrap(), Int(1));
        assert_eq!(min(&Value::from("b"), &Value::from("a")).unwrap(), Value::from("a"));
        assert_eq!(max(&Bool(true), &Bool(false)).unwrap(), Bool(true));
        assert_eq!(max(&dec("1.5"), &big("1")).unwrap(), dec("1.5"));
        assert_eq!(max(&big("1"), &Double(f64::INFINITY)).unwrap(), Double(f64::INFINITY));
        assert!(min(&Value::from("b"), &Int(1)).is_err());
        assert!(min(&Value::from(vec![Int(1)]), &Value::from(vec![Int(2)])).is_err());
    }

    #[test]
    fn bulk_keeps_the_type_of_the_value() {
        use Value::*;
        assert_eq!(times_bulk(&Int(3), 4).unwrap(), Int(12));
        assert_eq!(times_bulk(&Byte(3), 4).unwrap(), Byte(12));
        assert_eq!(times_bulk(&Byte(3), 400).unwrap(), Long(1200));
        assert_eq!(times_bulk(&Float(0.5), 3).unwrap(), Float(1.5));
        assert_eq!(times_bulk(&dec("0.5"), 3).unwrap(), dec("1.5"));
        assert_eq!(times_bulk(&Null, 3).unwrap(), Null);
        assert_eq!(times_bulk(&Int(i32::MAX), 2).unwrap(), Long(i64::from(i32::MAX) * 2));
    }

    #[test]
    fn means_are_double_or_decimal() {
        let mean = |values: &[Value]| {
            let mut values = values.iter();
            let mut mean = Mean::of(values.next().unwrap(), 1).unwrap().unwrap();
            for value in values {
                mean.add(value, 1).unwrap();
            }
            mean.finish().unwrap()
        };
        assert_eq!(mean(&[Value::Int(1), Value::Int(2)]), Value::Double(1.5));
        assert_eq!(mean(&[Value::Float(1.0), Value::Null, Value::Byte(2)]), Value::Double(1.5));
        assert_eq!(mean(&[big("1"), big("2")]), dec("1.5"));
        assert_eq!(Mean::of(&Value::Null, 1).unwrap(), None);
    }
}
