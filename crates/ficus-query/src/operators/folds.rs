//! What is made of many elements that is no row for each: a count, a reduction of the values under a key, and both by groups of a key. Behind a scan
//! ([`super::scan_fold`]) or behind a hop ([`super::ends_fold`]); columns are read for many vertices at once.

use std::ops::ControlFlow;

use ficus_dataflow::{Flow, Remains};
use ficus_model::{Direction, Value, ValueMap, VertexId};

use crate::context::{Cx, QueryContext, Result, Traversers};
use crate::elements::{KeyRef, LabelSet, PREFETCHED};
use crate::growing::Keyed;
use crate::logical::Reduction;
use crate::operators::group::{count, count_at};
use crate::operators::key_numbers::{KeyNumbers, NO_GROUP};
use crate::operators::reduce::{Reducer, Tally};
use crate::traverser::{StepInfo, Traverser};

/// What becomes of elements.
#[derive(Clone)]
pub enum Fold {
    /// `count()`.
    Count,
    /// `values(key).count()`.
    CountValues(KeyRef),
    /// `out(labels…).count()` and the like.
    CountDegrees(Direction, LabelSet),
    /// `values(key).sum()` and the like.
    Reduce(KeyRef, Reduction),
    /// `groupCount().by(key)`.
    GroupCount(KeyRef),
    /// `values(key).groupCount()`.
    ValueCounts(KeyRef),
    /// `values(key).dedup()`.
    Distinct(KeyRef),
    /// `group().by(key).by(values(key).sum())` and the like.
    GroupReduce(KeyRef, KeyRef, Reduction),
}

impl Fold {
    /// Whether it says something of no elements.
    pub fn speaks_of_nothing(&self) -> bool {
        match self {
            Fold::Count | Fold::CountValues(_) | Fold::CountDegrees(..) | Fold::GroupReduce(..) => true,
            Fold::GroupCount(_) | Fold::ValueCounts(_) => true,
            Fold::Reduce(..) | Fold::Distinct(_) => false,
        }
    }
}

/// What is known so far.
enum State {
    Count(u64),
    CountValues(KeyRef, u64),
    Degrees(Direction, LabelSet, u64),
    Reduced {
        key: KeyRef,
        reducer: Reducer,
        /// The integers of a part.
        numbers: Vec<i64>,
    },
    /// Whether each value of an element counts, or the first.
    Counts(Box<Groups<i64, bool>>),
    /// Values, of which so many have been handed on.
    Distinct(Box<Groups<(), usize>>),
    GroupsReduced(Box<Groups<Tally, (KeyRef, Reduction)>>),
}

/// What there is under each value of a key.
struct Groups<V, O> {
    key: KeyRef,
    /// Of what.
    of: O,
    groups: Keyed<V>,
    of_codes: KeyNumbers,
    /// The numbers of a part.
    numbers: Vec<u32>,
    sorting: Sorting,
    /// The result under way.
    finished: ValueMap,
}

/// Sorts the integers of a part by group.
#[derive(Default)]
struct Sorting {
    /// As they come.
    integers: Vec<i64>,
    /// Group by group.
    sorted: Vec<i64>,
    /// By group, where the next of its integers goes; at last, where they end.
    ends: Vec<usize>,
}

impl Sorting {
    /// Hands out the integers group by group, those of one in the order in which they came; `numbers` says of which group each is, if of any.
    fn visit_groups(&mut self, numbers: &[u32], mut visit: impl FnMut(usize, &[i64]) -> Result<()>) -> Result<()> {
        let Sorting { integers, sorted, ends } = self;
        let groups = numbers.iter().filter(|number| **number != NO_GROUP).max().map_or(0, |last| *last as usize + 1);
        // Behind them are those of none.
        let group_of = |number: &u32| (*number as usize).min(groups);
        if groups > numbers.len() {
            // Few are of the same group.
            return integers
                .iter()
                .zip(numbers)
                .try_for_each(|(integer, number)| visit(*number as usize, std::slice::from_ref(integer)));
        }
        ends.clear();
        ends.resize(groups + 1, 0);
        numbers.iter().for_each(|number| ends[group_of(number)] += 1);
        let mut before = 0;
        for end in ends.iter_mut() {
            before += std::mem::replace(end, before);
        }
        sorted.resize(integers.len(), 0);
        for (integer, number) in integers.iter().zip(numbers) {
            let place = &mut ends[group_of(number)];
            sorted[*place] = *integer;
            *place += 1;
        }
        let mut start = 0;
        for (number, end) in ends[..groups].iter().enumerate() {
            if start < *end {
                visit(number, &sorted[start..*end])?;
            }
            start = *end;
        }
        Ok(())
    }
}

