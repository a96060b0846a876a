//! `fold()` and `barrier()`: holding the stream together.

use std::collections::VecDeque;

use ficus_dataflow::{Flow, NodeName, Operator, Remains};
use ficus_model::{Operator as BinaryOperator, Shared, Value, number};
use smallvec::SmallVec;

use crate::budget::{Held, MemoryAccount, grown};
use crate::context::{Cx, Graphs, Result, Traversers};
use crate::error::QueryError;
use crate::flat::Chunks;
use crate::growing;
use crate::logical::Node;
use crate::merge::MergingSet;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

struct FoldOperator {
    step: StepInfo,
    members: Chunks<Value>,
    /// The list under way, once all members are there.
    list: Vec<Value>,
    /// What is counted for it while the chunks are there as well.
    joining: usize,
    held: Held,
}

impl Operator<Graphs> for FoldOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(mut traverser) = input.pop_front() {
            if !add_to_list(&mut self.members, &mut self.held, &traverser.value, &mut traverser.bulk, cx)? {
                input.push_front(traverser);
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.list.is_empty() && self.members.len() <= Chunks::<Value>::CHUNK {
            self.list = std::mem::take(&mut self.members).into_vec();
        }
        if self.list.capacity() == 0 && !self.members.is_empty() {
            // That of the chunks is free as the list fills, and the system's again some time later.
            self.joining = self.members.len() * size_of::<Value>();
            self.held.add(&cx.context.memory, self.joining)?;
            self.list.reserve_exact(self.members.len());
        }
        while !self.members.is_empty() {
            self.list.extend(self.members.drain().take(Chunks::<Value>::CHUNK));
            cx.charge(Chunks::<Value>::CHUNK / 8);
            if cx.exhausted() && !self.members.is_empty() {
                return Ok(Flow::More);
            }
        }
        self.held.subtract(std::mem::take(&mut self.joining));
        let list = Value::List(Shared::new(std::mem::take(&mut self.list)));
        let list = cx.context.made_of(list, &mut self.held);
        out.push_back(cx.context.fresh_at(list, &self.step));
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        let list = std::mem::take(&mut self.list);
        if !list.is_empty() {
            remains.push(Box::new(VecDeque::from(list)));
        }
        growing::surrender(std::mem::take(&mut self.members), &mut self.held, remains);
    }

    fn reset(&mut self) {
        self.list = Vec::new();
        self.members = Chunks::new();
        self.joining = 0;
        self.held.give_back();
    }
}

/// A list of which there may be very many, or one that is very long: its only member lies in place; more are in one piece while they are few, behind that
/// in chunks, since one piece that doubles is copied in one go and there twice meanwhile.
#[derive(Debug, Default)]
pub struct Listing {
    first: SmallVec<[Value; 1]>,
    rest: Option<Box<Chunks<Value>>>,
}

impl Listing {
    /// Of what is there already.
    pub fn of(first: &[Value]) -> Listing {
        Listing { first: first.into(), rest: None }
    }

    /// All, from the first.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        self.first.iter().chain(self.rest.iter().flat_map(|rest| rest.iter()))
    }

    /// Puts together what is in chunks; false if the turn is over before that. Memory is touched as it fills, and that of the chunks goes meanwhile.
    pub fn join(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(rest) = &mut self.rest else { return true };
        self.first.reserve_exact(rest.len());
        while !rest.is_empty() {
            self.first.extend(rest.drain().take(Chunks::<Value>::CHUNK));
            cx.charge(Chunks::<Value>::CHUNK / 8);
            if cx.exhausted() && !rest.is_empty() {
                return false;
            }
        }
        self.rest = None;
        true
    }

    /// The list, once all of it is joined.
    pub fn into_list(self) -> Vec<Value> {
        self.first.into_vec()
    }
}

impl Listed for Listing {
    fn add(&mut self, value: Value, held: &mut Held, account: &MemoryAccount) -> Result<()> {
        match &mut self.rest {
            Some(rest) => rest.add(value, held, account),
            None if self.first.len() < Chunks::<Value>::CHUNK || self.first.len() < self.first.capacity() => {
                self.first.add(value, held, account)
            }
            None => self.rest.insert(Box::default()).add(value, held, account),
        }
    }
}

