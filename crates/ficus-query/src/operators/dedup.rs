//! `dedup()`: passes the first of equal traversers.

use ficus_dataflow::Queue;
use ficus_model::Value;
use hashbrown::HashSet;

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
use crate::logical::{By, Name, Node};
use crate::modulate::{ModulatedLogic, Request, Subject};
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::Traverser;

/// An entry of a set of values or lists, with the slots that stay free.
const SLOT_BYTES: usize = 2 * size_of::<Value>();

/// Entries for which the room of a set is kept for the next scope instance.
const ENTRIES_KEPT: usize = 64;

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
    let labels = labels.clone();
    let bys: Vec<By> = by.iter().cloned().collect();
    builder.modulated(chain, &node.to_string(), false, Modulators::of(&bys), move || DedupLogic {
        labels: labels.clone(),
        seen: HashSet::new(),
        seen_many: HashSet::new(),
        held: Held::default(),
    })
}
