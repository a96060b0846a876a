//! Programs from the point of view of a partition: a range of vertices that one thread works on.
//!
//! In a superstep every partition that has messages computes: it may go through its own vertices as often as it likes, at once and
//! without messages, and sends messages to vertices of others. At the barrier behind, messages for the same vertex are combined and
//! delivered. It ends when all partitions have voted to halt and no message is under way. For traversals this takes fewer supersteps than
//! vertex programs take rounds, since what stays inside of a partition does not wait for the barrier.
//!
//! The interface is listing 1 of Zhou et al., "C-Graph", ICPP 2018, after Tian et al., "From 'Think Like a Vertex' to 'Think Like a
//! Graph'", VLDB 2013.

use std::collections::BTreeSet;
use std::ops::Range;

use rayon::prelude::*;

use super::ranges::split;
use crate::control::check;
use crate::{AnalyticsError, Control, Place, Projection};

/// What a partition does in a superstep.
pub trait PartitionProgram: Sync {
    /// What each vertex has.
    type Value: Send;
    /// What is sent to vertices of other partitions.
    type Message: Copy + Send + Sync;

    /// One message for two to the same vertex. Associative and commutative.
    fn combine(&self, left: Self::Message, right: Self::Message) -> Self::Message;

    /// Works on a partition. Every partition computes in superstep 0; later, those that have messages or did not vote to halt.
    fn compute(&self, partition: &mut Partition<'_, Self::Value, Self::Message>, superstep: u32);
}

/// A range of vertices, their values, and the messages for them.
pub struct Partition<'a, V, M> {
    projection: &'a Projection,
    range: Range<Place>,
    values: &'a mut [V],
    inbox: &'a [(Place, M)],
    outbox: Vec<(Place, M)>,
    has_voted: bool,
}

impl<'a, V, M> Partition<'a, V, M> {
    /// The whole graph.
    pub fn projection(&self) -> &'a Projection {
        self.projection
    }

    /// Its own vertices.
    pub fn local_vertices(&self) -> Range<Place> {
        self.range.clone()
    }

    /// Whether a vertex is its own.
    pub fn is_local(&self, vertex: Place) -> bool {
        self.range.contains(&vertex)
    }

    /// Vertices of others that its own have out edges to, ascending. Cost: a visit of all its out edges.
    pub fn boundary_vertices(&self) -> Vec<Place> {
        let neighbours = self.local_vertices().flat_map(|vertex| self.projection.out().of(vertex));
        neighbours.copied().filter(|vertex| !self.is_local(*vertex)).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The value of one of its own vertices. Panics for others.
    pub fn value(&self, vertex: Place) -> &V {
        &self.values[(vertex - self.range.start) as usize]
    }

    /// As [`Partition::value`], to be changed.
    pub fn value_mut(&mut self, vertex: Place) -> &mut V {
        &mut self.values[(vertex - self.range.start) as usize]
    }

    /// What was sent to its vertices in the last superstep: at most one message each, ascending by vertex.
    pub fn messages(&self) -> &'a [(Place, M)] {
        self.inbox
    }

    /// Sends a message to any vertex, for the next superstep.
    pub fn send_to(&mut self, vertex: Place, message: M) {
        self.outbox.push((vertex, message));
    }

    /// Says that it has nothing to do until a message comes.
    pub fn vote_to_halt(&mut self) {
        self.has_voted = true;
    }
}

/// Runs a program on so many partitions with about the same number of out edges; answers with the values, by place, and the number of
/// supersteps.
///
/// Errors: `Stopped`; `Invalid` unless there is one initial value for each vertex and at least one partition.
pub fn run_partitions<P: PartitionProgram>(
    projection: &Projection,
    partitions: usize,
    program: &P,
    initial: Vec<P::Value>,
    control: &dyn Control,
) -> Result<(Vec<P::Value>, u32), AnalyticsError> {
    let vertices = projection.vertex_count();
    if initial.len() != vertices || partitions == 0 {
        let reason = format!("{} values for {vertices} vertices in {partitions} partitions", initial.len());
        return Err(AnalyticsError::Invalid { parameter: "initial", reason });
    }
    let work = (projection.edge_count() + vertices as u64).div_ceil(partitions as u64);
    let ranges = projection.out().balanced_ranges(work);
    let mut values = initial;
    let mut inboxes: Vec<Messages<P>> = ranges.iter().map(|_| Vec::new()).collect();
    let mut has_voted = vec![false; ranges.len()];
    let mut superstep = 0;
    loop {
        let parts: Vec<_> = ranges.iter().zip(split(&mut values, &ranges)).zip(&inboxes).zip(&has_voted).collect();
        let computed: Vec<(Messages<P>, bool)> = parts
            .into_par_iter()
            .map(|(((range, values), inbox), has_voted)| {
                check(control)?;
                if *has_voted && inbox.is_empty() {
                    return Ok((Vec::new(), true));
                }
                let (range, outbox) = (range.clone(), Vec::new());
                let mut partition = Partition { projection, range, values, inbox, outbox, has_voted: false };
                program.compute(&mut partition, superstep);
                Ok((combined(program, partition.outbox), partition.has_voted))
            })
            .collect::<Result<_, AnalyticsError>>()?;
        superstep += 1;
        has_voted = computed.iter().map(|(_, has_voted)| *has_voted).collect();
        // The barrier: each outbox is sorted, so what goes to a range is a run of it.
        inboxes = ranges
            .par_iter()
            .map(|range| {
                let run = |outbox: &[(Place, P::Message)]| {
                    let bound = |end: Place| outbox.partition_point(|(vertex, _)| *vertex < end);
                    outbox[bound(range.start)..bound(range.end)].to_vec()
                };
                combined(program, computed.iter().flat_map(|(outbox, _)| run(outbox)).collect())
            })
            .collect();
        if inboxes.iter().all(Vec::is_empty) && has_voted.iter().all(|voted| *voted) {
            control.progress(1.0);
            return Ok((values, superstep));
        }
    }
}

/// Messages with the vertices they are for.
type Messages<P> = Vec<(Place, <P as PartitionProgram>::Message)>;

/// Sorted by vertex, one message for each.
fn combined<P: PartitionProgram>(program: &P, mut messages: Messages<P>) -> Messages<P> {
    messages.sort_by_key(|(vertex, _)| *vertex);
    messages.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            kept.1 = program.combine(kept.1, later.1);
        }
        same
    });
    messages
}
