//! `asNumber()`, `asBool()`, `asDate()`, and arithmetic on dates.

use ficus_model::{DateUnit, Duration, GType, OffsetDateTime, Value, convert, number};

use super::{FunctionError, FunctionResult};

/// Refuses type tokens that `asNumber()` cannot take; to be called before any value is there.
pub fn check_number_type(token: GType) -> FunctionResult<()> {
    if token.is_numeric() {
        Ok(())
    } else {
        Err(FunctionError::new(format!("asNumber() requires a numeric type token, got {token}")))
    }
}

/// `asNumber()`: numbers as they are, text parsed, dates in milliseconds since 1970; converted if a type is given.
pub fn as_number(value: &Value, token: Option<GType>) -> FunctionResult {
    if let Some(token) = token {
        check_number_type(token)?;
    }
    let parsed = match value {
        Value::Null => return Ok(Value::Null),
        Value::String(text) => convert::parse_number(text)?,
        Value::DateTime(date) => Value::Long(date.epoch_millis()?),
        number if number::is_number(number) => number.clone(),
        other => return Err(FunctionError::new(format!("Can't parse type {} as number.", other.type_name()))),
    };
    match token {
        Some(token) => Ok(convert::convert(&parsed, token)?),
        None => Ok(parsed),
    }
}

/// `asBool()`: zero and NaN are false, other numbers true; text must read `true` or `false`, in any case.
pub fn as_bool(value: &Value) -> FunctionResult {
    let failed = |what: &str| Err(FunctionError::new(format!("Can't parse {what} as Boolean.")));
    match value {
        Value::Null => failed("null"),
        Value::Bool(_) => Ok(value.clone()),
        Value::String(text) => match text.trim_matches(|c: char| c <= ' ') {
            word if word.eq_ignore_ascii_case("true") => Ok(Value::Bool(true)),
            word if word.eq_ignore_ascii_case("false") => Ok(Value::Bool(false)),
            _ => failed(text),
        },
        number if number::is_number(number) => {
            let double = number::to_double(number);
            Ok(Value::Bool(!double.is_nan() && double != 0.0))
        }
        other => failed(other.type_name()),
    }
}

/// `asDate()`: text parsed, whole numbers taken as milliseconds since 1970.
pub fn as_date(value: &Value) -> FunctionResult {
    let failed = |what: &str| Err(FunctionError::new(format!("Can't parse {what} as OffsetDateTime.")));
    let from_millis = |millis: i64| Ok(Value::DateTime(OffsetDateTime::from_epoch_millis(millis)));
    match value {
        Value::Null => failed("null"),
        Value::DateTime(_) => Ok(value.clone()),
        Value::Byte(millis) => from_millis(i64::from(*millis)),
        Value::Short(millis) => from_millis(i64::from(*millis)),
        Value::Int(millis) => from_millis(i64::from(*millis)),
        Value::Long(millis) => from_millis(*millis),
        Value::BigInteger(_) => match convert::convert(value, GType::Long) {
            Ok(Value::Long(millis)) => from_millis(millis),
            _ => failed(&value.to_string()),
        },
        Value::String(text) => match OffsetDateTime::parse(text) {
            Ok(date) => Ok(Value::DateTime(date)),
            Err(_) => failed(text),
        },
        other => failed(other.type_name()),
    }
}

/// `dateAdd()`: the date so many units later.
pub fn date_add(value: &Value, unit: DateUnit, amount: i64) -> FunctionResult {
    let Value::DateTime(date) = value else {
        return Err(FunctionError::new(format!(
            "dateAdd() accept only OffsetDateTime or Date (deprecated), encountered {}",
            value.type_name()
        )));
    };
    let unit_seconds = match unit {
        DateUnit::Second => 1,
        DateUnit::Minute => 60,
        DateUnit::Hour => 3600,
        DateUnit::Day => 86_400,
    };
    let seconds = amount.checked_mul(unit_seconds).ok_or(ficus_model::ModelError::TemporalRange)?;
    Ok(Value::DateTime(date.checked_add(Duration::from_seconds(seconds))?))
}

