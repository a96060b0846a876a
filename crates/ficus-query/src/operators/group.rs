//! `group()` and `groupCount()`, as reductions and as side effects.
//!
//! What becomes of a group's members depends on the second `by()`. A key, token or nothing collects a list. A traversal
//! without barrier keeps the first result of the last member that has one. A traversal with a barrier is a region of its own
//! per group that all members of the group enter; its first result is the group's value.

use std::sync::Arc;

use ficus_dataflow::region::{RegionFlow, RegionInstance};
use ficus_dataflow::{Flow, NodeName, Queue, Region, Remains};
use ficus_model::{Pop, Shared, T, Value, ValueMap, number};

use crate::budget::{Held, MemoryAccount};
use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::growing::Keyed;
use crate::logical::{By, Name, Node, Reduction, Traversal, visit};
use crate::merge::MergingSet;
use crate::modulate::{ModulatedLogic, Modulator, Request, part_of};
use crate::operators::collect::{Listing, add_to_list};
use crate::operators::combine::found_under;
use crate::operators::keyed_rows::{self, Member};
use crate::operators::reduce::Tally;
use crate::operators::tuples::{self, Tuple};
use crate::operators::walked_rows::{self, Purpose};
use crate::operators::{group_count, java_hash, merged_rows};
use crate::physical::{Builder, Chain, Modulators, draws, rows_stand_alone};
use crate::probe::Probe;
use crate::rules::Rule;
use crate::traverser::{StepInfo, Traverser, marks};

/// How the members of a group are put together.
#[derive(Clone)]
enum Members {
    /// A list of all rows this region makes of them, one member after another; of those that its probe makes, where that is short.
    Fold {
        region: Arc<Region<Graphs>>,
        probe: Option<Box<Probe>>,
        /// What is made of a member is chance.
        draws: bool,
    },
    /// What a reduction makes of all rows of all members.
    Reduced(Reduced),
    /// A list of what they have under a label.
    Labelled(Name),
    /// A list of what modulator 1 makes of them.
    List,
    /// What modulator 1 makes of the last that yields something.
    Last,
    /// What this region makes of all of them.
    Region {
        region: Arc<Region<Graphs>>,
        /// The reduction that it ends with.
        reduction: Option<Reduction>,
        /// Groups draw random numbers of one sequence, and are ended in TinkerPop's order.
        draws: bool,
    },
}

impl Members {
    /// What a group holds before it has members: operators, if it has a region of its own.
    fn instance_bytes(&self) -> usize {
        match self {
            Members::Region { region, .. } => 640 + 256 * region.nodes.len(),
            _ => 0,
        }
    }
}

/// How rows of members are reduced.
#[derive(Clone)]
struct Reduced {
    reduction: Reduction,
    /// Makes the rows of a member; or one with their number where they are counted, which may take no look at them.
    probe: Box<Probe>,
    /// The same for members of which the probe cannot tell.
    region: Arc<Region<Graphs>>,
}

impl Reduced {
    /// A group without members.
    fn begin(&self) -> Group {
        Group::Reduced { tally: Tally::new(self.reduction), waiting: Vec::new() }
    }

    /// Adds what there is of a member, or of several equal ones.
    fn add(&self, tally: &mut Tally, value: &Value, bulk: u64) -> Result<()> {
        match (self.reduction, value) {
            (Reduction::Count, Value::Long(count)) => {
                tally.add(value, u64::try_from(*count).unwrap_or(0).saturating_mul(bulk))
            }
            _ => tally.add(value, bulk),
        }
    }
}

enum Group {
    List(Listing),
    Reduced {
        tally: Tally,
        /// Members that are too much for a look, for the end: there their turns can be cut short.
        waiting: Vec<Traverser>,
    },
    Last(Value),
    Region(Box<OfRegion>),
}

// Of most groups there are many: a wider one would cost each of them.
const _: () = assert!(size_of::<Group>() <= 72);

/// A group that is what a region makes of its members.
struct OfRegion {
    instance: Box<RegionInstance<Graphs>>,
    /// Members that it was given since it ran, and what they take.
    given: usize,
    given_bytes: usize,
    out: Traversers,
    /// What the side effect held under the key before, and the reduction that goes on from it.
    before: Option<(Value, Reduction)>,
}

