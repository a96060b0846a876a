//! Dates, times and durations as ISO-8601 text, in the shortest form that Java's time classes print and parse.
//!
//! Dates are proleptic Gregorian with years of ±999,999,999, as in Java; calendar arithmetic is on days since
//! 1970-01-01 (Source: Howard Hinnant, "chrono-compatible low-level date algorithms").

use std::fmt::Write;

use ficus_model::{Duration, OffsetDateTime};

/// Seconds of a day.
pub(crate) const DAY_SECONDS: i64 = 86_400;
/// The largest year, and its negative the smallest, that a date can have.
pub(crate) const YEAR_MAX: i32 = 999_999_999;
/// The largest offset from UTC in seconds.
pub(crate) const OFFSET_SECONDS_MAX: i32 = 18 * 3600;

/// Days since 1970-01-01 of a date; `None` if there is no such date.
pub(crate) fn days_of_date(year: i32, month: u8, day: u8) -> Option<i64> {
    if year.unsigned_abs() > YEAR_MAX.unsigned_abs() || !(1..=12).contains(&month) || day < 1 {
        return None;
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = match month {
        2 => 28 + u8::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day > month_days {
        return None;
    }
    let shifted_year = i64::from(year) - i64::from(month <= 2);
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let shifted_month = i64::from((month + 9) % 12);
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// The date of a number of days since 1970-01-01.
pub(crate) fn date_of_days(days: i64) -> (i64, u8, u8) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u8;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u8;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// A point in time from its local parts; `nanos_of_day` below 86,400 × 10⁹. `None` if a part is out of range.
pub(crate) fn datetime_of_local(days: i64, nanos_of_day: i64, offset_seconds: i32) -> Option<OffsetDateTime> {
    let nanos_per_day = DAY_SECONDS * 1_000_000_000;
    if !(0..nanos_per_day).contains(&nanos_of_day) || offset_seconds.unsigned_abs() > OFFSET_SECONDS_MAX.unsigned_abs()
    {
        return None;
    }
    let local_seconds = days * DAY_SECONDS + nanos_of_day / 1_000_000_000;
    let nanos = (nanos_of_day % 1_000_000_000) as u32;
    Some(OffsetDateTime { epoch_seconds: local_seconds - i64::from(offset_seconds), nanos, offset_seconds })
}

/// A point in time in UTC from seconds and nanoseconds since the epoch; `None` outside the years a date can have.
pub(crate) fn datetime_of_instant(epoch_seconds: i64, nanos: u32) -> Option<OffsetDateTime> {
    // Java's Instant.MIN and MAX, which is what ±1,000,000,000 years are in seconds, less the offset's slack.
    const SECONDS_MAX: i64 = 31_556_889_864_403_199;
    const SECONDS_MIN: i64 = -31_557_014_167_219_200;
    let in_range = (SECONDS_MIN..=SECONDS_MAX).contains(&epoch_seconds) && nanos < 1_000_000_000;
    in_range.then_some(OffsetDateTime { epoch_seconds, nanos, offset_seconds: 0 })
}

/// Local date and nanoseconds of the day.
pub(crate) fn local_parts(value: &OffsetDateTime) -> ((i64, u8, u8), i64) {
    let local = value.epoch_seconds.saturating_add(i64::from(value.offset_seconds));
    let date = date_of_days(local.div_euclid(DAY_SECONDS));
    (date, local.rem_euclid(DAY_SECONDS) * 1_000_000_000 + i64::from(value.nanos))
}

/// Appends `2018-03-21T08:35:44.741Z`: seconds only when needed, fractions in groups of three digits, `Z` for UTC.
pub fn append_datetime(value: &OffsetDateTime, out: &mut String) {
    let ((year, month, day), nanos_of_day) = local_parts(value);
    let sign = if year > 9999 {
        "+"
    } else if year < 0 {
        "-"
    } else {
        ""
    };
    let seconds = nanos_of_day / 1_000_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let year = year.unsigned_abs();
    write_infallible(out, format_args!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}"));
    if second > 0 || value.nanos > 0 {
        write_infallible(out, format_args!(":{second:02}"));
    }
    match value.nanos {
        0 => {}
        nanos if nanos % 1_000_000 == 0 => write_infallible(out, format_args!(".{:03}", nanos / 1_000_000)),
        nanos if nanos % 1000 == 0 => write_infallible(out, format_args!(".{:06}", nanos / 1000)),
        nanos => write_infallible(out, format_args!(".{nanos:09}")),
    }
    append_offset(value.offset_seconds, out);
}

fn append_offset(offset_seconds: i32, out: &mut String) {
    if offset_seconds == 0 {
        out.push('Z');
        return;
    }
    let sign = if offset_seconds < 0 { '-' } else { '+' };
    let total = offset_seconds.unsigned_abs();
    write_infallible(out, format_args!("{sign}{:02}:{:02}", total / 3600, total / 60 % 60));
    if !total.is_multiple_of(60) {
        write_infallible(out, format_args!(":{:02}", total % 60));
    }
}

/// Appends `PT1H2M3.005S`.
pub fn append_duration(value: &Duration, out: &mut String) {
    if value.seconds == 0 && value.nanos == 0 {
        out.push_str("PT0S");
        return;
    }
    // Whole seconds count towards zero, so that -1.5 s is not -2 s plus a half.
    let borrow = value.seconds < 0 && value.nanos > 0;
    let whole = value.seconds.wrapping_add(i64::from(borrow));
    let (hours, minutes, seconds) = (whole / 3600, whole % 3600 / 60, whole % 60);
    out.push_str("PT");
    if hours != 0 {
        write_infallible(out, format_args!("{hours}H"));
    }
    if minutes != 0 {
        write_infallible(out, format_args!("{minutes}M"));
    }
    if seconds == 0 && value.nanos == 0 {
        return;
    }
    if borrow && seconds == 0 {
        out.push_str("-0");
    } else {
        write_infallible(out, format_args!("{seconds}"));
    }
    if value.nanos > 0 {
        let fraction = if borrow { 1_000_000_000 - value.nanos } else { value.nanos };
        let digits = format!("{fraction:09}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
    out.push('S');
}

fn write_infallible(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing to a String cannot fail");
}

/// Reads `2018-03-21T08:35:44.741+01:00`, with everything after the date optional and UTC when no offset is given. A
/// zone name in brackets after the offset is dropped.
pub fn parse_datetime(text: &str) -> Option<OffsetDateTime> {
    let text = match text.split_once('[') {
        Some((before, zone)) if zone.ends_with(']') => before,
        Some(_) => return None,
        None => text,
    };
    let mut scanner = Scanner { rest: text.as_bytes() };
    let days = scanner.date()?;
    if scanner.rest.is_empty() {
        return datetime_of_local(days, 0, 0);
    }
    if !scanner.take_any(b"Tt ") {
        return None;
    }
    let nanos_of_day = scanner.time()?;
    let offset_seconds = if scanner.rest.is_empty() { 0 } else { scanner.offset()? };
    scanner.rest.is_empty().then(|| datetime_of_local(days, nanos_of_day, offset_seconds))?
}

/// Reads `P2DT3H4M5.006S`; each part may be negative, and a sign before the `P` applies to all of them.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut scanner = Scanner { rest: text.as_bytes() };
    let negated = scanner.sign();
    if !scanner.take_any(b"Pp") || scanner.rest.is_empty() {
        return None;
    }
    let mut nanos_total: i128 = 0;
    // Units may only get smaller; days come before the `T`.
    let mut units: &[(u8, i128)] = &[(b'D', 86_400), (b'H', 3600), (b'M', 60), (b'S', 1)];
    let mut in_time = false;
    while !scanner.rest.is_empty() {
        if !in_time && scanner.take_any(b"Tt") {
            in_time = true;
            if scanner.rest.is_empty() {
                return None;
            }
            continue;
        }
        let negative = scanner.sign();
        let whole = scanner.number(18)?;
        let fraction = if scanner.take_any(b".,") { Some(scanner.fraction()?) } else { None };
        let unit = scanner.next()?.to_ascii_uppercase();
        let position = units.iter().position(|&(letter, _)| letter == unit)?;
        let seconds_each = units[position].1;
        units = &units[position + 1..];
        if (unit == b'D') == in_time || (fraction.is_some() && unit != b'S') {
            return None;
        }
        let nanos = i128::from(whole) * seconds_each * 1_000_000_000 + i128::from(fraction.unwrap_or(0));
        nanos_total += if negative { -nanos } else { nanos };
    }
    if units.len() == 4 {
        return None;
    }
    let nanos_total = if negated { -nanos_total } else { nanos_total };
    let seconds = i64::try_from(nanos_total.div_euclid(1_000_000_000)).ok()?;
    Some(Duration { seconds, nanos: nanos_total.rem_euclid(1_000_000_000) as u32 })
}

/// Reads fixed-format text from the front; every method returns `None` when the text is not what it expects.
struct Scanner<'a> {
    rest: &'a [u8],
}

impl Scanner<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn take_any(&mut self, wanted: &[u8]) -> bool {
        let found = self.rest.first().is_some_and(|first| wanted.contains(first));
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// Consumes a sign; true for a minus.
    fn sign(&mut self) -> bool {
        let negative = self.rest.first() == Some(&b'-');
        self.take_any(b"+-");
        negative
    }

    /// One to `digits_max` digits.
    fn number(&mut self, digits_max: usize) -> Option<i64> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || digits > digits_max {
            return None;
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        Some(number.iter().fold(0, |sum, &digit| sum * 10 + i64::from(digit - b'0')))
    }

    /// Exactly two digits.
    fn two_digits(&mut self) -> Option<i64> {
        let pair = self.rest.get(..2)?;
        if !pair.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.rest = &self.rest[2..];
        Some(i64::from(pair[0] - b'0') * 10 + i64::from(pair[1] - b'0'))
    }

    /// Up to nine digits after a decimal point, as nanoseconds.
    fn fraction(&mut self) -> Option<i64> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let nanos = self.number(9)?;
        Some(nanos * 10_i64.pow(9 - digits as u32))
    }

    fn date(&mut self) -> Option<i64> {
        let negative = self.sign();
        let year = self.number(9)?;
        let year = i32::try_from(if negative { -year } else { year }).ok()?;
        let month = self.take_any(b"-").then(|| self.two_digits())??;
        let day = self.take_any(b"-").then(|| self.two_digits())??;
        days_of_date(year, month as u8, day as u8)
    }

    /// `hh:mm[:ss[.fraction]]` as nanoseconds of the day.
    fn time(&mut self) -> Option<i64> {
        let hour = self.two_digits()?;
        let minute = self.take_any(b":").then(|| self.two_digits())??;
        let second = if self.take_any(b":") { self.two_digits()? } else { 0 };
        let nanos = if self.take_any(b".") { self.fraction()? } else { 0 };
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        Some((hour * 3600 + minute * 60 + second) * 1_000_000_000 + nanos)
    }

    /// `Z`, `+hh`, `+hh:mm`, `+hhmm` or `+hh:mm:ss`.
    fn offset(&mut self) -> Option<i32> {
        if self.take_any(b"Zz") {
            return Some(0);
        }
        if !matches!(self.rest.first(), Some(b'+' | b'-')) {
            return None;
        }
        let negative = self.sign();
        let hour = self.two_digits()?;
        self.take_any(b":");
        let minute = if self.rest.is_empty() { 0 } else { self.two_digits()? };
        self.take_any(b":");
        let second = if self.rest.is_empty() { 0 } else { self.two_digits()? };
        if minute > 59 || second > 59 {
            return None;
        }
        let total = (hour * 3600 + minute * 60 + second) as i32;
        Some(if negative { -total } else { total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: OffsetDateTime) -> String {
        let mut text = String::new();
        append_datetime(&value, &mut text);
        text
    }

    #[test]
    fn dates_round_trip_as_java_prints_them() {
        for text in [
            "2007-12-03T10:15:30+01:00",
            "2018-03-21T08:35:44.741Z",
            "2018-03-21T08:35Z",
            "-0001-01-01T00:00:00.000000001-05:30:15",
            "2018-03-21T08:35:44.000741Z",
            "+12018-03-21T08:35:44.100Z",
            "2000-02-29T23:59:59.999999999+18:00",
            "-999999999-01-01T00:00Z",
            "+999999999-12-31T23:59:59Z",
        ] {
            let value = parse_datetime(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(shown(value), text);
        }
    }

    #[test]
    fn dates_are_read_in_shorter_forms() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(parse_datetime(text).map(shown).as_deref(), expected, "{text}");
        };
        check("2016-01-01", Some("2016-01-01T00:00Z"));
        check("2016-01-01T12:30", Some("2016-01-01T12:30Z"));
        check("2016-12-23T12:12:24.000000036+02:00[GMT+02:00]", Some("2016-12-23T12:12:24.000000036+02:00"));
        check("2016-01-01T12:30:10.5-0130", Some("2016-01-01T12:30:10.500-01:30"));
        for wrong in
            ["", "2016", "2016-13-01", "2015-02-29", "2016-01-01T24:00", "2016-01-01T12:30+19:00", "2016-01-01x"]
        {
            check(wrong, None);
        }
        for wrong in ["2016-01-01T12:30[x", "2016-01-01T12", "2016-01-01T12:30:1", "é016-01-01", "2016-01-01T12:30Zx"]
        {
            check(wrong, None);
        }
    }

    #[test]
    fn days_and_dates_agree() {
        for days in (-800_000..800_000).step_by(37) {
            let (year, month, day) = date_of_days(days);
            assert_eq!(days_of_date(year as i32, month, day), Some(days));
        }
        assert_eq!(date_of_days(0), (1970, 1, 1));
    }

    #[test]
    fn durations_round_trip_as_java_prints_them() {
        let check = |text: &str, seconds: i64, nanos: u32| {
            let value = Duration { seconds, nanos };
            assert_eq!(parse_duration(text), Some(value), "{text}");
            let mut shown = String::new();
            append_duration(&value, &mut shown);
            assert_eq!(shown, text);
        };
        check("PT120H", 432_000, 0);
        check("PT-1.5S", -2, 500_000_000);
        check("PT1H2M3.005S", 3723, 5_000_000);
        check("PT0S", 0, 0);
        check("PT-0.000000001S", -1, 999_999_999);
        check("PT-1M-1S", -61, 0);
        check("PT2562047788015215H30M7S", i64::MAX, 0);
        check("PT-2562047788015215H-30M-8S", i64::MIN, 0);
    }

    #[test]
    fn durations_are_read_in_other_forms() {
        let check = |text: &str, expected: Option<(i64, u32)>| {
            assert_eq!(parse_duration(text).map(|value| (value.seconds, value.nanos)), expected, "{text}");
        };
        check("P2DT3H", Some((183_600, 0)));
        check("-PT1.5S", Some((-2, 500_000_000)));
        check("p1dt1s", Some((86_401, 0)));
        for wrong in ["", "P", "PT", "1S", "PT1", "PTS", "P1H", "PT1D", "PT1S1M", "PT1.5M", "PT9223372036854775808S"] {
            check(wrong, None);
        }
    }
}
