//! `count()` and `groupCount().by(label)` of all elements, or of those of some labels, told by the counters that the store keeps.
//!
//! What the transaction itself has added and removed is in these counters, and asking them is a read that its commit has to find unchanged.

use std::collections::BTreeMap;

use ficus_dataflow::{Flow, NodeName, Operator};
use ficus_model::{LabelId, Value, ValueMap};
use ficus_storage::ElementKind;

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::elements::LabelSet;
use crate::physical::{Builder, Chain};
use crate::traverser::StepInfo;

/// Which counters are asked.
#[derive(Clone)]
pub struct KeptCounts {
    /// What is counted.
    pub elements: ElementKind,
    /// Labels of which an element has to have one; `None`: any.
    pub labels: Option<LabelSet>,
    /// `groupCount().by(label)` and not `count()`.
    pub by_label: bool,
}

impl KeptCounts {
    /// The counters, by label where it matters.
    fn ask(&mut self, context: &QueryContext) -> Vec<(LabelId, u64)> {
        let (transaction, elements) = (&context.transaction, self.elements);
        match &mut self.labels {
            None if self.by_label => transaction.counts_by_label(elements),
            None => {
                let all = match elements {
                    ElementKind::Vertex => transaction.vertex_count(),
                    ElementKind::Edge => transaction.edge_count(),
                };
                vec![(LabelId(0), all)]
            }
            Some(labels) => {
                let count = |label: &LabelId| match elements {
                    ElementKind::Vertex => (*label, transaction.vertex_count_with_label(*label)),
                    ElementKind::Edge => (*label, transaction.edge_count_with_label(*label)),
                };
                let those = labels.ids(context).unwrap_or_default().iter().map(count);
                those.filter(|(_, count)| *count > 0).collect()
            }
        }
    }
}

struct KeptCountsOperator {
    which: KeptCounts,
    step: StepInfo,
    counts: BTreeMap<LabelId, u64>,
}

impl Operator<Graphs> for KeptCountsOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(traverser) = input.pop_front() {
            for (label, count) in self.which.ask(cx.context) {
                let own = self.counts.entry(label).or_default();
                *own = own.saturating_add(count.saturating_mul(traverser.bulk));
            }
            cx.charge(1);
            if cx.exhausted() && !input.is_empty() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let long = |count: u64| Value::Long(i64::try_from(count).unwrap_or(i64::MAX));
        let counts = std::mem::take(&mut self.counts);
        let result = if self.which.by_label {
            let name = |label| Value::String(cx.context.transaction.label_name(label));
            Value::Map(counts.into_iter().map(|(label, count)| (name(label), long(count))).collect::<ValueMap>().into())
        } else {
            long(counts.into_values().fold(0, u64::saturating_add))
        };
        out.push_back(cx.context.fresh_at(result, &self.step));
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.counts.clear();
    }
}

/// Adds the operator that asks the counters.
pub fn build(builder: &mut Builder, name: &NodeName, which: KeptCounts, step: StepInfo, chain: &mut Chain) {
    builder.operator(chain, name, true, move || KeptCountsOperator {
        which: which.clone(),
        step: step.clone(),
        counts: BTreeMap::new(),
    });
}
