//! `groupCount()` and `dedup()` of what a row has in several places: `select('a', 'b')`, the entries of `project()`, `dedup('a', 'b')`.
//!
//! What a row has becomes a key of a few words ([`crate::tuples`]), by which it is counted or known again; maps are made of the keys that leave. What
//! a `by(key)` says of a vertex stays what it is while a query reads one snapshot, so it is remembered as long as vertices come again.

use std::sync::Arc;

use ficus_dataflow::{Flow, NodeName, Queue, Remains};
use ficus_model::{MapMaker, Pop, Shared, Value, VertexId};
use hashbrown::HashMap;

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
use crate::functions::members;
use crate::logical::{By, Name, Node};
use crate::modulate::{ModulatedLogic, Modulator, Request, Subject};
use crate::operators::combine::popped;
use crate::operators::leaving_counts::Leaving;
use crate::operators::{packed_ends, tuple_rows};
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::{StepInfo, Traverser, marks};
use crate::tuples::{ABSENT, Counts, Distinct, Word, Words};

/// Values of a key at most.
pub(super) const VALUES_MAX: usize = 8;

/// Vertices of which is remembered what a `by()` says, about half a mebibyte.
const REMEMBERED: usize = 1 << 14;

/// What one of them takes, with its share of what is free.
const REMEMBERED_BYTES: usize = 2 * size_of::<(VertexId, Word)>();

/// Questions for each vertex, on average, from which on remembering is worth it.
const QUESTIONS_PER_VERTEX: usize = 2;

/// Where the values of a key come from, and what becomes of a row that lacks one.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Source {
    /// From labels, as `select()` finds them; the row is dropped.
    Select(Pop),
    /// From the object of the row; the entry is left out.
    Project,
    /// From labels, as `dedup()` finds them; a label that is missing is an error, and a value drops the row.
    Labels,
}

/// A key of several values.
pub struct Tuple<'n> {
    source: Source,
    names: &'n [Name],
    bys: &'n [By],
}

impl<'n> Tuple<'n> {
    /// The key that a step makes a map of.
    pub fn of_map(node: &'n Node) -> Option<Tuple<'n>> {
        let tuple = match node {
            // Of one label it is the object itself.
            Node::Select { pop, labels, bys } if labels.len() > 1 => {
                Tuple { source: Source::Select(pop.unwrap_or(Pop::Last)), names: labels, bys }
            }
            Node::Project { keys, bys } => Tuple { source: Source::Project, names: keys, bys },
            _ => return None,
        };
        // Of two entries under one key the map has the last.
        let is_twice = |(place, name): (usize, &Name)| tuple.names[..place].contains(name);
        let fits = (1..=VALUES_MAX).contains(&tuple.names.len());
        (fits && !tuple.names.iter().enumerate().any(is_twice)).then_some(tuple)
    }

    /// As [`Tuple::of_map`], of the only step of a `by()`.
    pub fn of_by(by: &'n By) -> Option<Tuple<'n>> {
        match by {
            By::Traversal(traversal) => match traversal.nodes.as_slice() {
                [own] if own.labels.is_empty() => Tuple::of_map(&own.node),
                _ => None,
            },
            _ => None,
        }
    }

    /// What says what its values are; none for the objects themselves.
    pub fn bys(&self) -> &'n [By] {
        self.bys
    }

    /// How many values it has.
    pub fn width(&self) -> usize {
        self.names.len()
    }

    /// Whether it is what the last of equal labels stands for, read without sub-queries.
    pub fn is_simple(&self) -> bool {
        let is_last = !matches!(self.source, Source::Select(pop) if pop != Pop::Last);
        is_last && Modulators::of(self.bys).all_simple().is_some()
    }

    /// The key of `dedup(labels…)`.
    pub fn of_labels(labels: &'n [Name], by: Option<&'n By>) -> Option<Tuple<'n>> {
        let bys = by.map_or(&[][..], std::slice::from_ref);
        (1..=VALUES_MAX).contains(&labels.len()).then_some(Tuple { source: Source::Labels, names: labels, bys })
    }
}