/// The list that a group is.
///
/// Errors: `Invalid` if the group was made by a step that makes something else of its members.
fn list_of(group: &mut Group) -> Result<&mut Listing> {
    match group {
        Group::List(list) => Ok(list),
        Group::Last(_) | Group::Reduced { .. } | Group::Region(_) => Err(made_otherwise()),
    }
}

fn made_otherwise() -> QueryError {
    QueryError::invalid(
        "group() cannot go on with what its side effect holds under a key: that was made by another by(); name another side effect",
    )
}

/// What a reduction makes of the number that a group is already, and of what it made of the new members.
///
/// Errors: `Invalid` if the group is no such number.
fn go_on(reduction: Reduction, before: &Value, made: Option<&Value>) -> Result<Option<Value>> {
    let add = match reduction {
        // How many were counted; an Integer is one that a query gave.
        Reduction::Count if matches!(before, Value::Int(_) | Value::Long(_)) => Reduction::Sum,
        Reduction::Sum | Reduction::Min | Reduction::Max if number::is_number(before) => reduction,
        _ => return Err(made_otherwise()),
    };
    let mut tally = Tally::new(add);
    for value in [Some(before), made].into_iter().flatten() {
        tally.add(value, 1)?;
    }
    tally.finish()
}

/// Groups under construction.
#[derive(Default)]
pub struct Groups {
    groups: Keyed<Group>,
    spare: Option<Box<RegionInstance<Graphs>>>,
    /// What a probe finds for one member.
    rows: Vec<(Value, u64)>,
    finished: ValueMap,
    /// The group at which the turn was over while they were ended.
    current: Option<(Value, Group)>,
    /// How members that wait are reduced, and the one of them that is.
    reduced: Option<Reduced>,
    running: Option<Box<RegionInstance<Graphs>>>,
    /// Groups are to be ended in the order of a hash map of TinkerPop's.
    draws: bool,
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Groups({})", self.groups.iter().count())
    }
}

