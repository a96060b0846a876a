//! Dates and durations as wire formats have them: ISO-8601 text by the name of a Java class, instants, local parts.

use ficus_model::{Duration, OffsetDateTime, Value};

/// The largest year, and its negative the smallest, that a date can have.
const YEAR_MAX: i64 = 999_999_999;

/// What `text` is in the Java class `class` of `java.time`; `Ok(None)` if it is none, `Err` for a class that no value of
/// ours stands for. Dates without an offset are taken as UTC.
pub(crate) fn value_of_text(class: &str, text: &str) -> Result<Option<Value>, ()> {
    let (date, time) = match text.find(['T', 't']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let has_offset = time.is_some_and(|time| time.contains(['Z', 'z', '+', '-']));
    let shape_fits = match class {
        "Duration" => return Ok(Duration::parse(text).ok().map(Value::Duration)),
        "OffsetDateTime" | "ZonedDateTime" | "Instant" => has_offset,
        "LocalDate" => time.is_none(),
        "LocalDateTime" => time.is_some() && !has_offset,
        _ => return Err(()),
    };
    // A zone's name after the offset adds nothing to a point in time.
    let text = match text.split_once('[') {
        Some((before, zone)) if class == "ZonedDateTime" && zone.ends_with(']') => before,
        _ => text,
    };
    let datetime = OffsetDateTime::parse(text).ok().filter(|_| shape_fits);
    // `datetime()` of Gremlin takes days that a month does not have; a date on the wire exists.
    let has_day = date.trim_start_matches('-').split('-').count() == 3;
    let is_day = |datetime: &OffsetDateTime| has_day && date.ends_with(&format!("-{:02}", datetime.civil().day));
    let datetime = datetime.filter(is_day);
    Ok(datetime.map(Value::DateTime))
}

/// A point in time in UTC from seconds and nanoseconds since 1970; `None` outside the years a date can have.
pub(crate) fn datetime_of_instant(epoch_seconds: i64, nanos: u32) -> Option<OffsetDateTime> {
    let datetime = OffsetDateTime { epoch_seconds, nanos, offset_seconds: 0 };
    (nanos < 1_000_000_000 && datetime.civil().year.abs() <= YEAR_MAX).then_some(datetime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_to_have_the_shape_of_its_class() {
        let check = |class: &str, text: &str, expected: Option<&str>| {
            let value = value_of_text(class, text).unwrap();
            assert_eq!(value.map(|value| value.to_string()).as_deref(), expected, "{class} {text}");
        };
        check("OffsetDateTime", "2007-12-03T10:15:30+01:00", Some("2007-12-03T10:15:30+01:00"));
        check("OffsetDateTime", "2007-12-03T10:15:30", None);
        check("OffsetDateTime", "2007-02-30T10:15Z", None);
        check("OffsetDateTime", "2007-12-03T24:00Z", None);
        check("OffsetDateTime", "", None);
        check("LocalDate", "2016-01-01", Some("2016-01-01T00:00Z"));
        check("LocalDate", "2016-01-01T00:00", None);
        check("LocalDate", "2016-01", None);
        check("LocalDateTime", "2016-01-01T12:30", Some("2016-01-01T12:30Z"));
        check("LocalDateTime", "2016-01-01T12:30Z", None);
        check("ZonedDateTime", "2016-12-23T12:12:24+02:00[GMT+02:00]", Some("2016-12-23T12:12:24+02:00"));
        check("ZonedDateTime", "2016-12-23T12:12:24+02:00[GMT", None);
        check("Duration", "PT-1.5S", Some("PT-1.5S"));
        check("Duration", "1.5", None);
        assert!(value_of_text("Period", "P1Y").is_err());
    }

    #[test]
    fn instants_stay_within_the_years_of_dates() {
        assert_eq!(datetime_of_instant(0, 0).unwrap().to_string(), "1970-01-01T00:00Z");
        let last = OffsetDateTime::parse("+999999999-12-31T23:59:59Z").unwrap().epoch_seconds;
        for seconds in [i64::MIN, i64::MAX, last + 1] {
            assert_eq!(datetime_of_instant(seconds, 0), None, "{seconds}");
        }
        assert!(datetime_of_instant(last, 999_999_999).is_some());
        assert_eq!(datetime_of_instant(0, 1_000_000_000), None);
    }
}
