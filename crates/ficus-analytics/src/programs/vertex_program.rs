//! Gather, apply, scatter: programs from the point of view of one vertex.
//!
//! In a round every vertex *gathers* what its neighbours scattered, combined into one message, *applies* it to its value, and *scatters* its new
//! value as a message for the next round. Since the projection has each vertex's incoming edges in one run, gathering writes to
//! one place only and needs neither locks nor queues.
//!
//! [`run_synchronous`] shows each round the values of the round before. [`run_asynchronous`] shows the newest ones there are,
//! which takes fewer rounds for programs whose end does not depend on the order (smallest, largest, reached).

use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use ficus_model::Direction;
use rayon::prelude::*;

use super::ranges::{balanced, split};
use crate::control::check;
use crate::large_array::LargeArray;
use crate::{Adjacency, AnalyticsError, Control, Place, Projection};

/// Where an edge is kept, for values kept beside the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeAt {
    /// [`Direction::In`] if it is found among the in edges of the vertex that gathers, [`Direction::Out`] if among its out edges.
    pub side: Direction,
    /// Its index there, see [`Adjacency::edges_of`].
    pub index: usize,
}

/// What a vertex does in a round.
pub trait VertexProgram: Sync {
    /// What each vertex has.
    type Value: Copy + Send + Sync;
    /// What goes along edges.
    type Message: Pod + Send + Sync;

    /// What gathering begins with: combined with any message, it is that message.
    fn nothing(&self) -> Self::Message;

    /// What a vertex tells all its neighbours; `degree` is the number of edges it goes along.
    fn scatter(&self, vertex: Place, value: &Self::Value, degree: u64) -> Self::Message;

    /// What becomes of a message on its way along one edge.
    #[inline(always)]
    fn along(&self, message: Self::Message, _edge: EdgeAt) -> Self::Message {
        message
    }

    /// One message for two. Associative and commutative: the order in which a vertex hears is not told.
    fn combine(&self, left: Self::Message, right: Self::Message) -> Self::Message;

    /// A number to which every vertex adds after its turn, and whose sum all know in the next round.
    fn contribution(&self, _vertex: Place, _value: &Self::Value, _degree: u64) -> f64 {
        0.0
    }

    /// The new value of a vertex that heard `gathered`; `total` is the sum of all contributions of the last round.
    fn apply(&self, vertex: Place, value: &Self::Value, gathered: Self::Message, total: f64) -> Self::Value;

    /// How far a vertex moved; zero if not at all.
    fn change(&self, before: &Self::Value, after: &Self::Value) -> f64;

