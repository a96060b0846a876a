//! Date and time values as TinkerPop carries them: reading, writing, comparing and adding.
//!
//! The calendar is the proleptic Gregorian one, over the years ±999,999,999 that `java.time` has. Text is ISO 8601 as
//! `java.time` writes it: seconds only where they are not zero, fractions in groups of three digits, `Z` for UTC.

use std::cmp::Ordering;
use std::fmt;

use crate::ModelError;

/// A point in time with the offset it was written in. Equality includes the offset, order is by instant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetDateTime {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub epoch_seconds: i64,
    /// Nanoseconds within the second, 0..1_000_000_000.
    pub nanos: u32,
    /// Offset from UTC in seconds, within ±18 hours.
    pub offset_seconds: i32,
}

/// A length of time; negative ones have negative `seconds` and non-negative `nanos`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Duration {
    /// Whole seconds, rounded down.
    pub seconds: i64,
    /// Nanoseconds within the second, 0..1_000_000_000.
    pub nanos: u32,
}

/// The fields of a date and time at its offset, as calendars and wire formats have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// Seconds since midnight, 0..86_400.
    pub second_of_day: u32,
    /// Nanoseconds within the second.
    pub nanos: u32,
}

const YEAR_MAX: i64 = 999_999_999;
const OFFSET_MAX: i32 = 18 * 3600;
const DAY_SECONDS: i64 = 86_400;
const SECOND_NANOS: i128 = 1_000_000_000;

impl OffsetDateTime {
    /// From the fields at an offset. Errors: `TemporalRange` if a field is outside its range or the day not in the month.
    pub fn from_civil(civil: Civil, offset_seconds: i32) -> Result<OffsetDateTime, ModelError> {
        let in_range = civil.year.abs() <= YEAR_MAX
            && (1..=12).contains(&civil.month)
            && civil.day >= 1
            && civil.day <= days_in_month(civil.year, civil.month)
            && i64::from(civil.second_of_day) < DAY_SECONDS
            && i128::from(civil.nanos) < SECOND_NANOS
            && offset_seconds.abs() <= OFFSET_MAX;
        if !in_range {
            return Err(ModelError::TemporalRange);
        }
        let local = days_from_civil(civil.year, civil.month, civil.day) * DAY_SECONDS + i64::from(civil.second_of_day);
        Ok(OffsetDateTime { epoch_seconds: local - i64::from(offset_seconds), nanos: civil.nanos, offset_seconds })
    }

    /// The fields at the value's own offset.
    pub fn civil(&self) -> Civil {
        let local = self.epoch_seconds.saturating_add(i64::from(self.offset_seconds));
        let (year, month, day) = civil_from_days(local.div_euclid(DAY_SECONDS));
        Civil { year, month, day, second_of_day: local.rem_euclid(DAY_SECONDS) as u32, nanos: self.nanos }
    }

