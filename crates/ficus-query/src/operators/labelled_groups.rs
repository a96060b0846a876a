//! `group().by().by(select('label').fold())` behind a hop: vertices that were reached, each with the list of what its rows have under a label.
//!
//! A million neighbours in groups of a dozen are mostly a million rows that are made, moved and dropped. Here the hop packs what it finds from
//! one vertex into few rows, each of them a list of vertices ([`marks::PACKED`]); all of them have the same way, so its label is looked up once.
//! Members are written one behind the other with the number of their group, and sorted into lists of the right size when all are there.

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Pop, Shared, Value, ValueMap, VertexId};
use hashbrown::HashMap;

use crate::budget::Held;
use crate::context::{Cx, Graphs, Result, Traversers};
use crate::logical::Name;
use crate::operators::combine::found_under;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser, marks};

/// An entry of the table of groups, with its share of what is free.
const GROUP_BYTES: usize = 2 * size_of::<(VertexId, u32)>();

/// A group that is sorted out: its list, and its entry in the map.
const LIST_BYTES: usize = 4 * size_of::<Value>() + 40;

/// Members or groups between two looks at whether the turn is over.
const PART: usize = 4096;

/// Copies of a member that are made between two such looks.
const COPIES_AT_ONCE: u64 = 4096;

#[derive(Default)]
struct Groups {
    numbers: HashMap<VertexId, u32>,
    /// By number: the vertex, and how many members it has.
    counts: Vec<(VertexId, usize)>,
    members: Vec<(u32, Value)>,
    lists: Vec<Vec<Value>>,
    map: ValueMap,
    held: Held,
}

impl Groups {
    /// Adds a value to the groups of these vertices, `bulk` times.
    fn add(&mut self, vertices: &[Value], value: Option<&Value>, bulk: u64, cx: &mut Cx<'_>) -> Result<()> {
        let account = &cx.context.memory;
        let own_bytes = value.map_or(0, |value| value.size_hint_bytes() - size_of::<Value>());
        for vertex in vertices {
            let Value::Vertex(vertex) = vertex else { continue };
            let known = self.numbers.get(vertex).copied();
            let number = match known {
                Some(number) => number,
                None => {
                    let (length, room) = (self.counts.len(), self.numbers.capacity());
                    self.held.make_room(account, length, room, GROUP_BYTES)?;
                    self.held.add(account, LIST_BYTES + size_of::<(VertexId, usize)>())?;
                    let number = length as u32;
                    self.numbers.insert(*vertex, number);
                    self.counts.push((*vertex, 0));
                    number
                }
            };
            let Some(value) = value else { continue };
            self.held.add(account, own_bytes)?;
            for copy in 0..bulk {
                // Once more when it is sorted out.
                const MEMBER: usize = size_of::<(u32, Value)>() + size_of::<Value>();
                self.held.make_room(account, self.members.len(), self.members.capacity(), MEMBER)?;
                self.members.push((number, value.clone()));
                self.counts[number as usize].1 += 1;
                if copy % COPIES_AT_ONCE == COPIES_AT_ONCE - 1 {
                    cx.control.check()?;
                }
            }
        }
        cx.charge(vertices.len());
        Ok(())
    }

    /// Sorts members into lists, and those into a map; `None` if the turn is over before that.
    fn finish(&mut self, cx: &mut Cx<'_>) -> Option<Value> {
        self.numbers = HashMap::new();
        while self.lists.len() < self.counts.len() {
            let from = self.lists.len();
            let to = self.counts.len().min(from + PART);
            self.lists.extend(self.counts[from..to].iter().map(|(_, count)| Vec::with_capacity(*count)));
            cx.charge(to - from);
            if cx.exhausted() {
                return None;
            }
        }
        // From the end, so that what is sorted out is gone.
        while !self.members.is_empty() {
            let from = self.members.len().saturating_sub(PART);
            cx.charge(self.members.len() - from);
            for (number, value) in self.members.drain(from..).rev() {
                self.lists[number as usize].push(value);
            }
            if cx.exhausted() {
                return None;
            }
        }
        while self.map.len() < self.counts.len() {
            let from = self.map.len();
            let to = self.counts.len().min(from + PART);
            self.map.reserve(self.counts.len() - from);
            for ((vertex, _), list) in self.counts[from..to].iter().zip(&mut self.lists[from..to]) {
                let mut list = std::mem::take(list);
                list.reverse();
                self.map.insert(Value::Vertex(*vertex), Value::List(Shared::new(list)));
            }
            cx.charge(to - from);
            if cx.exhausted() {
                return None;
            }
        }
        Some(Value::Map(Shared::new(std::mem::take(&mut self.map))))
    }
}

struct LabelledGroups {
    label: Name,
    step: StepInfo,
    groups: Groups,
}

impl Operator<Graphs> for LabelledGroups {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(row) = input.pop_front() {
            debug_assert!(row.marks & marks::PACKED != 0, "the hop packs what it finds");
            let value = found_under(cx.context, &Value::Null, Some(&row), Pop::Last, &self.label);
            if let Value::List(vertices) = &row.value {
                self.groups.add(vertices, value.as_ref(), row.bulk, cx)?;
            }
            if cx.exhausted() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let Some(map) = self.groups.finish(cx) else { return Ok(Flow::More) };
        let map = cx.context.made_of(map, &mut self.groups.held);
        self.groups = Groups::default();
        out.push_back(cx.context.fresh_at(map, &self.step));
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn reset(&mut self) {
        self.groups = Groups::default();
    }
}

/// Packs vertices that were found from one row.
pub fn pack(row: &Traverser, vertices: Vec<Value>) -> Traverser {
    Traverser {
        value: Value::List(Shared::new(vertices)),
        bulk: row.bulk,
        extra: row.extra.clone(),
        marks: row.marks & marks::INPUT | marks::PACKED,
    }
}

/// Adds the operator behind a hop that packs.
pub fn build(builder: &mut Builder, name: &str, label: &Name, step: &StepInfo, chain: &mut Chain) {
    let (label, step) = (label.clone(), step.clone());
    builder.operator(chain, name, true, move || LabelledGroups {
        label: label.clone(),
        step: step.clone(),
        groups: Groups::default(),
    });
}
