//! Operators that make at most one row of one row: the loop over the batch around a function.

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
