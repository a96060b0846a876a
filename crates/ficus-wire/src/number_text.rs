//! Numbers as text, in the forms that Java prints and parses, without a string on the way where speed matters.

use ficus_model::text::{double_text, float_text};

/// Appends an integer.
pub(crate) fn append_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a double as Java writes it, `1.0` or `1.0E21`, fast where it needs no exponent.
pub(crate) fn append_double(value: f64, out: &mut Vec<u8>) {
    if is_plain(value.abs()) {
        out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(double_text(value).as_bytes());
    }
}

/// Appends a float as Java writes it.
pub(crate) fn append_float(value: f32, out: &mut Vec<u8>) {
    if is_plain(f64::from(value.abs())) {
        out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(float_text(value).as_bytes());
    }
}

/// Whether a number of this magnitude is written without an exponent.
fn is_plain(magnitude: f64) -> bool {
    magnitude == 0.0 || (1e-3..1e7).contains(&magnitude)
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
}
