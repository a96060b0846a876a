//! Dates as text: what `datetime("…")` reads and what printing writes.

use ficus_model::OffsetDateTime;

const SECONDS_PER_DAY: i64 = 86_400;
const OFFSET_SECONDS_MAX: i64 = 18 * 3_600;

/// Reads `2018-03`, `2018-03-22`, `2018-03-22T00:35`, with optional seconds, fraction and offset (`Z`, `+0130`,
/// `+01:30`, `+01:30:15`); without an offset it is UTC. As in Java, a day up to 31 that the month has not is its last one, and 24:00 is where the next
/// day begins. `None` if the text is none of these.
pub fn parse(text: &str) -> Option<OffsetDateTime> {
    let mut reader = Reader { bytes: text.as_bytes(), position: 0 };
    let year = reader.year()?;
    reader.expect(b'-')?;
    let month = if reader.bytes.len() - reader.position == 1 { reader.digits(1, 1)? } else { reader.digits(2, 2)? };
    if !(1..=12).contains(&month) {
        return None;
    }
    if reader.at_end() {
        return moment(year, month, 1, 0, 0, 0);
    }
    reader.expect(b'-')?;
    let day = reader.digits(2, 2)?;
    if !(1..=31).contains(&day) {
        return None;
    }
    let day = day.min(days_in_month(year, month));
    if reader.at_end() {
        return moment(year, month, day, 0, 0, 0);
    }
    if !reader.take(b'T') && !reader.take(b't') {
        return None;
    }
    let hour = reader.digits(2, 2)?;
    reader.expect(b':')?;
    let minute = reader.digits(2, 2)?;
    let (mut second, mut nanos) = (0, 0);
    if reader.take(b':') {
        second = reader.digits(2, 2)?;
        if reader.take(b'.') {
            let start = reader.position;
            let fraction = reader.digits(0, 9)?;
            let length = (reader.position - start) as u32;
            nanos = (fraction * 10i64.pow(9 - length)) as u32;
        }
    }
    let is_end_of_day = (hour, minute, second, nanos) == (24, 0, 0, 0);
    if hour > 23 && !is_end_of_day || minute > 59 || second > 59 {
        return None;
    }
    let offset = reader.offset()?;
    if !reader.at_end() {
        return None;
    }
    moment(year, month, day, hour * 3_600 + minute * 60 + second, nanos, offset)
}

/// Writes a moment so that [`parse`] reads it back: `2018-03-22T00:35:44.741+01:00`.
pub fn format(moment: OffsetDateTime) -> String {
    let local = moment.epoch_seconds + i64::from(moment.offset_seconds);
    let (year, month, day) = civil(local.div_euclid(SECONDS_PER_DAY));
    let second = local.rem_euclid(SECONDS_PER_DAY);
    let sign = if year < 0 {
        "-"
    } else if year > 9_999 {
        "+"
    } else {
        ""
    };
    let mut text = format!(
        "{sign}{:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
        year.abs(),
        second / 3_600,
        second / 60 % 60,
        second % 60
    );
    if moment.nanos != 0 {
        let fraction = format!("{:09}", moment.nanos);
        text.push('.');
        text.push_str(fraction.trim_end_matches('0'));
    }
    if moment.offset_seconds == 0 {
        text.push('Z');
        return text;
    }
    let magnitude = moment.offset_seconds.unsigned_abs();
    text.push(if moment.offset_seconds < 0 { '-' } else { '+' });
    text.push_str(&format!("{:02}:{:02}", magnitude / 3_600, magnitude / 60 % 60));
    if !magnitude.is_multiple_of(60) {
        text.push_str(&format!(":{:02}", magnitude % 60));
    }
    text
}

struct Reader<'t> {
    bytes: &'t [u8],
    position: usize,
}

