//! Memory that queries may hold: an account per query, and a total that all queries of a server share.
//!
//! Who keeps something takes its bytes from the query's account and holds a [`Held`]; dropping that hands them back, whatever way
//! the operator, the scope instance or the query ends, and on whichever thread. The account takes grants from the server's total, so that the
//! shared counter is touched once in a quarter of a mebibyte. [`crate::large_values`] counts values that are passed around instead of kept.
//!
//! Tenants share the total by their weights: once only [`RESERVE`] of it is left, tenants that hold more than their share get nothing, so that what one
//! tenant's queries hold does not shut out the others. A tenant that has queries alone may hold all.
//!
//! Counts are estimates by the sizes of values and the capacities of collections. What an allocator needs beside these, for the heads of its pages and for
//! what is left over at their ends, is not in them, nor what lies free in the place that it keeps for each thread: so what is counted may be less than
//! the limit by one part in [`ALLOCATOR_PART`] for the first, and as much for the second, but no more than [`PLACES_BYTES`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ficus_dataflow::Tenant;
use ficus_model::{Extent, NESTING_MAX, Value};

use crate::error::{QueryError, QueryErrorKind};

/// What an account takes from the total at a time.
const GRANT_BYTES: isize = 256 << 10;

/// One part in so many of the total is for queries that run already and, beside others, for tenants that hold less than their share.
const RESERVE: isize = 4;

/// One part in so many of a limit is the allocator's: of rows and small pieces of the usual sizes it needs that much.
const ALLOCATOR_PART: isize = 64;

/// What lies free in the allocator's places of other threads when one of them grows, at most.
const PLACES_BYTES: isize = 8 << 20;

/// What may be counted under a limit.
fn countable(limit_bytes: usize) -> isize {
    let Ok(limit) = isize::try_from(limit_bytes) else { return isize::MAX };
    let part = limit / ALLOCATOR_PART;
    limit - part - part.min(PLACES_BYTES)
}

/// Memory that all queries may hold together.
#[derive(Debug)]
pub struct ServerMemory {
    granted_bytes: AtomicIsize,
    limit_bytes: usize,
    countable_bytes: isize,
    refusals: AtomicU64,
    /// Tenants that have queries, by number. Taken when a query opens its account; no other lock is taken while it is held.
    tenants: Mutex<HashMap<u64, Weak<TenantMemory>>>,
    /// The sum of their weights.
    weights: AtomicU64,
    /// Called when all is freed that a query held, with the most that it was.
    freed: Option<fn(usize)>,
}

/// What the queries of a tenant hold together; there is one for each tenant that has queries.
#[derive(Debug)]
struct TenantMemory {
    granted_bytes: AtomicIsize,
    weight: u64,
    server: Arc<ServerMemory>,
}

impl TenantMemory {
    /// What is its due: all that there is, divided by the weights of the tenants that have queries.
    fn share_bytes(&self) -> isize {
        let weights = u128::from(self.server.weights.load(Ordering::Relaxed).max(self.weight));
        let share = self.server.countable_bytes.unsigned_abs() as u128 * u128::from(self.weight) / weights;
        isize::try_from(share).unwrap_or(isize::MAX)
    }

    /// Takes bytes; false, and nothing taken, if they are not there or are left to others.
    fn take(&self, bytes: isize) -> bool {
        let server = &*self.server;
        let total = server.granted_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let own = self.granted_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let is_there = total <= server.countable_bytes;
        if is_there && (total <= server.countable_bytes - server.reserve_bytes() || own <= self.share_bytes()) {
            return true;
        }
        self.give_back(bytes);
        server.refusals.fetch_add(1, Ordering::Relaxed);
        false
    }

