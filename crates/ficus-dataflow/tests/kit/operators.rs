//! Operators on integers, which wrap: loops over sums grow without end.

use std::collections::HashSet;

use ficus_dataflow::{Cx, Flow, Operator, Queue};

use super::{Integers, Row, TestError};

type Rows = Queue<Row>;
type Context<'a> = Cx<'a, Integers>;
type Result = std::result::Result<Flow, TestError>;

/// Applies `function` to row after row, as long as there is room.
fn per_row(
    input: &mut Rows,
    out: &mut Rows,
    cx: &mut Context<'_>,
    mut function: impl FnMut(Row) -> Option<Row>,
) -> Flow {
    while let Some(row) = input.pop_front() {
        out.extend(function(row));
        if cx.should_pause(out) {
            return Flow::More;
        }
    }
    Flow::Ready
}

pub struct Expand {
    count: i64,
    current: Option<(Row, i64)>,
}

impl Expand {
    pub fn new(count: i64) -> Expand {
        Expand { count, current: None }
    }
}

impl Operator<Integers> for Expand {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, cx: &mut Context<'_>) -> Result {
        loop {
            while let Some((row, next)) = &mut self.current {
                if *next == self.count {
                    self.current = None;
                    break;
                }
                if cx.should_pause(out) {
                    return Ok(Flow::More);
                }
                out.push_back(Row { value: row.value.wrapping_add(*next), ..row.clone() });
                *next += 1;
            }
            match input.pop_front() {
                Some(row) => self.current = Some((row, 0)),
                None => return Ok(Flow::Ready),
            }
        }
    }

    fn reset(&mut self) {
        self.current = None;
    }
}

pub struct Add {
    pub amount: i64,
}

impl Operator<Integers> for Add {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, cx: &mut Context<'_>) -> Result {
        Ok(per_row(input, out, cx, |row| Some(Row { value: row.value.wrapping_add(self.amount), ..row })))
    }

    fn reset(&mut self) {}
}

pub struct Keep {
    pub modulus: i64,
    pub rest: i64,
}

impl Operator<Integers> for Keep {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, cx: &mut Context<'_>) -> Result {
        Ok(per_row(input, out, cx, |row| (row.value.rem_euclid(self.modulus) == self.rest).then_some(row)))
    }

    fn reset(&mut self) {}
}

pub struct Dedup {
    by_value: bool,
    seen: HashSet<Row>,
}

impl Dedup {
    pub fn new(by_value: bool) -> Dedup {
        Dedup { by_value, seen: HashSet::new() }
    }

    pub fn key(by_value: bool, row: &Row) -> Row {
        if by_value { Row::new(row.value) } else { row.clone() }
    }
}

impl Operator<Integers> for Dedup {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, cx: &mut Context<'_>) -> Result {
        let (by_value, seen) = (self.by_value, &mut self.seen);
        Ok(per_row(input, out, cx, |row| seen.insert(Dedup::key(by_value, &row)).then_some(row)))
    }

    fn cancel(&mut self) {
        // Iterations share what was seen.
    }

    fn reset(&mut self) {
        self.seen.clear();
    }
}

/// Passes `count` rows over all iterations, then ends what is before it.
pub struct Limit {
    pub count: usize,
    pub seen: usize,
}

impl Operator<Integers> for Limit {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, cx: &mut Context<'_>) -> Result {
        while self.seen < self.count {
            let Some(row) = input.pop_front() else { return Ok(Flow::Ready) };
            self.seen += 1;
            out.push_back(row);
            if cx.should_pause(out) && self.seen < self.count {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Complete)
    }

    fn cancel(&mut self) {}

    fn reset(&mut self) {
        self.seen = 0;
    }
}

#[derive(Default)]
pub struct Sum {
    sum: i64,
    loops: Option<Vec<(u32, u32)>>,
}

impl Operator<Integers> for Sum {
    fn process(&mut self, input: &mut Rows, _out: &mut Rows, _cx: &mut Context<'_>) -> Result {
        for row in input.drain(..) {
            self.sum = self.sum.wrapping_add(row.value);
            self.loops.get_or_insert(row.loops);
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Rows, _cx: &mut Context<'_>) -> Result {
        let Sum { sum, loops } = std::mem::take(self);
        out.push_back(Row { value: sum, loops: loops.unwrap_or_default(), mark: false });
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        *self = Sum::default();
    }
}

/// Keeps its input on the query's account until EOS.
#[derive(Default)]
pub struct Sort {
    rows: Vec<Row>,
    held: usize,
    sorted: bool,
}

impl Operator<Integers> for Sort {
    fn process(&mut self, input: &mut Rows, _out: &mut Rows, cx: &mut Context<'_>) -> Result {
        self.held += input.len();
        cx.context.count(input.len() as isize);
        self.rows.extend(input.drain(..));
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Rows, cx: &mut Context<'_>) -> Result {
        if !self.sorted {
            self.rows.sort_by(|a, b| b.cmp(a));
            self.sorted = true;
        }
        while !cx.should_pause(out) {
            let Some(row) = self.rows.pop() else {
                self.sorted = false;
                return Ok(Flow::Ready);
            };
            self.held -= 1;
            cx.context.count(-1);
            out.push_back(row);
        }
        Ok(Flow::More)
    }

    fn release(&mut self, cx: &mut Context<'_>) {
        cx.context.count(-(std::mem::take(&mut self.held) as isize));
    }

    fn reset(&mut self) {
        self.rows.clear();
        self.held = 0;
        self.sorted = false;
    }
}

pub struct Note;

impl Operator<Integers> for Note {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, cx: &mut Context<'_>) -> Result {
        for row in input.drain(..) {
            cx.context.trace.push((row.value, cx.tag.numbers().to_vec()));
            out.push_back(row);
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

pub struct PanicAt {
    pub value: i64,
}

impl Operator<Integers> for PanicAt {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, _cx: &mut Context<'_>) -> Result {
        for row in input.drain(..) {
            assert_ne!(row.value, self.value, "a planned panic");
            out.push_back(row);
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

/// Fails at this number; rows before it come out.
pub struct FailAt {
    pub value: i64,
}

impl Operator<Integers> for FailAt {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, cx: &mut Context<'_>) -> Result {
        while let Some(row) = input.pop_front() {
            if row.value == self.value {
                return Err(TestError::Planned);
            }
            out.push_back(row);
            if cx.should_pause(out) {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

pub struct EnterLoop {
    pub id: u32,
}

impl EnterLoop {
    pub fn enter(id: u32, mut row: Row) -> Row {
        if row.loops.last().is_none_or(|(last, _)| *last != id) {
            row.loops.push((id, 0));
        }
        row
    }
}

impl Operator<Integers> for EnterLoop {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, cx: &mut Context<'_>) -> Result {
        Ok(per_row(input, out, cx, |row| Some(EnterLoop::enter(self.id, row))))
    }

    fn reset(&mut self) {}
}

pub struct MarkIf {
    pub modulus: i64,
    pub rest: i64,
}

impl Operator<Integers> for MarkIf {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, cx: &mut Context<'_>) -> Result {
        Ok(per_row(input, out, cx, |row| {
            let mark = row.value.rem_euclid(self.modulus) == self.rest;
            Some(Row { mark, ..row })
        }))
    }

    fn reset(&mut self) {}
}
