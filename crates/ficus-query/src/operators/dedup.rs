//! `dedup()`: passes the first of equal traversers.

use ficus_dataflow::{Flow, Operator, Queue, Remains};
use ficus_model::{Value, allocated_bytes};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::growing::Seen;
use crate::logical::{By, Name, Node};
use crate::modulate::{ModulatedLogic, Request, Subject};
use crate::operators::packed_ends::{self, PackedEnds};
use crate::operators::tuples::{self, Tuple};
use crate::operators::walked_rows::{self, Purpose};
use crate::physical::{Builder, Chain, Modulators};
use crate::rules::Rule;
use crate::traverser::Traverser;
use crate::vertex_set::VertexSet;

/// Packed ends that take as long as a row.
const ENDS_PER_UNIT: usize = 8;

/// `dedup()` of the objects themselves. Vertices and edges are most of them, and are known by their numbers.
#[derive(Default)]
struct DedupOperator {
    vertices: VertexSet,
    edges: VertexSet,
    others: Seen<Value>,
}

impl DedupOperator {
    /// Whether a value is seen for the first time.
    fn is_new(&mut self, value: &Value, context: &QueryContext) -> Result<bool> {
        match value {
            Value::Vertex(vertex) => self.vertices.insert(*vertex, &context.memory),
            Value::Edge(edge) => self.edges.insert_edge(*edge, &context.memory),
            value => self.others.insert(value.clone(), own_bytes, &context.memory),
        }
    }
}

/// As [`DedupOperator`], of what a hop has packed.
struct DedupEnds {
    vertices: VertexSet,
    ends: PackedEnds,
}

impl Operator<Graphs> for DedupEnds {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(mut row) = input.pop_front() {
            row.bulk = 1;
            let ends = packed_ends::ends_of(&row);
            cx.charge(ends.len().div_ceil(ENDS_PER_UNIT));
            let mut found = 0;
            for end in ends {
                let Value::Vertex(vertex) = end else { continue };
                if !self.vertices.insert(*vertex, &cx.context.memory)? {
                    continue;
                }
                found += 1;
                if !self.ends.counted {
                    out.push_back(row.advance(end.clone(), &self.ends.step));
                }
            }
            if self.ends.counted && found > 0 {
                out.push_back(row.advance(Value::Null, &self.ends.step).with_bulk(found));
            }
            if cx.should_pause(out) {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.vertices.surrender(remains);
    }

    fn reset(&mut self) {
        self.vertices.clear();
    }
}

/// What a value holds beside itself.
fn own_bytes(value: &Value) -> usize {
    value.size_hint_bytes() - size_of::<Value>()
}

impl Operator<Graphs> for DedupOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(mut traverser) = input.pop_front() {
            if self.is_new(&traverser.value, cx.context)? {
                traverser.bulk = 1;
                out.push_back(traverser);
                if cx.should_pause(out) {
                    return Ok(Flow::More);
                }
            }
        }
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.vertices.surrender(remains);
        self.edges.surrender(remains);
        self.others.surrender(remains);
    }

    fn reset(&mut self) {
        self.vertices.clear();
        self.edges.clear();
        self.others.clear();
    }
}

struct DedupLogic {
    labels: Vec<Name>,
    seen: Seen<Value>,
    seen_many: Seen<Box<[Value]>>,
}

impl ModulatedLogic for DedupLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        if self.labels.is_empty() {
            list.push(Request::current(0));
            return Ok(());
        }
        for label in &self.labels {
            let value = cx.context.scope_value(traverser, label).ok_or_else(|| {
                QueryError::invalid(format!("Neither the map, sideEffects, nor path has a {label}-key"))
            })?;
            list.push(Request { modulator: 0, subject: Subject::Value(value) });
        }
        Ok(())
    }

    fn complete(
        &mut self,
        mut traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        if results.iter().any(Option::is_none) {
            return Ok(());
        }
        let mut keys = results.drain(..).flatten();
        let is_new = if self.labels.is_empty() {
            let key = keys.next().expect("one request was made");
            self.seen.insert(key, own_bytes, &cx.context.memory)?
        } else {
            // As long as there are labels: no room is left over.
            let mut all = Vec::with_capacity(self.labels.len());
            all.extend(keys);
            let room = allocated_bytes(all.len() * size_of::<Value>());
            let own = room + all.iter().map(own_bytes).sum::<usize>();
            self.seen_many.insert(all.into_boxed_slice(), |_| own, &cx.context.memory)?
        };
        if is_new {
            traverser.bulk = 1;
            out.push_back(traverser);
        }
        Ok(())
    }

    fn release(&mut self, _context: &mut QueryContext) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.seen.surrender(remains);
        self.seen_many.surrender(remains);
    }

    fn reset(&mut self) {
        self.seen.clear();
        self.seen_many.clear();
    }
}

/// Adds the operator.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    let Node::Dedup { labels, by } = node else {
        return Err(QueryError::invalid(format!("{node} is not dedup()")));
    };
    if labels.is_empty() && by.is_none() {
        if let Some(ends) = builder.take_packed_ends() {
            builder
                .operator(chain, node, false, move || DedupEnds { vertices: VertexSet::default(), ends: ends.clone() });
            return Ok(());
        }
        builder.operator(chain, node, false, DedupOperator::default);
        return Ok(());
    }
    if let Some(tuple) = Tuple::of_labels(labels, by.as_ref())
        && builder.may(Rule::PackedTuples)
    {
        builder.note(Rule::PackedTuples, node);
        let step = builder.step(&[]);
        return tuples::build_distinct(builder, &node.into(), &tuple, &step, false, chain);
    }
    if labels.is_empty()
        && let Some(walks) = by.as_ref().and_then(|by| builder.walks_ahead(by))
    {
        walked_rows::build(builder, walks, Purpose::Distinct, chain);
    }
    let labels = labels.clone();
    let bys: Vec<By> = by.iter().cloned().collect();
    builder.modulated(chain, node, false, Modulators::of(&bys), move || DedupLogic {
        labels: labels.clone(),
        seen: Seen::default(),
        seen_many: Seen::default(),
    })
}
