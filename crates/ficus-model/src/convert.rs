//! Numbers from other numbers and from text, as `asNumber()` makes them: exact, or an error that says why not.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::{Num, ToPrimitive};

use crate::number::{narrow, to_big_integer, to_decimal, to_double, to_float, to_integer};
use crate::{GType, ModelError, Value, decimal};

/// The number in the type asked for; fractions are cut off where that type has none.
///
/// Errors: `Conversion` if it does not fit, `ConversionOfNonFinite` for NaN and infinities as whole numbers,
/// `NotANumberType` for a token that is not one of the eight number types.
pub fn convert(value: &Value, to: GType) -> Result<Value, ModelError> {
    if !crate::number::is_number(value) {
        return Err(ModelError::WrongType {
            operation: "a number conversion",
            expected: "numbers",
            found: value.type_name(),
        });
    }
    if value.gtype() == Some(to) {
        return Ok(value.clone());
    }
    match to {
        GType::Byte => whole(value, "Byte", 8),
        GType::Short => whole(value, "Short", 16),
        GType::Int => whole(value, "Integer", 32),
        GType::Long => whole(value, "Long", 64),
        GType::BigInt => Ok(Value::BigInteger(Arc::new(finite(value, "BigInteger", to_big_integer(value))?))),
        GType::BigDecimal => Ok(Value::BigDecimal(Arc::new(finite(value, "BigDecimal", to_decimal(value))?))),
        GType::Float => {
            let double = to_double(value);
            let fits = double.abs() <= f64::from(f32::MAX) || is_non_finite(value);
            if fits { Ok(Value::Float(to_float(value))) } else { Err(overflow(value, "Float")) }
        }
        GType::Double => match value {
            // By way of the text, so that 0.1f becomes 0.1.
            Value::Float(float) if float.is_finite() => {
                Ok(Value::Double(crate::text::float_text(*float).parse().expect("the text of a float is a double")))
            }
            _ => {
                let double = to_double(value);
                if double.is_infinite() && !is_non_finite(value) {
                    return Err(overflow(value, "Double"));
                }
                Ok(Value::Double(double))
            }
        },
        _ => Err(ModelError::NotANumberType(to)),
    }
}

fn overflow(value: &Value, to: &'static str) -> ModelError {
    ModelError::Conversion { from: value.type_name(), to, underflow: false }
}

fn is_non_finite(value: &Value) -> bool {
    match value {
        Value::Float(float) => !float.is_finite(),
        Value::Double(double) => !double.is_finite(),
        _ => false,
    }
}

fn finite<T>(value: &Value, to: &'static str, result: Result<T, ModelError>) -> Result<T, ModelError> {
    result.map_err(|error| match error {
        ModelError::NotFinite => ModelError::ConversionOfNonFinite { what: non_finite_name(value), to },
        other => other,
    })
}

fn non_finite_name(value: &Value) -> &'static str {
    if crate::number::is_nan(value) { "NaN" } else { "floating point infinity" }
}

fn whole(value: &Value, to: &'static str, bits: u8) -> Result<Value, ModelError> {
    if is_non_finite(value) {
        return Err(ModelError::ConversionOfNonFinite { what: non_finite_name(value), to });
    }
    let integer = match value {
        Value::Float(_) | Value::Double(_) => {
            let double = to_double(value);
            // 2⁶³ itself is taken as the largest long, as casts do.
            if double > i64::MAX as f64 {
                return Err(overflow(value, to));
            }
            if double < i64::MIN as f64 {
                return Err(ModelError::Conversion { from: value.type_name(), to, underflow: true });
            }
            double as i64
        }
        Value::BigInteger(integer) => integer.to_i64().ok_or_else(|| overflow(value, to))?,
        Value::BigDecimal(big) => {
            let truncated = decimal::truncate(big).map_err(|_| overflow(value, to))?;
            truncated.to_i64().ok_or_else(|| overflow(value, to))?
        }
        _ => to_integer(value),
    };
    narrow(integer, bits).ok_or_else(|| overflow(value, to))
}

/// Reads a number as `asNumber()` reads text, in the narrowest type that loses nothing.
///
/// Whole numbers become int, long or BigInteger; decimals become float if it is written the same as the double, else
/// double if that is the same number, else BigDecimal. `0x` means hexadecimal, a leading zero octal, a trailing `L`, `f`
/// or `d` names the type. White space around is passed over.
pub fn parse_number(text: &str) -> Result<Value, ModelError> {
    parse_trimmed(text.trim_matches(|c: char| c <= ' ')).ok_or_else(|| ModelError::NotANumber(text.into()))
}

