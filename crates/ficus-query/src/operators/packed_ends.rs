//! `groupCount()` and `dedup()` of several labels, or of the entries of `project()`, right behind a hop that packs its ends. (`dedup()` of the ends
//! themselves takes them packed as well, see [`super::dedup`].)
//!
//! Ten million ends are ten million rows, each with a way of its own, of which no more is wanted than a key of a few words ([`crate::tuples`]). Here
//! the hop packs what it finds from one row into few rows, each of them a list of vertices ([`marks::PACKED`]). What the key has of the way is the same
//! for all of a list, so it is looked up once; the rest is a word of the end.

use ficus_dataflow::{Flow, NodeName, Operator, Remains};
use ficus_model::{Pop, Value};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::logical::Name;
use crate::operators::combine::popped;
use crate::operators::leaving_counts::Leaving;
use crate::operators::tuples::{self, Reader, Source, Tuple, VALUES_MAX};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser, marks};
use crate::tuples::{ABSENT, Counts, Distinct, Word};

/// What the hop before knows of its ends.
#[derive(Clone)]
pub struct PackedEnds {
    /// The labels of its step.
    pub labels: Vec<Name>,
    /// Its step.
    pub step: StepInfo,
    /// Only the number of rows matters behind what takes them.
    pub counted: bool,
    /// Nothing but the ends and their number matters: those of many rows are packed together.
    pub of_many: bool,
}

/// The keys of packed ends.
struct Keys<const N: usize> {
    reader: Reader,
    ends: PackedEnds,
    /// That of the current row, without what it has of the end.
    key: [Word; N],
    /// Which words are those of the end.
    of_end: [bool; N],
}

