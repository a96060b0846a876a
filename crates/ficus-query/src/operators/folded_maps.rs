//! `valueMap().fold()`, `elementMap().fold()`: a list of maps, which are made when all elements are there.
//!
//! While rows come, the list knows each element once, and of each row which of them it was: four bytes. So the map of a vertex that many rows come to is
//! made once, and a query that is stopped meanwhile, as one that was never meant to gather so much, has next to nothing to free. The account counts from
//! the beginning what the list is going to hold, by what the first maps take: it is refused as early as if they had been made at once.

use std::collections::VecDeque;

use ficus_dataflow::{ByType, Chunks, Flow, NodeName, Operator, Remains};
use ficus_model::{Shared, Value};

use crate::budget::Held;
use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::growing::{self, Keyed};
use crate::operators::property_map::ElementMaps;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, work_of};

/// Of so many elements in a row a map is made to see what it takes,
const MEASURED: usize = 16;
/// and of each of so many behind these.
const MEASURED_EACH: usize = 64;

/// Members that are added between two looks at whether the turn is over.
const MEMBERS_AT_ONCE: u64 = 1 << 14;

/// Items that a map is worth: each is several reads of columns.
const MAP_WORK: usize = 4;

struct FoldMaps {
    step: StepInfo,
    maps: ElementMaps,
    /// The elements, or maps of what is only a copy of one.
    elements: Keyed<()>,
    /// Which of them each member is.
    members: Chunks<u32, ByType>,
    /// Bytes of maps that were measured, and how many these were.
    measured: (usize, usize),
    /// Bytes of maps that are counted already.
    foreseen: usize,
    /// Those that are made: of the first elements.
    made: Vec<Value>,
    made_bytes: usize,
    list: Vec<Value>,
    held: Held,
}

impl FoldMaps {
    fn new(maps: ElementMaps, step: StepInfo) -> FoldMaps {
        FoldMaps {
            step,
            maps,
            elements: Keyed::default(),
            members: Chunks::new(),
            measured: (0, 0),
            foreseen: 0,
            made: Vec::new(),
            made_bytes: 0,
            list: Vec::new(),
            held: Held::default(),
        }
    }

    fn map_of(&mut self, element: &Value, context: &QueryContext) -> Result<Value> {
        Ok(match element {
            Value::Map(_) => element.clone(),
            element => Value::Map(Shared::new(self.maps.make(element, context)?)),
        })
    }

    /// The number of an element. What its map will take is counted if it is new.
    fn number(&mut self, element: &Value, cx: &Cx<'_>) -> Result<u32> {
        let count = self.elements.count();
        let number = if QueryContext::is_element(element) {
            self.elements.number(element, &cx.context.memory)?
        } else {
            // Copies with one id may differ; and of what is no element there is no map.
            let map = self.map_of(element, cx.context)?;
            self.elements.number(&map, &cx.context.memory)?
        };
        if number == count {
            if count < MEASURED || count.is_multiple_of(MEASURED_EACH) {
                let map = self.map_of(element, cx.context)?;
                self.measured.0 += map.size_hint_bytes() - size_of::<Value>();
                self.measured.1 += 1;
            }
            let bytes = self.measured.0 / self.measured.1.max(1);
            self.foreseen += bytes;
            self.held.add(&cx.context.memory, bytes)?;
        }
        let too_many = || QueryError::invalid("fold() of more different elements than a list may have");
        u32::try_from(number).map_err(|_| too_many())
    }

    /// Adds as many of a row as the turn allows; `bulk` is what is left.
    fn add(&mut self, number: u32, bulk: &mut u64, cx: &mut Cx<'_>) -> Result<()> {
        cx.context.memory.check_room_for(*bulk, size_of::<Value>())?;
        while *bulk > 0 {
            let count = (*bulk).min(MEMBERS_AT_ONCE);
            // A member of the list is more than its number here.
            self.held.add(&cx.context.memory, count as usize * size_of::<Value>())?;
            for _ in 0..count {
                self.members.push_back(number);
            }
            *bulk -= count;
            cx.charge(count as usize / 8);
            if cx.exhausted() {
                break;
            }
        }
        Ok(())
    }

    /// The map of a member, made if it is the first of its element.
    fn member(&mut self, number: u32, cx: &mut Cx<'_>) -> Result<Value> {
        let number = number as usize;
        // Elements have numbers in the order in which they came.
        while self.made.len() <= number {
            let Some(element) = self.elements.key(self.made.len()).cloned() else { break };
            let map = self.map_of(&element, cx.context)?;
            cx.charge(MAP_WORK + work_of(&map));
            self.made_bytes += map.size_hint_bytes() - size_of::<Value>();
            if self.made_bytes > self.foreseen {
                let more = self.made_bytes - self.foreseen;
                self.foreseen = self.made_bytes;
                self.held.add(&cx.context.memory, more)?;
            }
            self.made.push(map);
        }
        Ok(self.made.get(number).cloned().unwrap_or(Value::Null))
    }
}

impl Operator<Graphs> for FoldMaps {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(mut row) = input.pop_front() {
            let number = self.number(&row.value, cx)?;
            self.add(number, &mut row.bulk, cx)?;
            if row.bulk > 0 {
                input.push_front(row);
            }
            if cx.exhausted() && !input.is_empty() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        // Memory of the list is touched as it fills.
        self.list.reserve_exact(self.members.len());
        while let Some(number) = self.members.pop_front() {
            let map = self.member(number, cx)?;
            self.list.push(map);
            cx.charge(1);
            if cx.exhausted() && !self.members.is_empty() {
                return Ok(Flow::More);
            }
        }
        self.held.subtract(self.foreseen - self.made_bytes);
        self.foreseen = self.made_bytes;
        let list = Value::List(Shared::new(std::mem::take(&mut self.list)));
        let list = cx.context.made_of(list, &mut self.held);
        out.push_back(cx.context.fresh_at(list, &self.step));
        // All of them are in the list as well.
        self.made.clear();
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        for values in [std::mem::take(&mut self.list), std::mem::take(&mut self.made)] {
            if !values.is_empty() {
                remains.push(Box::new(VecDeque::from(values)));
            }
        }
        self.elements.surrender(remains);
        growing::surrender(std::mem::take(&mut self.members), &mut self.held, remains);
    }

    fn reset(&mut self) {
        (self.list, self.made) = (Vec::new(), Vec::new());
        (self.measured, self.foreseen, self.made_bytes) = ((0, 0), 0, 0);
        self.elements.clear();
        self.members = Chunks::new();
        self.held.give_back();
    }
}

/// Adds the operator of a list of maps, which has the name of both steps.
pub fn build(builder: &mut Builder, name: &NodeName, maps: ElementMaps, step: &StepInfo, chain: &mut Chain) {
    let step = step.clone();
    builder.operator(chain, name, true, move || FoldMaps::new(maps.clone(), step.clone()));
}
