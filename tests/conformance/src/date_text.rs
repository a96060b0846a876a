//! Dates as feature files write them: ISO 8601 with an offset, where seconds, the time and the offset may be missing.

use chrono::NaiveDateTime;
use ficus_model::OffsetDateTime;

/// Reads `2023-08-08`, `2023-08-08T10:30Z`, `2023-08-08T10:30:00.5+02:00`; a missing offset is UTC.
pub fn parse(text: &str) -> Result<OffsetDateTime, String> {
    let bad = || format!("expected a date such as 2023-08-08T00:00:00Z, found {text:?}");
    let (date, time) = text.split_once('T').unwrap_or((text, "00:00Z"));
    let offset_start = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (clock, offset) = time.split_at(offset_start);
    let seconds = if clock.matches(':').count() < 2 { ":00" } else { "" };
    let moment = NaiveDateTime::parse_from_str(&format!("{date}T{clock}{seconds}"), "%Y-%m-%dT%H:%M:%S%.f");
    let moment = moment.map_err(|_| bad())?;
    let offset_seconds = match offset.split_at_checked(1) {
        None | Some(("Z", "")) => 0,
        Some((sign, rest)) => {
            let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
            let hours: i32 = hours.parse().map_err(|_| bad())?;
            let minutes: i32 = minutes.parse().map_err(|_| bad())?;
            (hours * 60 + minutes) * if sign == "-" { -60 } else { 60 }
        }
    };
    let utc = moment.and_utc();
    Ok(OffsetDateTime {
        epoch_seconds: utc.timestamp() - i64::from(offset_seconds),
        nanos: utc.timestamp_subsec_nanos(),
        offset_seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_keep_their_offset() {
        let check = |text: &str, epoch_seconds: i64, nanos: u32, offset_seconds: i32| {
            assert_eq!(parse(text), Ok(OffsetDateTime { epoch_seconds, nanos, offset_seconds }), "{text}");
        };
        check("1970-01-02", 86_400, 0, 0);
        check("1970-01-01T00:01Z", 60, 0, 0);
        check("1970-01-01T02:00:00.5+02:00", 0, 500_000_000, 7_200);
        check("1970-01-01T00:00:00-01:30", 5_400, 0, -5_400);
        assert!(parse("yesterday").is_err());
    }
}
