//! Walking plans.