    fn give_back(&self, bytes: isize) {
        self.granted_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.server.granted_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether one more of its queries may do a little: if it may begin, or half of what is kept from those that begin is left, and some of the
    /// tenant's share, without which it would get none of that.
    fn may_be_tried(&self) -> bool {
        let server = &*self.server;
        self.may_begin()
            || server.granted_bytes.load(Ordering::Relaxed) < server.countable_bytes - server.reserve_bytes() / 2
                && self.granted_bytes.load(Ordering::Relaxed) < self.share_bytes() / (2 * RESERVE) * (2 * RESERVE - 1)
    }

    /// Whether one more of its queries may begin: those that run have some of the total left to them, or some of the tenant's share.
    fn may_begin(&self) -> bool {
        let server = &*self.server;
        let total = server.granted_bytes.load(Ordering::Relaxed);
        total < server.countable_bytes - server.reserve_bytes()
            || total < server.countable_bytes
                && self.granted_bytes.load(Ordering::Relaxed) < self.share_bytes() / RESERVE * (RESERVE - 1)
    }
}

impl Drop for TenantMemory {
    fn drop(&mut self) {
        self.server.weights.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

impl ServerMemory {
    /// A total of so many bytes, of which nothing is granted yet.
    pub fn new(limit_bytes: usize) -> ServerMemory {
        ServerMemory {
            granted_bytes: AtomicIsize::new(0),
            limit_bytes,
            countable_bytes: countable(limit_bytes),
            refusals: AtomicU64::new(0),
            tenants: Mutex::default(),
            weights: AtomicU64::new(0),
            freed: None,
        }
    }

    /// Has `freed` called when all is freed that a query held, with the most bytes that it was.
    pub fn tell(mut self, freed: Option<fn(usize)>) -> ServerMemory {
        self.freed = freed;
        self
    }

    fn reserve_bytes(&self) -> isize {
        self.countable_bytes / RESERVE
    }

    /// What a tenant holds.
    fn of_tenant(self: &Arc<Self>, tenant: Tenant) -> Arc<TenantMemory> {
        // A panic cannot come between the changes of the map.
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tenants.get(&tenant.number).and_then(Weak::upgrade) {
            return known;
        }
        // Those that have no queries any more go when there are twice as many as there were.
        if tenants.len() == tenants.capacity() {
            tenants.retain(|_, tenant| tenant.strong_count() > 0);
        }
        let weight = u64::from(tenant.weight.get());
        self.weights.fetch_add(weight, Ordering::Relaxed);
        let new = Arc::new(TenantMemory { granted_bytes: AtomicIsize::new(0), weight, server: self.clone() });
        tenants.insert(tenant.number, Arc::downgrade(&new));
        new
    }

    /// Bytes that queries hold, rounded up by less than a grant for each.
    pub fn used_bytes(&self) -> usize {
        usize::try_from(self.granted_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Bytes that queries may hold together.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Grants that were refused so far.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }
}

impl Default for ServerMemory {
    /// Without bound.
    fn default() -> ServerMemory {
        ServerMemory::new(usize::MAX)
    }
}

#[derive(Debug)]
struct Account {
    used_bytes: AtomicIsize,
    peak_bytes: AtomicIsize,
    /// What it has of the server's total.
    granted_bytes: AtomicIsize,
    limit_bytes: usize,
    countable_bytes: isize,
    tenant: Arc<TenantMemory>,
}

impl Drop for Account {
    fn drop(&mut self) {
        let granted = *self.granted_bytes.get_mut();
        self.tenant.give_back(granted);
        if let Some(freed) = self.tenant.server.freed {
            freed((*self.peak_bytes.get_mut()).max(granted).unsigned_abs());
        }
    }
}

/// Counts what a query's operators keep; refuses to grow past its limit. Clones are the same account.
#[derive(Clone, Debug)]
pub struct MemoryAccount(Arc<Account>);

impl MemoryAccount {
    /// An empty account that shares nothing with others.
    pub fn new(limit_bytes: usize) -> MemoryAccount {
        MemoryAccount::of_server(limit_bytes, &Arc::default(), Tenant::default())
    }

    /// An empty account that takes what it counts from the server's total, for a tenant. Its limit is at most that total: who needs more than there
    /// will ever be is not told to come again.
    pub fn of_server(limit_bytes: usize, server: &Arc<ServerMemory>, tenant: Tenant) -> MemoryAccount {
        let limit_bytes = limit_bytes.min(server.limit_bytes);
        MemoryAccount(Arc::new(Account {
            used_bytes: AtomicIsize::new(0),
            peak_bytes: AtomicIsize::new(0),
            granted_bytes: AtomicIsize::new(0),
            limit_bytes,
            countable_bytes: countable(limit_bytes),
            tenant: server.of_tenant(tenant),
        }))
    }

    /// Whether there is memory for its query to begin: more than a part of the total is left, or its tenant holds less than its share.
    pub fn may_begin(&self) -> bool {
        self.0.tenant.may_begin()
    }

    /// Whether there is memory for its query to do a little.
    pub fn may_be_tried(&self) -> bool {
        self.0.tenant.may_be_tried()
    }

    /// Adds (or hands back) bytes. The count stands also if it is refused.
    ///
    /// Errors: `Budget` if the account would pass its limit, `ServerMemory` if the server has no more.
    #[inline]
    pub fn adjust(&self, bytes: isize) -> Result<(), QueryError> {
        let used = self.0.used_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if used <= self.0.granted_bytes.load(Ordering::Relaxed) {
            if bytes < 0 {
                self.shrink(used);
            }
            return Ok(());
        }
        self.grow(used)
    }

    /// Fails if `bytes` more would pass a limit; for what is about to be made in one go.
    pub fn check_room(&self, bytes: usize) -> Result<(), QueryError> {
        let used = self.0.used_bytes.load(Ordering::Relaxed);
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
        if used.saturating_add(bytes) > self.0.countable_bytes {
            return Err(self.over_budget());
        }
        Ok(())
    }

    /// As [`MemoryAccount::check_room`], for so many of this size. What stands for more than there is room for is refused before they are made one by
    /// one.
    #[inline]
    pub fn check_room_for(&self, count: u64, bytes: usize) -> Result<(), QueryError> {
        if count == 0 {
            return Ok(());
        }
        self.check_room(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(bytes))
    }

    /// Fails if a value that holds others is nested deeper than values may be, or is so many of them, when each counts as often as it occurs, that
    /// they would not fit in the budget if they were not shared. Whoever walks all of a value may be sure that it ends.
    ///
    /// To be called wherever values are put into others, or go round a loop. Cost: what has been put together since it was asked last.
    #[inline]
    pub fn fits(&self, value: &Value) -> Result<(), QueryError> {
        if value.holds_others() { self.extent_fits(value.extent()) } else { Ok(()) }
    }

    fn extent_fits(&self, extent: Extent) -> Result<(), QueryError> {
        if extent.depth > NESTING_MAX as u32 {
            return Err(QueryError::invalid(format!(
                "a value would be nested more than {NESTING_MAX} levels deep; end the loop that puts it into another one earlier"
            )));
        }
        let bytes = isize::try_from(extent.count).unwrap_or(isize::MAX).saturating_mul(size_of::<Value>() as isize);
        if bytes > self.0.countable_bytes { Err(self.over_budget()) } else { Ok(()) }
    }

    #[cold]
    fn grow(&self, used: isize) -> Result<(), QueryError> {
        let account = &*self.0;
        account.peak_bytes.fetch_max(used, Ordering::Relaxed);
        if used > account.countable_bytes {
            return Err(self.over_budget());
        }
        let granted = account.granted_bytes.load(Ordering::Relaxed);
        let rounded = (used - granted).saturating_add(GRANT_BYTES - 1) / GRANT_BYTES * GRANT_BYTES;
        // Never more than the limit, so that passing it is noticed.
        let grant = rounded.min(account.countable_bytes - granted);
        if grant > 0 {
            if !account.tenant.take(grant) {
                let message = format!(
                    "the queries that run hold the {} MiB that all may hold together, or so much that the rest is left to other \
                     tenants; try again later, or raise engine.queries_memory_bytes",
                    account.tenant.server.limit_bytes >> 20
                );
                return Err(QueryError::new(QueryErrorKind::ServerMemory, message));
            }
            account.granted_bytes.fetch_add(grant, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns grants that are not needed any more.
    #[inline]
    fn shrink(&self, used: isize) {
        let account = &*self.0;
        let granted = account.granted_bytes.load(Ordering::Relaxed);
        if granted - used < 4 * GRANT_BYTES {
            return;
        }
        account.peak_bytes.fetch_max(granted, Ordering::Relaxed);
        let kept = ((used.max(0) / GRANT_BYTES + 1) * GRANT_BYTES).min(granted);
        // Two threads may hand back at once; only one returns what is too much.
        if account.granted_bytes.compare_exchange(granted, kept, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            account.tenant.give_back(granted - kept);
        }
    }

    fn over_budget(&self) -> QueryError {
        // Where the two are the same, more for one query alone would change nothing.
        let setting = match self.0.limit_bytes < self.0.tenant.server.limit_bytes {
            true => "engine.memory_limit_bytes",
            false => "engine.memory_limit_bytes and engine.queries_memory_bytes, which is for all queries together",
        };
        let message = format!(
            "the query needs more than its memory budget of {} MiB; narrow it, aggregate earlier or raise the budget \
             ({setting})",
            self.0.limit_bytes >> 20
        );
        QueryError::new(QueryErrorKind::Budget, message)
    }

    /// What the query may hold, with the allocator's part.
    pub fn limit_bytes(&self) -> usize {
        self.0.limit_bytes
    }

    /// What the query holds now.
    pub fn used_bytes(&self) -> usize {
        usize::try_from(self.0.used_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// The most the query held so far, rounded up by less than a grant.
    pub fn peak_bytes(&self) -> usize {
        let account = &*self.0;
        let granted = account.granted_bytes.load(Ordering::Relaxed);
        account.peak_bytes.load(Ordering::Relaxed).max(granted).unsigned_abs()
    }
}

/// What somebody keeps on a query's account; handed back when it is dropped.
#[derive(Debug, Default)]
pub struct Held {
    account: Option<MemoryAccount>,
    bytes: isize,
}

/// The capacity that a collection in one piece grows to.
pub fn grown(capacity: usize) -> usize {
    capacity.saturating_mul(2).max(4)
}

impl Held {
    /// Adds bytes to the account.
    ///
    /// Errors: `Budget` if the account would pass its limit, `ServerMemory` if the server has no more.
    #[inline]
    pub fn add(&mut self, account: &MemoryAccount, bytes: usize) -> Result<(), QueryError> {
        if self.account.is_none() {
            self.account = Some(account.clone());
        }
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX / 4).min(isize::MAX / 4);
        self.bytes = self.bytes.saturating_add(bytes);
        account.adjust(bytes)
    }

    /// To be called before one more entry goes into a collection of `length` entries with room for `capacity`: if that makes it grow,
    /// counts what it will have grown to, and refuses before it does.
    ///
    /// Errors: as [`Held::add`]; also if the old and the new memory together pass the limit, since both are there for a moment.
    #[inline]
    pub fn make_room(
        &mut self,
        account: &MemoryAccount,
        length: usize,
        capacity: usize,
        entry_bytes: usize,
    ) -> Result<(), QueryError> {
        if length < capacity {
            return Ok(());
        }
        let grown = grown(capacity);
        account.check_room(grown.saturating_mul(entry_bytes))?;
        self.add(account, (grown - capacity).saturating_mul(entry_bytes))
    }

    /// Takes over what somebody else holds of the same account.
    pub fn absorb(&mut self, other: &mut Held) {
        if self.account.is_none() {
            self.account = other.account.clone();
        }
        self.bytes = self.bytes.saturating_add(std::mem::take(&mut other.bytes));
    }

    /// Counts so many bytes instead of what it held, if it holds anything: for what has been made of it.
    ///
    /// Errors: as [`Held::add`]; the count stands.
    pub fn replace(&mut self, bytes: usize) -> Result<(), QueryError> {
        match self.account.clone() {
            Some(account) if bytes > self.bytes() => self.add(&account, bytes - self.bytes()),
            _ => {
                self.subtract(self.bytes().saturating_sub(bytes));
                Ok(())
            }
        }
    }

    /// Gives a part of it away, on the same account.
    pub fn split(&mut self, bytes: usize) -> Held {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX).min(self.bytes);
        self.bytes -= bytes;
        Held { account: self.account.clone(), bytes }
    }

    /// Hands back some.
    pub fn subtract(&mut self, bytes: usize) {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX).min(self.bytes);
        self.bytes -= bytes;
        self.hand_back(bytes);
    }

    /// Hands back all.
    pub fn give_back(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.hand_back(bytes);
    }

    /// What is held.
    pub fn bytes(&self) -> usize {
        self.bytes.unsigned_abs()
    }

    fn hand_back(&self, bytes: isize) {
        if let (Some(account), true) = (&self.account, bytes > 0) {
            // Handing back cannot pass a limit.
            let _ = account.adjust(-bytes);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use ficus_dataflow::Weight;

    use super::*;

    /// The limit under which so much may be counted.
    fn limit_for(bytes: usize) -> usize {
        (bytes + bytes / ALLOCATOR_PART as usize..)
            .find(|limit| countable(*limit) == bytes as isize)
            .expect("a limit of each size")
    }

    #[test]
    fn what_is_dropped_is_handed_back_and_the_total_is_kept() {
        let server = Arc::new(ServerMemory::new(10 << 20));
        let account = || MemoryAccount::of_server(8 << 20, &server, Tenant::default());
        let (a, b) = (account(), account());
        let (mut of_a, mut of_b) = (Held::default(), Held::default());
        of_a.add(&a, 7 << 20).expect("within both limits");
        let refused = of_b.add(&b, 7 << 20).expect_err("the total is smaller");
        assert_eq!(refused.kind, QueryErrorKind::ServerMemory);
        assert_eq!(server.refusals(), 1);
        drop(of_b);
        assert_eq!(b.used_bytes(), 0);
        assert_eq!(of_a.add(&a, 2 << 20).expect_err("its own limit").kind, QueryErrorKind::Budget);
        // A query that is through holds at most some grants.
        of_a.give_back();
        assert!(server.used_bytes() < 2 << 20, "{}", server.used_bytes());
        assert!(a.peak_bytes() >= 7 << 20);
        drop((a, b, of_a));
        assert_eq!(server.used_bytes(), 0);
    }

    #[test]
    fn who_needs_more_than_all_may_hold_is_not_told_to_come_again() {
        let server = Arc::new(ServerMemory::new(8 << 20));
        let account = MemoryAccount::of_server(1 << 30, &server, Tenant::default());
        assert_eq!(account.limit_bytes(), 8 << 20);
        let refused = Held::default().add(&account, 9 << 20).expect_err("there is less");
        assert_eq!(refused.kind, QueryErrorKind::Budget);
        assert!(refused.message.contains("queries_memory_bytes"), "{}", refused.message);
        let refused = account.check_room(9 << 20).expect_err("there is less");
        assert_eq!(refused.kind, QueryErrorKind::Budget);
        let small = MemoryAccount::of_server(1 << 20, &server, Tenant::default());
        let refused = Held::default().add(&small, 2 << 20).expect_err("its own limit");
        assert!(!refused.message.contains("queries_memory_bytes"), "{}", refused.message);
    }

    #[test]
    fn tenants_share_the_last_quarter_by_their_weights() {
        let server = Arc::new(ServerMemory::new(limit_for(64 << 20)));
        let tenant = |number, weight| Tenant { number, weight: Weight::new(weight).expect("in range") };
        let account = |tenant| MemoryAccount::of_server(64 << 20, &server, tenant);
        let (heavy, light) = (tenant(1, 300), tenant(2, 100));
        let mut of_light = Held::default();
        let first = account(light);
        of_light.add(&first, 60 << 20).expect("alone it may have all");
        assert!(!first.may_begin());
        of_light.give_back();
        // Shares are 48 and 16 MiB from now on.
        let mut of_heavy = Held::default();
        let of_heavy_tenant = account(heavy);
        of_light.add(&first, 48 << 20).expect("beyond its share while there is enough");
        assert_eq!(of_light.add(&first, 4 << 20).expect_err("the rest is left").kind, QueryErrorKind::ServerMemory);
        of_light.subtract(4 << 20);
        assert!(of_heavy_tenant.may_begin() && !account(light).may_begin());
        of_heavy.add(&of_heavy_tenant, 15 << 20).expect("it is below its share");
        assert!(of_heavy.add(&of_heavy_tenant, 4 << 20).is_err(), "there is no more");
        drop((of_heavy, of_heavy_tenant, of_light, first));
        assert_eq!(server.used_bytes(), 0);
        assert_eq!(server.weights.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn tenants_that_have_gone_are_forgotten() {
        let server = Arc::new(ServerMemory::new(64 << 20));
        for number in 0..1000 {
            drop(MemoryAccount::of_server(1 << 20, &server, Tenant::numbered(number)));
        }
        assert!(server.tenants.lock().expect("nobody panicked").len() < 64);
    }

    #[test]
    fn a_limit_below_a_grant_is_kept() {
        let account = MemoryAccount::new(60);
        let mut held = Held::default();
        held.add(&account, 60).expect("as much as it may");
        assert_eq!(held.add(&account, 1).expect_err("more than it may").kind, QueryErrorKind::Budget);
    }

    #[test]
    fn parts_and_what_is_made_of_them_are_on_the_same_account() {
        let account = MemoryAccount::new(1 << 20);
        let mut held = Held::default();
        held.add(&account, 1000).expect("there is room");
        let mut part = held.split(300);
        assert_eq!((held.bytes(), part.bytes(), account.used_bytes()), (700, 300, 1000));
        part.replace(500).expect("there is room");
        assert_eq!(account.used_bytes(), 1200);
        part.replace(100).expect("it is less");
        assert_eq!(account.used_bytes(), 800);
        drop(part);
        drop(held);
        assert_eq!(account.used_bytes(), 0);
        Held::default().replace(500).expect("it is nobody's");
    }

    #[test]
    fn growing_is_counted_before_it_happens() {
        let account = MemoryAccount::new(1 << 20);
        let (mut held, mut list) = (Held::default(), Vec::<u64>::new());
        let refused = loop {
            if let Err(refused) = held.make_room(&account, list.len(), list.capacity(), size_of::<u64>()) {
                break refused;
            }
            list.push(0);
            assert!(list.capacity() * size_of::<u64>() <= held.bytes() + 64, "{} {}", list.capacity(), held.bytes());
        };
        assert_eq!(refused.kind, QueryErrorKind::Budget);
        assert!(list.capacity() * size_of::<u64>() >= 256 << 10);
    }

    #[test]
    fn accounts_of_many_threads_add_up() {
        let server = Arc::new(ServerMemory::new(usize::MAX));
        let account = MemoryAccount::of_server(1 << 40, &server, Tenant::default());
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let account = &account;
                scope.spawn(move || {
                    for round in 0..2000usize {
                        let mut held = Held::default();
                        held.add(account, (thread + round) * 1000).expect("there is no limit");
                    }
                });
            }
        });
        assert_eq!(account.used_bytes(), 0);
        drop(account);
        assert_eq!(server.used_bytes(), 0);
    }
}