/// What values are added to one by one, with room that is counted before it is taken.
pub trait Listed {
    /// Adds a value.
    ///
    /// Errors: `Budget` or `ServerMemory`; it is not added then.
    fn add(&mut self, value: Value, held: &mut Held, account: &MemoryAccount) -> Result<()>;
}

impl Listed for Vec<Value> {
    fn add(&mut self, value: Value, held: &mut Held, account: &MemoryAccount) -> Result<()> {
        held.make_room(account, self.len(), self.capacity(), size_of::<Value>())?;
        self.push(value);
        Ok(())
    }
}

impl Listed for SmallVec<[Value; 1]> {
    fn add(&mut self, value: Value, held: &mut Held, account: &MemoryAccount) -> Result<()> {
        let capacity = self.capacity();
        if self.len() == capacity {
            held.make_room(account, self.len(), capacity, size_of::<Value>())?;
            self.grow(grown(capacity));
        }
        self.push(value);
        Ok(())
    }
}

impl Listed for Chunks<Value> {
    fn add(&mut self, value: Value, held: &mut Held, account: &MemoryAccount) -> Result<()> {
        let grows_by = self.grows_by();
        if grows_by > 0 {
            held.add(account, grows_by * size_of::<Value>())?;
        }
        self.push_back(value);
        Ok(())
    }
}

/// Copies of a value that are added to a list between two looks at whether the turn is over.
const COPIES_AT_ONCE: u64 = 4096;

/// Adds a value to a list as often as `bulk` says; false if the turn is over before that, and `bulk` is what is left.
///
/// Errors: `Budget` or `ServerMemory`, before any is added if all of them cannot fit; as [`MemoryAccount::fits`]. Copies share the memory of the
/// value, which counts once.
pub fn add_to_list(
    list: &mut impl Listed,
    held: &mut Held,
    value: &Value,
    bulk: &mut u64,
    cx: &mut Cx<'_>,
) -> Result<bool> {
    cx.context.memory.fits(value)?;
    match value.size_hint_bytes() - size_of::<Value>() {
        0 => {}
        own => held.add(&cx.context.memory, own)?,
    }
    // There may be room for some already.
    let grows_by = bulk.saturating_sub(Chunks::<Value>::CHUNK as u64);
    cx.context.memory.check_room_for(grows_by, size_of::<Value>())?;
    while *bulk > 0 {
        let count = (*bulk).min(COPIES_AT_ONCE);
        for _ in 0..count {
            list.add(value.clone(), held, &cx.context.memory)?;
        }
        *bulk -= count;
        cx.charge(count as usize / 8);
        if *bulk > 0 && cx.exhausted() {
            return Ok(false);
        }
    }
    Ok(true)
}

struct SeededFoldOperator {
    step: StepInfo,
    seed: Value,
    operator: BinaryOperator,
    value: Option<Value>,
}

impl Operator<Graphs> for SeededFoldOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(traverser) = input.front_mut() {
            if traverser.bulk == 0 {
                input.pop_front();
                continue;
            }
            traverser.bulk -= 1;
            let so_far = self.value.take().unwrap_or_else(|| self.seed.clone());
            // To a collection each value is added as it is, even if it is one itself.
            let added = match (self.operator, &so_far) {
                (BinaryOperator::AddAll, Value::List(_) | Value::Set(_)) => &Value::from(vec![traverser.value.clone()]),
                _ => &traverser.value,
            };
            self.value = Some(cx.context.made(self.operator.apply(so_far, added)?)?);
            cx.charge(1);
            if cx.exhausted() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let value = self.value.take().unwrap_or_else(|| self.seed.clone());
        out.push_back(cx.context.fresh_at(value, &self.step));
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.value = None;
    }
}

/// Gathers and merges the stream, at most `size` traversers at a time.
///
/// One of bounded size that finds hardly anything to merge lets rows pass from then on: it is there to save work.
struct BarrierOperator {
    size: Option<usize>,
    norm_sack: bool,
    set: MergingSet,
    seen: usize,
    kept: usize,
}

/// Rows after which a barrier knows whether merging pays.
const TRIAL_ROWS: usize = 5_000;

