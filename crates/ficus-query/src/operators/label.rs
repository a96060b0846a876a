//! `as()` after a step that keeps its object: labels the last object of the path.

use ficus_dataflow::{Flow, Operator};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::physical::{Builder, Chain};
use crate::traverser::Labels;

struct LabelOperator {
    labels: Labels,
}

impl Operator<Graphs> for LabelOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(mut traverser) = input.pop_front() {
            traverser.add_labels(&self.labels);
            out.push_back(traverser);
            if cx.should_pause(out) {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

/// Adds the operator.
pub fn build(builder: &mut Builder, labels: Labels, chain: &mut Chain) {
    let id = builder.operator(chain, "as", false, move || LabelOperator { labels: labels.clone() });
    builder.auxiliary(id);
}
