//! `groupCount()` of vertices, or of their ids, by their numbers, and `groupCount().by(key)`, which reads the key of each vertex once, and not of each row.
//!
//! Rows that come over edges are often the same few vertices. The property of a vertex is what it is for as long as a query reads one
//! snapshot, so it makes no difference when it is read. Where rows turn out to be different vertices, keys are read row by row; where
//! few different texts are under the key, rows are counted by their codes, which takes less than to find out which vertices are the same.

use ficus_dataflow::{Flow, NodeName, Operator, Remains};
use ficus_model::{Value, ValueMap, VertexId};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::growing::Keyed;
use crate::modulate::Modulator;
use crate::operators::group::{count, count_at};
use crate::operators::key_numbers::KeyNumbers;
use crate::operators::packed_ends::ends_of;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser, marks};
use crate::vertex_counts::VertexCounts;

/// Vertices that are counted before their keys are read.
const WAITING: usize = 1 << 13;

/// What a group takes in the map: hash, key, value, and place in the index.
const GROUP_BYTES: usize = 2 * size_of::<Value>() + 24;

/// Ends that a hop has packed that are counted in the time of one row.
const ENDS_PER_UNIT: usize = 4;

/// Vertices whose codes are looked up at once.
const RUN: usize = 256;

/// Rows for each vertex, on average, from which on counting vertices first is worth it.
const ROWS_PER_VERTEX: usize = 2;

struct CountsByKey {
    key: Modulator,
    step: StepInfo,
    /// In the order in which they came first, which is that of their keys.
    waiting: VertexCounts,
    /// Rows that are in `waiting`.
    rows: usize,
    /// Rows are different vertices, as far as can be told.
    row_by_row: bool,
    /// Columns told the keys of the last vertices.
    by_code: bool,
    of_codes: KeyNumbers,
    /// Vertices whose keys are read at once, how often each counts, and the numbers of their groups.
    vertices: Vec<VertexId>,
    bulks: Vec<u64>,
    numbers: Vec<u32>,
    counts: Keyed<i64>,
    /// The result under way.
    finished: ValueMap,
}

impl CountsByKey {
    /// Counts the vertices at the front of a queue.
    fn add_run(&mut self, input: &mut Traversers, cx: &mut Cx<'_>) -> Result<()> {
        self.vertices.clear();
        self.bulks.clear();
        while let Some(Traverser { value: Value::Vertex(vertex), bulk, .. }) = input.front()
            && self.vertices.len() < RUN
        {
            self.vertices.push(*vertex);
            self.bulks.push(*bulk);
            input.pop_front();
        }
        self.add_gathered(cx)
    }

    /// Counts the vertices that were gathered.
    fn add_gathered(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        if let Modulator::Key(key) | Modulator::First(key) = &mut self.key {
            let CountsByKey { vertices, numbers, counts, .. } = self;
            self.by_code = self.of_codes.of(key, vertices, counts, || (0, 0), numbers, cx.context)?;
        }
        if self.by_code {
            let counts = &mut self.counts;
            self.numbers.iter().zip(&self.bulks).for_each(|(number, bulk)| count_at(counts, *number, *bulk));
            return Ok(());
        }
        for place in 0..self.vertices.len() {
            self.add(&Value::Vertex(self.vertices[place]), self.bulks[place], cx)?;
            cx.charge(1);
        }
        Ok(())
    }

    /// Counts one that is no vertex, or whose key is read at once.
    fn add(&mut self, value: &Value, bulk: u64, cx: &Cx<'_>) -> Result<()> {
        match self.key.evaluate(value, cx.context)? {
            Some(key) => count(&mut self.counts, key, bulk, &cx.context.memory),
            None => Ok(()),
        }
    }

    /// Counts what a row is at.
    fn add_end(&mut self, value: &Value, bulk: u64, cx: &mut Cx<'_>) -> Result<()> {
        match value {
            Value::Vertex(vertex) if !self.row_by_row => {
                self.rows += 1;
                self.waiting.add(*vertex, bulk, &cx.context.memory)?;
                if self.waiting.len() >= WAITING {
                    self.read_keys(cx)?;
                }
                Ok(())
            }
            value => {
                // Keys stay in the order in which they came first.
                self.read_keys(cx)?;
                self.add(value, bulk, cx)
            }
        }
    }

    /// Counts the ends that a hop has packed into a row.
    fn add_ends(&mut self, row: &Traverser, cx: &mut Cx<'_>) -> Result<()> {
        let ends = ends_of(row);
        cx.charge(ends.len().div_ceil(ENDS_PER_UNIT));
        if !self.by_code {
            return ends.iter().try_for_each(|end| self.add_end(end, row.bulk, cx));
        }
        self.vertices.clear();
        self.vertices.extend(ends.iter().filter_map(|end| match end {
            Value::Vertex(vertex) => Some(*vertex),
            _ => None,
        }));
        self.bulks.clear();
        self.bulks.resize(self.vertices.len(), row.bulk);
        self.add_gathered(cx)
    }

    /// Reads the keys of those that wait.
    fn read_keys(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.row_by_row |= self.rows < ROWS_PER_VERTEX * self.waiting.len();
        self.rows = 0;
        self.vertices.clear();
        self.bulks.clear();
        while let Some((vertex, bulk)) = self.waiting.pop_front() {
            self.vertices.push(vertex);
            self.bulks.push(bulk);
        }
        self.waiting.clear();
        self.add_gathered(cx)
    }
}

