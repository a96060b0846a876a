//! Numbers as text, in the forms that Java prints and parses.

use std::str::FromStr;

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use num_traits::Signed;

/// Appends an integer.
pub(crate) fn append_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends the shortest text that reads back as the same double: `0.1`, `1.0`, `1.0E21`, `NaN`, `-Infinity`.
pub(crate) fn append_double(value: f64, out: &mut Vec<u8>) {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
    } else if value.is_finite() {
        append_scientific(&format!("{value:E}"), out);
    } else {
        append_infinite(value.is_nan(), value > 0.0, out);
    }
}

/// Appends the shortest text that reads back as the same float.
pub(crate) fn append_float(value: f32, out: &mut Vec<u8>) {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
    } else if value.is_finite() {
        append_scientific(&format!("{value:E}"), out);
    } else {
        append_infinite(value.is_nan(), value > 0.0, out);
    }
}

/// Java always has a fraction digit: `1E21` becomes `1.0E21`.
fn append_scientific(text: &str, out: &mut Vec<u8>) {
    let (mantissa, exponent) = text.split_once('E').expect("the E format has an exponent");
    out.extend_from_slice(mantissa.as_bytes());
    if !mantissa.contains('.') {
        out.extend_from_slice(b".0");
    }
    out.push(b'E');
    out.extend_from_slice(exponent.as_bytes());
}

fn append_infinite(nan: bool, positive: bool, out: &mut Vec<u8>) {
    let text = match (nan, positive) {
        (true, _) => "NaN",
        (false, true) => "Infinity",
        (false, false) => "-Infinity",
    };
    out.extend_from_slice(text.as_bytes());
}

/// Appends a decimal without loss and without writing out long runs of zeros: `123.45`, `1E+10`, `1E-8`.
pub(crate) fn append_decimal(value: &BigDecimal, out: &mut Vec<u8>) {
    let (unscaled, scale) = value.as_bigint_and_exponent();
    let digits = unscaled.abs().to_string();
    if unscaled.is_negative() {
        out.push(b'-');
    }
    // The exponent of the first digit; a 64-bit scale plus a digit count fits easily.
    let exponent = i128::from(digits.len() as u64) - 1 - i128::from(scale);
    if scale == 0 {
        out.extend_from_slice(digits.as_bytes());
    } else if scale > 0 && exponent >= -6 {
        let point = exponent + 1;
        if point > 0 {
            let (whole, fraction) = digits.split_at(point as usize);
            out.extend_from_slice(whole.as_bytes());
            out.push(b'.');
            out.extend_from_slice(fraction.as_bytes());
        } else {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', (-point) as usize));
            out.extend_from_slice(digits.as_bytes());
        }
    } else {
        let (first, rest) = digits.split_at(1);
        out.extend_from_slice(first.as_bytes());
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest.as_bytes());
        }
        out.push(b'E');
        if exponent >= 0 {
            out.push(b'+');
        }
        out.extend_from_slice(exponent.to_string().as_bytes());
    }
}

/// Reads a decimal whose scale fits 32 bits, as every Java decimal's does.
pub(crate) fn parse_decimal(text: &str) -> Option<BigDecimal> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (sign, mantissa) = match mantissa.strip_prefix(['-', '+']) {
        Some(rest) => (if mantissa.starts_with('-') { "-" } else { "" }, rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let scale = i32::try_from((fraction.len() as i64).checked_sub(exponent)?).ok()?;
    let unscaled = BigInt::from_str(&format!("{sign}{whole}{fraction}")).ok()?;
    Some(BigDecimal::new(unscaled, i64::from(scale)))
}

/// Reads a double, including `NaN`, `Infinity`, `-Infinity` and `INF`.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        _ if text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        append_double(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_look_as_java_prints_them() {
        let check = |value: f64, expected: &str| assert_eq!(double(value), expected);
        check(0.1, "0.1");
        check(1.0, "1.0");
        check(-0.0, "-0.0");
        check(0.001, "0.001");
        check(9_999_999.5, "9999999.5");
        check(1e7, "1.0E7");
        check(1e21, "1.0E21");
        check(1.0e-5, "1.0E-5");
        check(123_456_789.25, "1.2345678925E8");
        check(f64::MAX, "1.7976931348623157E308");
        check(f64::NAN, "NaN");
        check(f64::NEG_INFINITY, "-Infinity");
        let mut out = Vec::new();
        append_float(0.1, &mut out);
        out.push(b' ');
        append_float(1e10, &mut out);
        assert_eq!(out, b"0.1 1.0E10");
    }

    #[test]
    fn doubles_round_trip() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(state);
            if !value.is_nan() {
                assert_eq!(parse_double(&double(value)), Some(value));
            }
        }
    }

    #[test]
    fn decimals_look_as_java_prints_them() {
        for text in
            ["123456789987654321.25", "1E+10", "1E-8", "0.00", "-1.5", "0", "1.23E+7", "-0.000001", "0E+3", "12E"]
        {
            let shown = parse_decimal(text).map(|value| {
                let mut out = Vec::new();
                append_decimal(&value, &mut out);
                String::from_utf8(out).unwrap()
            });
            let expected = (text != "12E").then_some(text);
            assert_eq!(shown.as_deref(), expected);
        }
        assert_eq!(parse_decimal("1E+2147483649"), None);
        assert_eq!(parse_decimal("1E-9223372036854775808"), None);
        assert_eq!(parse_decimal("1_0"), None);
        assert_eq!(parse_decimal("."), None);
    }
}
