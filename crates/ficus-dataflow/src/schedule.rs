//! Who is next: the upper levels of the tree of quotas, tenant and query.
//!
//! Between tenants the one goes next that was served least for its weight: every tenant has a *virtual time*, which its work advances by
//! work / weight. A tenant that comes (back) starts where the others are, neither with the time it was away to catch up on nor with old
//! debts. While two tenants have work, their virtual times differ by at most one turn of each; so their work is as their weights, and a tenant of
//! weight w waits, beside others of W in sum, for at most W / w times the work of its turn, and one turn of each of them.
//!
//! Within a tenant queries are ranked by the turns they have had, or are known to take, in powers of two, so that a small query that arrives
//! beside large ones runs next. Where more than a few are ready, those of one rank below [`IN_ORDER_TURNS`] run in the order in which they came: of many
//! queries of one size one ends after the other, and few are half done and want their data in the caches. Otherwise, or where it would take
//! seconds until it is the turn of the last, they take turns.
//!
//! The rank of the query that waits longest is owed one unit of work for every seven of smaller ones that passed it over, so that every query
//! finishes; a turn is counted against that in full, however long it was. Counting turns instead would give most of the time to those whose turns
//! are long. A query is made to wait only for what was owed by its own rank and smaller ones: large queries among themselves save up no turn that a
//! small one would have to wait for when it comes.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use crate::tenant::{Tenant, Weight};

/// Ranks of queries: a query of 2^22 turns is as large as any.
const RANKS: usize = 24;

/// Queries of fewer turns than these, some 100 ms, run in the order in which they came where there are many.
const IN_ORDER_TURNS: u64 = 1024;

/// So many that are ready are many: the caches do not keep what all of them want.
const MANY: usize = 4;

/// One unit of work in this many goes to the rank of the query that waits longest, when it is passed over by smaller ones.
pub const FAIR_SHARE: i64 = 8;

/// Idle tenants beyond this (and beyond as many as there are busy ones) are looked through for some to forget.
const IDLE_TENANTS_KEPT: usize = 64;

/// Virtual time: work units × [`Weight::MAX`] / weight. At the least weight and fifty million units a second, 64 bits would last a year.
type VirtualTime = u128;

/// What a turn is to the rank of the query that waits longest.
#[derive(Clone, Copy)]
enum TurnKind {
    /// It is the first as well, and one of it had the turn.
    InLine,
    /// One of this rank had it and passed it over.
    Passing(usize),
    /// One of it had the turn, because others had passed it over, before one of this rank.
    Fair(usize),
}

/// A ready query.
struct Ready<T> {
    /// When it came, where that decides among those of its rank.
    came: u64,
    /// When it began to wait.
    since: u64,
    item: T,
}

/// Who goes first is the greatest.
impl<T> Ord for Ready<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.came, other.since).cmp(&(self.came, self.since))
    }
}

impl<T> PartialOrd for Ready<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Ready<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Ready<T> {}

struct Share<T> {
    weight: Weight,
    /// How far its work has brought it.
    served: VirtualTime,
    /// What division by the weight has left, so that nothing is lost in small turns.
    remainder: u32,
    /// Ready queries by rank.
    ranks: Vec<BinaryHeap<Ready<T>>>,
    /// The rank of each by the moment it began to wait.
    waiting: BTreeMap<u64, usize>,
    ready: usize,
    /// By rank, what passed over the rank of the query that waited longest, less what such ranks were given for it, which counts [`FAIR_SHARE`] - 1
    /// times.
    owed: [i64; RANKS],
    /// What the turn under way is to that.
    kind: TurnKind,
    /// Has an entry in the order of tenants.
    listed: bool,
}

impl<T> Share<T> {
    fn new() -> Share<T> {
        Share {
            weight: Weight::default(),
            served: 0,
            remainder: 0,
            ranks: (0..RANKS).map(|_| BinaryHeap::new()).collect(),
            waiting: BTreeMap::new(),
            ready: 0,
            owed: [0; RANKS],
            kind: TurnKind::InLine,
            listed: false,
        }
    }

    /// Books `units` of work and so much time, in units.
    fn advance(&mut self, units: u64, time: u64) {
        let weight = VirtualTime::from(self.weight.get());
        let work = VirtualTime::from(units) * VirtualTime::from(Weight::MAX.get()) + VirtualTime::from(self.remainder);
        self.served = self.served.saturating_add(work / weight);
        self.remainder = (work % weight) as u32;
        let units = i64::try_from(units.max(time)).unwrap_or(i64::MAX);
        match self.kind {
            TurnKind::InLine => (),
            TurnKind::Passing(rank) => self.owed[rank] = self.owed[rank].saturating_add(units),
            TurnKind::Fair(rank) => {
                let mut paid = units.saturating_mul(FAIR_SHARE - 1);
                // The smallest pay first; what nobody owed is an advance to the one that was kept waiting.
                for owed in self.owed[..rank].iter_mut().filter(|owed| **owed > 0) {
                    let part = paid.min(*owed);
                    (*owed, paid) = (*owed - part, paid - part);
                }
                self.owed[rank] = self.owed[rank].saturating_sub(paid);
            }
        }
    }

    fn take(&mut self) -> Option<(usize, T)> {
        let (_, longest) = self.waiting.first_key_value()?;
        let first = self.ranks.iter().position(|queue| !queue.is_empty())?;
        let (kind, rank) = match first == *longest {
            true => (TurnKind::InLine, first),
            false if self.owed[..=first].iter().fold(0, |sum: i64, owed| sum.saturating_add(*owed)) > 0 => {
                (TurnKind::Fair(first), *longest)
            }
            false => (TurnKind::Passing(first), first),
        };
        self.kind = kind;
        let Ready { since, item, .. } = self.ranks[rank].pop()?;
        self.waiting.remove(&since);
        self.ready -= 1;
        Some((rank, item))
    }
}

