//! Dates, times and durations in GraphBinary. Dates without an offset are taken as UTC.

use ficus_model::{Duration, OffsetDateTime, Value};

use super::code;
use super::reader::{Reader, Result};
use super::writer::Writer;
use crate::temporal_text::{datetime_of_instant, datetime_of_local, days_of_date, local_parts};

impl Reader<'_> {
    pub(super) fn temporal(&mut self, type_code: u8) -> Result<Value> {
        let datetime = match type_code {
            code::DURATION => return self.duration(),
            code::DATE | code::TIMESTAMP => {
                let millis = self.i64("milliseconds since 1970")?;
                datetime_of_instant(millis.div_euclid(1000), millis.rem_euclid(1000) as u32 * 1_000_000)
            }
            code::INSTANT => {
                let seconds = self.i64("seconds since 1970")?;
                u32::try_from(self.i32("nanoseconds")?).ok().and_then(|nanos| datetime_of_instant(seconds, nanos))
            }
            code::LOCAL_DATE => self.local_date()?.and_then(|days| datetime_of_local(days, 0, 0)),
            code::LOCAL_DATE_TIME => self.local_datetime()?.and_then(|(days, nanos)| datetime_of_local(days, nanos, 0)),
            _ => {
                let local = self.local_datetime()?;
                let offset_seconds = self.i32("an offset from UTC")?;
                local.and_then(|(days, nanos)| datetime_of_local(days, nanos, offset_seconds))
            }
        };
        match datetime {
            Some(datetime) => Ok(Value::DateTime(datetime)),
            None => self.malformed("a date that exists", "one out of range"),
        }
    }

    fn duration(&mut self) -> Result<Value> {
        let seconds = self.i64("a duration's seconds")?;
        let nanos = self.i32("a duration's nanoseconds")?;
        // Some drivers send microseconds × 1000 without carrying, others negative parts.
        let seconds = seconds.checked_add(i64::from(nanos.div_euclid(1_000_000_000)));
        match seconds {
            Some(seconds) => Ok(Value::Duration(Duration { seconds, nanos: nanos.rem_euclid(1_000_000_000) as u32 })),
            None => self.malformed("a duration of 64-bit seconds", "a larger one"),
        }
    }

    /// Days since 1970-01-01; `None` for a date that does not exist.
    fn local_date(&mut self) -> Result<Option<i64>> {
        let year = self.i32("a year")?;
        let month = self.byte("a month")?;
        let day = self.byte("a day")?;
        Ok(days_of_date(year, month, day))
    }

    fn local_datetime(&mut self) -> Result<Option<(i64, i64)>> {
        let days = self.local_date()?;
        let nanos_of_day = self.i64("nanoseconds of the day")?;
        Ok(days.map(|days| (days, nanos_of_day)))
    }
}

impl Writer<'_> {
    pub(super) fn datetime(&mut self, value: &OffsetDateTime) {
        let ((year, month, day), nanos_of_day) = local_parts(value);
        // Years beyond 32 bits cannot be constructed from any input we read.
        let year = year.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        self.out.extend_from_slice(&year.to_be_bytes());
        self.out.extend_from_slice(&[month, day]);
        self.out.extend_from_slice(&nanos_of_day.to_be_bytes());
        self.out.extend_from_slice(&value.offset_seconds.to_be_bytes());
    }

    pub(super) fn duration(&mut self, value: &Duration) {
        self.out.extend_from_slice(&value.seconds.to_be_bytes());
        self.out.extend_from_slice(&value.nanos.to_be_bytes());
    }
}
