//! What the values of a Parquet column mean: its physical type together with what the schema says about it.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use ficus_model::{Duration, OffsetDateTime, Value};
use num_bigint::BigInt;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::ColumnDescriptor;

const NANOS: i64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;

/// The Julian day of 1970-01-01.
const EPOCH_JULIAN_DAY: i64 = 2_440_588;

/// What the values of a column mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// As the physical type says.
    Plain,
    /// An integer of 8 or 16 bits with a sign, or of up to 64 without.
    Integer { bits: i8, signed: bool },
    /// Text.
    Text,
    /// A UUID of 16 bytes.
    Uuid,
    /// A floating-point number of 2 bytes.
    HalfFloat,
    /// A number of these decimals.
    Decimal { scale: i64 },
    /// Days since 1970.
    Date,
    /// Units since midnight, so many a second.
    Time { per_second: i64 },
    /// Units since 1970, so many a second.
    Timestamp { per_second: i64 },
}

fn per_second(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::MILLIS => 1_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => NANOS,
    }
}

impl Meaning {
    /// The meaning of a stored column; `Err` if there is no value for it here.
    pub fn of(column: &ColumnDescriptor) -> Result<Meaning, String> {
        let scale = i64::from(column.type_scale());
        let meaning = match column.logical_type_ref() {
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => Meaning::Text,
            Some(LogicalType::Decimal { scale, .. }) => Meaning::Decimal { scale: i64::from(*scale) },
            Some(LogicalType::Date) => Meaning::Date,
            Some(LogicalType::Time { unit, .. }) => Meaning::Time { per_second: per_second(unit) },
            Some(LogicalType::Timestamp { unit, .. }) => Meaning::Timestamp { per_second: per_second(unit) },
            Some(LogicalType::Integer { bit_width, is_signed }) => {
                Meaning::Integer { bits: *bit_width, signed: *is_signed }
            }
            Some(LogicalType::Uuid) => Meaning::Uuid,
            Some(LogicalType::Float16) => Meaning::HalfFloat,
            // Of members of lists, the annotation is that of the list; of columns of nulls, there is none.
            Some(LogicalType::List | LogicalType::Map | LogicalType::Unknown | LogicalType::Bson) => Meaning::Plain,
            Some(other) => return Err(format!("its type is {other:?}")),
            None => match column.converted_type() {
                ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Meaning::Text,
                ConvertedType::DECIMAL => Meaning::Decimal { scale },
                ConvertedType::DATE => Meaning::Date,
                ConvertedType::TIME_MILLIS => Meaning::Time { per_second: 1_000 },
                ConvertedType::TIME_MICROS => Meaning::Time { per_second: 1_000_000 },
                ConvertedType::TIMESTAMP_MILLIS => Meaning::Timestamp { per_second: 1_000 },
                ConvertedType::TIMESTAMP_MICROS => Meaning::Timestamp { per_second: 1_000_000 },
                ConvertedType::INT_8 => Meaning::Integer { bits: 8, signed: true },
                ConvertedType::INT_16 => Meaning::Integer { bits: 16, signed: true },
                ConvertedType::INT_32 => Meaning::Integer { bits: 32, signed: true },
                ConvertedType::INT_64 => Meaning::Integer { bits: 64, signed: true },
                ConvertedType::UINT_8 => Meaning::Integer { bits: 8, signed: false },
                ConvertedType::UINT_16 => Meaning::Integer { bits: 16, signed: false },
                ConvertedType::UINT_32 => Meaning::Integer { bits: 32, signed: false },
                ConvertedType::UINT_64 => Meaning::Integer { bits: 64, signed: false },
                ConvertedType::INTERVAL => return Err("intervals count months, which have no fixed length".to_owned()),
                _ => Meaning::Plain,
            },
        };
        // So that plain integers know their width.
        Ok(match (meaning, column.physical_type()) {
            (Meaning::Plain, Type::INT32) => Meaning::Integer { bits: 32, signed: true },
            (Meaning::Plain, Type::INT64) => Meaning::Integer { bits: 64, signed: true },
            (meaning, _) => meaning,
        })
    }

    /// An integer as it is stored, of 32 or 64 bits.
    pub fn integer(self, stored: i64) -> Result<Value, String> {
        Ok(match self {
            Meaning::Integer { bits: 8, signed: true } => {
                Value::Byte(i8::try_from(stored).map_err(|_| out_of_range(stored))?)
            }
            Meaning::Integer { bits: 16, signed: true } => {
                Value::Short(i16::try_from(stored).map_err(|_| out_of_range(stored))?)
            }
            Meaning::Integer { bits: 32, signed: true } => {
                Value::Int(i32::try_from(stored).map_err(|_| out_of_range(stored))?)
            }
            Meaning::Integer { bits: 8, signed: false } => Value::Short(i16::from(stored as u8)),
            Meaning::Integer { bits: 16, signed: false } => Value::Int(i32::from(stored as u16)),
            Meaning::Integer { bits: 32, signed: false } => Value::Long(i64::from(stored as u32)),
            Meaning::Integer { signed: false, .. } if stored < 0 => {
                Value::BigInteger(Arc::new(BigInt::from(stored as u64)))
            }
            Meaning::Decimal { scale } => decimal(BigInt::from(stored), scale),
            Meaning::Date => moment(stored.checked_mul(DAY_SECONDS).ok_or_else(|| out_of_range(stored))?, 0),
            Meaning::Time { per_second } => {
                let nanos = (stored.rem_euclid(per_second) * (NANOS / per_second)) as u32;
                Value::Duration(Duration { seconds: stored.div_euclid(per_second), nanos })
            }
            Meaning::Timestamp { per_second } => {
                let nanos = stored.rem_euclid(per_second) * (NANOS / per_second);
                moment(stored.div_euclid(per_second), nanos as u32)
            }
            _ => Value::Long(stored),
        })
    }

