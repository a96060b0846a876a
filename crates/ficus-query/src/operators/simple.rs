//! `identity`, `constant`, `unfold`, `loops`, `sack()`: one row at a time, without sub-queries.

use ficus_dataflow::{Flow, NodeName, Operator};
use ficus_model::{Shared, Value};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::error::QueryError;
use crate::logical::Node;
use crate::operators::per_row::{KeepRows, PerRow};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

struct UnfoldOperator {
    step: StepInfo,
    current: Option<Unfolding>,
}

/// A collection on its way out, member by member: it may stand for more members than there is memory for.
struct Unfolding {
    traverser: Traverser,
    position: usize,
    /// How often the member at `position` is out already.
    copies: u64,
}

/// What `unfold()` yields at a position of a collection, and how often; none behind the last.
fn member_at(value: &Value, position: usize) -> Option<(Value, u64)> {
    let entry = |key: &Value, value: Value| Value::Entry(Shared::new((key.clone(), value)));
    let member = match value {
        Value::List(list) => list.get(position).cloned()?,
        Value::Set(set) => set.get_index(position).cloned()?,
        Value::Path(path) => path.objects.get(position).cloned()?,
        Value::BulkSet(set) => return set.counts.get_index(position).map(|(member, count)| (member.clone(), *count)),
        Value::Map(map) => map.get_index(position).map(|(key, value)| entry(key, value.clone()))?,
        Value::Tree(tree) => {
            let (key, child) = tree.children.get_index(position)?;
            entry(key, Value::Tree(Shared::new(child.clone())))
        }
        _ => return None,
    };
    Some((member, 1))
}

fn is_unfolded(value: &Value) -> bool {
    use Value::{BulkSet, List, Map, Path, Set, Tree};
    matches!(value, List(_) | Set(_) | Path(_) | BulkSet(_) | Map(_) | Tree(_))
}

impl Unfolding {
    fn next(&mut self) -> Option<Value> {
        loop {
            let (member, count) = member_at(&self.traverser.value, self.position)?;
            self.copies += 1;
            let is_there = self.copies <= count;
            if self.copies >= count {
                // A member is made when it is handed out, and not to see that it was.
                (self.position, self.copies) = (self.position + 1, 0);
            }
            if is_there {
                return Some(member);
            }
        }
    }
}

impl Operator<Graphs> for UnfoldOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if self.current.is_none() {
                let Some(mut traverser) = input.pop_front() else { return Ok(Flow::Ready) };
                if is_unfolded(&traverser.value) {
                    traverser.close_path();
                    self.current = Some(Unfolding { traverser, position: 0, copies: 0 });
                } else {
                    let value = traverser.value.clone();
                    out.push_back(traverser.move_to(value, &self.step));
                }
            }
            if let Some(unfolding) = &mut self.current {
                match unfolding.next() {
                    Some(value) => out.push_back(unfolding.traverser.advance(value, &self.step)),
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
    let (name, step) = (NodeName::from(node), step.clone());
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
            builder.operator(chain, &name, false, move || {
                KeepRows::new(move |row: &Traverser, _: &mut Cx<'_>| {
                    Ok(i64::from(row.loops(None).unwrap_or(0)) >= times)
                })
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