impl Groups {
    /// Adds the members of a row to a group; by how many values that made a list longer.
    fn add(
        &mut self,
        members: &mut Members,
        key: Value,
        value: Option<Value>,
        traverser: &Traverser,
        cx: &mut Cx<'_>,
    ) -> Result<u64> {
        let (account, bytes) = (&cx.context.memory, members.instance_bytes());
        let mut listed = 0u64;
        match members {
            Members::List => {
                let (group, held) = self.groups.entry(key, bytes, account, || Group::List(Listing::default()))?;
                if let Some(value) = value {
                    extend(list_of(group)?, held, &value, traverser.bulk, cx)?;
                    listed = traverser.bulk;
                }
            }
            Members::Last => {
                if let Some(value) = value {
                    account.fits(&value)?;
                    let (group, held) = self.groups.entry(key, bytes, account, || Group::Last(Value::Null))?;
                    held.add(account, value.size_hint_bytes() - size_of::<Value>())?;
                    if let Group::Last(old) = std::mem::replace(group, Group::Last(value)) {
                        held.subtract(old.size_hint_bytes() - size_of::<Value>());
                    }
                }
            }
            Members::Labelled(label) => {
                let value = found_under(cx.context, &traverser.value, Some(traverser), Pop::Last, label);
                let (group, held) =
                    self.groups.entry(key, bytes, &cx.context.memory, || Group::List(Listing::default()))?;
                if let Some(value) = value {
                    extend(list_of(group)?, held, &value, traverser.bulk, cx)?;
                    listed = traverser.bulk;
                }
            }
            Members::Fold { region, probe, .. } => {
                let (group, held) = self.groups.entry(key, bytes, account, || Group::List(Listing::default()))?;
                let rows =
                    MemberRows { region, probe: probe.as_deref_mut(), spare: &mut self.spare, rows: &mut self.rows };
                rows.visit(traverser, cx, |value, bulk, cx| {
                    listed = listed.saturating_add(bulk);
                    extend(list_of(group)?, held, value, bulk, cx)
                })?;
            }
            Members::Reduced(reduced) => {
                let tried = reduced.probe.all(traverser, keyed_rows::MEMBER_ROWS, cx, &mut self.rows)?.paid(cx);
                let (group, held) = self.groups.entry(key, bytes, &cx.context.memory, || reduced.begin())?;
                let Group::Reduced { tally, waiting } = group else { return Err(made_otherwise()) };
                if tried.is_none() {
                    // With room for the list to grow.
                    held.add(&cx.context.memory, 2 * traverser.kept_bytes())?;
                    waiting.push(traverser.clone());
                    self.reduced.get_or_insert_with(|| reduced.clone());
                    return Ok(0);
                }
                for (value, bulk) in self.rows.drain(..) {
                    reduced.add(tally, &value, bulk.saturating_mul(traverser.bulk))?;
                }
            }
            Members::Region { region, reduction, draws } => {
                self.draws = *draws;
                let begin = |before| {
                    Group::Region(Box::new(OfRegion {
                        instance: Box::new(RegionInstance::new(region.clone())),
                        given: 0,
                        given_bytes: 0,
                        out: Traversers::new(),
                        before,
                    }))
                };
                let (group, held) = self.groups.entry(key, bytes, account, || begin(None))?;
                if let (Group::Last(value), Some(reduction)) = (&*group, *reduction) {
                    go_on(reduction, value, None)?;
                    *group = begin(Some((value.clone(), reduction)));
                }
                let Group::Region(group) = group else { return Err(made_otherwise()) };
                let OfRegion { instance, given, given_bytes, out, .. } = &mut **group;
                let member_bytes = traverser.kept_bytes();
                held.add(account, member_bytes)?;
                instance.push(traverser.clone());
                (*given, *given_bytes) = (*given + 1, *given_bytes + member_bytes);
                // Its operators take many members as quickly as few.
                if *given >= MEMBERS_AT_ONCE.min(cx.batch_rows_limit) {
                    held.subtract(std::mem::take(given_bytes));
                    *given = 0;
                    instance.run(out, cx)?;
                    // Only the first result counts.
                    out.truncate(1);
                }
            }
        }
        Ok(listed)
    }

