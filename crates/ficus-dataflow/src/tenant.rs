//! Tenants: for whom work is done, and how much of an executor is their due.

use std::fmt;

/// What a tenant is due beside others that have work: work units in proportion to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u32);

impl Weight {
    /// The least.
    pub const MIN: Weight = Weight(1);
    /// The most. Ten thousand to one is as uneven as sharing can be while a turn of the one still comes within seconds.
    pub const MAX: Weight = Weight(10_000);

    /// A weight from 1 to 10,000; `None` for another number.
    pub fn new(weight: u32) -> Option<Weight> {
        (Weight::MIN.0..=Weight::MAX.0).contains(&weight).then_some(Weight(weight))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for Weight {
    /// 100, so that there is room on both sides.
    fn default() -> Self {
        Weight(100)
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// For whom work is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tenant {
    /// Tells tenants apart.
    pub number: u64,
    /// Its share beside others. If the work of one tenant names several, the last one counts.
    pub weight: Weight,
}

impl Tenant {
    /// A tenant with the weight that all have unless something else is said.
    pub fn numbered(number: u64) -> Tenant {
        Tenant { number, weight: Weight::default() }
    }
}
