//! Short walks from many vertices at once: where each comes to its first result.
//!
//! `by(out('hasCreator').values('firstName'))` of two million messages is two million walks, each of a few steps that wait for memory one after the other.
//! Here the hops of some ten rows are made together: the half-edges of all are on their way before the first are read.
//!
//! Of each vertex a few neighbours are fetched. Where that may not be enough to know which result is the first, the walk is left open: whoever asked
//! makes it by itself, in turns that can be cut short. So is every walk that fails, for the error to arise where it belongs. What walks at once take is
//! bounded so, and they need not look whether the query must stop.

use ficus_model::{Direction, T, Value, VertexId};
use ficus_storage::HalfEdgeCursor;

use crate::context::QueryContext;
use crate::elements::{KeyRef, LabelSet, PREFETCHED};
use crate::logical::{LabelledNode, Node, PropertyForm, Reach, Traversal};
use crate::modulate::Modulator;
use crate::operators::has::Conditions;

/// Vertices that walks begin at together.
pub const TOGETHER: usize = 64;

/// Of a vertex that was looked at so much of a turn is paid.
pub const LOOKED_AT_PER_UNIT: usize = 4;

/// Neighbours of one vertex that are looked at.
const NEIGHBOURS_MAX: usize = 8;

/// Hops of a walk: some ten thousand vertices are on their way at most.
const HOPS_MAX: usize = 3;

/// A walk of hops with conditions, and what is wanted of the first vertex that it comes to, or the first that has it.
#[derive(Clone)]
pub struct ManyWalks {
    hops: Vec<Hop>,
    end: End,
    /// Where walks are, each with the place of its start.
    level: Vec<(VertexId, u32)>,
    next: Vec<(VertexId, u32)>,
    found: Vec<VertexId>,
}

#[derive(Clone)]
struct Hop {
    direction: Direction,
    labels: LabelSet,
    filter: Option<Conditions>,
}

#[derive(Clone)]
enum End {
    Vertex,
    Value(KeyRef),
    Token(T),
}

/// Where a walk comes to its first result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOf {
    /// At this vertex; or there is none if this vertex has none, as the walk comes to no other.
    At(VertexId),
    /// There is none.
    Nowhere,
    /// The walk has to be made by itself.
    Open,
}

impl ManyWalks {
    /// What makes the result of the vertex that a walk comes to.
    pub fn at_end(&self) -> Modulator {
        match &self.end {
            End::Vertex => Modulator::Identity,
            End::Value(key) => Modulator::First(key.clone()),
            End::Token(token) => Modulator::Token(*token),
        }
    }

    /// The walks of a sub-query; `None` if it is something else, or has no hop.
    pub fn of(traversal: &Traversal) -> Option<ManyWalks> {
        if traversal.nodes.iter().any(|own| !own.labels.is_empty()) {
            return None;
        }
        let mut hops: Vec<Hop> = Vec::new();
        let mut end = End::Vertex;
        for (place, LabelledNode { node, .. }) in traversal.nodes.iter().enumerate() {
            let is_last = place + 1 == traversal.nodes.len();
            match (node, hops.last_mut()) {
                (Node::Adjacent { direction, labels, reach: Reach::Vertex }, _) => {
                    let labels = LabelSet::new(labels.clone().into());
                    hops.push(Hop { direction: *direction, labels, filter: None });
                }
                (Node::Has { containers }, Some(Hop { filter: filter @ None, .. })) => {
                    *filter = Some(Conditions::compile(containers).ok()?);
                }
                (Node::Properties { keys, form: PropertyForm::Value }, Some(_)) if is_last => match keys.as_slice() {
                    [key] => end = End::Value(KeyRef::new(key.clone())),
                    _ => return None,
                },
                (Node::Id, Some(_)) if is_last => end = End::Token(T::Id),
                (Node::Label, Some(_)) if is_last => end = End::Token(T::Label),
                _ => return None,
            }
        }
        let is_short = (1..=HOPS_MAX).contains(&hops.len());
        is_short.then(|| ManyWalks { hops, end, level: Vec::new(), next: Vec::new(), found: Vec::new() })
    }

    /// Makes the walks from these vertices, [`TOGETHER`] at most, and puts what is known of each in place of what is in `told`. Returns how many vertices
    /// it looked at.
    pub fn end_of_each(&mut self, starts: &[VertexId], context: &QueryContext, told: &mut Vec<EndOf>) -> usize {
        told.clear();
        told.resize(starts.len(), EndOf::Nowhere);
        let looked = self.make_hops(starts, told, context);
        let is_one_hop = self.hops.len() == 1;
        for ends in self.level.chunk_by(|one, next| one.1 == next.1) {
            let [(vertex, start), ..] = ends else { continue };
            let own = &mut told[*start as usize];
            let may_have_more = *own == EndOf::Open;
            if may_have_more && !is_one_hop {
                continue;
            }
            match &mut self.end {
                End::Value(key) if ends.len() > 1 || may_have_more => {
                    let has_value =
                        |(vertex, _): &&(VertexId, u32)| context.property_value(&Value::Vertex(*vertex), key).is_some();
                    if let Some((vertex, _)) = ends.iter().find(has_value) {
                        *own = EndOf::At(*vertex);
                    }
                }
                _ => *own = EndOf::At(*vertex),
            }
        }
        looked
    }

    /// Makes all hops; says how many vertices it looked at.
    fn make_hops(&mut self, starts: &[VertexId], told: &mut [EndOf], context: &QueryContext) -> usize {
        self.level.clear();
        self.level.extend(starts.iter().enumerate().map(|(place, vertex)| (*vertex, place as u32)));
        let mut looked = starts.len();
        for number in 0..self.hops.len() {
            if !self.hop(number, told, context) {
                // It arises again where one walk is made after the other.
                told.fill(EndOf::Open);
                self.level.clear();
                break;
            }
            looked += self.level.len();
        }
        looked
    }

    /// Goes on by a hop; false if that fails.
    fn hop(&mut self, number: usize, told: &mut [EndOf], context: &QueryContext) -> bool {
        let is_last = number + 1 == self.hops.len();
        let ManyWalks { hops, level, next, found, .. } = self;
        let Hop { direction, labels, filter } = &mut hops[number];
        next.clear();
        if let Some(labels) = labels.ids(context) {
            for (place, (vertex, start)) in level.iter().enumerate() {
                if place % PREFETCHED == 0 {
                    let ahead = level[place..].iter().take(PREFETCHED).map(|(vertex, _)| *vertex);
                    context.transaction.prefetch_half_edges(ahead, *direction);
                }
                found.clear();
                let mut cursor = HalfEdgeCursor::default();
                let transaction = &context.transaction;
                if transaction.copy_neighbours(*vertex, *direction, labels, &mut cursor, NEIGHBOURS_MAX, found) {
                    // Known only if one of the first few is enough: others come before those of the next vertex.
                    told[*start as usize] = EndOf::Open;
                    if !is_last || number > 0 {
                        continue;
                    }
                }
                next.extend(found.iter().map(|neighbour| (*neighbour, *start)));
            }
        }
        std::mem::swap(level, next);
        if let Some(filter) = filter
            && !filter.prefilter(context, level)
        {
            let mut fails = false;
            level.retain(|(vertex, _)| {
                let passes = filter.test(&Value::Vertex(*vertex), context);
                fails |= passes.is_err();
                passes.unwrap_or(false)
            });
            return !fails;
        }
        true
    }
}