    /// From milliseconds since 1970-01-01T00:00:00Z, at UTC.
    pub fn from_epoch_millis(millis: i64) -> OffsetDateTime {
        OffsetDateTime {
            epoch_seconds: millis.div_euclid(1000),
            nanos: millis.rem_euclid(1000) as u32 * 1_000_000,
            offset_seconds: 0,
        }
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, rounded down. Errors: `TemporalRange` if a long does not hold them.
    pub fn epoch_millis(&self) -> Result<i64, ModelError> {
        let millis = self.epoch_nanos().div_euclid(1_000_000);
        i64::try_from(millis).map_err(|_| ModelError::TemporalRange)
    }

    fn epoch_nanos(&self) -> i128 {
        i128::from(self.epoch_seconds) * SECOND_NANOS + i128::from(self.nanos)
    }

    /// The point in time so much later, at the same offset. Errors: `TemporalRange`.
    pub fn checked_add(&self, duration: Duration) -> Result<OffsetDateTime, ModelError> {
        let nanos = self.epoch_nanos() + duration.total_nanos();
        let epoch_seconds = i64::try_from(nanos.div_euclid(SECOND_NANOS)).map_err(|_| ModelError::TemporalRange)?;
        let later = OffsetDateTime { epoch_seconds, nanos: nanos.rem_euclid(SECOND_NANOS) as u32, ..*self };
        let in_range =
            epoch_seconds.checked_add(i64::from(self.offset_seconds)).is_some() && later.civil().year.abs() <= YEAR_MAX;
        if in_range { Ok(later) } else { Err(ModelError::TemporalRange) }
    }

    /// How much later this is than `earlier`; negative if it is not.
    pub fn since(&self, earlier: &OffsetDateTime) -> Duration {
        let nanos = self.epoch_nanos() - earlier.epoch_nanos();
        Duration { seconds: nanos.div_euclid(SECOND_NANOS) as i64, nanos: nanos.rem_euclid(SECOND_NANOS) as u32 }
    }

    /// Reads what `datetime()` takes: a year and month, a date, or a date and time, with `Z`, `±HH:MM[:ss]`,
    /// `±HHMM[ss]` or no offset (UTC).
    pub fn parse(text: &str) -> Result<OffsetDateTime, ModelError> {
        parse_date_time(text).ok_or_else(|| ModelError::Temporal { text: text.into(), expected: "a date and time" })
    }
}

impl Ord for OffsetDateTime {
    /// By instant; of one instant, the one with the earlier local time first.
    fn cmp(&self, other: &OffsetDateTime) -> Ordering {
        (self.epoch_seconds, self.nanos, self.offset_seconds).cmp(&(
            other.epoch_seconds,
            other.nanos,
            other.offset_seconds,
        ))
    }
}

impl PartialOrd for OffsetDateTime {
    fn partial_cmp(&self, other: &OffsetDateTime) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for OffsetDateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil = self.civil();
        match civil.year {
            year @ 0..=9999 => f.write_str(Digits::<4>::of(year.unsigned_abs()).text())?,
            year if year > 9999 => write!(f, "+{year}")?,
            year => write!(f, "-{:04}", -year)?,
        }
        // In one piece, since columns of moments are written as text row by row.
        let (hour, minute, second) =
            (civil.second_of_day / 3600, civil.second_of_day / 60 % 60, civil.second_of_day % 60);
        let mut text = *b"-00-00T00:00:00";
        for (place, number) in [(1, civil.month), (4, civil.day), (7, hour), (10, minute), (13, second)] {
            text[place..place + 2].copy_from_slice(&Digits::<2>::of(u64::from(number)).0);
        }
        let has_seconds = second > 0 || civil.nanos > 0;
        let text = if has_seconds { &text[..] } else { &text[..12] };
        f.write_str(std::str::from_utf8(text).map_err(|_| fmt::Error)?)?;
        match civil.nanos {
            0 => {}
            nanos if nanos % 1_000_000 == 0 => write!(f, ".{:03}", nanos / 1_000_000)?,
            nanos if nanos % 1_000 == 0 => write!(f, ".{:06}", nanos / 1_000)?,
            nanos => write!(f, ".{nanos:09}")?,
        }
        if self.offset_seconds == 0 {
            return f.write_str("Z");
        }
        let (sign, offset) = (if self.offset_seconds < 0 { '-' } else { '+' }, self.offset_seconds.abs());
        write!(f, "{sign}{:02}:{:02}", offset / 3600, offset / 60 % 60)?;
        if offset % 60 != 0 {
            write!(f, ":{:02}", offset % 60)?;
        }
        Ok(())
    }
}

/// The last `N` decimal digits of a number.
struct Digits<const N: usize>([u8; N]);