fn parse_trimmed(text: &str) -> Option<Value> {
    if text.len() as u64 > decimal::DIGITS_MAX || !text.is_ascii() {
        return None;
    }
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if !text.contains('.') && unsigned.len() > 1 && unsigned.starts_with('0') {
        if let Some(digits) = unsigned[1..].strip_prefix(['x', 'X']) {
            return parse_radix(digits, 16, negative);
        }
        if unsigned.as_bytes()[1].is_ascii_digit() {
            return parse_radix(&unsigned[1..], 8, negative);
        }
    }
    let (body, suffix) = match unsigned.as_bytes().last()? {
        last if last.is_ascii_digit() || *last == b'.' => (unsigned, None),
        last => (&unsigned[..unsigned.len() - 1], Some(last.to_ascii_lowercase())),
    };
    let has_exponent = body.contains(['e', 'E']);
    let is_whole = !has_exponent && !body.contains('.');
    let decimal = decimal::parse(body.strip_suffix('.').unwrap_or(body)).filter(|_| !body.starts_with(['+', '-']))?;
    match suffix {
        None if is_whole => Some(whole_from(signed(body.parse().ok()?, negative), 32)),
        None => Some(fractional(body, negative, decimal)),
        Some(b'l') if is_whole => Some(whole_from(signed(body.parse().ok()?, negative), 64)),
        Some(b'f') => {
            let float: f32 = body.parse().ok()?;
            if float.is_infinite() || float == 0.0 && !decimal::parts(&decimal).0.eq(&BigInt::ZERO) {
                return Some(fractional(body, negative, decimal));
            }
            Some(Value::Float(if negative { -float } else { float }))
        }
        Some(b'd') => {
            let double: f64 = body.parse().ok()?;
            if double.is_infinite() || double == 0.0 && !decimal::parts(&decimal).0.eq(&BigInt::ZERO) {
                return Some(fractional(body, negative, decimal));
            }
            Some(Value::Double(if negative { -double } else { double }))
        }
        Some(_) => None,
    }
}

fn signed(integer: BigInt, negative: bool) -> BigInt {
    if negative { -integer } else { integer }
}

/// The narrowest of int, long and BigInteger, but at least `bits` wide.
fn whole_from(integer: BigInt, bits: u8) -> Value {
    match integer.to_i64() {
        Some(long) => (bits == 32).then(|| narrow(long, 32)).flatten().unwrap_or(Value::Long(long)),
        None => Value::BigInteger(Arc::new(integer)),
    }
}

fn parse_radix(digits: &str, radix: u32, negative: bool) -> Option<Value> {
    if digits.starts_with(['+', '-', '_']) {
        return None;
    }
    let magnitude = BigInt::from_str_radix(digits, radix).ok()?;
    // The width goes by the magnitude: -0x80000000 is a long.
    let bits = if magnitude > BigInt::from(i32::MAX) { 64 } else { 32 };
    let fits_long = magnitude <= BigInt::from(i64::MAX);
    let integer = signed(magnitude, negative);
    Some(if fits_long { whole_from(integer, bits) } else { Value::BigInteger(Arc::new(integer)) })
}

fn fractional(body: &str, negative: bool, magnitude: bigdecimal::BigDecimal) -> Value {
    let sign = if negative { -1.0 } else { 1.0 };
    let (float, double) = (body.parse::<f32>().unwrap_or(f32::NAN), body.parse::<f64>().unwrap_or(f64::NAN));
    let is_zero = decimal::parts(&magnitude).0 == BigInt::ZERO;
    let float_usable = float.is_finite() && (float != 0.0 || is_zero);
    if float_usable && crate::text::float_text(float) == crate::text::double_text(double) {
        return Value::Float(float * sign as f32);
    }
    let double_usable = double.is_finite() && (double != 0.0 || is_zero);
    let same = double_usable
        && decimal::from_double(double).is_some_and(|decimal| decimal::compare(&decimal, &magnitude).is_eq());
    if same {
        return Value::Double(double * sign);
    }
    let (unscaled, scale) = decimal::parts(&magnitude);
    Value::BigDecimal(Arc::new(bigdecimal::BigDecimal::new(signed(unscaled, negative), scale)))
}

