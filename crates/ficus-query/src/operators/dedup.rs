//! `dedup()`: passes the first of equal traversers.

use ficus_dataflow::{Flow, Operator, Queue};
use ficus_model::{Value, VertexId};
use hashbrown::HashSet;

use crate::budget::Held;
use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::logical::{By, Name, Node};
use crate::modulate::{ModulatedLogic, Request, Subject};
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::Traverser;

/// An entry of a set of values or lists, with the slots that stay free.
const SLOT_BYTES: usize = 2 * size_of::<Value>();

/// Entries for which the room of a set is kept for the next scope instance.
const ENTRIES_KEPT: usize = 64;

/// `dedup()` of the objects themselves. Vertices are most of them, and are known by their numbers.
#[derive(Default)]
struct DedupOperator {
    vertices: HashSet<VertexId>,
    others: HashSet<Value>,
    held: Held,
}

impl DedupOperator {
    /// Whether a value is seen for the first time.
    fn is_new(&mut self, value: &Value, context: &QueryContext) -> Result<bool> {
        const VERTEX_BYTES: usize = 2 * size_of::<VertexId>();
        let account = &context.memory;
        if let Value::Vertex(vertex) = value {
            self.held.make_room(account, self.vertices.len(), self.vertices.capacity(), VERTEX_BYTES)?;
            return Ok(self.vertices.insert(*vertex));
        }
        if self.others.contains(value) {
            return Ok(false);
        }
        self.held.make_room(account, self.others.len(), self.others.capacity(), SLOT_BYTES)?;
        self.held.add(account, value.size_hint_bytes() - size_of::<Value>())?;
        Ok(self.others.insert(value.clone()))
    }
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

    fn reset(&mut self) {
        self.vertices.clear();
        self.vertices.shrink_to(ENTRIES_KEPT);
        self.others.clear();
        self.others.shrink_to(ENTRIES_KEPT);
        self.held.give_back();
    }
}

struct DedupLogic {
    labels: Vec<Name>,
    seen: HashSet<Value>,
    seen_many: HashSet<Vec<Value>>,
    held: Held,
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
        let Some(mut keys) = results.drain(..).collect::<Option<Vec<Value>>>() else { return Ok(()) };
        let is_new = if self.labels.is_empty() {
            let key = keys.pop().expect("one request was made");
            !self.seen.contains(&key) && {
                let own = key.size_hint_bytes() - size_of::<Value>();
                self.held.make_room(&cx.context.memory, self.seen.len(), self.seen.capacity(), SLOT_BYTES)?;
                self.held.add(&cx.context.memory, own)?;
                self.seen.insert(key)
            }
        } else {
            !self.seen_many.contains(&keys) && {
                let own = keys.iter().map(Value::size_hint_bytes).sum::<usize>() + 16;
                self.held.make_room(&cx.context.memory, self.seen_many.len(), self.seen_many.capacity(), SLOT_BYTES)?;
                self.held.add(&cx.context.memory, own)?;
                self.seen_many.insert(keys)
            }
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

    fn reset(&mut self) {
        self.seen.clear();
        self.seen.shrink_to(ENTRIES_KEPT);
        self.seen_many.clear();
        self.seen_many.shrink_to(ENTRIES_KEPT);
        self.held.give_back();
    }
}

/// Adds the operator.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    let Node::Dedup { labels, by } = node else {
        return Err(QueryError::invalid(format!("{node} is not dedup()")));
    };
    if labels.is_empty() && by.is_none() {
        builder.operator(chain, &node.to_string(), false, DedupOperator::default);
        return Ok(());
    }
    let labels = labels.clone();
    let bys: Vec<By> = by.iter().cloned().collect();
    builder.modulated(chain, &node.to_string(), false, Modulators::of(&bys), move || DedupLogic {
        labels: labels.clone(),
        seen: HashSet::new(),
        seen_many: HashSet::new(),
        held: Held::default(),
    })
}