    /// Adds members that were made before, each with its key and how often it counts.
    fn add_made(
        &mut self,
        members: &mut Members,
        made: impl Iterator<Item = (Value, Value, u64)>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        for (key, value, bulk) in made {
            cx.charge(1);
            match members {
                Members::Reduced(reduced) => {
                    let (group, _) = self.groups.entry(key, 0, &cx.context.memory, || reduced.begin())?;
                    let Group::Reduced { tally, .. } = group else { return Err(made_otherwise()) };
                    if bulk > 0 {
                        reduced.add(tally, &value, bulk)?;
                    }
                }
                Members::Region { .. } => {
                    let row = Traverser::new(value).with_bulk(bulk);
                    self.add(members, key, None, &row, cx)?;
                }
                _ => {
                    let listing = || Group::List(Listing::default());
                    let (group, held) = self.groups.entry(key, 0, &cx.context.memory, listing)?;
                    if bulk > 0 {
                        extend(list_of(group)?, held, &value, bulk, cx)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Groups that go on from a finished map.
    pub fn of(map: &ValueMap) -> Groups {
        let groups = map.iter().map(|(key, value)| {
            let group = match value {
                Value::List(list) => Group::List(Listing::of(list)),
                other => Group::Last(other.clone()),
            };
            (key.clone(), group)
        });
        Groups { groups: Keyed::of(groups), ..Groups::default() }
    }

    /// The groups as far as they can be told while they grow: lists and single values.
    pub fn view(&self) -> Value {
        let map: ValueMap = self
            .groups
            .iter()
            .filter_map(|(key, group)| {
                let value = match group {
                    Group::List(list) => list.iter().cloned().collect(),
                    Group::Last(value) => value.clone(),
                    Group::Reduced { .. } | Group::Region(_) => return None,
                };
                Some((key.clone(), value))
            })
            .collect();
        Value::Map(Shared::new(map))
    }

    /// Ends all groups; `None` if the turn is over before that.
    pub fn finish(&mut self, cx: &mut Cx<'_>) -> Result<Option<Value>> {
        if self.current.is_none() {
            self.groups.begin_moving(&mut self.finished, cx)?;
            if std::mem::take(&mut self.draws) {
                let count = self.groups.iter().count();
                self.groups.reorder(cx, |key, cx| java_hash::place(key, count, cx.context))?;
            }
        }
        while let Some((key, mut group)) = self.current.take().or_else(|| self.groups.pop_front()) {
            let value = match &mut group {
                Group::List(list) => {
                    if !list.join(cx) {
                        self.current = Some((key, group));
                        return Ok(None);
                    }
                    Some(Value::List(Shared::new(std::mem::take(list).into_list())))
                }
                Group::Last(value) => Some(value.clone()),
                Group::Reduced { tally, waiting } => {
                    if !self.reduce(tally, waiting, cx)? {
                        self.current = Some((key, group));
                        return Ok(None);
                    }
                    tally.finish()?
                }
                Group::Region(of) => {
                    let OfRegion { instance, out, given_bytes, before, .. } = &mut **of;
                    self.groups.held().subtract(std::mem::take(given_bytes));
                    instance.close();
                    while out.is_empty() && instance.run(out, cx)? == RegionFlow::More {
                        if cx.exhausted() && out.is_empty() {
                            self.current = Some((key, group));
                            return Ok(None);
                        }
                    }
                    instance.release(cx);
                    let made = out.pop_front().map(|traverser| traverser.value);
                    match before {
                        Some((value, reduction)) => go_on(*reduction, value, made.as_ref())?,
                        None => made,
                    }
                }
            };
            // Behind the region's turn: charged before, a turn of one unit would never come to it.
            cx.charge(1);
            // A group whose traversal yields nothing is left out.
            if let Some(value) = value {
                self.finished.insert(key, value);
            }
            if cx.exhausted() {
                return Ok(None);
            }
        }
        let finished = Value::Map(Shared::new(std::mem::take(&mut self.finished)));
        Ok(Some(cx.context.made_of(finished, self.groups.held())))
    }

    /// Reduces the members of a group that wait; false if the turn is over before that.
    fn reduce(&mut self, tally: &mut Tally, waiting: &mut Vec<Traverser>, cx: &mut Cx<'_>) -> Result<bool> {
        let Some(reduced) = &self.reduced else { return Ok(true) };
        let mut rows = Traversers::new();
        while self.running.is_some() || !waiting.is_empty() {
            let instance = self.running.get_or_insert_with(|| {
                let mut instance = instance_of(&reduced.region, &mut self.spare);
                waiting.pop().into_iter().for_each(|member| instance.push(member));
                instance.close();
                instance
            });
            let flow = instance.run(&mut rows, cx)?;
            for row in rows.drain(..) {
                reduced.add(tally, &row.value, row.bulk)?;
            }
            if flow == RegionFlow::More {
                if cx.exhausted() {
                    return Ok(false);
                }
                continue;
            }
            self.spare = self.running.take();
            self.spare.iter_mut().for_each(|spare| spare.reset());
            cx.charge(1);
        }
        Ok(true)
    }

    /// As [`ficus_dataflow::Operator::surrender`].
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.groups.surrender(remains);
    }
}

/// An instance of a region, the spare one if it is of that: several steps may add to one side effect, each with a region of its own.
fn instance_of(
    region: &Arc<Region<Graphs>>,
    spare: &mut Option<Box<RegionInstance<Graphs>>>,
) -> Box<RegionInstance<Graphs>> {
    let spare = spare.take().filter(|spare| spare.is_of(region));
    spare.unwrap_or_else(|| Box::new(RegionInstance::new(region.clone())))
}

/// The rows that are made of a member.
struct MemberRows<'g> {
    region: &'g Arc<Region<Graphs>>,
    probe: Option<&'g mut Probe>,
    spare: &'g mut Option<Box<RegionInstance<Graphs>>>,
    rows: &'g mut Vec<(Value, u64)>,
}

impl MemberRows<'_> {
    /// Hands out values, and how often each counts, of one member: by a look where the probe can tell, else from the region.
    fn visit(
        self,
        member: &Traverser,
        cx: &mut Cx<'_>,
        mut visit: impl FnMut(&Value, u64, &mut Cx<'_>) -> Result<()>,
    ) -> Result<()> {
        let MemberRows { region, probe, spare, rows } = self;
        let tried = match probe {
            Some(probe) => probe.all(member, keyed_rows::MEMBER_ROWS, cx, rows)?.paid(cx),
            None => None,
        };
        if tried.is_some() {
            for (value, bulk) in rows.drain(..) {
                visit(&value, bulk.saturating_mul(member.bulk), cx)?;
            }
            return Ok(());
        }
        let mut instance = instance_of(region, spare);
        instance.push(member.clone());
        instance.close();
        let rows = &mut Traversers::new();
        // The member is finished in one go: what the group holds is seen by others.
        cx.without_pause(|cx| {
            let mut flow = RegionFlow::More;
            while flow == RegionFlow::More {
                cx.check()?;
                cx.quota = cx.quota.max(MEMBER_QUOTA);
                flow = instance.run(rows, cx)?;
                for row in rows.drain(..) {
                    visit(&row.value, row.bulk, cx)?;
                }
            }
            Ok::<(), QueryError>(())
        })?;
        instance.reset();
        *spare = Some(instance);
        Ok(())
    }
}

/// Members that the region of a group is given before it runs.
const MEMBERS_AT_ONCE: usize = 64;

/// Work units that the region of a member gets at a time, between two looks at whether the query must stop.
const MEMBER_QUOTA: i64 = 4096;

/// Members of a row that are listed before its turn may be over.
const LISTED_AT_ONCE: u64 = 1 << 14;

/// Adds a value to the list of a group in one go.
fn extend(list: &mut Listing, held: &mut Held, value: &Value, mut bulk: u64, cx: &mut Cx<'_>) -> Result<()> {
    while !add_to_list(list, held, value, &mut bulk, cx)? {
        cx.check()?;
    }
    Ok(())
}

struct GroupLogic {
    side_effect: Option<Name>,
    members: Members,
    step: StepInfo,
    groups: Groups,
    /// Whether all members are there when the input ends, so that the side effect is complete then.
    is_final: bool,
    /// What waits for the side effect to be there.
    passing: MergingSet,
    /// What of a row with a large bulk is still to be listed.
    rest: Option<Traverser>,
}

impl ModulatedLogic for GroupLogic {
    fn requests(&mut self, traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        if traverser.marks & marks::PACKED != 0 {
            return Ok(());
        }
        list.push(Request::current(0));
        if matches!(self.members, Members::List | Members::Last) {
            list.push(Request::current(1));
        }
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        _out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let mut traverser = traverser;
        if let Some(members) = keyed_rows::members_in(&mut traverser) {
            return self.groups.add_made(&mut self.members, members, cx);
        }
        let mut results = results.drain(..);
        let key = results.next().flatten();
        let value = results.next().flatten();
        let (mut traverser, rest) = part_of(traverser, self.members_at_once());
        let listed = match (key, &self.side_effect) {
            (None, _) => 0,
            (Some(key), None) => self.groups.add(&mut self.members, key, value, &traverser, cx)?,
            (Some(key), Some(name)) => {
                let mut groups = cx.context.side_effects.take_groups(name)?;
                let added = groups.add(&mut self.members, key, value, &traverser, cx);
                cx.context.side_effects.put_groups(name, groups);
                added?
            }
        };
        match rest {
            Some(rest) if listed > 0 => {
                // What comes of the others is as much, unless it is chance; there may be room for some already.
                if !matches!(self.members, Members::Fold { draws: true, .. }) {
                    let grows_by = u128::from(listed) * u128::from(rest.bulk / LISTED_AT_ONCE);
                    let grows_by = u64::try_from(grows_by).unwrap_or(u64::MAX).saturating_sub(LISTED_AT_ONCE);
                    cx.context.memory.check_room_for(grows_by, size_of::<Value>())?;
                }
                self.rest = Some(rest);
            }
            // Of the others there is nothing to list either.
            Some(rest) => traverser.bulk += rest.bulk,
            None => {}
        }
        match self.side_effect {
            Some(_) => self.passing.add(traverser, cx.context),
            None => Ok(()),
        }
    }

    fn members_at_once(&self) -> u64 {
        match self.members {
            Members::List | Members::Labelled(_) | Members::Fold { .. } => LISTED_AT_ONCE,
            _ => u64::MAX,
        }
    }

    fn left_over(&mut self) -> Option<Traverser> {
        self.rest.take()
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.side_effect.is_none() {
            match self.groups.finish(cx)? {
                Some(map) => out.push_back(cx.context.fresh_at(map, &self.step)),
                None => return Ok(Flow::More),
            }
        }
        if let Some(name) = &self.side_effect {
            if self.is_final && cx.context.side_effects.has_groups(name) {
                let mut groups = cx.context.side_effects.take_groups(name)?;
                match groups.finish(cx)? {
                    Some(map) => cx.context.side_effects.put(name, map),
                    None => {
                        cx.context.side_effects.put_groups(name, groups);
                        return Ok(Flow::More);
                    }
                }
            }
            if !self.passing.leave(out, cx, |_| Ok(()))? {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.groups = Groups::default();
        self.passing.clear();
    }

    fn release(&mut self, _context: &mut QueryContext) {
        self.groups = Groups::default();
        self.passing.clear();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.groups.surrender(remains);
        self.passing.surrender(remains);
    }
}

struct GroupCountLogic {
    side_effect: Option<Name>,
    /// The modulator of rows of which the walk to the key's vertex was made, if there are such.
    of_walked: Option<usize>,
    /// What waits for the side effect to be there.
    passing: MergingSet,
    step: StepInfo,
    counts: Keyed<i64>,
    /// The result under way.
    finished: ValueMap,
}

/// Adds to the count of a key.
pub fn count(counts: &mut Keyed<i64>, key: Value, bulk: u64, account: &MemoryAccount) -> Result<()> {
    let (count, _) = counts.entry(key, 0, account, || 0)?;
    *count = count.saturating_add(i64::try_from(bulk).unwrap_or(i64::MAX));
    Ok(())
}

/// Adds to the count of the key that has this number, if there is one.
#[inline]
pub fn count_at(counts: &mut Keyed<i64>, number: u32, bulk: u64) {
    if let Some((count, _)) = counts.at_mut(number as usize) {
        *count = count.saturating_add(i64::try_from(bulk).unwrap_or(i64::MAX));
    }
}

/// As [`count`], in a map that others see.
fn count_in(map: &mut ValueMap, key: Value, bulk: u64, held: &mut Held, account: &MemoryAccount) -> Result<()> {
    let bulk = i64::try_from(bulk).unwrap_or(i64::MAX);
    match map.get_mut(&key) {
        Some(Value::Long(count)) => *count = count.saturating_add(bulk),
        _ => {
            account.fits(&key)?;
            held.make_room(account, map.len(), map.capacity(), 2 * size_of::<Value>() + 24)?;
            held.add(account, key.size_hint_bytes() - size_of::<Value>())?;
            map.insert(key, Value::Long(bulk));
        }
    }
    Ok(())
}

impl ModulatedLogic for GroupCountLogic {
    fn requests(&mut self, traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        let of_walked = self.of_walked.filter(|_| traverser.marks & marks::WALKED != 0);
        list.push(Request::current(of_walked.unwrap_or(0)));
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        _out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let key = results.pop().flatten();
        let Some(name) = &self.side_effect else {
            return match key {
                Some(key) => count(&mut self.counts, key, traverser.bulk, &cx.context.memory),
                None => Ok(()),
            };
        };
        if let Some(key) = key {
            let mut value = cx.context.side_effects.take(name).unwrap_or_else(|| Value::Map(Shared::default()));
            let Value::Map(map) = &mut value else {
                return Err(QueryError::invalid(format!("the side effect {name} is not a map")));
            };
            let QueryContext { side_effects, memory, .. } = &mut *cx.context;
            count_in(Shared::make_mut(map), key, traverser.bulk, &mut side_effects.held, memory)?;
            side_effects.put(name, value);
        }
        self.passing.add(traverser, cx.context)
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.side_effect.is_none() {
            if !self.counts.move_to(&mut self.finished, cx, Value::Long)? {
                return Ok(Flow::More);
            }
            let map = Value::Map(Shared::new(std::mem::take(&mut self.finished)));
            let map = cx.context.made_of(map, self.counts.held());
            out.push_back(cx.context.fresh_at(map, &self.step));
        }
        Ok(if self.passing.leave(out, cx, |_| Ok(()))? { Flow::Ready } else { Flow::More })
    }

    fn reset(&mut self) {
        self.counts.clear();
        self.finished = ValueMap::default();
        self.passing.clear();
    }

    fn release(&mut self, _context: &mut QueryContext) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.counts.surrender(remains);
        self.passing.surrender(remains);
    }
}

/// Adds the operator of a grouping node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (NodeName::from(node), step.clone());
    match node {
        Node::Group { side_effect, key, value } => {
            let mut modulators = Modulators::new();
            modulators.by(key);
            let members = match value {
                By::Traversal(traversal) if builder.may(Rule::LabelsInGroup) && folded_label(traversal).is_some() => {
                    builder.note(Rule::LabelsInGroup, &name);
                    folded_label(traversal).map_or(Members::List, |label| Members::Labelled(label.clone()))
                }
                By::Traversal(traversal) if folds_only(traversal) => {
                    let inner = Traversal { nodes: traversal.nodes[..traversal.nodes.len() - 1].to_vec() };
                    let probe = builder.probes(&[&inner]).pop().flatten().map(Box::new);
                    Members::Fold { region: builder.child_region(&name, &inner)?, probe, draws: draws(&inner) }
                }
                By::Traversal(traversal) if let Some(reduced) = reduced(builder, &name, side_effect, traversal)? => {
                    Members::Reduced(reduced)
                }
                By::Traversal(traversal) if traversal.nodes.iter().any(|own| is_global_barrier(&own.node)) => {
                    let draws = builder.requirements().draws_in_order && draws(traversal);
                    let reduction = ends_in(traversal);
                    Members::Region { region: builder.child_region(&name, traversal)?, reduction, draws }
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
            let member = match &members {
                _ if side_effect.is_some() => None,
                Members::Reduced(reduced) => Some(Member::Rows(reduced.probe.clone())),
                Members::Fold { probe: Some(probe), .. } => Some(Member::Rows(probe.clone())),
                Members::Region { draws: false, .. } => Some(Member::Object),
                Members::List => modulators.simple_at(1).map(|value| Member::Value(value.clone())),
                _ => None,
            };
            if let Some(member) = member {
                keyed_rows::build(builder, key, member, chain);
            }
            let side_effect = side_effect.clone();
            let is_shared = |key: &Name| builder.requirements().shared_groups.contains(key);
            let is_final = builder.at_top() && !side_effect.as_ref().is_some_and(is_shared);
            builder.modulated(chain, &name, side_effect.is_none(), modulators, move || GroupLogic {
                side_effect: side_effect.clone(),
                members: members.clone(),
                step: step.clone(),
                groups: Groups::default(),
                is_final,
                passing: MergingSet::default(),
                rest: None,
            })
        }
        Node::GroupCount { side_effect, key } => {
            if let (None, Some(tuple)) = (side_effect, Tuple::of_by(key))
                && builder.may(Rule::PackedTuples)
            {
                builder.note(Rule::PackedTuples, &name);
                return tuples::build_count(builder, &name, &tuple, &step, chain);
            }
            builder.take_first_counts();
            // The operators that count vertices take them packed or not.
            builder.take_packed_ends();
            let mut modulators = Modulators::new();
            modulators.by(key);
            // What a row is counted under depends on its value only.
            let by_value = matches!(key, By::Identity | By::Key(_) | By::Token(_));
            if side_effect.is_none() && by_value && !builder.requirements().writes && builder.may_pack(chain) {
                merged_rows::build(builder, chain);
            }
            if let (None, Some(key @ (Modulator::Key(_) | Modulator::Token(_)))) = (side_effect, modulators.simple())
                && !builder.requirements().writes
                && builder.may(Rule::CountByVertex)
            {
                builder.note(Rule::CountByVertex, &name);
                match key {
                    Modulator::Token(T::Id) => {
                        group_count::build_of_vertices(builder, &name, key.clone(), &step, chain);
                    }
                    key => group_count::build(builder, &name, key.clone(), &step, chain),
                }
                return Ok(());
            }
            if side_effect.is_none() && *key == By::Identity && builder.may(Rule::CountByVertex) {
                builder.note(Rule::CountByVertex, &name);
                group_count::build_of_vertices(builder, &name, Modulator::Identity, &step, chain);
                return Ok(());
            }
            let side_effect = side_effect.clone();
            let mut of_walked = None;
            if side_effect.is_none()
                && let Some(walks) = builder.walks_ahead(key)
            {
                of_walked = Some(modulators.push(walks.at_end()));
                walked_rows::build(builder, walks, Purpose::Count, chain);
            }
            builder.modulated(chain, &name, side_effect.is_none(), modulators, move || GroupCountLogic {
                side_effect: side_effect.clone(),
                of_walked,
                step: step.clone(),
                counts: Keyed::default(),
                finished: ValueMap::default(),
                passing: MergingSet::default(),
            })
        }
        _ => Err(QueryError::invalid(format!("{node} does not group"))),
    }
}

/// Whether rows that are at vertices are counted by these, so that a hop may hand them on packed.
pub fn counts_vertices(key: &By) -> bool {
    let mut modulators = Modulators::new();
    modulators.by(key);
    *key == By::Identity || matches!(modulators.simple(), Some(Modulator::Key(_) | Modulator::Token(_)))
}

/// Whether a traversal ends in `fold()`, and all that comes before makes of each member what it is by itself.
fn folds_only(traversal: &Traversal) -> bool {
    match traversal.nodes.split_last() {
        Some((last, before)) => {
            matches!(last.node, Node::Fold { seed: None }) && rows_stand_alone(&Traversal { nodes: before.to_vec() })
        }
        None => false,
    }
}

/// How the rows that a traversal makes of members are reduced, if few need more than a look. What others see while it grows is told by a region.
fn reduced(
    builder: &mut Builder,
    name: &NodeName,
    side_effect: &Option<Name>,
    by: &Traversal,
) -> Result<Option<Reduced>> {
    let Some(reduction) = reduced_only(by).filter(|_| side_effect.is_none()) else { return Ok(None) };
    let rows = match reduction {
        Reduction::Count => by.clone(),
        _ => Traversal { nodes: by.nodes[..by.nodes.len() - 1].to_vec() },
    };
    let Some(probe) = builder.probes(&[&rows]).pop().flatten() else { return Ok(None) };
    Ok(Some(Reduced { reduction, probe: Box::new(probe), region: builder.child_region(name, &rows)? }))
}

/// The reduction at the end of a traversal, if all that comes before makes of each member what it is by itself.
pub fn reduced_only(traversal: &Traversal) -> Option<Reduction> {
    let (last, before) = traversal.nodes.split_last()?;
    match &last.node {
        Node::Reduce { reduction } if rows_stand_alone(&Traversal { nodes: before.to_vec() }) => Some(*reduction),
        _ => None,
    }
}

/// The reduction at the end of a traversal.
fn ends_in(traversal: &Traversal) -> Option<Reduction> {
    match &traversal.nodes.last()?.node {
        Node::Reduce { reduction } => Some(*reduction),
        _ => None,
    }
}

/// The label of `select(label).fold()`.
pub fn folded_label(traversal: &Traversal) -> Option<&Name> {
    match traversal.nodes.as_slice() {
        [select, fold] if select.labels.is_empty() && matches!(fold.node, Node::Fold { seed: None }) => {
            match &select.node {
                Node::Select { pop: None | Some(Pop::Last), labels, bys } if bys.is_empty() => {
                    match labels.as_slice() {
                        [label] => Some(label),
                        _ => None,
                    }
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether a step takes the rows of all members of a group together: `range()` is one of the barriers of TinkerPop.
fn is_global_barrier(node: &Node) -> bool {
    match node {
        Node::Range { .. } => true,
        Node::Barrier { .. } | Node::Aggregate { .. } => false,
        node => visit::is_barrier(node),
    }
}