impl<const N: usize> Digits<N> {
    fn of(mut number: u64) -> Digits<N> {
        let mut digits = [b'0'; N];
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        Digits(digits)
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Duration {
    /// From whole seconds.
    pub const fn from_seconds(seconds: i64) -> Duration {
        Duration { seconds, nanos: 0 }
    }

    /// From nanoseconds. Errors: `TemporalRange` if the seconds do not fit.
    pub fn from_nanos(nanos: i128) -> Result<Duration, ModelError> {
        let seconds = i64::try_from(nanos.div_euclid(SECOND_NANOS)).map_err(|_| ModelError::TemporalRange)?;
        Ok(Duration { seconds, nanos: nanos.rem_euclid(SECOND_NANOS) as u32 })
    }

    /// All of it in nanoseconds.
    pub fn total_nanos(&self) -> i128 {
        i128::from(self.seconds) * SECOND_NANOS + i128::from(self.nanos)
    }

    /// All of it in milliseconds, cut towards zero. Errors: `TemporalRange` if a long does not hold them.
    pub fn total_millis(&self) -> Result<i64, ModelError> {
        i64::try_from(self.total_nanos() / 1_000_000).map_err(|_| ModelError::TemporalRange)
    }

    /// The sum. Errors: `TemporalRange`.
    pub fn checked_add(&self, other: Duration) -> Result<Duration, ModelError> {
        Duration::from_nanos(self.total_nanos() + other.total_nanos())
    }

    /// The same length backwards. Errors: `TemporalRange`.
    pub fn checked_neg(&self) -> Result<Duration, ModelError> {
        Duration::from_nanos(-self.total_nanos())
    }

    /// Reads ISO 8601 with days, hours, minutes and seconds: `P2DT3H4M`, `PT-1.5S`, `-PT1M`.
    pub fn parse(text: &str) -> Result<Duration, ModelError> {
        parse_duration(text).ok_or_else(|| ModelError::Temporal { text: text.into(), expected: "a duration" })
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total_nanos();
        if total == 0 {
            return f.write_str("PT0S");
        }
        // All parts carry the sign of the whole.
        let seconds = total / SECOND_NANOS;
        let (hours, minutes, seconds, nanos) =
            (seconds / 3600, seconds / 60 % 60, seconds % 60, (total % SECOND_NANOS).unsigned_abs());
        f.write_str("PT")?;
        if hours != 0 {
            write!(f, "{hours}H")?;
        }
        if minutes != 0 {
            write!(f, "{minutes}M")?;
        }
        if seconds == 0 && nanos == 0 {
            return Ok(());
        }
        let sign = if total < 0 { "-" } else { "" };
        write!(f, "{sign}{}", seconds.abs())?;
        if nanos > 0 {
            let digits = format!("{nanos:09}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("S")
    }
}

/// Days since 1970-01-01. Counts in eras of 400 years that start in March, so that leap days end them.
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let (year, month_from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = i64::from((153 * month_from_march + 2) / 5 + day - 1);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a count of days since 1970-01-01; the inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// What is left to read of a text.
struct Cursor<'t>(&'t [u8]);

impl Cursor<'_> {
    /// Takes one of these bytes, whatever its case.
    fn take(&mut self, wanted: &[u8]) -> Option<u8> {
        let first = self.0.first()?.to_ascii_uppercase();
        if !wanted.contains(&first) {
            return None;
        }
        self.0 = &self.0[1..];
        Some(first)
    }

    /// Takes between `min` and `max` digits, as many as there are.
    fn digits(&mut self, min: usize, max: usize) -> Option<i64> {
        let count = self.0.iter().take(max).take_while(|byte| byte.is_ascii_digit()).count();
        if count < min {
            return None;
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        digits.iter().try_fold(0i64, |number, digit| number.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
    }

    /// Takes a number of two digits up to `max`.
    fn pair(&mut self, max: i64) -> Option<u32> {
        self.digits(2, 2).filter(|number| *number <= max).map(|number| number as u32)
    }
}

fn parse_date_time(text: &str) -> Option<OffsetDateTime> {
    let mut cursor = Cursor(text.as_bytes());
    let Some((year, month, day)) = parse_date(&mut cursor) else {
        return parse_year_month(text);
    };
    if cursor.0.is_empty() {
        return OffsetDateTime::from_civil(Civil { year, month, day, second_of_day: 0, nanos: 0 }, 0).ok();
    }
    cursor.take(b"T")?;
    let hour = cursor.pair(24)?;
    cursor.take(b":")?;
    let minute = cursor.pair(59)?;
    let second = match cursor.take(b":") {
        Some(_) => cursor.pair(59)?,
        None => 0,
    };
    let mut nanos = 0;
    if cursor.take(b".").is_some() {
        let before = cursor.0.len();
        let fraction = cursor.digits(0, 9)?;
        nanos = (fraction * 10i64.pow(9 - (before - cursor.0.len()) as u32)) as u32;
    }
    let offset_seconds = parse_offset(&mut cursor)?;
    if !cursor.0.is_empty() {
        return None;
    }
    if hour == 24 {
        // Midnight at the end of the day is the next day's beginning.
        let is_midnight = (minute, second, nanos) == (0, 0, 0);
        let start =
            OffsetDateTime::from_civil(Civil { year, month, day, second_of_day: 0, nanos: 0 }, offset_seconds).ok()?;
        return if is_midnight { start.checked_add(Duration::from_seconds(DAY_SECONDS)).ok() } else { None };
    }
    let second_of_day = hour * 3600 + minute * 60 + second;
    OffsetDateTime::from_civil(Civil { year, month, day, second_of_day, nanos }, offset_seconds).ok()
}

/// A date; a day that the month does not have becomes its last.
fn parse_date(cursor: &mut Cursor) -> Option<(i64, u32, u32)> {
    let sign = cursor.take(b"+-");
    let (min, max) = match sign {
        None => (4, 4),
        Some(b'+') => (5, 10),
        Some(_) => (4, 10),
    };
    let year = cursor.digits(min, max)?;
    let year = if sign == Some(b'-') { -year } else { year };
    cursor.take(b"-")?;
    let month = cursor.pair(12).filter(|month| *month >= 1)?;
    cursor.take(b"-")?;
    let day = cursor.pair(31).filter(|day| *day >= 1)?;
    Some((year, month, day.min(days_in_month(year, month))))
}

fn parse_year_month(text: &str) -> Option<OffsetDateTime> {
    let mut cursor = Cursor(text.as_bytes());
    let sign = cursor.take(b"-");
    let year = cursor.digits(1, 19)?;
    let year = if sign.is_some() { -year } else { year };
    cursor.take(b"-")?;
    let month = u32::try_from(cursor.digits(1, 19)?).ok()?;
    if !cursor.0.is_empty() {
        return None;
    }
    OffsetDateTime::from_civil(Civil { year, month, day: 1, second_of_day: 0, nanos: 0 }, 0).ok()
}

fn parse_offset(cursor: &mut Cursor) -> Option<i32> {
    let sign = match cursor.take(b"Z+-") {
        None | Some(b'Z') => return Some(0),
        Some(sign) => sign,
    };
    let hours = cursor.pair(18)?;
    let colon = cursor.take(b":").is_some();
    let minutes = cursor.pair(59)?;
    let has_seconds = if colon { cursor.take(b":").is_some() } else { !cursor.0.is_empty() };
    let seconds = if has_seconds { cursor.pair(59)? } else { 0 };
    let offset = (hours * 3600 + minutes * 60 + seconds) as i32;
    (offset <= OFFSET_MAX).then_some(if sign == b'-' { -offset } else { offset })
}

fn parse_duration(text: &str) -> Option<Duration> {
    /// The units in their order; the last three stand behind `T`.
    const UNITS: [(u8, i128); 4] = [(b'D', 86_400), (b'H', 3600), (b'M', 60), (b'S', 1)];
    let mut cursor = Cursor(text.as_bytes());
    let negative = cursor.take(b"+-") == Some(b'-');
    cursor.take(b"P")?;
    let mut nanos = 0i128;
    let mut next_unit = 0;
    let mut behind_t = cursor.take(b"T").is_some();
    loop {
        let sign = if cursor.take(b"+-") == Some(b'-') { -1 } else { 1 };
        let number = i128::from(cursor.digits(1, 19)?);
        let mut fraction = None;
        if cursor.take(b".,").is_some() {
            let before = cursor.0.len();
            let digits = cursor.digits(0, 9)?;
            fraction = Some(i128::from(digits * 10i64.pow(9 - (before - cursor.0.len()) as u32)));
        }
        let letter = cursor.take(b"DHMS")?;
        let unit = UNITS.iter().position(|(name, _)| *name == letter)?;
        if unit < next_unit || (unit > 0) != behind_t || fraction.is_some() && letter != b'S' {
            return None;
        }
        nanos += sign * (number * UNITS[unit].1 * SECOND_NANOS + fraction.unwrap_or(0));
        next_unit = unit + 1;
        if cursor.0.is_empty() {
            break;
        }
        if !behind_t {
            cursor.take(b"T")?;
            behind_t = true;
        }
    }
    Duration::from_nanos(if negative { -nanos } else { nanos }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_dates() {
        for (text, expected) in [
            ("2018-03-22", "2018-03-22T00:00Z"),
            ("2018-03-22T00:35", "2018-03-22T00:35Z"),
            ("2018-03-22T00:35:44", "2018-03-22T00:35:44Z"),
            ("2018-03-22T00:35:44Z", "2018-03-22T00:35:44Z"),
            ("2018-03-22T00:35:44.741", "2018-03-22T00:35:44.741Z"),
            ("2018-03-22T00:35:44.741Z", "2018-03-22T00:35:44.741Z"),
            ("2018-03-22T00:35:44.741+1600", "2018-03-22T00:35:44.741+16:00"),
            ("2018-03-22T00:35:44.741+16:00", "2018-03-22T00:35:44.741+16:00"),
            ("2018-03-22T00:35:44.741+160000", "2018-03-22T00:35:44.741+16:00"),
            ("2018-03-22T00:35:44.741+16:00:00", "2018-03-22T00:35:44.741+16:00"),
            ("2018-03", "2018-03-01T00:00Z"),
            ("2018-3", "2018-03-01T00:00Z"),
            ("2018-003", "2018-03-01T00:00Z"),
            ("18-03", "0018-03-01T00:00Z"),
            ("12018-03", "+12018-03-01T00:00Z"),
            ("-3-4", "-0003-04-01T00:00Z"),
            ("2018-03-22t00:35:44z", "2018-03-22T00:35:44Z"),
            ("2018-03-22T00:35:44-05:30", "2018-03-22T00:35:44-05:30"),
            ("2018-03-22T00:35:44.1", "2018-03-22T00:35:44.100Z"),
            ("2018-03-22T00:35:44.", "2018-03-22T00:35:44Z"),
            ("2018-03-22T00:35:44.000001", "2018-03-22T00:35:44.000001Z"),
            ("2018-03-22T00:35:44.000000001", "2018-03-22T00:35:44.000000001Z"),
            ("2018-02-30", "2018-02-28T00:00Z"),
            ("2018-03-22T24:00:00", "2018-03-23T00:00Z"),
            ("+12018-03-22", "+12018-03-22T00:00Z"),
            ("-0001-01-01", "-0001-01-01T00:00Z"),
            ("2018-03-22T00:35:44+18:00", "2018-03-22T00:35:44+18:00"),
            ("2018-03-22T00:35:44+05:30:15", "2018-03-22T00:35:44+05:30:15"),
            ("2018-03-22T00:35:44+053015", "2018-03-22T00:35:44+05:30:15"),
        ] {
            assert_eq!(OffsetDateTime::parse(text).unwrap().to_string(), expected, "{text}");
        }
        for bad in [
            "",
            "2018",
            "2018-13",
            "2018-0",
            "2018-03-22T00:35:44+16",
            "2018-03-22T00:35:44+19:00",
            "10:20:30",
            "2018-03-22T23:59:60",
            "2018-03-22T00:35:44.1234567891",
            "2018-03-22T00Z",
            "+2018-03",
            "12018-03-22",
            "2018-03-22T00:35:44.741Z+01:00",
            "2018-03-22T24:00:01",
            "2018-03-22 00:35",
            "This String is not an ISO 8601 Date",
            "é",
        ] {
            assert!(OffsetDateTime::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-800_000..800_000).step_by(13).chain([-365_243_219_162, 365_241_780_471]) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
            assert!(day >= 1 && day <= days_in_month(year, month), "{year}-{month}-{day}");
        }
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        assert_eq!(days_from_civil(2000, 3, 1), 11_017);
    }

    #[test]
    fn dates_order_by_instant_and_add() {
        let parse = |text| OffsetDateTime::parse(text).unwrap();
        let (utc, east) = (parse("2023-08-02T00:00:00Z"), parse("2023-08-02T01:00:00+01:00"));
        assert!(utc < east && utc != east, "the same instant, ordered by local time");
        assert!(parse("2023-08-02T00:00:00+01:00") < utc);
        assert_eq!(utc.checked_add(Duration::from_seconds(86_400)).unwrap(), parse("2023-08-03T00:00:00Z"));
        assert_eq!(parse("2023-08-09T00:00:00Z").since(&utc).total_millis(), Ok(604_800_000));
        assert_eq!(utc.since(&parse("2023-08-02T00:00:00.0015Z")).total_millis(), Ok(-1));
        assert_eq!(OffsetDateTime::from_epoch_millis(-1).to_string(), "1969-12-31T23:59:59.999Z");
        assert_eq!(OffsetDateTime::from_epoch_millis(-1).epoch_millis(), Ok(-1));
        assert_eq!(utc.checked_add(Duration::from_seconds(i64::MAX)), Err(ModelError::TemporalRange));
        assert!(
            OffsetDateTime { epoch_seconds: i64::MAX, nanos: 0, offset_seconds: 3600 }.to_string().starts_with('+')
        );
    }

    #[test]
    fn reads_and_writes_durations() {
        for (text, expected) in [
            ("PT0S", "PT0S"),
            ("PT-1.5S", "PT-1.5S"),
            ("PT-0.5S", "PT-0.5S"),
            ("P2DT3H4M", "PT51H4M"),
            ("-PT1M", "PT-1M"),
            ("PT0.000000001S", "PT0.000000001S"),
            ("PT25H", "PT25H"),
            ("PT-1H-1M", "PT-1H-1M"),
            ("pt1s", "PT1S"),
            ("+PT1S", "PT1S"),
            ("PT+1S", "PT1S"),
            ("PT1,5S", "PT1.5S"),
            ("P-1D", "PT-24H"),
            ("PT1.S", "PT1S"),
            ("P1D", "PT24H"),
            ("P1DT1S", "PT24H1S"),
        ] {
            assert_eq!(Duration::parse(text).unwrap().to_string(), expected, "{text}");
        }
        for bad in [
            "",
            "P",
            "PT",
            "P1DT",
            "1",
            "P1Y",
            "PT1.5H",
            "P1W",
            "PT1S ",
            "PT1H1H",
            "PT1M1H",
            "PT.5S",
            "PT1.1234567890S",
            "P1H",
            "PT1D",
            "P1D1D",
            "P1D1H",
            "PTT1S",
            "PT1HT1M",
            "PT99999999999999999999S",
            "PT9223372036854775807H",
        ] {
            assert!(Duration::parse(bad).is_err(), "{bad}");
        }
    }
}
