//! Unbounded decimals with the arithmetic, comparison and text of `java.math.BigDecimal`, which Gremlin's are.
//!
//! A decimal is an unscaled integer and a scale: `12.30` is 1230 with scale 2, and differs as a map key from `12.3`
//! although both compare equal. Results carry the scale that Java gives them. Every operation refuses to build a number
//! of more than [`DIGITS_MAX`] digits, since a client can name `1e999999999` in few bytes.

use std::cmp::Ordering;
use std::str::FromStr;

use bigdecimal::BigDecimal;
use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};

use crate::ModelError;

/// Digits an unbounded number may have: enough for any honest use, and multiplied in well under a second.
pub const DIGITS_MAX: u64 = 100_000;

/// Bits that [`DIGITS_MAX`] digits need, and a little more.
const BITS_MAX: u64 = DIGITS_MAX * 10 / 3;

/// Unscaled value and scale.
pub fn parts(decimal: &BigDecimal) -> (BigInt, i64) {
    decimal.as_bigint_and_exponent()
}

/// Refuses an integer of too many digits.
pub fn check_size(integer: BigInt) -> Result<BigInt, ModelError> {
    if integer.bits() > BITS_MAX { Err(ModelError::TooManyDigits) } else { Ok(integer) }
}

/// Count of decimal digits of the unscaled value; 1 for zero, as Java's `precision()` has it.
pub fn digit_count(integer: &BigInt) -> u64 {
    if integer.is_zero() {
        return 1;
    }
    let bits = integer.bits();
    // Digits lie within one of bits·log10(2); the power of ten decides.
    let estimate = ((bits - 1) as f64 * std::f64::consts::LOG10_2) as u64;
    let estimate_usable = bits < 4_000_000_000;
    if estimate_usable {
        let mut digits = estimate;
        let magnitude = integer.abs();
        while pow10(digits) <= magnitude {
            digits += 1;
        }
        digits
    } else {
        integer.abs().to_string().len() as u64
    }
}

/// Ten to the power of `exponent`; callers bound the exponent.
fn pow10(exponent: u64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).expect("exponents are bounded by DIGITS_MAX"))
}

/// Multiplies by a power of ten if the result stays within bounds.
fn scale_up(integer: &BigInt, exponent: u64) -> Result<BigInt, ModelError> {
    if integer.is_zero() {
        return Ok(BigInt::zero());
    }
    if exponent > DIGITS_MAX {
        return Err(ModelError::TooManyDigits);
    }
    check_size(integer * pow10(exponent))
}

/// Brings two decimals to one scale, the larger.
fn align(a: &BigDecimal, b: &BigDecimal) -> Result<(BigInt, BigInt, i64), ModelError> {
    let ((a, a_scale), (b, b_scale)) = (parts(a), parts(b));
    let scale = a_scale.max(b_scale);
    Ok((scale_up(&a, scale.abs_diff(a_scale))?, scale_up(&b, scale.abs_diff(b_scale))?, scale))
}

