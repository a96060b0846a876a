//! `identity`, `constant`, `unfold`, `loops`, `sack()`: one row at a time, without sub-queries.

use std::sync::Arc;

use ficus_dataflow::{Flow, Operator};
use ficus_model::Value;

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::error::QueryError;
use crate::logical::Node;
use crate::operators::has::members;
use crate::operators::per_row::PerRow;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

struct UnfoldOperator {
    step: StepInfo,
    current: Option<(Traverser, std::vec::IntoIter<Value>)>,
}

/// What `unfold()` yields of a value; `None`: the value itself.
fn unfolded(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Map(map) => {
            Some(map.iter().map(|(key, value)| Value::Entry(Arc::new((key.clone(), value.clone())))).collect())
        }
        Value::Tree(tree) => Some(
            tree.children
                .iter()
                .map(|(key, child)| Value::Entry(Arc::new((key.clone(), Value::Tree(Arc::new(child.clone()))))))
                .collect(),
        ),
        _ => members(value),
    }
}

impl Operator<Graphs> for UnfoldOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if self.current.is_none() {
                let Some(traverser) = input.pop_front() else { return Ok(Flow::Ready) };
                match unfolded(&traverser.value) {
                    Some(values) => self.current = Some((traverser, values.into_iter())),
                    None => {
                        let value = traverser.value.clone();
                        out.push_back(traverser.move_to(value, &self.step));
                    }
                }
            }
            if let Some((traverser, values)) = &mut self.current {
                match values.next() {
                    Some(value) => out.push_back(traverser.advance(value, &self.step)),
                    None => self.current = None,
                }
            }
            if cx.should_pause(out) {
                return Ok(Flow::More);
            }
        }
    }

    fn reset(&mut self) {
        self.current = None;
    }
}

/// Adds the operator of a simple node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (node.to_string(), step.clone());
    match node {
        Node::Identity => {}
        Node::Constant { value } => {
            let value = value.clone();
            builder.operator(chain, &name, false, move || {
                let (value, step) = (value.clone(), step.clone());
                PerRow {
                    function: move |traverser: Traverser, _: &mut Cx<'_>| {
                        Ok(Some(traverser.move_to(value.clone(), &step)))
                    },
                }
            });
        }
        Node::Unfold => {
            builder.operator(chain, &name, false, move || UnfoldOperator { step: step.clone(), current: None });
        }
        Node::Loops { name: loop_name } => {
            let loop_name = loop_name.clone();
            builder.operator(chain, &name, false, move || {
                let (loop_name, step) = (loop_name.clone(), step.clone());
                PerRow {
                    function: move |traverser: Traverser, _: &mut Cx<'_>| {
                        let count = match traverser.loops(loop_name.as_deref()) {
                            Some(count) => count,
                            None => match &loop_name {
                                Some(name) => {
                                    return Err(QueryError::invalid(format!("Loop name not defined: {name}")));
                                }
                                None => 0,
                            },
                        };
                        Ok(Some(traverser.move_to(Value::Int(i32::try_from(count).unwrap_or(i32::MAX)), &step)))
                    },
                }
            });
        }
        Node::LoopsAtLeast { times } => {
            let times = *times;
            builder.operator(chain, &name, false, move || PerRow {
                function: move |traverser: Traverser, _: &mut Cx<'_>| {
                    Ok((i64::from(traverser.loops(None).unwrap_or(0)) >= times).then_some(traverser))
                },
            });
        }
        Node::Sack => {
            builder.operator(chain, &name, false, move || {
                let step = step.clone();
                PerRow {
                    function: move |traverser: Traverser, _: &mut Cx<'_>| {
                        let sack = traverser.sack().cloned().unwrap_or(Value::Null);
                        Ok(Some(traverser.move_to(sack, &step)))
                    },
                }
            });
        }
        _ => return Err(QueryError::invalid(format!("{node} has no operator"))),
    }
    Ok(())
}