impl Reader<'_> {
    fn at_end(&self) -> bool {
        self.position == self.bytes.len()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    /// A number of `least` to `most` digits; the caller keeps `most` within what an `i64` holds.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let start = self.position;
        let mut value = 0;
        while self.position - start < most
            && let Some(digit @ b'0'..=b'9') = self.peek()
        {
            value = value * 10 + i64::from(digit - b'0');
            self.position += 1;
        }
        (self.position - start >= least).then_some(value)
    }

    /// Four digits, or with a sign four to nine.
    fn year(&mut self) -> Option<i64> {
        let negative = self.take(b'-');
        if negative || self.take(b'+') {
            return self.digits(4, 9).map(|year| if negative { -year } else { year });
        }
        self.digits(4, 4)
    }

    /// Nothing, `Z`, or hours, minutes and seconds with or without colons.
    fn offset(&mut self) -> Option<i64> {
        if self.at_end() || self.take(b'Z') || self.take(b'z') {
            return Some(0);
        }
        let negative = self.take(b'-');
        if !negative {
            self.expect(b'+')?;
        }
        let mut seconds = self.digits(2, 2)? * 3_600;
        let colons = self.take(b':');
        if colons || !self.at_end() {
            let minutes = self.digits(2, 2)?;
            seconds += minutes * 60;
            if !self.at_end() {
                if colons {
                    self.expect(b':')?;
                }
                let rest = self.digits(2, 2)?;
                if rest > 59 {
                    return None;
                }
                seconds += rest;
            }
            if minutes > 59 {
                return None;
            }
        }
        (seconds <= OFFSET_SECONDS_MAX).then_some(if negative { -seconds } else { seconds })
    }
}

fn moment(year: i64, month: i64, day: i64, second: i64, nanos: u32, offset: i64) -> Option<OffsetDateTime> {
    let epoch_seconds = days_since_epoch(year, month, day) * SECONDS_PER_DAY + second - offset;
    Some(OffsetDateTime { epoch_seconds, nanos, offset_seconds: i32::try_from(offset).ok()? })
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar, counted in eras of 400 years that begin in March.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse of [`days_since_epoch`]: year, month, day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_moments() {
        let cases = [
            ("1970-01-01", 0, 0, 0),
            ("1970-01", 0, 0, 0),
            ("1969-12-31T23:59:59Z", -1, 0, 0),
            ("2018-03-22T00:35:44", 1_521_678_944, 0, 0),
            ("2018-03-22T00:35:44.741Z", 1_521_678_944, 741_000_000, 0),
            ("2018-03-22T00:35", 1_521_678_900, 0, 0),
            ("2018-03-22T00:35:44+0100", 1_521_675_344, 0, 3_600),
            ("2018-03-22T00:35:44+16:00", 1_521_621_344, 0, 57_600),
            ("2018-03-22T00:35:44.741+16:00:00", 1_521_621_344, 741_000_000, 57_600),
            ("2018-03-22t00:35:44-013015", 1_521_684_359, 0, -5_415),
            ("2024-02-29", 1_709_164_800, 0, 0),
            ("2023-02-31", 1_677_542_400, 0, 0),
            ("2023-04-31T10:00", 1_682_848_800, 0, 0),
            ("2023-04-15T24:00:00.0Z", 1_681_603_200, 0, 0),
            ("0000-01-01", -62_167_219_200, 0, 0),
            ("-0001-12-31", -62_167_305_600, 0, 0),
            ("+12345-01-01", 327_403_382_400, 0, 0),
        ];
        for (text, epoch_seconds, nanos, offset_seconds) in cases {
            let moment = OffsetDateTime { epoch_seconds, nanos, offset_seconds };
            assert_eq!(parse(text), Some(moment), "{text}");
            assert_eq!(parse(&format(moment)), Some(moment), "{}", format(moment));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "now",
            "2023",
            "2023-13-01",
            "2023-02-32",
            "2023-04-00",
            "2023-04-15 10:30",
            "2023-04-15T24:01",
            "2023-04-15T24:00:00.5",
            "2023-04-15T25:00",
            "2023-04-15T10:60",
            "2023-04-15T10:30:45+19:00",
            "2023-04-15T10:30:45+01:0",
            "2023-04-15T10:30:45Zulu",
            "1682424645000",
            "10:30:45",
            "20230415T103045",
            "2023-W15-3",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