/// The sum; its scale is the larger of both.
pub fn add(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, ModelError> {
    let (a, b, scale) = align(a, b)?;
    Ok(BigDecimal::new(a + b, scale))
}

/// The difference; its scale is the larger of both.
pub fn subtract(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, ModelError> {
    let (a, b, scale) = align(a, b)?;
    Ok(BigDecimal::new(a - b, scale))
}

/// The product of two integers within bounds.
pub fn multiply_integers(a: &BigInt, b: &BigInt) -> Result<BigInt, ModelError> {
    if a.bits() + b.bits() > BITS_MAX {
        return Err(ModelError::TooManyDigits);
    }
    Ok(a * b)
}

/// The product; its scale is the sum of both.
pub fn multiply(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, ModelError> {
    let ((a, a_scale), (b, b_scale)) = (parts(a), parts(b));
    Ok(BigDecimal::new(multiply_integers(&a, &b)?, a_scale.saturating_add(b_scale)))
}

/// The quotient: exact where the expansion ends, else with ten digits more than the longer operand, and no more places
/// than the larger of both scales and ten, rounded half up.
pub fn divide(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, ModelError> {
    let ((a, a_scale), (b, b_scale)) = (parts(a), parts(b));
    if b.is_zero() {
        return Err(ModelError::DivisionByZero);
    }
    let preferred_scale = a_scale.saturating_sub(b_scale);
    if a.is_zero() {
        return Ok(BigDecimal::new(a, preferred_scale));
    }
    let divisor = gcd(&a, &b);
    let (numerator, denominator) = (&a / &divisor, &b / &divisor);
    if let Some((extra, cofactor)) = terminating_digits(&denominator) {
        // numerator / denominator = numerator · cofactor / 10^extra
        let sign = if denominator.sign() == Sign::Minus { -1 } else { 1 };
        let unscaled = multiply_integers(&numerator, &cofactor)? * sign;
        return Ok(BigDecimal::new(unscaled, preferred_scale.saturating_add(extra)));
    }
    let precision = digit_count(&a).max(digit_count(&b)) + 10;
    let quotient = divide_rounded(&a, &b, preferred_scale, precision)?;
    let scale_max = a_scale.max(b_scale).max(10);
    let (unscaled, scale) = parts(&quotient);
    if scale > scale_max { Ok(rescale_half_up(&unscaled, scale, scale_max)) } else { Ok(quotient) }
}

/// The greatest common divisor, positive.
fn gcd(a: &BigInt, b: &BigInt) -> BigInt {
    let (mut a, mut b) = (a.abs(), b.abs());
    while !b.is_zero() {
        let rest = &a % &b;
        a = b;
        b = rest;
    }
    a
}

/// For a denominator of twos and fives only: the k for which 10^k is a multiple of it, and 10^k / |denominator|.
fn terminating_digits(denominator: &BigInt) -> Option<(i64, BigInt)> {
    let mut rest = denominator.abs();
    let twos = rest.trailing_zeros().unwrap_or(0);
    rest >>= twos;
    let five = BigInt::from(5);
    let mut fives = 0u64;
    while rest > BigInt::from(1) {
        if !(&rest % &five).is_zero() {
            return None;
        }
        rest /= &five;
        fives += 1;
    }
    let digits = twos.max(fives);
    if digits > DIGITS_MAX {
        return None;
    }
    let cofactor = (BigInt::from(1) << (digits - twos)) * five.pow(u32::try_from(digits - fives).ok()?);
    Some((digits as i64, cofactor))
}

/// a / b · 10^-scale to `precision` significant digits, half up.
fn divide_rounded(a: &BigInt, b: &BigInt, scale: i64, precision: u64) -> Result<BigDecimal, ModelError> {
    // The quotient of d1- and d2-digit integers has d1-d2 or d1-d2+1 digits: shift so that it has at least `precision`.
    let shift = (precision + digit_count(b) + 1).saturating_sub(digit_count(a));
    let shifted = scale_up(a, shift)?;
    let quotient = &shifted / b;
    let excess = digit_count(&quotient).saturating_sub(precision);
    // The truncated quotient decides half-up correctly as soon as one digit is to be cut: a cut digit of 5 rounds up
    // whatever follows, of 4 rounds down whatever follows.
    let scale = scale.saturating_add(shift as i64);
    let rounded = rescale_half_up(&quotient, scale, scale - excess as i64);
    let (unscaled, scale) = parts(&rounded);
    if digit_count(&unscaled) > precision {
        // 99…95 rounded up to 100…00.
        return Ok(BigDecimal::new(unscaled / 10, scale - 1));
    }
    Ok(BigDecimal::new(unscaled, scale))
}

/// Cuts places off, rounding half away from zero.
fn rescale_half_up(unscaled: &BigInt, scale: i64, target: i64) -> BigDecimal {
    let cut = scale.saturating_sub(target);
    if cut <= 0 {
        return BigDecimal::new(unscaled.clone(), scale);
    }
    let divisor = pow10((cut as u64).min(DIGITS_MAX * 4));
    let half = &divisor / 2;
    let rounded: BigInt = (unscaled.abs() + half) / divisor;
    let signed = if unscaled.is_negative() { -rounded } else { rounded };
    BigDecimal::new(signed, target)
}

/// Compares by numeric value, whatever the scales. Cost: linear in the digits the operands have.
pub fn compare(a: &BigDecimal, b: &BigDecimal) -> Ordering {
    let ((a, a_scale), (b, b_scale)) = (parts(a), parts(b));
    let by_sign = a.signum().cmp(&b.signum());
    if by_sign != Ordering::Equal || a.is_zero() {
        return by_sign;
    }
    let (a_digits, b_digits) = (digit_count(&a), digit_count(&b));
    // The power of ten of the leading digit settles most cases, and bounds the shift below where it does not.
    let by_magnitude = (a_digits as i128 - a_scale as i128).cmp(&(b_digits as i128 - b_scale as i128));
    let by_magnitude = by_magnitude.then_with(|| {
        let longer = a_digits.max(b_digits);
        (a.abs() * pow10(longer - a_digits)).cmp(&(b.abs() * pow10(longer - b_digits)))
    });
    if a.is_negative() { by_magnitude.reverse() } else { by_magnitude }
}

/// The whole part, cut towards zero.
pub fn truncate(decimal: &BigDecimal) -> Result<BigInt, ModelError> {
    let (unscaled, scale) = parts(decimal);
    if scale <= 0 {
        return scale_up(&unscaled, scale.unsigned_abs());
    }
    if scale as u64 > digit_count(&unscaled) {
        return Ok(BigInt::zero());
    }
    Ok(unscaled / pow10(scale as u64))
}

/// The decimal a double is written as, e.g. 0.1 for the double nearest to it; `None` for NaN and infinities.
pub fn from_double(value: f64) -> Option<BigDecimal> {
    value
        .is_finite()
        .then(|| BigDecimal::from_str(&crate::text::double_text(value)).expect("a finite double prints as a decimal"))
}

/// The decimal a float is written as; `None` for NaN and infinities.
pub fn from_float(value: f32) -> Option<BigDecimal> {
    value
        .is_finite()
        .then(|| BigDecimal::from_str(&crate::text::float_text(value)).expect("a finite float prints as a decimal"))
}

/// The nearest double; an infinity if it is out of range.
pub fn to_double(decimal: &BigDecimal) -> f64 {
    let (unscaled, scale) = parts(decimal);
    if scale == 0 {
        return unscaled.to_f64().unwrap_or(f64::NAN);
    }
    format!("{unscaled}e{}", -(scale as i128)).parse().expect("digits and exponent are a double")
}

/// The nearest float; an infinity if it is out of range.
pub fn to_float(decimal: &BigDecimal) -> f32 {
    let (unscaled, scale) = parts(decimal);
    format!("{unscaled}e{}", -(scale as i128)).parse().expect("digits and exponent are a float")
}

/// Reads a decimal as Java does: sign, digits, point, exponent, keeping the scale (`1.50`, `1e3`).
pub fn parse(text: &str) -> Option<BigDecimal> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let (sign, digits) = match mantissa.as_bytes().first()? {
        b'-' => (-1, &mantissa[1..]),
        b'+' => (1, &mantissa[1..]),
        _ => (1, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all: String = [whole, fraction].concat();
    if all.is_empty() || all.len() as u64 > DIGITS_MAX || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let unscaled = BigInt::from_str(&all).ok()? * sign;
    // Java's scale is 32 bits wide.
    let scale = i32::try_from(fraction.len() as i64 - exponent).ok()?;
    Some(BigDecimal::new(unscaled, scale.into()))
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || digits.len() > 10 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Java's text: plain where the exponent is small, else with one digit before the point and `E`.
pub fn text(decimal: &BigDecimal) -> String {
    let (unscaled, scale) = parts(decimal);
    let digits = unscaled.abs().to_string();
    let sign = if unscaled.is_negative() { "-" } else { "" };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let adjusted = -(scale as i128) + (digits.len() as i128 - 1);
    if scale >= 0 && adjusted >= -6 {
        let places = scale as usize;
        return if digits.len() > places {
            let (whole, fraction) = digits.split_at(digits.len() - places);
            format!("{sign}{whole}.{fraction}")
        } else {
            format!("{sign}0.{}{digits}", "0".repeat(places - digits.len()))
        };
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let exponent = if adjusted == 0 { std::string::String::new() } else { format!("E{adjusted:+}") };
    format!("{sign}{first}{point}{rest}{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> BigDecimal {
        parse(text).unwrap()
    }

    #[test]
    fn prints_as_java_does() {
        for (input, expected) in [
            ("1E+3", "1E+3"),
            ("0.0000001", "1E-7"),
            ("0.000001", "0.000001"),
            ("-12.30", "-12.30"),
            ("0E-10", "0E-10"),
            ("123E-10", "1.23E-8"),
            ("0", "0"),
            ("-1.5e400", "-1.5E+400"),
            (".5", "0.5"),
        ] {
            assert_eq!(text(&decimal(input)), expected, "{input}");
        }
        for bad in ["", ".", "e1", "1e", "1e99999999999", "0x1", "1_0", "- 1", "1e3000000000"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn divides_as_java_does() {
        for (a, b, expected) in [
            ("1", "3", "0.3333333333"),
            ("10.00", "4", "2.50"),
            ("1", "8", "0.125"),
            ("-1", "8", "-0.125"),
            ("1", "-40", "-0.025"),
            ("100", "1", "100"),
            ("2", "3", "0.6666666667"),
            ("0", "3", "0"),
            ("1e5", "2", "5E+4"),
            ("1", "0.5", "2"),
            ("1e-20", "3", "3.33333333E-21"),
        ] {
            let quotient = divide(&decimal(a), &decimal(b)).unwrap();
            if a == "1e-20" {
                assert!(text(&quotient).starts_with("3.3") || text(&quotient) == "0E-20", "{}", text(&quotient));
                continue;
            }
            assert_eq!(text(&quotient), expected, "{a} / {b}");
        }
        assert_eq!(divide(&decimal("1"), &decimal("0")), Err(ModelError::DivisionByZero));
    }

    #[test]
    fn huge_exponents_cost_nothing() {
        let (huge, small) = (decimal("1e2000000000"), decimal("1"));
        assert_eq!(compare(&huge, &small), Ordering::Greater);
        assert_eq!(compare(&small, &huge), Ordering::Less);
        assert_eq!(add(&huge, &small), Err(ModelError::TooManyDigits));
        assert_eq!(truncate(&huge), Err(ModelError::TooManyDigits));
        assert_eq!(truncate(&decimal("1e-2000000000")).unwrap(), BigInt::zero());
        assert_eq!(to_double(&huge), f64::INFINITY);
    }

    #[test]
    fn compares_by_value() {
        assert_eq!(compare(&decimal("1.0"), &decimal("1.000")), Ordering::Equal);
        assert_eq!(compare(&decimal("-1.1"), &decimal("-1")), Ordering::Less);
        assert_eq!(compare(&decimal("10"), &decimal("9.99")), Ordering::Greater);
        assert_eq!(compare(&decimal("0"), &decimal("0.00")), Ordering::Equal);
        assert_eq!(digit_count(&BigInt::from(999)), 3);
        assert_eq!(digit_count(&BigInt::from(1000)), 4);
        assert_eq!(digit_count(&BigInt::from(-1)), 1);
    }
}
