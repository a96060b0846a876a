//! The `ficus` binary.
fn main() {}