/// Ready work of many tenants.
pub struct Schedule<T> {
    tenants: HashMap<u64, Share<T>>,
    /// Tenants with ready work by virtual time, the least first.
    order: BinaryHeap<Reverse<(VirtualTime, u64)>>,
    /// Where newcomers start: where the tenant whose turn was last had been before it.
    floor: VirtualTime,
    /// The farthest a tenant has come: where all start after a time without work.
    top: VirtualTime,
    ready: usize,
    /// Of them by rank, of all tenants.
    ready_by_rank: [usize; RANKS],
    moment: u64,
    /// Tenants at which idle ones are looked through next, so that looking costs nothing in the long run.
    crowd: usize,
}

impl<T> Default for Schedule<T> {
    fn default() -> Self {
        Schedule {
            tenants: HashMap::new(),
            order: BinaryHeap::new(),
            floor: 0,
            top: 0,
            ready: 0,
            ready_by_rank: [0; RANKS],
            moment: 0,
            crowd: IDLE_TENANTS_KEPT,
        }
    }
}

impl<T> Schedule<T> {
    /// How many items are ready.
    pub fn ready(&self) -> usize {
        self.ready
    }

    /// The size in turns of the smallest of them, or less by less than half; none if there are none.
    pub fn turns_of_smallest(&self) -> Option<u64> {
        self.ready_by_rank.iter().position(|count| *count > 0).map(|rank| (1 << rank) >> 1)
    }

    /// Adds an item of this size in turns: those that it has had or is known to take; those with a smaller `came` came before it.
    pub fn add(&mut self, tenant: Tenant, turns: u64, came: u64, item: T) {
        let entry = self.tenants.entry(tenant.number).or_insert_with(Share::new);
        if entry.weight != tenant.weight {
            entry.weight = tenant.weight;
            // Of a unit of the new weight no more than one is left over.
            entry.remainder = 0;
        }
        let rank = ((u64::BITS - turns.leading_zeros()) as usize).min(RANKS - 1);
        self.moment += 1;
        let came = if turns < IN_ORDER_TURNS && entry.ready >= MANY { came } else { 0 };
        entry.ranks[rank].push(Ready { came, since: self.moment, item });
        entry.waiting.insert(self.moment, rank);
        entry.ready += 1;
        self.ready += 1;
        self.ready_by_rank[rank] += 1;
        if !entry.listed {
            if self.order.is_empty() {
                self.floor = self.top;
            }
            entry.listed = true;
            entry.served = entry.served.max(self.floor);
            self.order.push(Reverse((entry.served, tenant.number)));
        }
    }

    /// Takes the next item and its tenant. `served` must follow before anything is added.
    pub fn next(&mut self) -> Option<(Tenant, T)> {
        let Reverse((served, number)) = self.order.pop()?;
        self.floor = self.floor.max(served);
        let entry = self.tenants.get_mut(&number)?;
        entry.listed = false;
        let (rank, item) = entry.take()?;
        self.ready -= 1;
        self.ready_by_rank[rank] -= 1;
        Some((Tenant { number, weight: entry.weight }, item))
    }

    /// Books the turn that `next` began: its work, which tenants share, and its time, in work units. Between queries the greater of both counts.
    pub fn served(&mut self, tenant: Tenant, units: u64, time: u64) {
        let Some(entry) = self.tenants.get_mut(&tenant.number) else { return };
        entry.advance(units, time);
        self.top = self.top.max(entry.served);
        if entry.ready > 0 && !entry.listed {
            entry.listed = true;
            self.order.push(Reverse((entry.served, tenant.number)));
        }
        if self.tenants.len() > self.crowd {
            // Who is not ahead of the others would start from the floor anyway.
            let floor = self.floor;
            self.tenants.retain(|_, tenant| tenant.listed || tenant.served > floor);
            self.crowd = 2 * self.tenants.len() + IDLE_TENANTS_KEPT;
        }
    }

    /// Removes the items for which `is_over` says so.
    pub fn remove_if(&mut self, mut is_over: impl FnMut(&mut T) -> bool) {
        for tenant in self.tenants.values_mut().filter(|tenant| tenant.ready > 0) {
            for (queue, ready_of_rank) in tenant.ranks.iter_mut().zip(&mut self.ready_by_rank) {
                let before = queue.len();
                let mut ready = std::mem::take(queue).into_vec();
                ready.retain_mut(|ready| {
                    let is_over = is_over(&mut ready.item);
                    if is_over {
                        tenant.waiting.remove(&ready.since);
                    }
                    !is_over
                });
                *queue = ready.into();
                tenant.ready -= before - queue.len();
                self.ready -= before - queue.len();
                *ready_of_rank -= before - queue.len();
            }
        }
        // A tenant without ready items has no entry in the order.
        let tenants = &mut self.tenants;
        self.order.retain(|Reverse((_, number))| match tenants.get_mut(number) {
            Some(tenant) if tenant.ready == 0 => {
                tenant.listed = false;
                false
            }
            _ => true,
        });
    }

    /// Takes all items, in no particular order.
    pub fn drain(&mut self) -> Vec<T> {
        self.order.clear();
        (self.ready, self.ready_by_rank) = (0, [0; RANKS]);
        self.tenants.drain().flat_map(|(_, tenant)| tenant.ranks).flatten().map(|ready| ready.item).collect()
    }
}

#[cfg(test)]
mod tests;
