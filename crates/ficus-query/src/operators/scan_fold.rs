//! A scan with its conditions and what is made of all its elements: a count, a reduction of the values under a key, and both by groups of a key.

use std::ops::ControlFlow;

use ficus_dataflow::{Flow, NodeName, Operator, Remains};
use ficus_model::{Direction, Value, ValueMap, VertexId};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::elements::{KeyRef, LabelSet, PREFETCHED};
use crate::growing::Keyed;
use crate::logical::Reduction;
use crate::operators::group::{count, count_at};
use crate::operators::key_numbers::{KeyNumbers, NO_GROUP};
use crate::operators::reduce::{Reducer, Tally};
use crate::operators::scan::{self, Elements};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// What becomes of the elements of a scan.
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
    fn speaks_of_nothing(&self) -> bool {
        match self {
            Fold::Count | Fold::CountValues(_) | Fold::CountDegrees(..) | Fold::GroupReduce(..) => true,
            Fold::GroupCount(_) | Fold::ValueCounts(_) => true,
            Fold::Reduce(..) | Fold::Distinct(_) => false,
        }
    }
}

/// What is known so far.
enum Gathered {
    Count(u64),
    CountValues(KeyRef, u64),
    Degrees(Direction, LabelSet, u64),
    Reduced(KeyRef, Reducer),
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
    fn add_vertices(&mut self, vertices: &[VertexId], bulk: u64, context: &QueryContext) -> Result<bool> {
        let Groups { key, groups, of_codes, numbers, .. } = self;
        if !of_codes.of(key, vertices, groups, || (0, 0), numbers, context)? {
            return Ok(false);
        }
        numbers.iter().for_each(|number| count_at(groups, *number, bulk));
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
    fn add_vertices(&mut self, vertices: &[VertexId], bulk: u64, context: &QueryContext) -> Result<bool> {
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
            sorting.visit_groups(numbers, |number, own| match groups.at_mut(number) {
                Some((tally, _)) => tally.add_integers(own, are_long, bulk),
                None => Ok(()),
            })?;
            return Ok(true);
        }
        for (vertex, number) in vertices.iter().zip(numbers) {
            if let Some((tally, _)) = groups.at_mut(*number as usize) {
                visit_values(&Value::Vertex(*vertex), of, context, |value| tally.add(&value, bulk))?;
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

impl Gathered {
    fn new(fold: &Fold) -> Gathered {
        match fold {
            Fold::Count => Gathered::Count(0),
            Fold::CountValues(key) => Gathered::CountValues(key.clone(), 0),
            Fold::CountDegrees(direction, labels) => Gathered::Degrees(*direction, labels.clone(), 0),
            Fold::Reduce(key, reduction) => Gathered::Reduced(key.clone(), Reducer::new(*reduction)),
            Fold::GroupCount(key) => Gathered::Counts(Groups::new(key, false)),
            Fold::ValueCounts(key) => Gathered::Counts(Groups::new(key, true)),
            Fold::Distinct(key) => Gathered::Distinct(Groups::new(key, 0)),
            Fold::GroupReduce(key, of, reduction) => {
                Gathered::GroupsReduced(Groups::new(key, (of.clone(), *reduction)))
            }
        }
    }

    fn add(&mut self, element: &Value, bulk: u64, context: &QueryContext) -> Result<()> {
        match self {
            Gathered::Count(count) => *count = count.saturating_add(bulk),
            Gathered::CountValues(key, count) => {
                visit_values(element, key, context, |_| {
                    *count = count.saturating_add(bulk);
                    Ok(())
                })?;
            }
            Gathered::Degrees(direction, labels, sum) => {
                if let Value::Vertex(vertex) = element {
                    add_degrees(&[*vertex], *direction, labels, bulk, sum, context);
                }
            }
            Gathered::Reduced(key, reducer) => visit_values(element, key, context, |value| reducer.add(&value, bulk))?,
            Gathered::Counts(groups) => groups.add(element, bulk, context)?,
            Gathered::Distinct(groups) => groups.add(element, context)?,
            Gathered::GroupsReduced(groups) => groups.add(element, bulk, context)?,
        }
        Ok(())
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

struct FoldOperator {
    elements: Elements,
    fold: Fold,
    gathered: Gathered,
    step: StepInfo,
    /// The row that the scan under way is made for: each element counts as often.
    input: Option<Traverser>,
    /// The integers of a part.
    numbers: Vec<i64>,
}

impl FoldOperator {
    /// Takes in the part that is there.
    fn add_part(&mut self, bulk: u64, context: &QueryContext) -> Result<()> {
        if let Gathered::Count(count) = &mut self.gathered
            && let Some(elements) = self.elements.take_all_told()
        {
            *count = count.saturating_add(bulk.saturating_mul(elements as u64));
        }
        if let Gathered::Reduced(key, reducer) = &mut self.gathered
            && let Some(vertices) = self.elements.vertices_all_told()
            && let Some(key) = key.id(context)
        {
            self.numbers.clear();
            if let Some(are_long) = context.transaction.integers(key, vertices, &mut self.numbers) {
                self.elements.take_all_told();
                return reducer.add_integers(&self.numbers, are_long, bulk);
            }
        }
        if let Some(vertices) = self.elements.vertices_all_told()
            && match &mut self.gathered {
                Gathered::Degrees(direction, labels, sum) => {
                    add_degrees(vertices, *direction, labels, bulk, sum, context);
                    true
                }
                Gathered::Counts(groups) => groups.add_vertices(vertices, bulk, context)?,
                Gathered::Distinct(groups) => groups.add_vertices(vertices, context)?,
                Gathered::GroupsReduced(groups) => groups.add_vertices(vertices, bulk, context)?,
                _ => false,
            }
        {
            self.elements.take_all_told();
            return Ok(());
        }
        while let Some(element) = self.elements.next_of_part(context)? {
            self.gathered.add(&element, bulk, context)?;
        }
        Ok(())
    }
}

impl Operator<Graphs> for FoldOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if self.input.is_none() {
                let Some(traverser) = input.pop_front() else { return Ok(Flow::Ready) };
                self.elements.begin(cx.context);
                self.input = Some(traverser);
            }
            self.elements.fetch(cx.context)?;
            self.add_part(self.input.as_ref().map_or(1, |row| row.bulk), cx.context)?;
            if let (Gathered::Distinct(groups), Some(row)) = (&mut self.gathered, &self.input) {
                groups.hand_on(row, &self.step, out);
            }
            if self.elements.is_exhausted() {
                self.input = None;
                self.elements.end();
            }
            self.elements.charge(cx);
            if cx.should_yield(out) && (self.input.is_some() || !input.is_empty()) {
                return Ok(Flow::More);
            }
        }
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let result = match &mut self.gathered {
            Gathered::Count(count) | Gathered::CountValues(_, count) | Gathered::Degrees(_, _, count) => {
                Some(Value::Long(i64::try_from(std::mem::take(count)).unwrap_or(i64::MAX)))
            }
            Gathered::Reduced(_, reducer) => reducer.finish()?,
            Gathered::Distinct(_) => None,
            Gathered::Counts(groups) => {
                let Groups { groups, finished, .. } = &mut **groups;
                if !groups.move_to(finished, cx, Value::Long)? {
                    return Ok(Flow::More);
                }
                let map = Value::Map(std::mem::take(finished).into());
                Some(cx.context.made_of(map, groups.held()))
            }
            Gathered::GroupsReduced(groups) => {
                if !groups.finish(cx)? {
                    return Ok(Flow::More);
                }
                let map = Value::Map(std::mem::take(&mut groups.finished).into());
                Some(cx.context.made_of(map, groups.groups.held()))
            }
        };
        out.extend(result.map(|value| cx.context.fresh_at(value, &self.step)));
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        match &mut self.gathered {
            Gathered::Counts(groups) => groups.groups.surrender(remains),
            Gathered::Distinct(groups) => groups.groups.surrender(remains),
            Gathered::GroupsReduced(groups) => groups.groups.surrender(remains),
            _ => {}
        }
    }

    fn reset(&mut self) {
        self.elements.reset();
        self.gathered = Gathered::new(&self.fold);
        self.input = None;
    }
}

/// Adds a scan with its conditions and a fold behind.
pub fn build(builder: &mut Builder, edges: bool, name: &NodeName, fold: Fold, step: StepInfo, chain: &mut Chain) {
    let elements = scan::elements(builder, edges);
    builder.operator(chain, name, fold.speaks_of_nothing(), move || FoldOperator {
        elements: elements(),
        gathered: Gathered::new(&fold),
        fold: fold.clone(),
        step: step.clone(),
        input: None,
        numbers: Vec::new(),
    });
}
