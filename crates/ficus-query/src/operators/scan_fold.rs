//! A scan with its conditions and what is made of all its elements ([`super::folds`]).

use ficus_dataflow::{Flow, NodeName, Operator, Remains};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::operators::folds::{Bulks, Fold, Gathered};
use crate::operators::scan::{self, Elements};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

struct FoldOperator {
    elements: Elements,
    gathered: Gathered,
    step: StepInfo,
    /// The row that the scan under way is made for: each element counts as often.
    input: Option<Traverser>,
}

impl FoldOperator {
    /// Takes in the part that is there.
    fn add_part(&mut self, bulk: u64, context: &QueryContext) -> Result<()> {
        if let Some(count) = self.gathered.count_mut()
            && let Some(elements) = self.elements.take_all_told()
        {
            *count = count.saturating_add(bulk.saturating_mul(elements as u64));
        }
        if let Some(vertices) = self.elements.vertices_all_told()
            && self.gathered.add_vertices(vertices, Bulks::All(bulk), context)?
        {
            self.elements.take_all_told();
        }
        while let Some(element) = self.elements.next_of_part(context)? {
            self.gathered.add(&element, bulk, context)?;
        }
        Ok(())
    }
}

impl Operator<Graphs> for FoldOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if self.input.is_none() {
                let Some(traverser) = input.pop_front() else { return Ok(Flow::Ready) };
                self.elements.begin(cx.context);
                self.input = Some(traverser);
            }
            self.elements.fetch(cx.context)?;
            self.add_part(self.input.as_ref().map_or(1, |row| row.bulk), cx.context)?;
            if let Some(row) = &self.input {
                self.gathered.hand_on(row, &self.step, out);
            }
            if self.elements.is_exhausted() {
                self.input = None;
                self.elements.end();
            }
            self.elements.charge(cx);
            if cx.should_yield(out) && (self.input.is_some() || !input.is_empty()) {
                return Ok(Flow::More);
            }
        }
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        self.gathered.finish(&self.step, out, cx)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.gathered.surrender(remains);
    }

    fn reset(&mut self) {
        self.elements.reset();
        self.gathered.reset();
        self.input = None;
    }
}

/// Adds a scan with its conditions and a fold behind.
pub fn build(builder: &mut Builder, edges: bool, name: &NodeName, fold: Fold, step: StepInfo, chain: &mut Chain) {
    let elements = scan::elements(builder, edges);
    builder.operator(chain, name, fold.speaks_of_nothing(), move || FoldOperator {
        elements: elements(),
        gathered: Gathered::new(fold.clone()),
        step: step.clone(),
        input: None,
    });
}