    /// Bytes as they are stored.
    pub fn bytes(self, stored: &[u8]) -> Result<Value, String> {
        Ok(match self {
            Meaning::Text => {
                let text = std::str::from_utf8(stored);
                let text = text.map_err(|error| format!("not UTF-8 from byte {} on", error.valid_up_to() + 1))?;
                Value::String(text.into())
            }
            Meaning::Uuid => {
                let bytes: [u8; 16] = stored.try_into().map_err(|_| format!("a UUID of {} bytes", stored.len()))?;
                Value::Uuid(uuid::Uuid::from_bytes(bytes))
            }
            Meaning::HalfFloat => {
                let bytes: [u8; 2] =
                    stored.try_into().map_err(|_| format!("a half float of {} bytes", stored.len()))?;
                Value::Float(half_float(u16::from_le_bytes(bytes)))
            }
            Meaning::Decimal { scale } => decimal(BigInt::from_signed_bytes_be(stored), scale),
            _ => Value::Binary(Arc::from(stored)),
        })
    }

    /// A timestamp of 12 bytes: nanoseconds of the day, and the Julian day.
    pub fn day_and_nanos(stored: &[u32]) -> Value {
        let nanos = i64::from(stored[0]) | i64::from(stored[1]) << 32;
        let days = i64::from(stored[2]) - EPOCH_JULIAN_DAY;
        moment(days * DAY_SECONDS + nanos.div_euclid(NANOS), nanos.rem_euclid(NANOS) as u32)
    }
}

fn out_of_range(stored: i64) -> String {
    format!("{stored} is out of the range of its type")
}

fn moment(epoch_seconds: i64, nanos: u32) -> Value {
    Value::DateTime(OffsetDateTime { epoch_seconds, nanos, offset_seconds: 0 })
}

fn decimal(unscaled: BigInt, scale: i64) -> Value {
    Value::BigDecimal(Arc::new(BigDecimal::new(unscaled, scale)))
}

/// IEEE 754 binary16: a sign, 5 bits of exponent, 10 of fraction.
fn half_float(bits: u16) -> f32 {
    let fraction = f32::from(bits & 0x3ff);
    let magnitude = match bits >> 10 & 0x1f {
        0 => fraction * 2f32.powi(-24),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2f32.powi(i32::from(exponent) - 15),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_numbers_become_values() {
        let date = |seconds, nanos| moment(seconds, nanos);
        let cases = [
            (Meaning::Integer { bits: 8, signed: true }, -1, Ok(Value::Byte(-1))),
            (Meaning::Integer { bits: 8, signed: true }, 200, Err(out_of_range(200))),
            (Meaning::Integer { bits: 8, signed: false }, 200, Ok(Value::Short(200))),
            (Meaning::Integer { bits: 32, signed: false }, -1, Ok(Value::Long(0xffff_ffff))),
            (Meaning::Integer { bits: 64, signed: false }, -1, Ok(Value::BigInteger(Arc::new(u64::MAX.into())))),
            (Meaning::Integer { bits: 64, signed: true }, i64::MIN, Ok(Value::Long(i64::MIN))),
            (Meaning::Date, -1, Ok(date(-DAY_SECONDS, 0))),
            (Meaning::Date, i64::MAX, Err(out_of_range(i64::MAX))),
            (Meaning::Timestamp { per_second: 1000 }, -1, Ok(date(-1, 999_000_000))),
            (Meaning::Timestamp { per_second: NANOS }, 1, Ok(date(0, 1))),
            (
                Meaning::Time { per_second: 1000 },
                1500,
                Ok(Value::Duration(Duration { seconds: 1, nanos: 500_000_000 })),
            ),
            (Meaning::Decimal { scale: 2 }, 1234, Ok(decimal(1234.into(), 2))),
        ];
        for (meaning, stored, expected) in cases {
            assert_eq!(meaning.integer(stored), expected, "{meaning:?} {stored}");
        }
        assert_eq!(Meaning::Decimal { scale: 1 }.bytes(&[0xff, 0x85]), Ok(decimal((-123).into(), 1)));
        assert!(Meaning::Text.bytes(&[0xff]).is_err() && Meaning::Uuid.bytes(&[0]).is_err());
        let half =
            [(0x3c00, 1.0), (0xc000, -2.0), (0x0001, 2f32.powi(-24)), (0x7bff, 65504.0), (0x7c00, f32::INFINITY)];
        for (bits, expected) in half {
            assert_eq!(half_float(bits), expected);
        }
        assert_eq!(Meaning::day_and_nanos(&[5, 0, 2_440_589]), date(DAY_SECONDS, 5));
    }
}
