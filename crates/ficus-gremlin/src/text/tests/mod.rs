//! Tests of the language as a whole; the parts have theirs beside them.

mod accepted;
mod refused;
mod robust;
mod round_trip;
