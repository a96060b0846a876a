//! A sample of many rows, of which no more are kept than are wanted.
//!
//! Members of rows are drawn one after the other, each with its share of the weight of those that are left. That is the order in which they would
//! arrive if each came at a random time of its own, exponentially distributed with its weight as rate: so every member gets such a time when its
//! row is met, and those that come first are the sample. Of the members of a row with a bulk only as many get one as may be among them.
//!
//! Source: Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006.

use ficus_dataflow::Remains;

use crate::budget::{Held, MemoryAccount};
use crate::context::Result;
use crate::flat::{Chunks, Piece};
use crate::growing;
use crate::random::Random;
use crate::traverser::Traverser;

/// Members of a row that are drawn before its turn may be over.
pub const DRAWN_AT_ONCE: u64 = 4096;

/// The members drawn so far: a heap with the last to arrive on top, in chunks, so that it grows without being copied.
pub struct Reservoir {
    wanted: usize,
    drawn: Chunks<Drawn>,
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

impl Piece for Drawn {
    fn is_flat(&self) -> bool {
        self.row.is_flat()
    }
}

impl Drawn {
    /// Bytes beside those of its entry.
    fn own_bytes(&self) -> usize {
        self.row.kept_bytes() - size_of::<Traverser>()
    }
}

impl Reservoir {
    /// For a sample of so many members.
    pub fn new(wanted: usize) -> Reservoir {
        Reservoir { wanted, drawn: Chunks::new(), held: Held::default() }
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
        let drawn = row.bulk.min((self.wanted - self.drawn.len()) as u64);
        account.check_room_for(drawn.saturating_sub(Chunks::<Drawn>::CHUNK as u64), size_of::<Drawn>())?;
        let end = row.bulk.saturating_sub(DRAWN_AT_ONCE);
        for left in (end + 1..=row.bulk).rev() {
            // The first of those that are left.
            time += random.exponential() / (weight * left as f64);
            if self.drawn.len() >= self.wanted {
                let Some(mut last) = self.drawn.front_mut().filter(|last| last.time > time) else { return Ok(None) };
                self.held.subtract(last.own_bytes());
                *last = Drawn { time, row: row.single() };
                self.held.add(account, last.own_bytes())?;
                drop(last);
                self.sink();
                continue;
            }
            let member = Drawn { time, row: row.single() };
            self.held.add(account, self.drawn.grows_by() * size_of::<Drawn>() + member.own_bytes())?;
            self.drawn.push_back(member);
            self.rise();
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
        let end = self.drawn.len().checked_sub(1)?;
        self.drawn.swap(0, end);
        let last = self.drawn.pop_back()?;
        self.sink();
        self.held.subtract(last.own_bytes());
        Some(last.row)
    }

    /// Hands all over to be freed in pieces.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        growing::surrender(std::mem::take(&mut self.drawn), &mut self.held, remains);
    }

    fn is_later(&self, a: usize, b: usize) -> bool {
        let time = |index| self.drawn.get(index).map_or(f64::NEG_INFINITY, |drawn: &Drawn| drawn.time);
        time(a) > time(b)
    }

    /// Brings the one at the end to its place.
    fn rise(&mut self) {
        let mut place = self.drawn.len() - 1;
        while place > 0 {
            let above = (place - 1) / 2;
            if !self.is_later(place, above) {
                return;
            }
            self.drawn.swap(above, place);
            place = above;
        }
    }

    /// Brings the one on top to its place.
    fn sink(&mut self) {
        let mut place = 0;
        while 2 * place + 1 < self.drawn.len() {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let later = if right < self.drawn.len() && self.is_later(right, left) { right } else { left };
            if !self.is_later(later, place) {
                return;
            }
            self.drawn.swap(place, later);
            place = later;
        }
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
