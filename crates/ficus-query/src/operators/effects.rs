//! `aggregate`, `cap`, `subgraph`, `fail`: steps that leave something behind, or end everything.

use std::sync::Arc;

use ficus_dataflow::{Flow, NodeName, Operator, Queue, Remains};
use ficus_model::{BulkSet, EdgeId, Element, Operator as BinaryOperator, Shared, Subgraph, Value, ValueMap};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::detach::Materialize;
use crate::error::{QueryError, QueryErrorKind};
use crate::growing::Keyed;
use crate::logical::{Name, Node};
use crate::merge::MergingSet;
use crate::modulate::{ModulatedLogic, Modulator, Request};
use crate::operators::per_row::PerRow;
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::{StepInfo, Traverser};

struct AggregateLogic {
    key: Name,
    /// What is gathered are the objects of the rows themselves, so that those that wait are all that has to be kept.
    of_objects: bool,
    collected: Keyed<u64>,
    /// How many of the waiting rows are among what is collected.
    told: usize,
    /// What becomes of it at the end, as far as it is made.
    finished: BulkSet,
    /// Rows that wait for the side effect to be there; none if nobody behind wants them.
    passing: Option<MergingSet>,
}

/// Waiting rows whose objects are added to the side effect in one go, some hundred microseconds.
const ROWS_AT_ONCE: usize = 8 << 10;

impl AggregateLogic {
    /// Whether the waiting rows are enough to know what was gathered. Without bulks they do not say how often an object came.
    fn counts_rows(&self, context: &QueryContext) -> bool {
        self.of_objects && context.adds_bulk && self.passing.is_some()
    }

    /// Adds the objects of the waiting rows to the side effect, if they are few and it is a set; whether it did.
    fn add_rows(&mut self, cx: &mut Cx<'_>) -> Result<bool> {
        let Some(rows) = self.passing.as_ref().filter(|rows| rows.len() <= ROWS_AT_ONCE) else { return Ok(false) };
        let QueryContext { side_effects, memory, .. } = &mut *cx.context;
        let is_set = side_effects.add_counts(&self.key, rows.iter().map(|row| (&row.value, row.bulk)), memory)?;
        cx.charge(rows.len());
        Ok(is_set)
    }

