//! Date and time values as TinkerPop carries them.

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