/// What a `by()` says of values, as words.
#[derive(Clone)]
struct Reading {
    modulator: Modulator,
    remembers: bool,
    known: HashMap<VertexId, Word>,
    questions: usize,
}

impl Reading {
    fn new(modulator: Modulator) -> Reading {
        Reading { remembers: true, modulator, known: HashMap::new(), questions: 0 }
    }

    fn word(&mut self, value: &Value, words: &mut Words, held: &mut Held, cx: &Cx<'_>) -> Result<Word> {
        let account = &cx.context.memory;
        let vertex = match value {
            Value::Vertex(vertex) if self.remembers => *vertex,
            value => return evaluated(&mut self.modulator, value, words, cx),
        };
        self.questions += 1;
        if let Some(word) = self.known.get(&vertex) {
            return Ok(*word);
        }
        let word = evaluated(&mut self.modulator, value, words, cx)?;
        if self.known.len() >= REMEMBERED {
            self.remembers = self.questions >= QUESTIONS_PER_VERTEX * self.known.len();
            self.questions = 0;
            self.known.clear();
        }
        held.make_room(account, self.known.len(), self.known.capacity(), REMEMBERED_BYTES)?;
        self.known.insert(vertex, word);
        Ok(word)
    }

    fn forget(&mut self) {
        (self.known, self.remembers, self.questions) = (HashMap::new(), true, 0);
    }
}

fn evaluated(modulator: &mut Modulator, value: &Value, words: &mut Words, cx: &Cx<'_>) -> Result<Word> {
    match modulator.evaluate(value, cx.context)? {
        Some(found) => words.of(&found, &cx.context.memory),
        None => Ok(ABSENT),
    }
}

/// The error of `dedup()` by a label that a row lacks.
pub(super) fn no_such_key(name: &str) -> QueryError {
    QueryError::invalid(format!("Neither the map, sideEffects, nor path has a {name}-key"))
}

/// Makes keys of rows.
pub(super) struct Reader {
    source: Source,
    /// The names, as keys of maps.
    names: Arc<[(Name, Value)]>,
    maker: MapMaker,
    /// How many `by()`s are evaluated before the key is made.
    modulators: usize,
    /// The `by()`s that are evaluated here instead.
    readings: Vec<Reading>,
    words: Words,
    /// What readings take.
    held: Held,
}

impl Reader {
    /// Lists what is to be evaluated for a row: nothing if it is dropped.
    ///
    /// Errors: `Invalid` for a label that has to be there.
    pub(super) fn requests(&self, row: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        if self.source == Source::Project {
            list.extend((0..self.names.len()).map(|place| Request::current(place % self.modulators)));
            return Ok(());
        }
        for (place, (name, key)) in self.names.iter().enumerate() {
            let found = members::under(&row.value, key).or_else(|| match self.source {
                Source::Select(pop) => popped(cx.context, row, pop, name),
                _ => cx.context.scope_value(row, name),
            });
            match (found, self.source) {
                (Some(value), _) => {
                    list.push(Request { modulator: place % self.modulators, subject: Subject::Value(value) });
                }
                (None, Source::Labels) => {
                    return Err(no_such_key(name));
                }
                (None, _) => {
                    list.clear();
                    break;
                }
            }
        }
        Ok(())
    }

    /// The key of a row for which all was evaluated; `None` if the row is dropped.
    fn key<const N: usize>(&mut self, results: &[Option<Value>], cx: &Cx<'_>) -> Result<Option<[Word; N]>> {
        if results.len() != self.names.len() {
            return Ok(None);
        }
        let (mut key, mut all) = ([0; N], true);
        let readings = self.readings.len();
        for (place, result) in results.iter().enumerate() {
            key[place] = match result {
                None => ABSENT,
                Some(value) if readings == 0 => self.words.of(value, &cx.context.memory)?,
                Some(value) => self.readings[place % readings].word(value, &mut self.words, &mut self.held, cx)?,
            };
            all &= key[place] != ABSENT;
        }
        Ok((all || self.source == Source::Project).then_some(key))
    }

