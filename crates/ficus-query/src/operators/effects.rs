//! `aggregate`, `cap`, `subgraph`, `fail`: steps that leave something behind, or end everything.

use std::collections::HashSet;
use std::sync::Arc;

use ficus_dataflow::{Flow, Operator, Queue};
use ficus_model::{BulkSet, EdgeId, Element, Operator as BinaryOperator, Subgraph, Value, ValueMap, VertexId};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::detach::Materialize;
use crate::error::{QueryError, QueryErrorKind};
use crate::logical::{Name, Node};
use crate::merge::MergingSet;
use crate::modulate::{ModulatedLogic, Request};
use crate::operators::per_row::PerRow;
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::{StepInfo, Traverser};

struct AggregateLogic {
    key: Name,
    collected: BulkSet,
    passing: MergingSet,
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
        if let Some(Some(value)) = results.pop() {
            cx.context.memory.adjust(value.size_hint_bytes() as isize)?;
            *self.collected.counts.entry(value).or_insert(0) += traverser.bulk;
        }
        self.passing.add(traverser, cx.context)
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        let collected = std::mem::take(&mut self.collected);
        let reducer = cx.context.side_effects.reducer(&self.key).unwrap_or(BinaryOperator::AddAll);
        match reducer {
            BinaryOperator::AddAll | BinaryOperator::Assign => {
                cx.context.side_effects.add(&self.key, Value::BulkSet(Arc::new(collected)))?;
            }
            _ => {
                for (value, count) in collected.counts {
                    for _ in 0..count {
                        cx.context.side_effects.add(&self.key, value.clone())?;
                    }
                }
            }
        }
        out.extend(self.passing.drain(cx.context)?);
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.collected.counts.clear();
        self.passing.clear();
    }

    fn release(&mut self, context: &mut QueryContext) {
        self.passing.release(context);
    }
}

struct CapOperator {
    keys: Vec<Name>,
    step: StepInfo,
    found: Vec<Value>,
}

impl Operator<Graphs> for CapOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Flow> {
        input.clear();
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(key) = self.keys.get(self.found.len()) {
            if cx.context.side_effects.has_groups(key) {
                let mut groups = cx.context.side_effects.take_groups(key);
                let finished = groups.finish(cx);
                match finished? {
                    Some(map) => cx.context.side_effects.put(key, map),
                    None => {
                        cx.context.side_effects.put_groups(key, groups);
                        return Ok(Flow::More);
                    }
                }
            }
            let value = cx.context.side_effects.get(key).ok_or_else(|| {
                QueryError::invalid(format!("The side-effect key does not exist in the side-effects: {key}"))
            })?;
            self.found.push(value);
        }
        let mut found = std::mem::take(&mut self.found);
        let value = if self.keys.len() == 1 {
            found.pop().unwrap_or(Value::Null)
        } else {
            let map: ValueMap = self.keys.iter().cloned().map(Value::String).zip(found).collect();
            Value::Map(Arc::new(map))
        };
        out.push_back(cx.context.fresh_at(value, &self.step));
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.found.clear();
    }
}

/// What a subgraph holds already; shared by all instances through the side effect's key would need a lookup per element, so
/// each instance remembers and the subgraph's own lists are checked when it begins.
#[derive(Default)]
struct Contained {
    vertices: HashSet<VertexId>,
    edges: HashSet<EdgeId>,
}

fn add_to_subgraph(edge: EdgeId, key: &Name, contained: &mut Contained, cx: &mut Cx<'_>) -> Result<()> {
    if !contained.edges.insert(edge) {
        return Ok(());
    }
    let mut value = cx.context.side_effects.take(key).unwrap_or_else(|| Value::Graph(Arc::default()));
    let Value::Graph(graph) = &mut value else {
        return Err(QueryError::invalid(format!("the side effect {key} is not a graph")));
    };
    let graph: &mut Subgraph = Arc::make_mut(graph);
    if let Some(record) = cx.context.transaction.edge(edge) {
        for vertex in [record.out, record.in_] {
            if contained.vertices.insert(vertex) {
                let element = Arc::new(Element::Vertex(cx.context.detached_vertex(vertex, Materialize::All)));
                if !graph.vertices.contains(&element) {
                    graph.vertices.push(element);
                }
            }
        }
        let element = Arc::new(Element::Edge(cx.context.detached_edge(edge, Materialize::All)));
        cx.context.memory.adjust(Value::Element(element.clone()).size_hint_bytes() as isize)?;
        if !graph.edges.contains(&element) {
            graph.edges.push(element);
        }
    }
    cx.context.side_effects.put(key, value);
    Ok(())
}

/// Adds the operator of an effect.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (node.to_string(), step.clone());
    match node {
        Node::Aggregate { key, by } => {
            let mut modulators = Modulators::new();
            modulators.by(by);
            let key = key.clone();
            return builder.modulated(chain, &name, false, modulators, move || AggregateLogic {
                key: key.clone(),
                collected: BulkSet::default(),
                passing: MergingSet::default(),
            });
        }
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
                let (key, mut contained) = (key.clone(), Contained::default());
                PerRow {
                    function: move |traverser: Traverser, cx: &mut Cx<'_>| {
                        let Value::Edge(edge) = traverser.value else {
                            return Err(QueryError::invalid(format!(
                                "subgraph() requires Edge input but encountered {}; use an edge step such as outE(), \
                                 inE(), or bothE()",
                                traverser.value.type_name()
                            )));
                        };
                        add_to_subgraph(edge, &key, &mut contained, cx)?;
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
