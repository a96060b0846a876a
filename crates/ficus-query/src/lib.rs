//! Logical plans, optimiser, physical operators and services.
#![forbid(unsafe_code)]

pub mod logical;
