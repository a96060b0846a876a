//! A sample of many rows, of which no more are kept than are wanted.
//!
//! Members of rows are drawn one after the other, each with its share of the weight of those that are left. That is the order in which they would
//! arrive if each came at a random time of its own, exponentially distributed with its weight as rate: so every member gets such a time when its
//! row is met, and those that come first are the sample. Of the members of a row with a bulk only as many get one as may be among them.
//!
//! Source: Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::budget::{Held, MemoryAccount};
use crate::context::Result;
use crate::random::Random;
use crate::traverser::Traverser;

/// Members of a row that are drawn before its turn may be over.
pub const DRAWN_AT_ONCE: u64 = 4096;

/// The members drawn so far.
pub struct Reservoir {
    wanted: usize,
    /// The last to arrive on top.
    drawn: BinaryHeap<Drawn>,
    held: Held,
}

/// What is left of a row of which many members were drawn: the others, and the time of the one before them.
pub struct LeftOver {
    /// The row, with the members that are left.
    pub row: Traverser,
    /// That time.
    pub time: f64,
}

/// A member of a row.
struct Drawn {
    time: f64,
    row: Traverser,
}

impl Drawn {
    /// Bytes beside those of its entry.
    fn own_bytes(&self) -> usize {
        self.row.kept_bytes() - size_of::<Traverser>()
    }
}

impl Ord for Drawn {
    fn cmp(&self, other: &Drawn) -> Ordering {
        self.time.total_cmp(&other.time)
    }
}

impl PartialOrd for Drawn {
    fn partial_cmp(&self, other: &Drawn) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Drawn {
    fn eq(&self, other: &Drawn) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Drawn {}

impl Reservoir {
    /// For a sample of so many members.
    pub fn new(wanted: usize) -> Reservoir {
        Reservoir { wanted, drawn: BinaryHeap::new(), held: Held::default() }
    }

    /// Offers the members of a row, each with this weight; without a positive one they are never drawn.
    ///
    /// `before` is 0, or the time of what is left of a row, which is returned where many are drawn.
    ///
    /// Errors: `Budget` or `ServerMemory`.
    pub fn offer(
        &mut self,
        weight: f64,
        row: &Traverser,
        random: &mut Random,
        before: f64,
        account: &MemoryAccount,
    ) -> Result<Option<LeftOver>> {
        if weight.is_nan() || weight <= 0.0 {
            return Ok(None);
        }
        let mut time = before;
        let end = row.bulk.saturating_sub(DRAWN_AT_ONCE);
        for left in (end + 1..=row.bulk).rev() {
            // The first of those that are left.
            time += random.exponential() / (weight * left as f64);
            if self.drawn.len() >= self.wanted {
                if self.drawn.peek().is_none_or(|last| last.time <= time) {
                    return Ok(None);
                }
                self.take_last();
            }
            let member = Drawn { time, row: row.single() };
            self.held.make_room(account, self.drawn.len(), self.drawn.capacity(), size_of::<Drawn>())?;
            self.held.add(account, member.own_bytes())?;
            self.drawn.push(member);
        }
        if end == 0 {
            return Ok(None);
        }
        let mut rest = row.clone();
        rest.bulk = end;
        Ok(Some(LeftOver { row: rest, time }))
    }

    /// Takes out the member that was drawn last.
    pub fn take_last(&mut self) -> Option<Traverser> {
        let last = self.drawn.pop()?;
        self.held.subtract(last.own_bytes());
        Some(last.row)
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::Value;

    use super::*;

    /// How often each list of numbers is drawn, from rows of (number, weight, bulk).
    fn drawn(rows: &[(i32, f64, u64)], wanted: usize, times: usize) -> std::collections::HashMap<Vec<i32>, f64> {
        let (mut random, account) = (Random::seeded(11), MemoryAccount::new(1 << 30));
        let mut found = std::collections::HashMap::new();
        for _ in 0..times {
            let mut reservoir = Reservoir::new(wanted);
            for (number, weight, bulk) in rows {
                let mut row = Traverser::new(Value::Int(*number));
                row.bulk = *bulk;
                let mut left = Some(LeftOver { row, time: 0.0 });
                while let Some(LeftOver { row, time }) = left {
                    left = reservoir.offer(*weight, &row, &mut random, time, &account).expect("room");
                }
            }
            let mut list = Vec::new();
            while let Some(row) = reservoir.take_last() {
                let Value::Int(number) = row.value else { panic!("a number") };
                list.push(number);
            }
            list.reverse();
            *found.entry(list).or_insert(0.0) += 1.0 / times as f64;
        }
        assert_eq!(account.used_bytes(), 0);
        found
    }

    #[test]
    fn members_are_drawn_one_after_the_other_by_their_share_of_what_is_left() {
        // A row with a bulk is as many members, and what has no weight is never drawn.
        let rows = [(1, 1.0, 1), (2, 2.0, 2), (3, 0.5, 4), (4, 0.0, 5), (5, f64::NAN, 1), (6, -1.0, 1)];
        let found = drawn(&rows, 2, 60_000);
        let total = 7.0;
        let mut sum = 0.0;
        for (first, weight, bulk) in &rows[..3] {
            for (second, next, others) in &rows[..3] {
                let members = if first == second { others - 1 } else { *others };
                let wanted = weight * *bulk as f64 / total * next * members as f64 / (total - weight);
                let share = found.get(&vec![*first, *second]).copied().unwrap_or(0.0);
                assert!((share - wanted).abs() < 0.01, "{first}, {second}: {share} instead of {wanted}");
                sum += wanted;
            }
        }
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn a_bulk_beyond_counting_is_a_row_like_others() {
        let found = drawn(&[(1, 1.0, u64::MAX), (2, 1.0, 1)], 3, 100);
        assert_eq!(found.into_keys().collect::<Vec<_>>(), vec![vec![1, 1, 1]]);
        assert_eq!(drawn(&[(1, 1.0, 5)], 0, 1).into_keys().collect::<Vec<_>>(), vec![Vec::new()]);
    }
}
