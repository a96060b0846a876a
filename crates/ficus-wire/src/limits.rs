//! Bounds on what a decoder builds from bytes that a client controls.

/// What one decoded message may cost. A message past a limit is refused with [`crate::DecodeErrorKind::Limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Values inside values: lists in lists, traversals in traversals. Bounds the decoder's stack.
    pub nesting: usize,
    /// Values in one message, members of collections included. Bounds memory: a value of two bytes on the wire takes
    /// 24 in memory, an entry of a map up to 100.
    pub items: usize,
    /// Digits of a number written as text, and of big integers in binary. Bounds the quadratic conversion.
    pub digits: usize,
    /// Bytes of a whole message.
    pub bytes: usize,
}

impl Default for Limits {
    /// 128 levels, 4 million values, 10,000 digits, 64 MiB. Official drivers send at most 10 MiB.
    fn default() -> Limits {
        Limits { nesting: 128, items: 4_000_000, digits: 10_000, bytes: 64 << 20 }
    }
}
