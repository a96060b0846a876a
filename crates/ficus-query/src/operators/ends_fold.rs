//! What is made of the ends of a hop that is no row for each ([`super::folds`]): the hop hands them on packed, many to a row.

use ficus_dataflow::{Flow, NodeName, Operator, Remains};
use ficus_model::{Value, VertexId};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::operators::folds::{Bulks, Fold, Gathered};
use crate::operators::packed_ends::ends_of;
use crate::physical::{Builder, Chain};
use crate::traverser::StepInfo;
use crate::vertex_counts::VertexCounts;

/// Ends that are taken in in the time of one row.
const ENDS_PER_UNIT: usize = 4;

/// Ends from which on columns are read.
const RUN: usize = 256;

/// Different ends that wait before something is read of them one by one: they may be few that come again and again.
const WAITING: usize = 1 << 13;

/// Ends for each different one, on average, from which on waiting is worth it.
const ENDS_PER_VERTEX: usize = 2;

struct FoldEnds {
    gathered: Gathered,
    step: StepInfo,
    /// Ends of which columns do not say enough, and how many came.
    waiting: VertexCounts,
    waited: usize,
    /// They are different ones, as far as can be told.
    one_by_one: bool,
    /// Ends to be taken in, and how often each counts.
    vertices: Vec<VertexId>,
    bulks: Vec<u64>,
}

impl FoldEnds {
    /// Takes in the ends that were gathered.
    fn add_run(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        let FoldEnds { gathered, waiting, waited, one_by_one, vertices, bulks, .. } = self;
        if vertices.is_empty() {
            return Ok(());
        }
        let counts = match bulks.as_slice() {
            [first, others @ ..] if others.iter().all(|bulk| bulk == first) => Bulks::All(*first),
            bulks => Bulks::Each(bulks),
        };
        // What waits comes first.
        let is_told = waiting.is_empty() && gathered.add_vertices(vertices, counts, cx.context)?;
        if !is_told {
            let waits = gathered.only_counts() && !*one_by_one;
            for (vertex, bulk) in vertices.iter().zip(&*bulks) {
                match waits {
                    true => waiting.add(*vertex, *bulk, &cx.context.memory)?,
                    false => gathered.add(&Value::Vertex(*vertex), *bulk, cx.context)?,
                }
            }
            *waited += vertices.len();
        }
        cx.charge(vertices.len() / ENDS_PER_UNIT);
        vertices.clear();
        bulks.clear();
        if self.waiting.len() >= WAITING { self.add_waiting(cx) } else { Ok(()) }
    }

    /// Takes in the ends that wait.
    fn add_waiting(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        self.one_by_one |= self.waited < ENDS_PER_VERTEX * self.waiting.len();
        self.waited = 0;
        while let Some((vertex, bulk)) = self.waiting.pop_front() {
            self.gathered.add(&Value::Vertex(vertex), bulk, cx.context)?;
            cx.charge(1);
        }
        self.waiting.clear();
        Ok(())
    }
}

impl Operator<Graphs> for FoldEnds {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(row) = input.pop_front() {
            cx.charge(1);
            for end in ends_of(&row) {
                let Value::Vertex(vertex) = end else {
                    // In the order in which they come.
                    self.add_run(cx)?;
                    self.add_waiting(cx)?;
                    self.gathered.add(end, row.bulk, cx.context)?;
                    continue;
                };
                self.vertices.push(*vertex);
                self.bulks.push(row.bulk);
            }
            if self.vertices.len() >= RUN || input.is_empty() {
                self.add_run(cx)?;
            }
            if cx.exhausted() && !input.is_empty() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        self.add_waiting(cx)?;
        self.gathered.finish(&self.step, out, cx)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.gathered.surrender(remains);
    }

    fn reset(&mut self) {
        self.vertices.clear();
        self.bulks.clear();
        self.waiting.clear();
        (self.waited, self.one_by_one) = (0, false);
        self.gathered.reset();
    }
}

/// Adds a fold behind a hop that packs its ends.
pub fn build(builder: &mut Builder, name: &NodeName, fold: Fold, step: StepInfo, chain: &mut Chain) {
    builder.operator(chain, name, fold.speaks_of_nothing(), move || FoldEnds {
        gathered: Gathered::new(fold.clone()),
        step: step.clone(),
        waiting: VertexCounts::default(),
        waited: 0,
        one_by_one: false,
        vertices: Vec::new(),
        bulks: Vec::new(),
    });
}
