//! Rows on their way to `group()`, with their keys and members made where others can help.
//!
//! `group()` is one operator on one executor, and what `group().by(out('hasCreator').id()).by(values('creationDate').max())` does for each row is
//! mostly the walk to the key and to what is reduced, which need nothing but that row. So what stands before it, which other executors work on as
//! well (physical/spread.rs), ends with an operator that makes both, and packs those of many rows into one ([`marks::PACKED`]): the group takes
//! them in the same order, so its results and its errors are those of single rows. What an executor does by itself goes on as it is.

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Shared, Value};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::logical::By;
use crate::modulate::Modulator;
use crate::physical::{Builder, Chain, Modulators};
use crate::probe::Probe;
use crate::traverser::{Traverser, marks};

/// Entries in one row at most, but for the last row's.
const ENTRIES: usize = 64;

/// Rows of one member that are made at once; one that has more goes on as it is.
pub const MEMBER_ROWS: usize = 1024;

/// A row that stands for more than this is listed by the group.
const LISTED: u64 = 1024;

/// What makes a key.
#[derive(Clone)]
pub enum Key {
    /// Without a walk.
    Simple(Modulator),
    /// By a walk in place.
    Walk(Box<Probe>),
}

impl Key {
    /// What a `by()` says, if a look tells it.
    pub fn of(builder: &mut Builder, by: &By) -> Option<Key> {
        let mut modulators = Modulators::new();
        modulators.by(by);
        match (modulators.simple(), by) {
            (Some(modulator), _) => Some(Key::Simple(modulator.clone())),
            (None, By::Traversal(walk)) => Some(Key::Walk(Box::new(builder.probes(&[walk]).pop().flatten()?))),
            (None, _) => None,
        }
    }

    /// Whether it is a walk.
    pub fn is_walk(&self) -> bool {
        matches!(self, Key::Walk(_))
    }

    /// The key of a value, which is that of `row` if there is one; the inner `None` if it has none, the outer if that takes more than a look.
    ///
    /// Errors: what its steps fail with.
    pub fn first(&mut self, value: &Value, row: Option<&Traverser>, cx: &mut Cx<'_>) -> Result<Option<Option<Value>>> {
        match self {
            Key::Simple(modulator) => modulator.evaluate(value, cx.context).map(Some),
            Key::Walk(probe) => Ok(probe.first(value, row, cx)?.paid(cx)),
        }
    }
}

/// What makes the members of a row, as the group would.
#[derive(Clone)]
pub enum Member {
    /// The rows of a walk, to be listed or reduced.
    Rows(Box<Probe>),
    /// The object of the row, of which the group makes something.
    Object,
    /// A value, to be listed.
    Value(Modulator),
}

/// What is made of rows before they are packed.
pub trait MakeValues: Send {
    /// Appends what is made of a row to the pack; `false`, and nothing is appended, if that takes more than a look.
    ///
    /// Errors: what its steps fail with.
    fn add(&mut self, row: &Traverser, pack: &mut Vec<Value>, cx: &mut Cx<'_>) -> Result<bool>;

    /// Values of one entry.
    fn width(&self) -> usize;
}

/// Packs what is made of the rows of a chunk that several executors work on; others go on as they are.
pub struct PackRows<M> {
    makes: M,
    pack: Vec<Value>,
}

impl<M> PackRows<M> {
    /// An operator that packs what `makes` makes.
    pub fn new(makes: M) -> PackRows<M> {
        PackRows { makes, pack: Vec::new() }
    }

    fn flush(&mut self, out: &mut Traversers) {
        if !self.pack.is_empty() {
            let value = Value::List(Shared::new(std::mem::take(&mut self.pack)));
            out.push_back(Traverser::new(value).marked(marks::PACKED));
        }
    }
}

struct Members {
    key: Key,
    member: Member,
    rows: Vec<(Value, u64)>,
}

impl MakeValues for Members {
    /// Key, member, and how often it counts.
    fn width(&self) -> usize {
        3
    }

    fn add(&mut self, row: &Traverser, pack: &mut Vec<Value>, cx: &mut Cx<'_>) -> Result<bool> {
        if matches!(self.member, Member::Object) && !row.has_no_history() {
            return Ok(false);
        }
        let Some(key) = self.key.first(&row.value, Some(row), cx)? else { return Ok(false) };
        // A row without a key is in no group.
        let Some(key) = key else { return Ok(true) };
        self.rows.clear();
        match &mut self.member {
            Member::Object => self.rows.push((row.value.clone(), 1)),
            // The group lists it piece by piece.
            Member::Value(_) | Member::Rows(_) if row.bulk > LISTED => return Ok(false),
            Member::Value(modulator) => {
                self.rows.extend(modulator.evaluate(&row.value, cx.context)?.map(|value| (value, 1)));
            }
            Member::Rows(probe) => {
                if probe.all(row, MEMBER_ROWS, cx, &mut self.rows)?.paid(cx).is_none() {
                    return Ok(false);
                }
            }
        }
        if self.rows.is_empty() {
            // There is a group, without members so far.
            pack.extend([key, Value::Null, Value::Long(0)]);
            return Ok(true);
        }
        for (value, bulk) in self.rows.drain(..) {
            let bulk = i64::try_from(bulk.saturating_mul(row.bulk)).unwrap_or(i64::MAX);
            pack.extend([key.clone(), value, Value::Long(bulk)]);
        }
        Ok(true)
    }
}

impl<M: MakeValues> Operator<Graphs> for PackRows<M> {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if !cx.in_chunk && self.pack.is_empty() {
            out.append(input);
            return Ok(Flow::Ready);
        }
        while let Some(row) = input.pop_front() {
            cx.charge(1);
            if row.bulk > i64::MAX as u64 || !self.makes.add(&row, &mut self.pack, cx)? {
                // What was packed before it comes before it.
                self.flush(out);
                out.push_back(row);
            }
            if self.pack.len() >= ENTRIES * self.makes.width() {
                self.flush(out);
            }
            if cx.should_yield(out) {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Flow> {
        self.flush(out);
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.pack.clear();
    }
}

/// The members that a row has packed, each with its key and how often it counts; `None` if it is one like others.
pub fn members_in(row: &mut Traverser) -> Option<impl Iterator<Item = (Value, Value, u64)>> {
    if row.marks & marks::PACKED == 0 {
        return None;
    }
    let Value::List(list) = &mut row.value else { return None };
    let mut values = std::mem::take(Shared::make_mut(list)).into_iter();
    Some(std::iter::from_fn(move || match (values.next(), values.next(), values.next()) {
        (Some(key), Some(value), Some(Value::Long(bulk))) => Some((key, value, bulk as u64)),
        _ => None,
    }))
}

/// Adds the operator in front of a group, if others may help with what comes to it and its key is made by a look.
pub fn build(builder: &mut Builder, key: &By, member: Member, chain: &mut Chain) {
    let Some(key) = Key::of(builder, key) else { return };
    // What is read without a walk is read as quickly where it is needed.
    let takes_long = key.is_walk() || matches!(member, Member::Rows(_));
    if !takes_long || builder.requirements().writes || !builder.may_pack_work(chain) {
        return;
    }
    let id = builder.operator(chain, "Keys", false, move || {
        PackRows::new(Members { key: key.clone(), member: member.clone(), rows: Vec::new() })
    });
    builder.part_of_next(id);
}