    /// Whether to end after a round in which all vertices together moved so far.
    fn is_converged(&self, change: f64) -> bool {
        change == 0.0
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<V> {
    /// By place.
    pub values: Vec<V>,
    /// Rounds that were run.
    pub rounds: u32,
    /// Whether it ended because it had converged.
    pub is_converged: bool,
    /// How far all vertices together moved in the last round.
    pub change: f64,
}

/// Runs rounds, each of which sees the values of the round before, until the program has converged or `rounds_limit` rounds were run.
/// Messages go along edges of this direction.
///
/// Cost: one visit of each edge and one random read of a message each, per round; two messages a vertex.
/// Errors: `Stopped`; `Memory` if the system refuses the messages' memory; `Invalid` unless there is one initial value for each vertex.
pub fn run_synchronous<P: VertexProgram>(
    projection: &Projection,
    direction: Direction,
    program: &P,
    initial: Vec<P::Value>,
    rounds_limit: u32,
    control: &dyn Control,
) -> Result<Outcome<P::Value>, AnalyticsError> {
    let way = Way::new(projection, direction, initial.len())?;
    let mut values = initial;
    let mut messages = LargeArray::<P::Message>::zeroed(values.len())?;
    let mut next = LargeArray::<P::Message>::zeroed(values.len())?;
    let parts: Vec<_> = way.ranges.iter().zip(split(&mut messages, &way.ranges)).collect();
    let totals: Vec<f64> = parts
        .into_par_iter()
        .map(|(range, messages)| {
            let tell = |(message, vertex): (&mut P::Message, Place)| {
                let (value, degree) = (&values[vertex as usize], way.degree(vertex));
                *message = program.scatter(vertex, value, degree);
                program.contribution(vertex, value, degree)
            };
            messages.iter_mut().zip(range.clone()).map(tell).sum()
        })
        .collect();
    let mut total: f64 = totals.into_iter().sum();
    let (mut rounds, mut change, mut is_converged) = (0, 0.0, false);
    while rounds < rounds_limit && !is_converged {
        let parts: Vec<_> =
            way.ranges.iter().zip(split(&mut values, &way.ranges)).zip(split(&mut next, &way.ranges)).collect();
        let heard = &*messages;
        // Sums are taken range by range in order, so that they do not depend on which thread was when done.
        let sums: Vec<(f64, f64)> = parts
            .into_par_iter()
            .map(|((range, values), next)| {
                check(control)?;
                let (mut moved, mut contributed) = (0.0, 0.0);
                for ((vertex, value), next) in range.clone().zip(values).zip(next) {
                    let gathered = way.gather(program, vertex, |neighbour| heard[neighbour as usize]);
                    let after = program.apply(vertex, value, gathered, total);
                    moved += program.change(value, &after);
                    let degree = way.degree(vertex);
                    contributed += program.contribution(vertex, &after, degree);
                    *next = program.scatter(vertex, &after, degree);
                    *value = after;
                }
                Ok((moved, contributed))
            })
            .collect::<Result<_, AnalyticsError>>()?;
        (change, total) = sums.into_iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        std::mem::swap(&mut messages, &mut next);
        rounds += 1;
        is_converged = program.is_converged(change);
        control.round(rounds, if is_converged { rounds } else { rounds_limit });
    }
    Ok(Outcome { values, rounds, is_converged, change })
}

/// A value that several threads may read while one writes it.
pub trait Shareable: Copy + Send + Sync {
    /// All of it in one word.
    fn to_word(self) -> u64;
    /// From that word.
    fn of_word(word: u64) -> Self;
}

impl Shareable for u64 {
    fn to_word(self) -> u64 {
        self
    }

    fn of_word(word: u64) -> u64 {
        word
    }
}

impl Shareable for u32 {
    fn to_word(self) -> u64 {
        u64::from(self)
    }

    fn of_word(word: u64) -> u32 {
        word as u32
    }
}

impl Shareable for f64 {
    fn to_word(self) -> u64 {
        self.to_bits()
    }

    fn of_word(word: u64) -> f64 {
        f64::from_bits(word)
    }
}

/// Runs rounds in which every vertex sees the newest values of its neighbours, until the program has converged or `rounds_limit` rounds
/// were run. How many rounds that takes depends on the threads; the values at the end do not, if the program's values only ever move one way
/// (down or up) and its `apply` and `combine` are monotone. `total` is always zero.
///
/// Cost: one visit of each edge, per round, and a scatter for each; no messages are kept.
/// Errors: `Stopped`; `Invalid` unless there is one initial value for each vertex.
pub fn run_asynchronous<P: VertexProgram<Value: Shareable>>(
    projection: &Projection,
    direction: Direction,
    program: &P,
    initial: Vec<P::Value>,
    rounds_limit: u32,
    control: &dyn Control,
) -> Result<Outcome<P::Value>, AnalyticsError> {
    let way = Way::new(projection, direction, initial.len())?;
    let values: Vec<AtomicU64> = initial.into_iter().map(|value| AtomicU64::new(value.to_word())).collect();
    // Values mean nothing beyond themselves: no order between two of them is needed.
    let read = |vertex: Place| P::Value::of_word(values[vertex as usize].load(Ordering::Relaxed));
    let (mut rounds, mut change, mut is_converged) = (0, 0.0, false);
    while rounds < rounds_limit && !is_converged {
        let moved: Vec<f64> = way
            .ranges
            .par_iter()
            .map(|range| {
                check(control)?;
                let mut moved = 0.0;
                for vertex in range.clone() {
                    let tell = |neighbour: Place| program.scatter(neighbour, &read(neighbour), way.degree(neighbour));
                    let before = read(vertex);
                    let after = program.apply(vertex, &before, way.gather(program, vertex, tell), 0.0);
                    moved += program.change(&before, &after);
                    values[vertex as usize].store(after.to_word(), Ordering::Relaxed);
                }
                Ok(moved)
            })
            .collect::<Result<_, AnalyticsError>>()?;
        change = moved.into_iter().sum();
        rounds += 1;
        is_converged = program.is_converged(change);
        control.round(rounds, if is_converged { rounds } else { rounds_limit });
    }
    let values = values.into_iter().map(|value| P::Value::of_word(value.into_inner())).collect();
    Ok(Outcome { values, rounds, is_converged, change })
}

/// The edges messages go along, from both ends, and how the work is cut.
struct Way<'a> {
    push: Vec<&'a Adjacency>,
    pull: Vec<(Direction, &'a Adjacency)>,
    ranges: Vec<std::ops::Range<Place>>,
}

impl<'a> Way<'a> {
    fn new(projection: &'a Projection, direction: Direction, values: usize) -> Result<Way<'a>, AnalyticsError> {
        let vertices = projection.vertex_count();
        if values != vertices {
            let reason = format!("{values} values for {vertices} vertices; give one for each");
            return Err(AnalyticsError::Invalid { parameter: "initial", reason });
        }
        let sides = projection.sides(direction);
        let names: &[Direction] = match direction {
            Direction::Out => &[Direction::In],
            Direction::In => &[Direction::Out],
            Direction::Both => &[Direction::In, Direction::Out],
        };
        let ranges = balanced(vertices, &sides.pull);
        let pull = names.iter().copied().zip(sides.pull).collect();
        Ok(Way { push: sides.push, pull, ranges })
    }

    #[inline(always)]
    fn degree(&self, vertex: Place) -> u64 {
        self.push.iter().map(|side| side.degree(vertex)).sum()
    }

    /// What a vertex hears. Four messages are combined side by side, since each combination has to wait for the one before.
    #[inline(always)]
    fn gather<P: VertexProgram>(
        &self,
        program: &P,
        vertex: Place,
        message: impl Fn(Place) -> P::Message,
    ) -> P::Message {
        let mut gathered = program.nothing();
        for (side, adjacency) in &self.pull {
            let (neighbours, mut index) = (adjacency.of(vertex), adjacency.edges_of(vertex).start);
            let mut lanes = [program.nothing(); 4];
            let fours = neighbours.chunks_exact(4);
            let rest = fours.remainder();
            for four in fours {
                lanes = std::array::from_fn(|lane| {
                    let edge = EdgeAt { side: *side, index: index + lane };
                    program.combine(lanes[lane], program.along(message(four[lane]), edge))
                });
                index += 4;
            }
            for neighbour in rest {
                let edge = EdgeAt { side: *side, index };
                lanes[0] = program.combine(lanes[0], program.along(message(*neighbour), edge));
                index += 1;
            }
            let [a, b, c, d] = lanes;
            gathered = program.combine(gathered, program.combine(program.combine(a, b), program.combine(c, d)));
        }
        gathered
    }
}
