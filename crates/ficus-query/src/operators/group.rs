//! `group()` and `groupCount()`, as reductions and as side effects.
//!
//! What becomes of a group's members depends on the second `by()`. A key, token or nothing collects a list. A traversal
//! without barrier keeps the first result of the last member that has one. A traversal with a barrier is a region of its own
//! per group that all members of the group enter; its first result is the group's value.

use std::sync::Arc;

use ficus_dataflow::region::{RegionFlow, RegionInstance};
use ficus_dataflow::{Flow, Queue, Region};
use ficus_model::{Value, ValueMap};
use indexmap::IndexMap;

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::error::QueryError;
use crate::logical::{By, Name, Node, visit};
use crate::modulate::{ModulatedLogic, Request};
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::{StepInfo, Traverser};

/// How the members of a group are put together.
#[derive(Clone)]
enum Members {
    /// A list of what modulator 1 makes of them.
    List,
    /// What modulator 1 makes of the last that yields something.
    Last,
    /// What this region makes of all of them.
    Region(Arc<Region<Graphs>>),
}

enum Group {
    List(Vec<Value>),
    Last(Value),
    Region { instance: Box<RegionInstance<Graphs>>, out: Traversers },
}

/// Groups under construction.
#[derive(Default)]
pub struct Groups {
    groups: IndexMap<Value, Group>,
    finished: ValueMap,
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Groups({})", self.groups.len())
    }
}

impl Groups {
    fn add(
        &mut self,
        members: &Members,
        key: Value,
        value: Option<Value>,
        traverser: &Traverser,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        if !self.groups.contains_key(&key) {
            cx.context.memory.adjust((key.size_hint_bytes() + size_of::<Group>()) as isize)?;
        }
        match members {
            Members::List => {
                let group = self.groups.entry(key).or_insert_with(|| Group::List(Vec::new()));
                if let (Group::List(list), Some(value)) = (group, value) {
                    let bulk = usize::try_from(traverser.bulk).unwrap_or(usize::MAX);
                    let bytes = value.size_hint_bytes().saturating_mul(bulk);
                    cx.context.memory.adjust(isize::try_from(bytes).unwrap_or(isize::MAX))?;
                    list.extend(std::iter::repeat_n(value, bulk));
                }
            }
            Members::Last => {
                if let Some(value) = value {
                    self.groups.insert(key, Group::Last(value));
                }
            }
            Members::Region(region) => {
                let group = self.groups.entry(key).or_insert_with(|| Group::Region {
                    instance: Box::new(RegionInstance::new(region.clone())),
                    out: Traversers::new(),
                });
                if let Group::Region { instance, out } = group {
                    instance.push(traverser.clone());
                    instance.run(out, cx)?;
                    // Only the first result counts.
                    out.truncate(1);
                }
            }
        }
        Ok(())
    }

    /// Ends all groups; `None` if the turn is over before that.
    pub fn finish(&mut self, cx: &mut Cx<'_>) -> Result<Option<Value>> {
        while let Some((key, mut group)) = self.groups.shift_remove_index(0) {
            let value = match &mut group {
                Group::List(list) => Some(Value::List(Arc::new(std::mem::take(list)))),
                Group::Last(value) => Some(value.clone()),
                Group::Region { instance, out } => {
                    instance.close();
                    while out.is_empty() && instance.run(out, cx)? == RegionFlow::More {
                        if cx.exhausted() && out.is_empty() {
                            self.groups.shift_insert(0, key, group);
                            return Ok(None);
                        }
                    }
                    out.pop_front().map(|traverser| traverser.value)
                }
            };
            // A group whose traversal yields nothing is left out.
            if let Some(value) = value {
                self.finished.insert(key, value);
            }
        }
        Ok(Some(Value::Map(Arc::new(std::mem::take(&mut self.finished)))))
    }
}

struct GroupLogic {
    side_effect: Option<Name>,
    members: Members,
    step: StepInfo,
    groups: Groups,
}