    /// Where the values come from.
    pub(super) fn source(&self) -> Source {
        self.source
    }

    /// How many values a key has.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The name of a value.
    pub(super) fn name(&self, place: usize) -> &Name {
        &self.names[place].0
    }

    /// The word of a value at a place of a key of which no `by()` is evaluated elsewhere.
    #[inline]
    pub(super) fn word(&mut self, place: usize, value: &Value, cx: &Cx<'_>) -> Result<Word> {
        match self.readings.len() {
            0 => self.words.of(value, &cx.context.memory),
            readings => self.readings[place % readings].word(value, &mut self.words, &mut self.held, cx),
        }
    }

    /// Hands over what it remembers to be freed in pieces.
    pub(super) fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.words.surrender(remains);
    }

    /// The map that a key stands for.
    pub(super) fn map(&mut self, key: &[Word]) -> Value {
        let entries = self.names.iter().zip(key);
        let map = self.maker.make(entries.filter_map(|((_, name), word)| Some((name, self.words.value(*word)?))));
        Value::Map(Shared::new(map))
    }

    pub(super) fn forget(&mut self) {
        self.readings.iter_mut().for_each(Reading::forget);
        self.held.give_back();
        self.words.clear();
    }
}

/// `groupCount()` of maps.
struct CountLogic<const N: usize> {
    reader: Reader,
    step: StepInfo,
    counts: Counts<N>,
    leaving: Leaving,
}

impl<const N: usize> ModulatedLogic for CountLogic<N> {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        match traverser.marks & marks::PACKED {
            0 => self.reader.requests(traverser, cx, list),
            _ => Ok(()),
        }
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        _out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        if let Some(keys) = tuple_rows::keys_in(&traverser, self.reader.len()) {
            for (values, bulk) in keys {
                cx.charge(1);
                results.clear();
                results.extend(values.iter().cloned().map(Some));
                if let Some(key) = self.reader.key(results, cx)? {
                    self.counts.add(key, bulk, &cx.context.memory)?;
                }
            }
            return Ok(());
        }
        match self.reader.key(results, cx)? {
            Some(key) => self.counts.add(key, traverser.bulk, &cx.context.memory),
            None => Ok(()),
        }
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        self.leaving.finish(&mut self.reader, &mut self.counts, &self.step, out, cx)
    }

    fn release(&mut self, _context: &mut QueryContext) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.counts.surrender(remains);
        self.reader.words.surrender(remains);
    }

    fn reset(&mut self) {
        self.reader.forget();
        self.counts.clear();
        self.leaving.reset();
    }
}

/// `dedup()` of maps, or by labels.
struct DistinctLogic<const N: usize> {
    reader: Reader,
    step: StepInfo,
    seen: Distinct<N>,
    /// Only the number of rows matters behind it.
    counted: bool,
}

impl<const N: usize> ModulatedLogic for DistinctLogic<N> {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        self.reader.requests(traverser, cx, list)
    }

    fn complete(
        &mut self,
        mut traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let Some(key) = self.reader.key(results, cx)? else { return Ok(()) };
        if self.seen.insert(key, self.reader.names.len() - 1, &cx.context.memory)? {
            traverser.bulk = 1;
            out.push_back(match self.reader.source {
                Source::Labels => traverser,
                _ if self.counted => traverser,
                _ => {
                    let map = cx.context.made(self.reader.map(&key))?;
                    traverser.move_to(map, &self.step)
                }
            });
        }
        Ok(())
    }

    fn release(&mut self, _context: &mut QueryContext) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.seen.surrender(remains);
        self.reader.words.surrender(remains);
    }

    fn reset(&mut self) {
        self.reader.forget();
        self.seen.clear();
    }
}

