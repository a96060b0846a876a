//! Operators that make at most one row of one row, or let it through: the loop over the batch around a function.

use ficus_dataflow::{Flow, Operator};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::traverser::Traverser;

/// Calls `function` for every row; `None` drops it.
pub struct PerRow<F> {
    /// The function.
    pub function: F,
}

impl<F> Operator<Graphs> for PerRow<F>
where
    F: FnMut(Traverser, &mut Cx<'_>) -> Result<Option<Traverser>> + Send,
{
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let mut room = cx.batch_rows_limit.saturating_sub(out.len()).max(1);
        let mut turn = 0usize;
        while let Some(traverser) = input.pop_front() {
            turn += 1;
            if let Some(result) = (self.function)(traverser, cx)? {
                out.push_back(result);
                room -= 1;
                if room == 0 {
                    return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
                }
            }
            // Filters that let nothing through end their turn too.
            if turn as i64 >= cx.quota || cx.exhausted() {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

/// Lets rows through or drops them. `test` looks at rows where they lie, so that those of a batch that all pass are not moved one by one.
pub struct KeepRows<T> {
    test: T,
    verdicts: Vec<bool>,
}

/// Decides on rows.
pub trait RowTest: Send {
    /// Says of the first `count` rows whether they pass, or of fewer, but at least one, if the turn is over: in their order, behind
    /// what `verdicts` has.
    ///
    /// Errors: those of the test.
    fn test(&mut self, rows: &Traversers, count: usize, verdicts: &mut Vec<bool>, cx: &mut Cx<'_>) -> Result<()>;
}

impl<F> RowTest for F
where
    F: FnMut(&Traverser, &mut Cx<'_>) -> Result<bool> + Send,
{
    fn test(&mut self, rows: &Traversers, count: usize, verdicts: &mut Vec<bool>, cx: &mut Cx<'_>) -> Result<()> {
        for row in rows.iter().take(count) {
            verdicts.push(self(row, cx)?);
            if cx.exhausted() {
                break;
            }
        }
        Ok(())
    }
}

impl<T> KeepRows<T> {
    /// An operator around a test.
    pub fn new(test: T) -> KeepRows<T> {
        KeepRows { test, verdicts: Vec::new() }
    }
}

impl<T: RowTest> Operator<Graphs> for KeepRows<T> {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let mut left = usize::try_from(cx.quota).unwrap_or(1).max(1);
        while !input.is_empty() {
            let room = cx.batch_rows_limit.saturating_sub(out.len());
            if left == 0 || room == 0 {
                return Ok(Flow::More);
            }
            self.verdicts.clear();
            self.test.test(input, left.min(room), &mut self.verdicts, cx)?;
            left = left.saturating_sub(self.verdicts.len());
            if self.verdicts.len() == input.len() && self.verdicts.iter().all(|passes| *passes) {
                out.append(input);
                return Ok(Flow::Ready);
            }
            for (row, passes) in input.drain(..self.verdicts.len()).zip(&self.verdicts) {
                if *passes {
                    out.push_back(row);
                }
            }
            if cx.exhausted() {
                break;
            }
        }
        Ok(if input.is_empty() { Flow::Ready } else { Flow::More })
    }

    fn reset(&mut self) {}
}
