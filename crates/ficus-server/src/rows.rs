//! From a query's events to the parts of its answer: cutting and joining batches to the size the client wants.
//!
//! A full part is held back until there is one more row, so that the last part always carries the final status: 128 rows
//! in batches of 64 are one 206 and one 200.
//!
//! Rows that are large make smaller parts than the client wants: what lies here and on the way to a client that is slow is bounded in bytes, too.

use std::task::{Context, Poll, ready};

use ficus_model::Value;
use ficus_query::budget::Held;
use ficus_wire::Data;

use crate::backend::Failure;
use crate::event::{Batch, Completion, Event, EventReceiver};

/// A part with so many bytes is full, whatever number of rows the client wants.
const PART_BYTES: usize = 1 << 20;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Each value as often as it occurs, for text.
    Values,
    /// Values with their bulk, for bytecode.
    Traversers,
}

/// A part of an answer.
#[derive(Debug)]
pub(crate) enum Part {
    /// Rows, and more to come.
    More(Data),
    /// The last rows, [`Data::None`] when there were none at all.
    Last(Data, Completion),
    /// The query failed.
    Failed(Failure),
}

/// The rows of one query on their way into parts.
#[derive(Debug)]
pub(crate) struct Rows {
    receiver: EventReceiver,
    shape: Shape,
    batch_size: usize,
    /// Rows of the batch that is being cut.
    batch: std::vec::IntoIter<(Value, u64)>,
    /// A row that found no room, or what is left of its bulk; it comes first in the next part.
    waiting: Option<(Value, u64)>,
    values: Vec<Value>,
    traversers: Vec<(Value, u64)>,
    /// Rows sent so far, for logs and metrics.
    pub sent: u64,
    /// What the rows here take of the query's memory, and how many they are.
    held: Held,
    counted: usize,
    /// What those of the last part take.
    leaving: Held,
}

impl Rows {
    pub fn new(receiver: EventReceiver, shape: Shape, batch_size: usize) -> Rows {
        Rows {
            receiver,
            shape,
            batch_size,
            batch: Vec::new().into_iter(),
            waiting: None,
            values: Vec::new(),
            traversers: Vec::new(),
            sent: 0,
            held: Held::default(),
            counted: 0,
            leaving: Held::default(),
        }
    }

    /// What the rows of the last part take of the query's memory.
    pub fn take_held(&mut self) -> Held {
        std::mem::take(&mut self.leaving)
    }

    /// The next part, when it is there. Not to be called again after the last.
    pub fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Part> {
        loop {
            let full = match self.shape {
                Shape::Values => self.cut_values(),
                Shape::Traversers => self.cut_traversers(),
            };
            if full {
                return Poll::Ready(Part::More(self.take()));
            }
            // One more than the part takes, see above.
            let wanted = 1 + self.batch_size.saturating_sub(self.gathered());
            match ready!(self.receiver.poll_event(wanted, context)) {
                Event::Batch(batch) => {
                    let is_heavy = self.held.bytes() >= PART_BYTES && self.gathered() > 0;
                    let part = is_heavy.then(|| self.take());
                    self.add(batch);
                    if let Some(part) = part {
                        return Poll::Ready(Part::More(part));
                    }
                }
                Event::Done(completion) => return Poll::Ready(Part::Last(self.take(), completion)),
                Event::Failed(failure) => return Poll::Ready(Part::Failed(failure)),
            }
        }
    }

    fn add(&mut self, mut batch: Batch) {
        self.counted += batch.rows.len();
        self.held.absorb(&mut batch.held);
        self.batch = batch.rows.into_iter();
    }

    /// Rows of the part so far.
    fn gathered(&self) -> usize {
        self.values.len() + self.traversers.len()
    }

    /// The memory of the rows that leave goes with them: of the rows that came, those that are still here take their part of it.
    fn settle(&mut self) {
        let staying = self.batch.len() + usize::from(self.waiting.is_some()) + self.gathered();
        let bytes = self.held.bytes() as u128 * staying as u128 / self.counted.max(1) as u128;
        let leaving =
            self.held.bytes() - usize::try_from(bytes).map_or(self.held.bytes(), |bytes| bytes.min(self.held.bytes()));
        self.leaving = self.held.split(leaving);
        self.counted = staying;
    }