impl<V: Send + 'static, O> Groups<V, O> {
    fn new(key: &KeyRef, of: O) -> Box<Groups<V, O>> {
        Box::new(Groups {
            key: key.clone(),
            of,
            groups: Keyed::default(),
            of_codes: KeyNumbers::default(),
            numbers: Vec::new(),
            sorting: Sorting::default(),
            finished: ValueMap::default(),
        })
    }
}

impl Groups<i64, bool> {
    fn add(&mut self, element: &Value, bulk: u64, context: &QueryContext) -> Result<()> {
        let Groups { key, of: each_value, groups, .. } = self;
        if *each_value {
            return visit_values(element, key, context, |value| count(groups, value, bulk, &context.memory));
        }
        match context.only_value(element, &mut self.key)? {
            Some(value) => count(&mut self.groups, value, bulk, &context.memory),
            None => Ok(()),
        }
    }

    /// Counts vertices by what columns say of them; false, and nothing counted, if they do not.
    fn add_vertices(&mut self, vertices: &[VertexId], bulks: Bulks<'_>, context: &QueryContext) -> Result<bool> {
        let Groups { key, groups, of_codes, numbers, .. } = self;
        if !of_codes.of(key, vertices, groups, || (0, 0), numbers, context)? {
            return Ok(false);
        }
        numbers.iter().enumerate().for_each(|(place, number)| count_at(groups, *number, bulks.of(place)));
        Ok(true)
    }
}

impl Groups<(), usize> {
    fn add(&mut self, element: &Value, context: &QueryContext) -> Result<()> {
        let Groups { key, groups, .. } = self;
        visit_values(element, key, context, |value| groups.entry(value, 0, &context.memory, || ()).map(|_| ()))
    }

    /// As [`Groups::add`], of vertices by what columns say of them; false, and nothing done, if they do not.
    fn add_vertices(&mut self, vertices: &[VertexId], context: &QueryContext) -> Result<bool> {
        let Groups { key, groups, of_codes, numbers, .. } = self;
        of_codes.of(key, vertices, groups, || ((), 0), numbers, context)
    }

    /// Hands on values that are new, as rows that come of this one.
    fn hand_on(&mut self, of: &Traverser, step: &StepInfo, out: &mut Traversers) {
        while let Some(value) = self.groups.key(self.of) {
            out.push_back(of.advance(value.clone(), step).with_bulk(1));
            self.of += 1;
        }
    }
}

impl Groups<Tally, (KeyRef, Reduction)> {
    fn add(&mut self, element: &Value, bulk: u64, context: &QueryContext) -> Result<()> {
        let Groups { key, of: (of, reduction), groups, .. } = self;
        let Some(value) = context.only_value(element, key)? else { return Ok(()) };
        let (tally, _) = groups.entry(value, 0, &context.memory, || Tally::new(*reduction))?;
        visit_values(element, of, context, |value| tally.add(&value, bulk))
    }

    /// As [`Groups::add`], of vertices by what columns say of them; false, and nothing done, if they do not.
    fn add_vertices(&mut self, vertices: &[VertexId], bulks: Bulks<'_>, context: &QueryContext) -> Result<bool> {
        let Groups { key, of: (of, reduction), groups, of_codes, numbers, sorting, .. } = self;
        if !of_codes.of(key, vertices, groups, || (Tally::new(*reduction), 0), numbers, context)? {
            return Ok(false);
        }
        sorting.integers.clear();
        if let Some(of) = of.id(context)
            && let Some(are_long) = context.transaction.integers(of, vertices, &mut sorting.integers)
            // Else it is not said which vertex has none.
            && sorting.integers.len() == vertices.len()
        {
            let mut add = |number, own: &[i64], bulk| match groups.at_mut(number) {
                Some((tally, _)) => tally.add_integers(own, are_long, bulk),
                None => Ok(()),
            };
            match bulks {
                Bulks::All(bulk) => sorting.visit_groups(numbers, |number, own| add(number, own, bulk))?,
                Bulks::Each(bulks) => {
                    for ((integer, number), bulk) in sorting.integers.iter().zip(&*numbers).zip(bulks) {
                        add(*number as usize, std::slice::from_ref(integer), *bulk)?;
                    }
                }
            }
            return Ok(true);
        }
        for (place, (vertex, number)) in vertices.iter().zip(&*numbers).enumerate() {
            if let Some((tally, _)) = groups.at_mut(*number as usize) {
                visit_values(&Value::Vertex(*vertex), of, context, |value| tally.add(&value, bulks.of(place)))?;
            }
        }
        Ok(true)
    }

