//! gremlin-lang text and bytecode to logical plans.
#![forbid(unsafe_code)]

pub mod lower;
pub mod text;