    /// Moves rows until the part is full and another row waits (true), or no row is left (false).
    fn cut_values(&mut self) -> bool {
        loop {
            let (value, bulk) = match self.waiting.take().or_else(|| self.batch.next()) {
                None => return false,
                Some((_, 0)) => continue,
                Some(row) => row,
            };
            let room = self.batch_size - self.values.len();
            let take = usize::try_from(bulk).unwrap_or(usize::MAX).min(room);
            match bulk - take as u64 {
                0 => {
                    self.values.extend(std::iter::repeat_n(value, take));
                }
                left => {
                    self.values.extend(std::iter::repeat_n(value.clone(), take));
                    self.waiting = Some((value, left));
                    return true;
                }
            }
        }
    }

    fn cut_traversers(&mut self) -> bool {
        let room = self.batch_size - self.traversers.len();
        // The usual case moves a whole batch without copying it row by row.
        if self.traversers.is_empty() && self.batch.len() <= room {
            let batch = std::mem::take(&mut self.batch);
            self.traversers = batch.filter(|(_, bulk)| *bulk > 0).collect();
            return false;
        }
        for row in self.batch.by_ref() {
            if row.1 == 0 {
                continue;
            }
            if self.traversers.len() == self.batch_size {
                // `traversers` leaves with this part; the row is the head of the next one.
                self.waiting = Some(row);
                return true;
            }
            self.traversers.push(row);
        }
        false
    }