    /// Ends all groups; false if the turn is over before that. A group of which nothing is made is left out.
    fn finish(&mut self, cx: &mut Cx<'_>) -> Result<bool> {
        self.groups.begin_moving(&mut self.finished, cx)?;
        while let Some((key, mut tally)) = self.groups.pop_front() {
            if let Some(value) = tally.finish()? {
                self.finished.insert(key, value);
            }
            cx.charge(1);
            if cx.exhausted() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// How often each of some vertices counts.
#[derive(Clone, Copy)]
pub enum Bulks<'b> {
    /// All as often.
    All(u64),
    /// One after the other.
    Each(&'b [u64]),
}

impl Bulks<'_> {
    #[inline]
    fn of(self, place: usize) -> u64 {
        match self {
            Bulks::All(bulk) => bulk,
            Bulks::Each(bulks) => bulks[place],
        }
    }

    /// Hands out the parts of what belongs to the vertices that count as often, in their order.
    fn visit_equal<T>(self, all: &[T], mut visit: impl FnMut(&[T], u64) -> Result<()>) -> Result<()> {
        match self {
            Bulks::All(bulk) => visit(all, bulk),
            Bulks::Each(bulks) => {
                let mut start = 0;
                bulks.chunk_by(|a, b| a == b).try_for_each(|equal| {
                    let end = start + equal.len();
                    visit(&all[std::mem::replace(&mut start, end)..end], equal[0])
                })
            }
        }
    }
}

/// What is made of elements, and what is known of it so far.
pub struct Gathered {
    fold: Fold,
    state: State,
}

impl Gathered {
    /// Nothing yet.
    pub fn new(fold: Fold) -> Gathered {
        Gathered { state: State::new(&fold), fold }
    }

    /// Forgets all.
    pub fn reset(&mut self) {
        self.state = State::new(&self.fold);
    }

    /// The number of elements so far, if that is what is made of them.
    pub fn count_mut(&mut self) -> Option<&mut u64> {
        match &mut self.state {
            State::Count(count) => Some(count),
            _ => None,
        }
    }

    /// Whether it makes no difference if an element comes twice or counts twice. To a sum of floats it does.
    pub fn only_counts(&self) -> bool {
        matches!(self.state, State::Count(_) | State::CountValues(..) | State::Degrees(..) | State::Counts(_))
    }

    /// Takes in an element that counts so often.
    ///
    /// Errors: those of reductions and of the account.
    pub fn add(&mut self, element: &Value, bulk: u64, context: &QueryContext) -> Result<()> {
        self.state.add(element, bulk, context)
    }

    /// Takes in vertices that count so often, by what columns say of them; false, and nothing is taken in, if they do not.
    ///
    /// Errors: as [`Gathered::add`].
    pub fn add_vertices(&mut self, vertices: &[VertexId], bulks: Bulks<'_>, context: &QueryContext) -> Result<bool> {
        self.state.add_vertices(vertices, bulks, context)
    }

    /// Hands on what is new of what is different, as rows that come of this one.
    pub fn hand_on(&mut self, of: &Traverser, step: &StepInfo, out: &mut Traversers) {
        if let State::Distinct(groups) = &mut self.state {
            groups.hand_on(of, step, out);
        }
    }

    /// Makes a row of the result, unless that is nothing. `More` if the turn is over before.
    ///
    /// Errors: as [`Gathered::add`].
    pub fn finish(&mut self, step: &StepInfo, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        self.state.finish(step, out, cx)
    }

    /// As [`ficus_dataflow::Operator::surrender`].
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        match &mut self.state {
            State::Counts(groups) => groups.groups.surrender(remains),
            State::Distinct(groups) => groups.groups.surrender(remains),
            State::GroupsReduced(groups) => groups.groups.surrender(remains),
            _ => {}
        }
    }
}

impl State {
    fn new(fold: &Fold) -> State {
        match fold {
            Fold::Count => State::Count(0),
            Fold::CountValues(key) => State::CountValues(key.clone(), 0),
            Fold::CountDegrees(direction, labels) => State::Degrees(*direction, labels.clone(), 0),
            Fold::Reduce(key, reduction) => {
                State::Reduced { key: key.clone(), reducer: Reducer::new(*reduction), numbers: Vec::new() }
            }
            Fold::GroupCount(key) => State::Counts(Groups::new(key, false)),
            Fold::ValueCounts(key) => State::Counts(Groups::new(key, true)),
            Fold::Distinct(key) => State::Distinct(Groups::new(key, 0)),
            Fold::GroupReduce(key, of, reduction) => State::GroupsReduced(Groups::new(key, (of.clone(), *reduction))),
        }
    }

