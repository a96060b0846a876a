//! `properties().key()`, and properties that are only counted: the keys of elements, without a value or a property of any.
//!
//! Where what is behind gathers rows by their value, keys of many elements are counted together, in the order in which they came first, and few rows go
//! on that count as often.

use ficus_dataflow::{Flow, NodeName, Operator};
use ficus_model::{KeyId, T, Value, VertexId};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::logical::PropertyForm;
use crate::operators::property::{PropertyReader, read_token};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// Keys have such small numbers that what is known of each stands at its number, in half a mebibyte at most.
const KEYS_MAX: usize = 1 << 16;

struct KeysOfProperties {
    /// What is behind takes no notice of which of several equal rows comes when.
    gathered: bool,
    step: StepInfo,
    /// Of what is no vertex.
    reader: PropertyReader,
    /// A row that those that are counted now come of.
    of: Option<Traverser>,
    /// Keys in the order in which they came first, and how often each came.
    keys: Vec<KeyId>,
    counts: Vec<u64>,
}

impl KeysOfProperties {
    /// Counts the keys of a vertex.
    fn count(&mut self, vertex: VertexId, bulk: u64, context: &QueryContext) {
        let KeysOfProperties { keys, counts, .. } = self;
        let known = |counts: &[u64], key: KeyId| counts.get(key.0 as usize).is_some_and(|count| *count > 0);
        // Order matters where a key is new.
        let mut are_known = true;
        context.transaction.visit_vertex_keys(vertex, false, |key| are_known &= known(counts, key));
        context.transaction.visit_vertex_keys(vertex, !are_known, |key| {
            let place = key.0 as usize;
            if counts.len() <= place {
                counts.resize(place + 1, 0);
            }
            if counts[place] == 0 {
                keys.push(key);
            }
            counts[place] = counts[place].saturating_add(bulk);
        });
    }

    /// Makes rows of what is counted.
    fn flush(&mut self, out: &mut Traversers, context: &QueryContext) {
        let Some(of) = self.of.take() else { return };
        for key in self.keys.drain(..) {
            let bulk = std::mem::take(&mut self.counts[key.0 as usize]);
            let row = of.advance(Value::String(context.transaction.key_name(key)), &self.step);
            out.push_back(row.with_bulk(bulk));
        }
    }

    /// Whether a row may be counted together with those that are.
    fn joins(&self, row: &Traverser) -> bool {
        self.of.as_ref().is_some_and(|of| of.has_no_history() && row.has_no_history() && of.marks == row.marks)
    }
}

impl Operator<Graphs> for KeysOfProperties {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(row) = input.pop_front() {
            cx.charge(1);
            match row.value {
                Value::Vertex(vertex) if self.gathered && self.counts.len() < KEYS_MAX => {
                    if !self.joins(&row) {
                        self.flush(out, cx.context);
                    }
                    self.count(vertex, row.bulk, cx.context);
                    self.of.get_or_insert(row);
                }
                Value::Vertex(vertex) => {
                    self.flush(out, cx.context);
                    let transaction = &cx.context.transaction;
                    transaction.visit_vertex_keys(vertex, true, |key| {
                        out.push_back(row.advance(Value::String(transaction.key_name(key)), &self.step));
                    });
                }
                _ => {
                    self.flush(out, cx.context);
                    self.reader.read(&row.value, cx.context)?;
                    let mut found = self.reader.take();
                    for property in found.drain(..) {
                        let key = read_token(&property, T::Key, cx.context)?;
                        out.push_back(row.advance(key, &self.step));
                    }
                    self.reader.keep_room(found);
                }
            }
            if cx.should_yield(out) {
                break;
            }
        }
        if input.is_empty() {
            self.flush(out, cx.context);
            return Ok(Flow::Ready);
        }
        Ok(Flow::More)
    }

    fn reset(&mut self) {
        self.of = None;
        self.keys.clear();
        self.counts.clear();
    }
}

/// Adds the operator, whose step is that of the keys.
pub fn build(builder: &mut Builder, name: &NodeName, gathered: bool, step: StepInfo, chain: &mut Chain) {
    builder.operator(chain, name, false, move || KeysOfProperties {
        gathered,
        step: step.clone(),
        reader: PropertyReader::new(&[], PropertyForm::Property),
        of: None,
        keys: Vec::new(),
        counts: Vec::new(),
    });
}