impl BarrierOperator {
    /// Lets go what it has gathered; false if the turn is over before all is out.
    fn flush(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<bool> {
        let norm_sack = self.norm_sack;
        self.set.leave(out, cx, |all| if norm_sack { normalise_sacks(all) } else { Ok(()) })
    }
}

fn normalise_sacks(all: &mut Chunks<Traverser>) -> Result<()> {
    let mut sum = Value::Double(0.0);
    for traverser in all.iter() {
        let sack = traverser.sack().cloned().unwrap_or(Value::Double(0.0));
        let bulk = i64::try_from(traverser.bulk).unwrap_or(i64::MAX);
        sum = number::add(&sum, &number::times_bulk(&sack, bulk)?)?;
    }
    for traverser in all.iter_mut() {
        if let Some(sack) = traverser.sack() {
            let bulk = i64::try_from(traverser.bulk).unwrap_or(i64::MAX);
            let normed = number::div_floating(&number::times_bulk(sack, bulk)?, &sum)?;
            traverser.set_sack(normed);
        }
    }
    Ok(())
}

impl Operator<Graphs> for BarrierOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.set.is_leaving() && !self.flush(out, cx)? {
            return Ok(Flow::More);
        }
        if self.size.is_some() && self.seen >= TRIAL_ROWS && self.kept * 10 > self.seen * 9 {
            if !self.flush(out, cx)? {
                return Ok(Flow::More);
            }
            out.append(input);
            return Ok(Flow::Ready);
        }
        while let Some(traverser) = input.pop_front() {
            let before = self.set.len();
            self.set.add(traverser, cx.context)?;
            self.seen += 1;
            self.kept += self.set.len() - before;
            if self.size.is_some_and(|size| self.set.len() >= size) {
                self.flush(out, cx)?;
                return Ok(Flow::More);
            }
            cx.charge(1);
            // Comparing paths takes as long as they are.
            if cx.exhausted() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        Ok(if self.flush(out, cx)? { Flow::Ready } else { Flow::More })
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.set.clear();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.set.surrender(remains);
    }

    fn reset(&mut self) {
        self.set.clear();
        self.seen = 0;
        self.kept = 0;
    }
}

/// Adds a barrier behind a step that leaves a side effect, so that what follows sees all of it.
pub fn barrier(builder: &mut Builder, chain: &mut Chain) {
    let id = builder.operator(chain, "side-effect barrier", false, || BarrierOperator {
        size: None,
        norm_sack: false,
        set: MergingSet::default(),
        seen: 0,
        kept: 0,
    });
    builder.auxiliary(id);
}

/// Adds the operator of a collecting node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (NodeName::from(node), step.clone());
    match node {
        Node::Fold { seed: None } => {
            builder.operator(chain, &name, true, move || FoldOperator {
                step: step.clone(),
                members: Chunks::new(),
                list: Vec::new(),
                joining: 0,
                held: Held::default(),
            });
        }
        Node::Fold { seed: Some((seed, operator)) } => {
            let (seed, operator) = (seed.clone(), *operator);
            builder.operator(chain, &name, true, move || SeededFoldOperator {
                step: step.clone(),
                seed: seed.clone(),
                operator,
                value: None,
            });
        }
        Node::Barrier { size, norm_sack } => {
            let (size, norm_sack) = (size.and_then(|size| usize::try_from(size).ok()), *norm_sack);
            builder.operator(chain, &name, false, move || BarrierOperator {
                size,
                norm_sack,
                set: MergingSet::default(),
                seen: 0,
                kept: 0,
            });
        }
        _ => return Err(QueryError::invalid(format!("{node} does not collect the stream"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_takes_what_its_members_take() {
        /// Two chunks: the one that fills, and what the piece in front has too much.
        const MORE: usize = 2 * Chunks::<Value>::CHUNK * size_of::<Value>();
        let (account, mut held, mut listing) = (MemoryAccount::new(1 << 30), Held::default(), Listing::default());
        for number in 0..300_000 {
            listing.add(Value::Long(number), &mut held, &account).expect("the account is large");
            let members = (number as usize + 1) * size_of::<Value>();
            assert!(account.used_bytes() <= members + MORE, "{} bytes for {members}", account.used_bytes());
        }
        assert!(listing.iter().cloned().eq((0..300_000).map(Value::Long)));
    }
}