impl<const N: usize> Keys<N> {
    /// Makes ready for what comes of a row; false if none of it has a key.
    ///
    /// Errors: as `dedup(labels…)` if the row lacks a label.
    fn begin(&mut self, row: &Traverser, cx: &Cx<'_>) -> Result<bool> {
        let source = self.reader.source();
        for place in 0..self.reader.len() {
            let name = self.reader.name(place).clone();
            // What was gathered under a name comes before what is labelled so.
            let is_end = self.ends.labels.contains(&name) && cx.context.side_effects.get(&name).is_none();
            self.of_end[place] = source == Source::Project || is_end;
            if self.of_end[place] {
                continue;
            }
            match popped(cx.context, row, Pop::Last, &name) {
                Some(value) => self.key[place] = self.reader.word(place, &value, cx)?,
                None if source == Source::Labels => return Err(tuples::no_such_key(&name)),
                None => return Ok(false),
            }
            if self.key[place] == ABSENT {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The key of an end of the current row; `None` if it has none.
    #[inline]
    fn of(&mut self, end: &Value, cx: &Cx<'_>) -> Result<Option<[Word; N]>> {
        for place in 0..self.reader.len() {
            if self.of_end[place] {
                self.key[place] = self.reader.word(place, end, cx)?;
                if self.key[place] == ABSENT && self.reader.source() != Source::Project {
                    return Ok(None);
                }
            }
        }
        Ok(Some(self.key))
    }
}

/// The ends that a row stands for.
pub fn ends_of(row: &Traverser) -> &[Value] {
    match &row.value {
        Value::List(ends) if row.marks & marks::PACKED != 0 => ends.as_slice(),
        value => std::slice::from_ref(value),
    }
}

struct CountEnds<const N: usize> {
    keys: Keys<N>,
    step: StepInfo,
    counts: Counts<N>,
    leaving: Leaving,
}

impl<const N: usize> Operator<Graphs> for CountEnds<N> {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(row) = input.pop_front() {
            let ends = ends_of(&row);
            cx.charge(ends.len());
            if self.keys.begin(&row, cx)? {
                for end in ends {
                    if let Some(key) = self.keys.of(end, cx)? {
                        self.counts.add(key, row.bulk, &cx.context.memory)?;
                    }
                }
            }
            if cx.exhausted() && !input.is_empty() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        self.leaving.finish(&mut self.keys.reader, &mut self.counts, &self.step, out, cx)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.counts.surrender(remains);
        self.keys.reader.surrender(remains);
    }

    fn reset(&mut self) {
        self.keys.reader.forget();
        self.counts.clear();
        self.leaving.reset();
    }
}

struct DistinctEnds<const N: usize> {
    keys: Keys<N>,
    step: StepInfo,
    seen: Distinct<N>,
}

impl<const N: usize> Operator<Graphs> for DistinctEnds<N> {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(mut row) = input.pop_front() {
            row.bulk = 1;
            let ends = ends_of(&row);
            cx.charge(ends.len());
            let mut found = 0;
            if self.keys.begin(&row, cx)? {
                let last = self.last();
                for end in ends {
                    let Some(key) = self.keys.of(end, cx)? else { continue };
                    if !self.seen.insert(key, last, &cx.context.memory)? {
                        continue;
                    }
                    if self.keys.ends.counted {
                        found += 1;
                        continue;
                    }
                    let own = row.advance(end.clone(), &self.keys.ends.step);
                    out.push_back(match self.keys.reader.source() {
                        Source::Labels => own,
                        _ => {
                            let map = cx.context.made(self.keys.reader.map(&key))?;
                            own.move_to(map, &self.step)
                        }
                    });
                }
            }
            if found > 0 {
                out.push_back(row.advance(Value::Null, &self.step).with_bulk(found));
            }
            if cx.should_yield(out) {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.seen.surrender(remains);
        self.keys.reader.surrender(remains);
    }

    fn reset(&mut self) {
        self.keys.reader.forget();
        self.seen.clear();
    }
}

impl<const N: usize> DistinctEnds<N> {
    /// The word in which keys differ most: that of the end.
    fn last(&self) -> usize {
        let places = self.keys.reader.len();
        self.keys.ends.last_of_end(&self.keys.reader).unwrap_or(places - 1)
    }
}

impl PackedEnds {
    /// The last place of a key that is of the end, always the same.
    fn last_of_end(&self, reader: &Reader) -> Option<usize> {
        (0..reader.len()).rev().find(|place| self.labels.contains(reader.name(*place)))
    }
}

fn keys<const N: usize>(ends: &PackedEnds, reader: Reader) -> Keys<N> {
    Keys { reader, ends: ends.clone(), key: [0; N], of_end: [false; N] }
}

/// Adds the operator that counts the keys of packed ends.
pub fn build_count(
    builder: &mut Builder,
    name: &NodeName,
    (tuple, ends): (&Tuple<'_>, PackedEnds),
    step: &StepInfo,
    chain: &mut Chain,
) {
    fn sized<const N: usize>(
        builder: &mut Builder,
        name: &NodeName,
        (tuple, ends): (&Tuple<'_>, PackedEnds),
        step: &StepInfo,
        chain: &mut Chain,
    ) {
        let ((reader, _), step) = (tuples::reader(builder, tuple), step.clone());
        let first = builder.take_first_counts();
        builder.operator(chain, name, true, move || CountEnds::<N> {
            keys: keys(&ends, reader()),
            step: step.clone(),
            counts: Counts::default(),
            leaving: Leaving::new(first.clone()),
        });
    }
    match tuple.width() {
        0..=2 => sized::<2>(builder, name, (tuple, ends), step, chain),
        3..=4 => sized::<4>(builder, name, (tuple, ends), step, chain),
        _ => sized::<VALUES_MAX>(builder, name, (tuple, ends), step, chain),
    }
}

/// Adds the operator that hands on the first of packed ends with equal keys, as [`tuples::build_distinct`] does of rows.
pub fn build_distinct(
    builder: &mut Builder,
    name: &NodeName,
    (tuple, ends): (&Tuple<'_>, PackedEnds),
    step: &StepInfo,
    chain: &mut Chain,
) {
    fn sized<const N: usize>(
        builder: &mut Builder,
        name: &NodeName,
        (tuple, ends): (&Tuple<'_>, PackedEnds),
        step: &StepInfo,
        chain: &mut Chain,
    ) {
        let ((reader, _), step) = (tuples::reader(builder, tuple), step.clone());
        builder.operator(chain, name, false, move || DistinctEnds::<N> {
            keys: keys(&ends, reader()),
            step: step.clone(),
            seen: Distinct::default(),
        });
    }
    match tuple.width() {
        0..=2 => sized::<2>(builder, name, (tuple, ends), step, chain),
        3..=4 => sized::<4>(builder, name, (tuple, ends), step, chain),
        _ => sized::<VALUES_MAX>(builder, name, (tuple, ends), step, chain),
    }
}