    fn take(&mut self) -> Data {
        let data = match self.shape {
            Shape::Values => Data::Values(std::mem::take(&mut self.values)),
            Shape::Traversers => {
                let rows = std::mem::take(&mut self.traversers);
                self.traversers.extend(self.waiting.take());
                Data::Traversers(rows)
            }
        };
        self.settle();
        let rows = data.rows();
        self.sent += rows as u64;
        if rows == 0 { Data::None } else { data }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use ficus_query::budget::MemoryAccount;

    use super::*;
    use crate::event::channel;

    /// Runs batches of (value, bulk) through and shows the parts.
    fn check(shape: Shape, batch_size: usize, batches: &[&[(i32, u64)]], expected: &[&str]) {
        let (sink, receiver) = channel();
        for batch in batches {
            let rows: Vec<_> = batch.iter().map(|(value, bulk)| (Value::Int(*value), *bulk)).collect();
            let _ = sink.try_push(rows.into(), Waker::noop());
        }
        sink.done(Completion::default());
        let mut rows = Rows::new(receiver, shape, batch_size);
        let mut parts = Vec::new();
        loop {
            match rows.poll_part(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Part::More(data)) => parts.push(format!("206 {}", show(&data))),
                Poll::Ready(Part::Last(data, _)) => {
                    parts.push(format!("200 {}", show(&data)));
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(parts, expected, "{shape:?} {batch_size} {batches:?}");
    }

    fn show(data: &Data) -> String {
        let int = |value: &Value| match value {
            Value::Int(number) => *number,
            other => panic!("{other:?}"),
        };
        match data {
            Data::None => "-".into(),
            Data::Values(values) => values.iter().map(|value| int(value).to_string()).collect::<Vec<_>>().join(","),
            Data::Traversers(rows) | Data::Bulked(rows) => {
                rows.iter().map(|(value, bulk)| format!("{}x{bulk}", int(value))).collect::<Vec<_>>().join(",")
            }
        }
    }

    #[test]
    fn the_last_part_is_never_empty_unless_all_is() {
        check(Shape::Values, 2, &[], &["200 -"]);
        check(Shape::Values, 2, &[&[(1, 1)]], &["200 1"]);
        check(Shape::Values, 2, &[&[(1, 1), (2, 1)]], &["200 1,2"]);
        check(Shape::Values, 2, &[&[(1, 1), (2, 1), (3, 1)]], &["206 1,2", "200 3"]);
        check(Shape::Values, 2, &[&[(1, 1), (2, 1)], &[(3, 1), (4, 1)]], &["206 1,2", "200 3,4"]);
        check(Shape::Traversers, 2, &[], &["200 -"]);
        check(Shape::Traversers, 2, &[&[(1, 1), (2, 1)]], &["200 1x1,2x1"]);
        check(Shape::Traversers, 2, &[&[(1, 1), (2, 1)], &[(3, 1), (4, 1)]], &["206 1x1,2x1", "200 3x1,4x1"]);
    }

    #[test]
    fn batches_are_cut_and_joined() {
        check(Shape::Values, 3, &[&[(1, 1)], &[(2, 1)], &[(3, 1)], &[(4, 1)]], &["206 1,2,3", "200 4"]);
        check(Shape::Traversers, 3, &[&[(1, 1)], &[(2, 1)], &[(3, 1)], &[(4, 1)]], &["206 1x1,2x1,3x1", "200 4x1"]);
        let five: &[(i32, u64)] = &[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)];
        check(Shape::Traversers, 2, &[five], &["206 1x1,2x1", "206 3x1,4x1", "200 5x1"]);
        check(Shape::Traversers, 1, &[five], &["206 1x1", "206 2x1", "206 3x1", "206 4x1", "200 5x1"]);
    }

    #[test]
    fn heavy_rows_make_small_parts_and_take_their_memory_along() {
        for shape in [Shape::Values, Shape::Traversers] {
            let account = MemoryAccount::new(1 << 30);
            let (sink, receiver) = channel();
            for number in 0..3 {
                let mut batch = Batch::from(vec![(Value::Int(number), 1), (Value::Int(number + 10), 1)]);
                batch.held.add(&account, PART_BYTES).expect("there is room");
                assert!(matches!(sink.try_push(batch, Waker::noop()), crate::event::Push::Accepted));
            }
            sink.done(Completion::default());
            let mut rows = Rows::new(receiver, shape, 1000);
            let mut parts = Vec::new();
            for left in [2, 1, 0] {
                let Poll::Ready(Part::More(data) | Part::Last(data, _)) =
                    rows.poll_part(&mut Context::from_waker(Waker::noop()))
                else {
                    panic!("all is there");
                };
                parts.push(data.rows());
                assert_eq!(rows.take_held().bytes(), PART_BYTES);
                assert_eq!(account.used_bytes(), left * PART_BYTES, "what left is handed back");
            }
            assert_eq!(parts, [2, 2, 2], "{shape:?}");
        }
    }

    #[test]
    fn what_is_left_of_a_batch_keeps_its_part_of_the_memory() {
        let account = MemoryAccount::new(1 << 30);
        let (sink, receiver) = channel();
        let mut batch = Batch::from(vec![(Value::Int(1), 1); 10]);
        batch.held.add(&account, 1000).expect("there is room");
        assert!(matches!(sink.try_push(batch, Waker::noop()), crate::event::Push::Accepted));
        sink.done(Completion::default());
        let mut rows = Rows::new(receiver, Shape::Values, 4);
        let mut left = Vec::new();
        for _ in 0..3 {
            assert!(rows.poll_part(&mut Context::from_waker(Waker::noop())).is_ready());
            drop(rows.take_held());
            left.push(account.used_bytes());
        }
        assert_eq!(left, [600, 200, 0]);
    }

    #[test]
    fn text_repeats_bulks_and_bytecode_does_not() {
        check(Shape::Values, 2, &[&[(7, 5)]], &["206 7,7", "206 7,7", "200 7"]);
        check(Shape::Values, 2, &[&[(7, 2), (8, 0), (9, 2)]], &["206 7,7", "200 9,9"]);
        check(Shape::Traversers, 2, &[&[(7, 5), (8, 0)]], &["200 7x5"]);
        check(Shape::Traversers, 2, &[&[(7, 5), (8, 0), (9, 1), (6, 1)]], &["206 7x5,9x1", "200 6x1"]);
    }
}