/// What of a key is known before there are rows, and the `by()`s that are evaluated before it is made.
pub(super) fn reader<'n>(
    builder: &Builder,
    tuple: &Tuple<'n>,
) -> (impl Fn() -> Reader + Clone + Send + Sync + 'static, Modulators<'n>) {
    let mut modulators = Modulators::of(tuple.bys);
    let requirements = builder.requirements();
    let keeps = !requirements.writes && !requirements.computes;
    let mut readings: Vec<Reading> = Vec::new();
    if let Some(simple) = modulators.all_simple().filter(|_| keeps && !tuple.bys.is_empty()) {
        readings.extend(simple.iter().cloned().map(Reading::new));
        modulators = Modulators::of(&[]);
    }
    let names: Arc<[_]> = tuple.names.iter().map(|name| (name.clone(), Value::String(name.clone()))).collect();
    let (source, count) = (tuple.source, modulators.len());
    let make = move || Reader {
        source,
        names: names.clone(),
        maker: MapMaker::default(),
        modulators: count,
        readings: readings.clone(),
        words: Words::default(),
        held: Held::default(),
    };
    (make, modulators)
}

/// Adds the operator that counts maps.
pub fn build_count(
    builder: &mut Builder,
    name: &NodeName,
    tuple: &Tuple<'_>,
    step: &StepInfo,
    chain: &mut Chain,
) -> Result<()> {
    fn sized<const N: usize>(
        builder: &mut Builder,
        name: &NodeName,
        tuple: &Tuple<'_>,
        step: &StepInfo,
        chain: &mut Chain,
    ) -> Result<()> {
        let ((reader, modulators), step) = (reader(builder, tuple), step.clone());
        let first = builder.take_first_counts();
        if modulators.all_simple().is_none() {
            tuple_rows::build(builder, tuple, reader.clone(), chain);
        }
        builder.modulated(chain, name, true, modulators, move || CountLogic::<N> {
            reader: reader(),
            step: step.clone(),
            counts: Counts::default(),
            leaving: Leaving::new(first.clone()),
        })
    }
    if let Some(ends) = builder.take_packed_ends() {
        packed_ends::build_count(builder, name, (tuple, ends), step, chain);
        return Ok(());
    }
    match tuple.names.len() {
        0..=2 => sized::<2>(builder, name, tuple, step, chain),
        3..=4 => sized::<4>(builder, name, tuple, step, chain),
        _ => sized::<VALUES_MAX>(builder, name, tuple, step, chain),
    }
}

/// Adds the operator that hands on the first of rows with equal keys: with the map in place of its object, or as it is for `dedup(labels…)` and
/// where rows are only `counted`.
pub fn build_distinct(
    builder: &mut Builder,
    name: &NodeName,
    tuple: &Tuple<'_>,
    step: &StepInfo,
    counted: bool,
    chain: &mut Chain,
) -> Result<()> {
    fn sized<const N: usize>(
        builder: &mut Builder,
        name: &NodeName,
        tuple: &Tuple<'_>,
        step: &StepInfo,
        counted: bool,
        chain: &mut Chain,
    ) -> Result<()> {
        let ((reader, modulators), step) = (reader(builder, tuple), step.clone());
        builder.modulated(chain, name, false, modulators, move || DistinctLogic::<N> {
            reader: reader(),
            step: step.clone(),
            seen: Distinct::default(),
            counted,
        })
    }
    if let Some(ends) = builder.take_packed_ends() {
        packed_ends::build_distinct(builder, name, (tuple, ends), step, chain);
        return Ok(());
    }
    match tuple.names.len() {
        0..=2 => sized::<2>(builder, name, tuple, step, counted, chain),
        3..=4 => sized::<4>(builder, name, tuple, step, counted, chain),
        _ => sized::<VALUES_MAX>(builder, name, tuple, step, counted, chain),
    }
}