impl ModulatedLogic for GroupLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        list.push(Request::current(0));
        if !matches!(self.members, Members::Region(_)) {
            list.push(Request::current(1));
        }
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let mut results = results.drain(..);
        let key = results.next().flatten();
        let value = results.next().flatten();
        let Some(name) = &self.side_effect else {
            return match key {
                Some(key) => self.groups.add(&self.members, key, value, &traverser, cx),
                None => Ok(()),
            };
        };
        if let Some(key) = key {
            let mut groups = cx.context.side_effects.take_groups(name);
            let added = groups.add(&self.members, key, value, &traverser, cx);
            cx.context.side_effects.put_groups(name, groups);
            added?;
        }
        out.push_back(traverser);
        Ok(())
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.side_effect.is_none() {
            match self.groups.finish(cx)? {
                Some(map) => out.push_back(cx.context.fresh_at(map, &self.step)),
                None => return Ok(Flow::More),
            }
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.groups = Groups::default();
    }
}

struct GroupCountLogic {
    side_effect: Option<Name>,
    step: StepInfo,
    counts: ValueMap,
}

fn count(map: &mut ValueMap, key: Value, bulk: u64, cx: &mut Cx<'_>) -> Result<()> {
    let bulk = i64::try_from(bulk).unwrap_or(i64::MAX);
    match map.get_mut(&key) {
        Some(Value::Long(count)) => *count = count.saturating_add(bulk),
        _ => {
            cx.context.memory.adjust((key.size_hint_bytes() + size_of::<Value>()) as isize)?;
            map.insert(key, Value::Long(bulk));
        }
    }
    Ok(())
}

impl ModulatedLogic for GroupCountLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        list.push(Request::current(0));
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let key = results.pop().flatten();
        let Some(name) = &self.side_effect else {
            return match key {
                Some(key) => count(&mut self.counts, key, traverser.bulk, cx),
                None => Ok(()),
            };
        };
        if let Some(key) = key {
            let mut value = cx.context.side_effects.take(name).unwrap_or_else(|| Value::Map(Arc::default()));
            let Value::Map(map) = &mut value else {
                return Err(QueryError::invalid(format!("the side effect {name} is not a map")));
            };
            count(Arc::make_mut(map), key, traverser.bulk, cx)?;
            cx.context.side_effects.put(name, value);
        }
        out.push_back(traverser);
        Ok(())
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.side_effect.is_none() {
            let map = Value::Map(Arc::new(std::mem::take(&mut self.counts)));
            out.push_back(cx.context.fresh_at(map, &self.step));
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.counts.clear();
    }
}

/// Adds the operator of a grouping node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (node.to_string(), step.clone());
    match node {
        Node::Group { side_effect, key, value } => {
            let mut modulators = Modulators::new();
            modulators.by(key);
            let members = match value {
                By::Traversal(traversal) if traversal.nodes.iter().any(|own| is_global_barrier(&own.node)) => {
                    Members::Region(builder.child_region(&name, traversal)?)
                }
                By::Traversal(traversal) => {
                    modulators.traversal(traversal);
                    Members::Last
                }
                simple => {
                    modulators.by(simple);
                    Members::List
                }
            };
            let side_effect = side_effect.clone();
            builder.modulated(chain, &name, side_effect.is_none(), modulators, move || GroupLogic {
                side_effect: side_effect.clone(),
                members: members.clone(),
                step: step.clone(),
                groups: Groups::default(),
            })
        }
        Node::GroupCount { side_effect, key } => {
            let mut modulators = Modulators::new();
            modulators.by(key);
            let side_effect = side_effect.clone();
            builder.modulated(chain, &name, side_effect.is_none(), modulators, move || GroupCountLogic {
                side_effect: side_effect.clone(),
                step: step.clone(),
                counts: ValueMap::default(),
            })
        }
        _ => Err(QueryError::invalid(format!("{node} does not group"))),
    }
}

fn is_global_barrier(node: &Node) -> bool {
    visit::is_barrier(node) && !matches!(node, Node::Barrier { .. } | Node::Aggregate { .. })
}
