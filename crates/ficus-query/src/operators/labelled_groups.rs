//! `group().by().by(select('label').fold())` behind a hop: vertices that were reached, each with the list of what its rows have under a label.
//!
//! A million neighbours in groups of a dozen are mostly a million rows that are made, moved and dropped. Here the hop packs what it finds from
//! one vertex into few rows, each of them a list of vertices ([`marks::PACKED`]); all of them have the same way, so its label is looked up once.
//! Vertices are written one behind the other with the number of their row. When all are there, lists of the right size are made of them, in
//! [`Parts`]: once they are many, they are divided by vertex, so that the table of a part stays in the processor's cache, and other executors help.
//!
//! [`Parts`]: crate::parts::Parts

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use ficus_dataflow::{Chunks, Flow, NodeName, Operator, Remains};
use ficus_model::{Pop, Shared, Value, ValueMap, VertexId};
use hashbrown::HashMap;

use crate::budget::Held;
use crate::context::{Cx, Graphs, Result, Traversers};
use crate::flat;
use crate::growing;
use crate::logical::Name;
use crate::operators::combine::found_under;
use crate::parts::{Part, build_worker};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser, marks};

/// An entry of the table of groups, with its share of what is free.
const GROUP_BYTES: usize = 2 * size_of::<(VertexId, u32)>();

/// A group: its list, and its entry in the map.
const LIST_BYTES: usize = 4 * size_of::<Value>() + 40 + size_of::<Group>();

/// Entries or groups between two looks at whether the turn is over.
const PIECE: usize = 1024;

/// Copies of a member that are made between two looks at whether the query must stop.
const COPIES_AT_ONCE: u64 = 4096;

/// Parts of many entries. The first of them are worked on before others are asked, so these are a small share.
const PARTS: usize = 32;

/// Entries that are one part.
const WHOLE: usize = 4096;

/// A vertex in a row.
#[derive(Clone, Copy)]
struct Entry {
    vertex: VertexId,
    row: u32,
    /// Its place in the row.
    at: u32,
}

impl Entry {
    /// Where it stands among all of them.
    fn position(self) -> u64 {
        u64::from(self.row) << 32 | u64::from(self.at)
    }

    fn part(self) -> usize {
        /// An odd number whose multiples spread over all 64 bits: the golden ratio's.
        const SPREADING: u64 = 0x9E37_79B9_7F4A_7C15;
        (self.vertex.0.wrapping_mul(SPREADING) >> 40) as usize % PARTS
    }
}

/// What rows have under the label, and how often.
type Rows = flat::Chunks<(Option<Value>, u64)>;

/// What came, divided.
#[derive(Default)]
struct Divided {
    rows: Rows,
    /// All entries in the first as long as they are few.
    parts: Vec<Chunks<Entry>>,
    entries: usize,
    /// Something under the label holds other values.
    has_holders: bool,
    held: Held,
}

impl Divided {
    fn add(&mut self, vertices: &[Value], value: Option<Value>, bulk: u64, cx: &mut Cx<'_>) -> Result<()> {
        // What a member holds beside itself counts for each.
        let own_bytes = value.as_ref().map_or(0, |value| value.size_hint_bytes() - size_of::<Value>());
        let bytes = size_of::<(Option<Value>, u64)>() + vertices.len() * (size_of::<Entry>() + own_bytes);
        self.held.add(&cx.context.memory, bytes)?;
        let row = u32::try_from(self.rows.len()).expect("the memory budget is smaller");
        self.has_holders |= value.as_ref().is_some_and(Value::holds_others);
        self.rows.push_back((value, bulk));
        if self.parts.is_empty() {
            self.parts.push(Chunks::new());
        }
        for (at, vertex) in vertices.iter().enumerate() {
            let Value::Vertex(vertex) = vertex else { continue };
            let entry = Entry { vertex: *vertex, row, at: at as u32 };
            let part = if self.parts.len() == 1 { 0 } else { entry.part() };
            self.parts[part].push_back(entry);
        }
        self.entries += vertices.len();
        if self.entries > WHOLE && self.parts.len() == 1 {
            let mut whole = std::mem::take(&mut self.parts[0]);
            self.parts.resize_with(PARTS, Chunks::new);
            whole.drain().for_each(|entry| self.parts[entry.part()].push_back(entry));
        }
        cx.charge(vertices.len());
        Ok(())
    }
}

/// A vertex and its list.
struct Group {
    vertex: VertexId,
    /// Where it came first.
    position: u64,
    /// Its entries.
    entries: usize,
    /// What its entries have, each as often as its row counts.
    members: usize,
    list: Option<Shared<Vec<Value>>>,
}