    /// Collects the objects of the waiting rows; false if the turn is over before that.
    fn collect_rows(&mut self, cx: &mut Cx<'_>) -> Result<bool> {
        let Some(rows) = &self.passing else { return Ok(true) };
        while let Some(row) = rows.get(self.told) {
            let (count, _) = self.collected.entry(row.value.clone(), 0, &cx.context.memory, || 0)?;
            *count = count.saturating_add(row.bulk);
            self.told += 1;
            cx.charge(1);
            if cx.exhausted() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves what was gathered to the side effect; false if the turn is over before that.
    fn tell(&mut self, cx: &mut Cx<'_>) -> Result<bool> {
        if self.counts_rows(cx.context) {
            if self.told == 0 && self.add_rows(cx)? {
                return Ok(true);
            }
            if !self.collect_rows(cx)? {
                return Ok(false);
            }
        }
        let reducer = cx.context.side_effects.reducer(&self.key).unwrap_or(BinaryOperator::AddAll);
        match reducer {
            BinaryOperator::AddAll | BinaryOperator::Assign => {
                if !self.collected.move_to(&mut self.finished.counts, cx, |count| count)? {
                    return Ok(false);
                }
                let collected = Value::BulkSet(Shared::new(std::mem::take(&mut self.finished)));
                // It lasts as long as the query.
                cx.context.side_effects.held.absorb(self.collected.held());
                cx.context.side_effects.add(&self.key, collected)?;
            }
            _ => {
                while let Some(value) = self.collected.key(0).cloned() {
                    let Some((count, _)) = self.collected.at_mut(0) else { break };
                    if *count == 0 {
                        self.collected.pop_front();
                        continue;
                    }
                    *count -= 1;
                    cx.context.side_effects.add(&self.key, value)?;
                    cx.charge(1);
                    if cx.exhausted() {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

impl ModulatedLogic for AggregateLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        list.push(Request::current(0));
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        _out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        if let Some(Some(value)) = results.pop()
            && !self.counts_rows(cx.context)
        {
            let (count, _) = self.collected.entry(value, 0, &cx.context.memory, || 0)?;
            *count = count.saturating_add(traverser.bulk);
        }
        match &mut self.passing {
            Some(passing) => passing.add(traverser, cx.context),
            None => Ok(()),
        }
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        if !self.passing.as_ref().is_some_and(MergingSet::is_leaving) {
            if !self.tell(cx)? {
                return Ok(Flow::More);
            }
            self.told = 0;
        }
        let Some(passing) = &mut self.passing else { return Ok(Flow::Ready) };
        Ok(if passing.leave(out, cx, |_| Ok(()))? { Flow::Ready } else { Flow::More })
    }

    fn reset(&mut self) {
        self.collected.clear();
        self.told = 0;
        self.finished = BulkSet::default();
        self.passing.iter_mut().for_each(MergingSet::clear);
    }

    fn release(&mut self, _context: &mut QueryContext) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.collected.surrender(remains);
        self.passing.iter_mut().for_each(|passing| passing.surrender(remains));
    }
}

struct CapOperator {
    keys: Vec<Name>,
    step: StepInfo,
    /// Of the first keys; none where nothing is under one.
    found: Vec<Option<Value>>,
}

impl Operator<Graphs> for CapOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Flow> {
        input.clear();
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(key) = self.keys.get(self.found.len()) {
            if cx.context.side_effects.has_groups(key) {
                let mut groups = cx.context.side_effects.take_groups(key)?;
                let finished = groups.finish(cx);
                match finished? {
                    Some(map) => cx.context.side_effects.put(key, map),
                    None => {
                        cx.context.side_effects.put_groups(key, groups);
                        return Ok(Flow::More);
                    }
                }
            }
            self.found.push(cx.context.side_effects.get(key));
        }
        let mut found = std::mem::take(&mut self.found);
        let value = if let [key] = self.keys.as_slice() {
            found.pop().flatten().ok_or_else(|| {
                QueryError::invalid(format!("The side-effect key does not exist in the side-effects: {key}"))
            })?
        } else {
            let keys = self.keys.iter().cloned().map(Value::String);
            let map: ValueMap = keys.zip(found).filter_map(|(key, value)| Some((key, value?))).collect();
            Value::Map(Shared::new(map))
        };
        out.push_back(cx.context.fresh_at(value, &self.step));
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.found.clear();
    }
}

fn add_to_subgraph(edge: EdgeId, key: &Name, cx: &mut Cx<'_>) -> Result<()> {
    /// An entry of a list and of a set, both while they grow.
    const ENTRY: usize = 3 * size_of::<Arc<Element>>() + 4 * size_of::<u64>();
    if !cx.context.side_effects.contained(key).edges.insert(edge) {
        return Ok(());
    }
    let mut value = cx.context.side_effects.take(key).unwrap_or_else(|| Value::Graph(Arc::default()));
    let Value::Graph(graph) = &mut value else {
        return Err(QueryError::invalid(format!("the side effect {key} is not a graph")));
    };
    let graph: &mut Subgraph = Arc::make_mut(graph);
    if let Some(record) = cx.context.transaction.edge(edge) {
        for vertex in [record.out, record.in_] {
            if cx.context.side_effects.contained(key).vertices.insert(vertex) {
                let element = Arc::new(Element::Vertex(cx.context.detached_vertex(vertex, Materialize::All)));
                let QueryContext { side_effects, memory, .. } = &mut *cx.context;
                side_effects.held.add(memory, Value::Element(element.clone()).size_hint_bytes() + ENTRY)?;
                graph.vertices.push(element);
            }
        }
        let element = Arc::new(Element::Edge(cx.context.detached_edge(edge, Materialize::All)));
        let QueryContext { side_effects, memory, .. } = &mut *cx.context;
        side_effects.held.add(memory, Value::Element(element.clone()).size_hint_bytes() + ENTRY)?;
        graph.edges.push(element);
    }
    cx.context.side_effects.put(key, value);
    Ok(())
}

/// Adds the operator of `aggregate()`; `keeps_rows`: somebody wants its rows.
pub fn build_aggregate(builder: &mut Builder, node: &Node, keeps_rows: bool, chain: &mut Chain) -> Result<()> {
    let Node::Aggregate { key, by } = node else {
        return Err(QueryError::invalid(format!("{node} does not aggregate")));
    };
    let mut modulators = Modulators::new();
    modulators.by(by);
    let key = key.clone();
    let of_objects = matches!(modulators.simple(), Some(Modulator::Identity));
    builder.modulated(chain, node, false, modulators, move || AggregateLogic {
        key: key.clone(),
        of_objects,
        collected: Keyed::default(),
        told: 0,
        finished: BulkSet::default(),
        passing: keeps_rows.then(MergingSet::default),
    })
}

/// Adds the operator of an effect.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (NodeName::from(node), step.clone());
    match node {
        Node::Aggregate { .. } => return build_aggregate(builder, node, true, chain),
        Node::Cap { keys } => {
            let keys = keys.clone();
            builder.operator(chain, &name, true, move || CapOperator {
                keys: keys.clone(),
                step: step.clone(),
                found: Vec::new(),
            });
        }
        Node::Subgraph { key } => {
            let key = key.clone();
            builder.operator(chain, &name, false, move || {
                let key = key.clone();
                PerRow {
                    function: move |traverser: Traverser, cx: &mut Cx<'_>| {
                        let Value::Edge(edge) = traverser.value else {
                            return Err(QueryError::invalid(format!(
                                "subgraph() requires Edge input but encountered {}; use an edge step such as outE(), \
                                 inE(), or bothE()",
                                traverser.value.type_name()
                            )));
                        };
                        add_to_subgraph(edge, &key, cx)?;
                        Ok(Some(traverser))
                    },
                }
            });
            super::collect::barrier(builder, chain);
        }
        Node::Fail { message } => {
            let message = message.clone().unwrap_or_else(|| Arc::from("fail() step triggered"));
            builder.operator(chain, &name, false, move || {
                let message = message.clone();
                PerRow {
                    function: move |_: Traverser, _: &mut Cx<'_>| -> Result<Option<Traverser>> {
                        Err(QueryError::new(QueryErrorKind::Failed, message.to_string()))
                    },
                }
            });
        }
        _ => return Err(QueryError::invalid(format!("{node} leaves nothing behind"))),
    }
    Ok(())
}