/// `dateDiff()`: milliseconds from `other` to the value; `null` as `other` stands for 1970.
pub fn date_diff(value: &Value, other: &Value) -> FunctionResult {
    let failed = |found: &Value| {
        FunctionError::new(format!(
            "DateDiff can only take OffsetDateTime or Date (deprecated) as argument, encountered {}",
            found.type_name()
        ))
    };
    let Value::DateTime(date) = value else {
        return Err(failed(value));
    };
    match other {
        Value::Null => Ok(Value::Long(date.epoch_millis()?)),
        Value::DateTime(other) => Ok(Value::Long(date.since(other).total_millis()?)),
        other => Err(failed(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_values::*;
    use super::*;

    fn date(text: &str) -> Value {
        Value::DateTime(OffsetDateTime::parse(text).unwrap())
    }

    fn message(result: FunctionResult) -> String {
        result.unwrap_err().message().to_string()
    }

    #[test]
    fn as_number_reads_and_converts() {
        for (value, token, expected) in [
            (Value::Byte(5), None, Value::Byte(5)),
            (Value::Float(5.75), None, Value::Float(5.75)),
            (text("5"), None, int(5)),
            (text("5"), Some(GType::Byte), Value::Byte(5)),
            (Value::Double(5.43), Some(GType::Int), int(5)),
            (Value::Double(5.67), Some(GType::Int), int(5)),
            (int(5), Some(GType::Long), Value::Long(5)),
            (int(12), Some(GType::Byte), Value::Byte(12)),
            (date("2023-09-06T16:28:27Z"), None, Value::Long(1_694_017_707_000)),
            (Value::Null, Some(GType::Int), Value::Null),
        ] {
            assert_eq!(as_number(&value, token).unwrap(), expected, "{value:?} {token:?}");
        }
        for (value, token, expected) in [
            (text("test"), None, "Can't parse string 'test' as number."),
            (text("1,000"), Some(GType::BigInt), "Can't parse string '1,000' as number."),
            (list(&[1, 2]), None, "Can't parse type ArrayList as number."),
            (int(32768), Some(GType::Short), "Can't convert number of type Integer to Short due to overflow."),
            (int(300), Some(GType::Byte), "Can't convert number of type Integer to Byte due to overflow."),
            (int(32768), Some(GType::Vertex), "asNumber() requires a numeric type token, got VERTEX"),
        ] {
            assert_eq!(message(as_number(&value, token)), expected, "{value:?} {token:?}");
        }
    }

    #[test]
    fn as_bool_reads_numbers_and_words() {
        for (value, expected) in [
            (int(1), true),
            (Value::Double(3.25), true),
            (int(-1), true),
            (int(0), false),
            (Value::Double(-0.0), false),
            (Value::Double(f64::NAN), false),
            (Value::Bool(false), false),
            (text("true"), true),
            (text("tRUe "), true),
            (text("FALSE"), false),
        ] {
            assert_eq!(as_bool(&value).unwrap(), Value::Bool(expected), "{value:?}");
        }
        assert_eq!(message(as_bool(&Value::Null)), "Can't parse null as Boolean.");
        assert_eq!(message(as_bool(&text("hello"))), "Can't parse hello as Boolean.");
        assert!(message(as_bool(&list(&[1]))).contains("Can't parse"));
    }

    #[test]
    fn as_date_reads_text_and_milliseconds() {
        for (value, expected) in [
            (text("2023-08-02T00:00:00Z"), "2023-08-02T00:00Z"),
            (text("2023-08-02T00:00:00-07:00"), "2023-08-02T00:00-07:00"),
            (text("2020-08-02"), "2020-08-02T00:00Z"),
            (Value::Long(1_694_017_707_000), "2023-09-06T16:28:27Z"),
            (int(-1), "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(as_date(&value).unwrap().to_string(), expected, "{value:?}");
        }
        for value in [
            Value::Double(1_694_017_709_000.1),
            list(&[1, 2]),
            Value::Null,
            text("This String is not an ISO 8601 Date"),
        ] {
            assert!(message(as_date(&value)).contains("Can't parse"), "{value:?}");
        }
    }

    #[test]
    fn dates_add_and_subtract() {
        let start = date("2023-08-02T00:00:00Z");
        for (unit, amount, expected) in [
            (DateUnit::Hour, 2, "2023-08-02T02:00:00Z"),
            (DateUnit::Hour, -1, "2023-08-01T23:00:00Z"),
            (DateUnit::Minute, 10, "2023-08-02T00:10:00Z"),
            (DateUnit::Second, 20, "2023-08-02T00:00:20Z"),
            (DateUnit::Day, 11, "2023-08-13T00:00:00Z"),
        ] {
            assert_eq!(date_add(&start, unit, amount).unwrap(), date(expected), "{unit} {amount}");
        }
        assert!(date_add(&start, DateUnit::Day, i64::MAX).is_err());
        assert!(message(date_add(&int(1), DateUnit::Day, 1)).contains("dateAdd() accept only OffsetDateTime"));
        let week = 604_800_000;
        assert_eq!(date_diff(&start, &date("2023-08-09T00:00:00Z")).unwrap(), Value::Long(-week));
        assert_eq!(date_diff(&date("2023-08-09T00:00:00Z"), &start).unwrap(), Value::Long(week));
        assert_eq!(date_diff(&start, &Value::Null).unwrap(), Value::Long(1_690_934_400_000));
        assert!(date_diff(&Value::Null, &start).is_err());
        assert!(date_diff(&start, &int(1)).is_err());
    }
}