impl GType {
    /// Whether `asNumber()` takes this token.
    pub fn is_numeric(self) -> bool {
        use GType::*;
        matches!(self, BigDecimal | BigInt | Byte | Double | Float | Int | Long | Number | Short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &Value) -> String {
        format!("{} {value}", value.type_name())
    }

    #[test]
    fn reads_numbers_in_the_narrowest_type() {
        for (text, expected) in [
            ("5", "Integer 5"),
            ("5.43", "Float 5.43"),
            ("3.14159265358979", "Double 3.14159265358979"),
            ("1e3", "Float 1000.0"),
            ("0x1F", "Integer 31"),
            ("010", "Integer 8"),
            ("5L", "Long 5"),
            ("5l", "Long 5"),
            ("5f", "Float 5.0"),
            ("5d", "Double 5.0"),
            ("1.0F", "Float 1.0"),
            ("1.5e400", "BigDecimal 1.5E+400"),
            ("99999999999", "Long 99999999999"),
            ("99999999999999999999", "BigInteger 99999999999999999999"),
            ("1.", "Float 1.0"),
            ("2.f", "Float 2.0"),
            ("-.5", "Float -0.5"),
            (".5", "Float 0.5"),
            ("1e-400", "BigDecimal 1E-400"),
            ("123456.789", "Double 123456.789"),
            ("0.1", "Float 0.1"),
            ("16777217.5", "Double 1.67772175E7"),
            ("+5", "Integer 5"),
            ("-5", "Integer -5"),
            ("0xFFFFFFFFFF", "Long 1099511627775"),
            ("-0x80000000", "Long -2147483648"),
            ("1E5", "Float 100000.0"),
            ("1.1e1", "Float 11.0"),
            ("3.4028236e38", "Double 3.4028236E38"),
            ("1.7976931348623157E308", "Double 1.7976931348623157E308"),
            ("123456789.123456789", "BigDecimal 123456789.123456789"),
            ("0.12345678", "Float 0.12345678"),
            ("-0", "Integer 0"),
            ("-0.0", "Float -0.0"),
            (" 7 ", "Integer 7"),
        ] {
            assert_eq!(shown(&parse_number(text).unwrap()), expected, "{text}");
        }
        for bad in [
            "",
            " ",
            "test",
            "1,000",
            "1b",
            "0777L",
            "08",
            "1e",
            "0x",
            "--1",
            "-",
            "1e5L",
            "1_0",
            "0x-1",
            "NaN",
            "1e99999999999",
            "é",
        ] {
            assert_eq!(parse_number(bad), Err(ModelError::NotANumber(bad.into())), "{bad}");
        }
    }

    #[test]
    fn converts_exactly_or_says_why_not() {
        let dec = |text: &str| Value::BigDecimal(Arc::new(decimal::parse(text).unwrap()));
        let big = |text: &str| Value::BigInteger(Arc::new(text.parse().unwrap()));
        for (value, to, expected) in [
            (Value::Double(3.9), GType::Int, "Integer 3"),
            (Value::Float(-3.9), GType::Double, "Double -3.9"),
            (Value::Float(0.1), GType::BigDecimal, "BigDecimal 0.1"),
            (Value::Float(1.5), GType::BigInt, "BigInteger 1"),
            (Value::Int(5), GType::Byte, "Byte 5"),
            (Value::Double(f64::INFINITY), GType::Float, "Float Infinity"),
            (Value::Double(9.223_372_036_854_776E18), GType::Long, "Long 9223372036854775807"),
            (dec("-7.99"), GType::Long, "Long -7"),
            (big("12"), GType::Short, "Short 12"),
            (big("12"), GType::Double, "Double 12.0"),
        ] {
            assert_eq!(shown(&convert(&value, to).unwrap()), expected, "{value:?}");
        }
        for (value, to, expected) in [
            (Value::Int(300), GType::Byte, "Can't convert number of type Integer to Byte due to overflow."),
            (Value::Int(70_000), GType::Short, "Can't convert number of type Integer to Short due to overflow."),
            (Value::Double(1e40), GType::Float, "Can't convert number of type Double to Float due to overflow."),
            (dec("1e400"), GType::Double, "Can't convert number of type BigDecimal to Double due to overflow."),
            (Value::Double(f64::NAN), GType::Int, "Can't convert NaN to Integer."),
            (Value::Double(f64::NAN), GType::BigInt, "Can't convert NaN to BigInteger."),
            (Value::Float(f32::INFINITY), GType::Long, "Can't convert floating point infinity to Long."),
            (Value::Double(1e300), GType::Long, "Can't convert number of type Double to Long due to overflow."),
            (Value::Double(-1e300), GType::Long, "Can't convert number of type Double to Long due to underflow."),
            (
                big("99999999999999999999"),
                GType::Long,
                "Can't convert number of type BigInteger to Long due to overflow.",
            ),
        ] {
            assert_eq!(convert(&value, to).unwrap_err().to_string(), expected, "{value:?}");
        }
        assert_eq!(convert(&Value::Int(1), GType::Number), Err(ModelError::NotANumberType(GType::Number)));
    }
}