/// The groups of a part of the vertices.
///
/// Entries are counted by group, the numbers of their rows are put in order of the groups, and lists are filled one after the other: so of what is
/// written at random an entry takes four bytes, which stay in the cache of the core, and not a member.
struct Groups {
    rows: Arc<Rows>,
    entries: Chunks<Entry>,
    numbers: HashMap<VertexId, u32>,
    groups: Vec<Group>,
    /// Entries that were counted.
    counted: usize,
    /// Of each group where its next row goes.
    places: Vec<usize>,
    /// The rows of all groups, one group after the other.
    ordered: Vec<u32>,
    /// Entries whose rows are in order.
    placed: usize,
    /// Groups whose lists are complete, what there is of the next list, of how many entries, and where its next row is.
    complete: usize,
    list: Vec<Value>,
    filled: usize,
    next_row: usize,
    has_holders: bool,
    held: Held,
}

impl Groups {
    fn of(rows: Arc<Rows>, entries: Chunks<Entry>, has_holders: bool) -> Groups {
        Groups {
            rows,
            entries,
            numbers: HashMap::new(),
            groups: Vec::new(),
            counted: 0,
            places: Vec::new(),
            ordered: Vec::new(),
            placed: 0,
            complete: 0,
            list: Vec::new(),
            filled: 0,
            next_row: 0,
            has_holders,
            held: Held::default(),
        }
    }

    /// Counts the members of some entries.
    fn count(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        let account = &cx.context.memory;
        let end = self.entries.len().min(self.counted + PIECE);
        for place in self.counted..end {
            let Some(mut entry) = self.entries.get_mut(place) else { break };
            let known = self.numbers.get(&entry.vertex).copied();
            let number = match known {
                Some(number) => number,
                None => {
                    let (length, room) = (self.groups.len(), self.numbers.capacity());
                    self.held.make_room(account, length, room, GROUP_BYTES)?;
                    self.held.add(account, LIST_BYTES)?;
                    let number = length as u32;
                    self.numbers.insert(entry.vertex, number);
                    let (vertex, position) = (entry.vertex, entry.position());
                    self.groups.push(Group { vertex, position, entries: 0, members: 0, list: None });
                    number
                }
            };
            // From now on it is known by its group.
            entry.at = number;
            let group = &mut self.groups[number as usize];
            group.entries += 1;
            if let Some((Some(_), bulk)) = self.rows.get(entry.row as usize) {
                group.members = group.members.saturating_add(usize::try_from(*bulk).unwrap_or(usize::MAX));
            }
        }
        cx.charge(end - self.counted);
        self.counted = end;
        Ok(())
    }

    /// All entries are counted: where the rows of each group go.
    fn lay_out(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        self.numbers = HashMap::new();
        let bytes = self.groups.len() * size_of::<usize>() + self.counted * size_of::<u32>();
        self.held.add(&cx.context.memory, bytes)?;
        let begins = |place: &mut usize, group: &Group| {
            let begin = *place;
            *place += group.entries;
            Some(begin)
        };
        self.places.reserve_exact(self.groups.len());
        self.places.extend(self.groups.iter().scan(0, begins));
        // Of many, memory that the system has cleared already.
        self.ordered = vec![0; self.counted];
        cx.charge(self.groups.len());
        Ok(())
    }

    /// Puts the rows of some entries in order.
    fn place(&mut self, cx: &mut Cx<'_>) {
        for _ in 0..PIECE {
            let Some(entry) = self.entries.pop_front() else { break };
            let place = &mut self.places[entry.at as usize];
            self.ordered[*place] = entry.row;
            *place += 1;
            self.placed += 1;
        }
        cx.charge(PIECE);
    }

    /// Goes on with the lists of groups.
    fn fill(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        let mut left = PIECE;
        while left > 0
            && let Some(group) = self.groups.get_mut(self.complete)
        {
            if self.filled == 0 {
                self.held.add(&cx.context.memory, group.members.saturating_mul(size_of::<Value>()))?;
                self.list.reserve_exact(group.members);
            }
            let count = left.min(group.entries - self.filled);
            for row in &self.ordered[self.next_row..self.next_row + count] {
                let Some((Some(value), bulk)) = self.rows.get(*row as usize) else { continue };
                for copy in 0..*bulk {
                    self.list.push(value.clone());
                    if copy % COPIES_AT_ONCE == COPIES_AT_ONCE - 1 {
                        cx.check()?;
                    }
                }
            }
            (self.next_row, self.filled, left) = (self.next_row + count, self.filled + count, left - count);
            if self.filled < group.entries {
                break;
            }
            let list = std::mem::take(&mut self.list);
            let members = list.len();
            group.list = Some(match self.has_holders {
                true => Shared::new(list),
                // Who measures it would look at all members, of all groups by then.
                false => Shared::of_leaves(list, members),
            });
            (self.complete, self.filled) = (self.complete + 1, 0);
        }
        cx.charge(PIECE - left);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.entries.is_empty() && self.complete == self.groups.len()
    }

    /// Forgets what it takes to make lists.
    fn tidy_up(&mut self) {
        let bytes = self.places.len() * size_of::<usize>() + self.ordered.len() * size_of::<u32>();
        self.held.subtract(bytes + self.counted * size_of::<Entry>());
        (self.places, self.ordered, self.counted) = (Vec::new(), Vec::new(), 0);
    }
}

