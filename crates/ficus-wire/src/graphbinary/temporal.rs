//! Dates, times and durations in GraphBinary. Dates without an offset are taken as UTC.

use ficus_model::{Civil, Duration, OffsetDateTime, Value};

use super::code;
use super::reader::{Reader, Result};
use super::writer::Writer;
use crate::temporal::datetime_of_instant;

const SECOND_NANOS: i64 = 1_000_000_000;

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
            code::LOCAL_DATE => {
                let date = self.local_date()?;
                OffsetDateTime::from_civil(date, 0).ok()
            }
            code::LOCAL_DATE_TIME => self.local_datetime()?.and_then(|civil| OffsetDateTime::from_civil(civil, 0).ok()),
            _ => {
                let civil = self.local_datetime()?;
                let offset_seconds = self.i32("an offset from UTC")?;
                // `abs` of an offset that cannot be negated would overflow further down.
                let offset_fits = offset_seconds != i32::MIN;
                civil.filter(|_| offset_fits).and_then(|civil| OffsetDateTime::from_civil(civil, offset_seconds).ok())
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

    /// A date at midnight; whether it exists shows when it is put together with an offset.
    fn local_date(&mut self) -> Result<Civil> {
        let year = i64::from(self.i32("a year")?);
        let month = u32::from(self.byte("a month")?);
        let day = u32::from(self.byte("a day")?);
        Ok(Civil { year, month, day, second_of_day: 0, nanos: 0 })
    }

    /// Date and time; `None` if the time is not one of the day.
    fn local_datetime(&mut self) -> Result<Option<Civil>> {
        let date = self.local_date()?;
        let nanos_of_day = self.i64("nanoseconds of the day")?;
        let second_of_day = u32::try_from(nanos_of_day.div_euclid(SECOND_NANOS)).ok();
        let nanos = nanos_of_day.rem_euclid(SECOND_NANOS) as u32;
        Ok(second_of_day.map(|second_of_day| Civil { second_of_day, nanos, ..date }))
    }
}

impl Writer<'_> {
    pub(super) fn datetime(&mut self, value: &OffsetDateTime) {
        let civil = value.civil();
        // Years beyond 32 bits cannot be constructed from any input we read.
        let year = civil.year.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        let nanos_of_day = i64::from(civil.second_of_day) * SECOND_NANOS + i64::from(civil.nanos);
        self.out.extend_from_slice(&year.to_be_bytes());
        self.out.extend_from_slice(&[civil.month as u8, civil.day as u8]);
        self.out.extend_from_slice(&nanos_of_day.to_be_bytes());
        self.out.extend_from_slice(&value.offset_seconds.to_be_bytes());
    }

    pub(super) fn duration(&mut self, value: &Duration) {
        self.out.extend_from_slice(&value.seconds.to_be_bytes());
        self.out.extend_from_slice(&value.nanos.to_be_bytes());
    }
}
