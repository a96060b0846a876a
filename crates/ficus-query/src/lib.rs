//! Logical plans, optimiser, physical operators and services.