impl Part for Groups {
    fn work(&mut self, cx: &mut Cx<'_>) -> Result<bool> {
        while !self.is_done() {
            if self.entries.is_empty() {
                self.fill(cx)?;
            } else if self.counted < self.entries.len() && self.placed == 0 {
                self.count(cx)?;
            } else {
                if self.ordered.is_empty() {
                    self.lay_out(cx)?;
                }
                self.place(cx);
            }
            if cx.exhausted() && !self.is_done() {
                return Ok(false);
            }
        }
        self.tidy_up();
        Ok(true)
    }
}

/// Takes in what the hop packs.
struct Divide {
    label: Name,
    slot: usize,
    divided: Divided,
}

impl Operator<Graphs> for Divide {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(row) = input.pop_front() {
            debug_assert!(row.marks & marks::PACKED != 0, "the hop packs what it finds");
            let value = found_under(cx.context, &Value::Null, Some(&row), Pop::Last, &self.label);
            if let Value::List(vertices) = &row.value {
                self.divided.add(vertices, value, row.bulk, cx)?;
            }
            if cx.exhausted() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let Divided { rows, parts, has_holders, mut held, .. } = std::mem::take(&mut self.divided);
        let rows = Arc::new(rows);
        for entries in parts {
            let mut part = Groups::of(rows.clone(), entries, has_holders);
            // Whoever it is, one of them goes last.
            part.held.absorb(&mut held);
            out.push_back(cx.context.parts[self.slot].add(Box::new(part)));
        }
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn reset(&mut self) {
        self.divided = Divided::default();
    }
}

/// Puts the groups of all parts into one map, in the order in which their vertices came.
struct Join {
    slot: usize,
    step: StepInfo,
    /// Of each part what is left.
    parts: Vec<VecDeque<Group>>,
    /// Where the next group of each part came first.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    map: ValueMap,
    held: Held,
    /// What was under the label: millions of values, maybe, that are freed with the query.
    rows: Option<Arc<Rows>>,
}

impl Join {
    fn begin(&mut self, cx: &mut Cx<'_>) {
        for mut part in cx.context.parts[self.slot].take_all::<Groups>() {
            self.held.absorb(&mut part.held);
            self.rows = Some(part.rows);
            if let Some(first) = part.groups.first() {
                self.next.push(Reverse((first.position, self.parts.len())));
                self.parts.push(part.groups.into());
            }
        }
        self.map.reserve_exact(self.parts.iter().map(VecDeque::len).sum());
    }
}

impl Operator<Graphs> for Join {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Flow> {
        input.clear();
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.parts.is_empty() {
            self.begin(cx);
        }
        let mut looks = 0;
        while let Some(Reverse((_, number))) = self.next.pop() {
            let part = &mut self.parts[number];
            // As long as the next of the same part comes before those of others.
            while let Some(group) = part.pop_front() {
                let list = group.list.unwrap_or_default();
                self.map.insert(Value::Vertex(group.vertex), Value::List(list));
                looks += 1;
                let Some(following) = part.front() else { break };
                let is_next = self.next.peek().is_none_or(|Reverse((position, _))| following.position < *position);
                if !is_next || looks >= PIECE {
                    self.next.push(Reverse((following.position, number)));
                    break;
                }
            }
            if looks >= PIECE {
                cx.charge(std::mem::take(&mut looks));
                if cx.exhausted() {
                    return Ok(Flow::More);
                }
            }
        }
        let map = Value::Map(Shared::new(std::mem::take(&mut self.map)));
        let map = cx.context.made_of(map, &mut self.held);
        self.parts = Vec::new();
        out.push_back(cx.context.fresh_at(map, &self.step));
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        if let Some(rows) = self.rows.take().and_then(Arc::into_inner) {
            growing::surrender(rows, &mut Held::default(), remains);
        }
    }

    fn reset(&mut self) {
        self.rows = None;
        (self.parts, self.next, self.map) = (Vec::new(), BinaryHeap::new(), ValueMap::default());
        self.held.give_back();
    }
}

/// Packs vertices that were found from one row.
pub fn pack(row: &Traverser, vertices: Vec<Value>) -> Traverser {
    let mut pack = row.clone();
    pack.put(Value::List(Shared::new(vertices)));
    pack.marks = pack.marks & marks::KEPT | marks::PACKED;
    pack
}

/// Adds the operators behind a hop that packs.
pub fn build(builder: &mut Builder, name: &NodeName, label: &Name, step: &StepInfo, chain: &mut Chain) {
    let (label, step, slot) = (label.clone(), step.clone(), builder.new_parts());
    let id = builder.operator(chain, name, false, move || Divide {
        label: label.clone(),
        slot,
        divided: Divided::default(),
    });
    builder.part_of_next(id);
    build_worker(builder, name, slot, chain);
    builder.operator(chain, name, true, move || Join {
        slot,
        step: step.clone(),
        parts: Vec::new(),
        next: BinaryHeap::new(),
        map: ValueMap::default(),
        held: Held::default(),
        rows: None,
    });
}