    fn add(&mut self, element: &Value, bulk: u64, context: &QueryContext) -> Result<()> {
        match self {
            State::Count(count) => *count = count.saturating_add(bulk),
            State::CountValues(key, count) => {
                visit_values(element, key, context, |_| {
                    *count = count.saturating_add(bulk);
                    Ok(())
                })?;
            }
            State::Degrees(direction, labels, sum) => {
                if let Value::Vertex(vertex) = element {
                    add_degrees(&[*vertex], *direction, labels, bulk, sum, context);
                }
            }
            State::Reduced { key, reducer, .. } => {
                visit_values(element, key, context, |value| reducer.add(&value, bulk))?;
            }
            State::Counts(groups) => groups.add(element, bulk, context)?,
            State::Distinct(groups) => groups.add(element, context)?,
            State::GroupsReduced(groups) => groups.add(element, bulk, context)?,
        }
        Ok(())
    }

    fn add_vertices(&mut self, vertices: &[VertexId], bulks: Bulks<'_>, context: &QueryContext) -> Result<bool> {
        match self {
            State::Count(count) => {
                bulks.visit_equal(vertices, |equal, bulk| {
                    *count = count.saturating_add(bulk.saturating_mul(equal.len() as u64));
                    Ok(())
                })?;
            }
            State::Reduced { key, reducer, numbers } => {
                let Some(key) = key.id(context) else { return Ok(false) };
                numbers.clear();
                let Some(are_long) = context.transaction.integers(key, vertices, numbers) else { return Ok(false) };
                match bulks {
                    // Else it is not said which vertex has none.
                    Bulks::Each(_) if numbers.len() != vertices.len() => return Ok(false),
                    Bulks::All(bulk) => reducer.add_integers(numbers, are_long, bulk)?,
                    bulks => bulks.visit_equal(numbers, |equal, bulk| reducer.add_integers(equal, are_long, bulk))?,
                }
            }
            State::Degrees(direction, labels, sum) => {
                bulks.visit_equal(vertices, |equal, bulk| {
                    add_degrees(equal, *direction, labels, bulk, sum, context);
                    Ok(())
                })?;
            }
            State::Counts(groups) => return groups.add_vertices(vertices, bulks, context),
            State::Distinct(groups) => return groups.add_vertices(vertices, context),
            State::GroupsReduced(groups) => return groups.add_vertices(vertices, bulks, context),
            State::CountValues(..) => return Ok(false),
        }
        Ok(true)
    }

    fn finish(&mut self, step: &StepInfo, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let result = match self {
            State::Count(count) | State::CountValues(_, count) | State::Degrees(_, _, count) => {
                Some(Value::Long(i64::try_from(std::mem::take(count)).unwrap_or(i64::MAX)))
            }
            State::Reduced { reducer, .. } => reducer.finish()?,
            State::Distinct(_) => None,
            State::Counts(groups) => {
                let Groups { groups, finished, .. } = &mut **groups;
                if !groups.move_to(finished, cx, Value::Long)? {
                    return Ok(Flow::More);
                }
                let map = Value::Map(std::mem::take(finished).into());
                Some(cx.context.made_of(map, groups.held()))
            }
            State::GroupsReduced(groups) => {
                if !groups.finish(cx)? {
                    return Ok(Flow::More);
                }
                let map = Value::Map(std::mem::take(&mut groups.finished).into());
                Some(cx.context.made_of(map, groups.groups.held()))
            }
        };
        out.extend(result.map(|value| cx.context.fresh_at(value, step)));
        Ok(Flow::Ready)
    }
}

/// Adds how many half-edges vertices have, each as often as it counts.
fn add_degrees(
    vertices: &[VertexId],
    direction: Direction,
    labels: &mut LabelSet,
    bulk: u64,
    sum: &mut u64,
    context: &QueryContext,
) {
    let Some(labels) = labels.ids(context) else { return };
    let transaction = &context.transaction;
    for some in vertices.chunks(PREFETCHED) {
        if some.len() > 1 {
            transaction.prefetch_half_edges(some.iter().copied(), direction);
        }
        for vertex in some {
            *sum = sum.saturating_add(transaction.degree(*vertex, direction, labels).saturating_mul(bulk));
        }
    }
}

/// Hands out the values of a vertex or edge under a key.
fn visit_values(
    element: &Value,
    key: &mut KeyRef,
    context: &QueryContext,
    mut visit: impl FnMut(Value) -> Result<()>,
) -> Result<()> {
    let Some(key) = key.id(context) else { return Ok(()) };
    let mut outcome = Ok(());
    match element {
        Value::Vertex(vertex) => context.transaction.visit_vertex_values(*vertex, key, |value| {
            outcome = visit(value);
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }),
        Value::Edge(edge) => outcome = context.transaction.edge_value(*edge, key).map_or(Ok(()), visit),
        _ => {}
    }
    outcome
}
