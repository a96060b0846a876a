//! `as()` after a step that keeps its object: labels the last object of the path. And what takes labels away.

use ficus_dataflow::{Flow, Operator};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::logical::Name;
use crate::operators::per_row::PerRow;
use crate::physical::{Builder, Chain};
use crate::traverser::{Labels, Traverser};

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

/// Adds the operator that takes away all labels but some.
pub fn build_keep(builder: &mut Builder, labels: &[Name], chain: &mut Chain) -> Result<()> {
    let kept: Labels = labels.into();
    let id = builder.operator(chain, "keep labels", false, move || {
        let kept = kept.clone();
        PerRow {
            function: move |mut traverser: Traverser, _: &mut Cx<'_>| {
                traverser.keep_labels(&kept);
                Ok(Some(traverser))
            },
        }
    });
    builder.auxiliary(id);
    Ok(())
}
