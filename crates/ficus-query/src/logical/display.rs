//! The readable form of a logical plan.