impl Operator<Graphs> for CountsByKey {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if self.by_code && input.front().is_some_and(|first| matches!(first.value, Value::Vertex(_))) {
                self.add_run(input, cx)?;
                if cx.exhausted() {
                    return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
                }
                continue;
            }
            let Some(traverser) = input.pop_front() else { return Ok(Flow::Ready) };
            match traverser.marks & marks::PACKED {
                0 => self.add_end(&traverser.value, traverser.bulk, cx)?,
                _ => self.add_ends(&traverser, cx)?,
            }
            if cx.exhausted() {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        self.read_keys(cx)?;
        if !self.counts.move_to(&mut self.finished, cx, Value::Long)? {
            return Ok(Flow::More);
        }
        let map = Value::Map(std::mem::take(&mut self.finished).into());
        let map = cx.context.made_of(map, self.counts.held());
        out.push_back(cx.context.fresh_at(map, &self.step));
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.counts.surrender(remains);
    }

    fn reset(&mut self) {
        self.waiting.clear();
        (self.rows, self.row_by_row, self.by_code) = (0, false, false);
        self.of_codes.clear();
        (self.vertices, self.bulks, self.numbers) = (Vec::new(), Vec::new(), Vec::new());
        self.counts.clear();
        self.finished = ValueMap::default();
    }
}

/// `groupCount()` of the objects themselves, or of their ids, as long as they are vertices.
struct CountsOfVertices {
    /// What is wanted of the objects; no two vertices have one id.
    key: Modulator,
    step: StepInfo,
    vertices: VertexCounts,
    /// What was counted once something else came.
    counts: Keyed<i64>,
    is_mixed: bool,
    /// The result under way.
    finished: ValueMap,
}

impl CountsOfVertices {
    /// Goes over to counting any values, with those that came first.
    fn mix(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        self.is_mixed = true;
        while let Some((vertex, bulk)) = self.vertices.pop_front() {
            if let Some(key) = self.key.evaluate(&Value::Vertex(vertex), cx.context)? {
                count(&mut self.counts, key, bulk, &cx.context.memory)?;
            }
            cx.charge(1);
            if self.vertices.len().is_multiple_of(WAITING) {
                cx.check()?;
            }
        }
        self.vertices.clear();
        Ok(())
    }
}

impl Operator<Graphs> for CountsOfVertices {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(traverser) = input.pop_front() {
            let ends = ends_of(&traverser);
            cx.charge(ends.len().div_ceil(ENDS_PER_UNIT));
            for end in ends {
                match end {
                    Value::Vertex(vertex) if !self.is_mixed => {
                        self.vertices.add(*vertex, traverser.bulk, &cx.context.memory)?;
                    }
                    value => {
                        if !self.is_mixed {
                            self.mix(cx)?;
                        }
                        if let Some(key) = self.key.evaluate(value, cx.context)? {
                            count(&mut self.counts, key, traverser.bulk, &cx.context.memory)?;
                        }
                    }
                }
            }
            if cx.exhausted() {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.is_mixed && !self.counts.move_to(&mut self.finished, cx, Value::Long)? {
            return Ok(Flow::More);
        }
        if self.finished.is_empty() && self.finished.capacity() < self.vertices.len() {
            let groups = self.vertices.len();
            self.vertices.held().add(&cx.context.memory, groups * GROUP_BYTES)?;
            self.finished.reserve_exact(groups);
        }
        while let Some((vertex, count)) = self.vertices.pop_front() {
            if let Some(key) = self.key.evaluate(&Value::Vertex(vertex), cx.context)? {
                self.vertices.held().add(&cx.context.memory, key.size_hint_bytes() - size_of::<Value>())?;
                self.finished.insert(key, Value::Long(i64::try_from(count).unwrap_or(i64::MAX)));
            }
            cx.charge(1);
            if cx.exhausted() && !self.vertices.is_empty() {
                return Ok(Flow::More);
            }
        }
        let map = Value::Map(std::mem::take(&mut self.finished).into());
        let held = if self.is_mixed { self.counts.held() } else { self.vertices.held() };
        let map = cx.context.made_of(map, held);
        out.push_back(cx.context.fresh_at(map, &self.step));
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.vertices.surrender(remains);
        self.counts.surrender(remains);
    }

    fn reset(&mut self) {
        self.vertices.clear();
        self.counts.clear();
        self.is_mixed = false;
        self.finished = ValueMap::default();
    }
}

/// Adds the operator that counts the objects themselves, or by their ids in a query that only reads.
pub fn build_of_vertices(builder: &mut Builder, name: &NodeName, key: Modulator, step: &StepInfo, chain: &mut Chain) {
    let step = step.clone();
    builder.operator(chain, name, true, move || CountsOfVertices {
        key: key.clone(),
        step: step.clone(),
        vertices: VertexCounts::default(),
        counts: Keyed::default(),
        is_mixed: false,
        finished: ValueMap::default(),
    });
}

/// Adds the operator that counts by a key, which needs no arm, in a query that only reads.
pub fn build(builder: &mut Builder, name: &NodeName, key: Modulator, step: &StepInfo, chain: &mut Chain) {
    let step = step.clone();
    builder.operator(chain, name, true, move || CountsByKey {
        key: key.clone(),
        step: step.clone(),
        waiting: VertexCounts::default(),
        rows: 0,
        row_by_row: false,
        by_code: false,
        of_codes: KeyNumbers::default(),
        vertices: Vec::new(),
        bulks: Vec::new(),
        numbers: Vec::new(),
        counts: Keyed::default(),
        finished: ValueMap::default(),
    });
}
