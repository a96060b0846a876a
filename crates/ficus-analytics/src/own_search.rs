//! A k-hop question answered by who asks it, a part at a time: on the store itself, or on a projection that is there already.

use std::cell::OnceCell;
use std::ops::ControlFlow;

use ficus_model::{Direction, EdgeId, LabelId, VertexId};
use ficus_storage::{HalfEdge, HalfEdgeCursor, Neighbours, Snapshot};

use crate::question::Walk;
use crate::{Answer, Hops, Place, Projection, Sides};

/// A name of a vertex that is a number, below the number of vertices there ever were.
pub trait Numbered: Copy + Ord {
    /// The number.
    fn number(self) -> u64;
}

impl Numbered for VertexId {
    #[inline(always)]
    fn number(self) -> u64 {
        self.0
    }
}

impl Numbered for Place {
    #[inline(always)]
    fn number(self) -> u64 {
        u64::from(self)
    }
}

/// What a search goes along.
pub trait Topology {
    /// How it names its vertices.
    type Vertex: Numbered;

    /// Visits what a hop from a vertex reaches; gives the number of edges it has gone along.
    fn visit(&mut self, vertex: Self::Vertex, reached: &mut impl FnMut(Self::Vertex)) -> u64;

    /// As [`Topology::visit`] for one of these vertices after the other, until as many edges and vertices were gone along as are allowed. Gives the number of vertices
    /// that were visited, of which there is one at least, and of edges.
    fn visit_some(
        &mut self,
        vertices: &[Self::Vertex],
        steps_max: u64,
        reached: &mut impl FnMut(Self::Vertex),
    ) -> (usize, u64) {
        let mut edges = 0;
        for (place, vertex) in vertices.iter().enumerate() {
            edges += self.visit(*vertex, reached);
            if edges + place as u64 >= steps_max {
                return (place + 1, edges);
            }
        }
        (vertices.len(), edges)
    }

    /// Edges along which a hop from a vertex would go, where that is known without going.
    fn edges_ahead(&self, vertex: Self::Vertex) -> u64;
}

/// A state of the store, along edges of some labels one way.
pub struct OnStore<'a> {
    snapshot: &'a Snapshot,
    direction: Direction,
    /// `None` for all.
    labels: Option<&'a [LabelId]>,
    /// What it sees of the edges of each label, once vertices are asked one by one.
    views: OnceCell<Vec<Neighbours<'a>>>,
}

impl<'a> OnStore<'a> {
    /// Along edges with one of these labels; `None` for all.
    pub fn new(snapshot: &'a Snapshot, direction: Direction, labels: Option<&'a [LabelId]>) -> OnStore<'a> {
        OnStore { snapshot, direction, labels, views: OnceCell::new() }
    }

    /// Edges along which a hop from a vertex goes; a loop counts twice for `Both`.
    pub fn degree(&self, vertex: VertexId) -> u64 {
        match self.labels {
            // None of the labels exists.
            Some([]) => 0,
            labels => self.snapshot.degree(vertex, self.direction, labels.unwrap_or(&[])),
        }
    }

    fn views(&self) -> &[Neighbours<'a>] {
        self.views.get_or_init(|| match self.labels {
            None => vec![self.snapshot.neighbours(self.direction, None)],
            Some(labels) => labels.iter().map(|label| self.snapshot.neighbours(self.direction, Some(*label))).collect(),
        })
    }
}

impl Topology for OnStore<'_> {
    type Vertex = VertexId;

    fn visit(&mut self, vertex: VertexId, reached: &mut impl FnMut(VertexId)) -> u64 {
        let mut edges = 0;
        for view in self.views() {
            view.visit(vertex, &mut |slice| {
                edges += slice.len() as u64;
                slice.for_each(&mut *reached);
            });
        }
        edges
    }

    /// Their memory is waited for together.
    fn visit_some(
        &mut self,
        vertices: &[VertexId],
        steps_max: u64,
        reached: &mut impl FnMut(VertexId),
    ) -> (usize, u64) {
        let (mut edges, mut visited) = (0, 0);
        let labels = self.labels.unwrap_or(&[]);
        if self.labels.is_some_and(<[_]>::is_empty) {
            // None of the labels exists.
            return (vertices.len(), 0);
        }
        let (snapshot, direction) = (self.snapshot, self.direction);
        snapshot.visit_hops(vertices, direction, labels, |place, ends| {
            edges += match ends {
                Some(slices) => slices.into_iter().fold(0, |edges, slice| {
                    slice.for_each(&mut *reached);
                    edges + slice.len() as u64
                }),
                None => self.visit(vertices[place], reached),
            };
            visited = place + 1;
            if edges + place as u64 >= steps_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        (visited, edges)
    }

    /// Not known: a look-up would cost as much as going.
    fn edges_ahead(&self, _vertex: VertexId) -> u64 {
        0
    }
}

/// Half-edges fetched from the store at once.
const FETCH: usize = 256;

/// A state of the store, along edges that pass a test.
pub struct OnTestedEdges<'a, F> {
    snapshot: &'a Snapshot,
    direction: Direction,
    /// `None` for all.
    labels: Option<&'a [LabelId]>,
    test: F,
    fetched: Vec<HalfEdge>,
}

impl<'a, F: FnMut(EdgeId) -> bool> OnTestedEdges<'a, F> {
    /// Along edges with one of these labels (`None` for all) that pass.
    pub fn new(snapshot: &'a Snapshot, direction: Direction, labels: Option<&'a [LabelId]>, test: F) -> Self {
        OnTestedEdges { snapshot, direction, labels, test, fetched: Vec::new() }
    }
}

impl<F: FnMut(EdgeId) -> bool> Topology for OnTestedEdges<'_, F> {
    type Vertex = VertexId;

    fn visit(&mut self, vertex: VertexId, reached: &mut impl FnMut(VertexId)) -> u64 {
        // None of the labels exists.
        if self.labels.is_some_and(<[_]>::is_empty) {
            return 0;
        }
        let (mut edges, mut cursor, labels) = (0, HalfEdgeCursor::default(), self.labels.unwrap_or(&[]));
        loop {
            self.fetched.clear();
            let more = self.snapshot.half_edges(vertex, self.direction, labels, &mut cursor, FETCH, &mut self.fetched);
            edges += self.fetched.len() as u64;
            for half_edge in &self.fetched {
                if (self.test)(half_edge.edge) {
                    reached(half_edge.neighbour);
                }
            }
            if !more {
                return edges;
            }
        }
    }

    /// Not known.
    fn edges_ahead(&self, _vertex: VertexId) -> u64 {
        0
    }
}

/// A projection, one way.
pub struct OnProjection<'a>(Sides<'a>);

impl<'a> OnProjection<'a> {
    /// Along its edges.
    pub fn new(projection: &'a Projection, direction: Direction) -> OnProjection<'a> {
        OnProjection(projection.sides(direction))
    }
}

impl Topology for OnProjection<'_> {
    type Vertex = Place;

    fn visit(&mut self, vertex: Place, reached: &mut impl FnMut(Place)) -> u64 {
        for side in &self.0.push {
            side.of(vertex).iter().for_each(|neighbour| reached(*neighbour));
        }
        self.0.degree(vertex)
    }

    fn edges_ahead(&self, vertex: Place) -> u64 {
        self.0.degree(vertex)
    }
}

/// What becomes of a vertex when a search comes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It may not be entered.
    Refused,
    /// The search goes on from it. Whether it counts, the walk says.
    Through,
    /// The search goes on from it, and it counts.
    Reported,
    /// It counts, and the search does not go on from it.
    End,
}

impl Entry {
    /// The entry of a vertex that is only asked whether it may be entered.
    #[inline(always)]
    pub fn if_allowed(allowed: bool) -> Entry {
        if allowed { Entry::Through } else { Entry::Refused }
    }
}

/// Edges along which a hop may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopEdges {
    /// If it keeps what it finds.
    pub kept: u64,
    /// If that is [only counted](OwnSearch::counting_only), which is a few times cheaper.
    pub counted: u64,
}

impl HopEdges {
    /// Any number.
    pub const ALL: HopEdges = HopEdges { kept: u64::MAX, counted: u64::MAX };
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// It has ended.
    Ended,
    /// It can go on.
    Paused,
    /// Its next hop would go along more edges than it may: better asked together with others.
    Large,
}

/// Vertices in the order they came. Adding one, or not, takes no branch: whether a vertex is new cannot be foreseen.
#[derive(Debug)]
struct Gathered<V> {
    /// Those behind `length` mean nothing.
    slots: Vec<V>,
    length: usize,
}

impl<V: Copy> Gathered<V> {
    #[inline(always)]
    fn push_if(&mut self, wanted: bool, vertex: V) {
        if self.length == self.slots.len() {
            self.grow(vertex);
        }
        self.slots[self.length] = vertex;
        self.length += usize::from(wanted);
    }

    #[cold]
    fn grow(&mut self, vertex: V) {
        self.slots.resize((self.length * 2).max(64), vertex);
    }

    fn as_slice(&self) -> &[V] {
        &self.slots[..self.length]
    }

    /// All of them, in place of what another list holds.
    fn swap_into(&mut self, other: &mut Vec<V>) {
        self.slots.truncate(self.length);
        std::mem::swap(&mut self.slots, other);
        self.length = 0;
    }
}

/// Vertices that were reported, each once.
#[derive(Debug)]
struct Reported<V> {
    known: Bits,
    vertices: Vec<V>,
}

impl<V: Numbered> Reported<V> {
    fn add(&mut self, vertex: V) {
        if self.known.insert(vertex.number()) {
            self.vertices.push(vertex);
        }
    }
}

/// A search that can be interrupted after every vertex. Takes memory for what it enters only.
#[derive(Debug)]
pub struct OwnSearch<V> {
    walk: Walk,
    hops: Hops,
    /// Vertices entered: in any hop, for `Exactly` in this one.
    entered: Bits,
    frontier: Vec<V>,
    position: usize,
    next: Gathered<V>,
    /// The vertices that count, unless they are those of the last frontier.
    reached: Vec<V>,
    /// Those that were reported, if that is what counts.
    reported: Option<Reported<V>>,
    /// Whether nobody wants to know which they are.
    counts_only: bool,
    /// Those of the last hop, if nobody wants to know which they are.
    counted: u64,
    answer: Answer,
    hop: u32,
    edges: u64,
    /// The only vertex that is wanted.
    target: Option<V>,
    /// So many vertices that count are enough.
    enough: usize,
}

impl<V: Numbered> OwnSearch<V> {
    /// A search that has not gone anywhere, to a target if there is one. Sources given twice are given once.
    pub fn new(walk: Walk, hops: Hops, mut sources: Vec<V>, target: Option<V>) -> OwnSearch<V> {
        sources.sort_unstable();
        sources.dedup();
        let mut entered = Bits::default();
        let mut reached = Vec::new();
        if walk == Walk::WithinOrSource {
            sources.iter().for_each(|source| {
                entered.insert(source.number());
            });
            reached.clone_from(&sources);
        }
        let counted = if walk == Walk::Within { 0 } else { sources.len() as u64 };
        let counts_source = walk == Walk::WithinOrSource || walk == Walk::Exactly && hops.0 == 0;
        let is_there = counts_source && target.is_some_and(|target| sources.contains(&target));
        let answer = Answer { levels: vec![counted], distance: is_there.then_some(0) };
        OwnSearch {
            walk,
            hops,
            entered,
            frontier: sources,
            position: 0,
            next: Gathered { slots: Vec::new(), length: 0 },
            reached,
            reported: None,
            counts_only: false,
            counted: 0,
            answer,
            hop: 0,
            edges: 0,
            target,
            enough: usize::MAX,
        }
    }

    /// Ends as soon as so many vertices were found that count; there may be a few more.
    #[must_use]
    pub fn ending_with(mut self, enough: usize) -> OwnSearch<V> {
        self.enough = enough;
        self
    }

    /// Nobody wants to know which vertices count, only how many by hop: the last hop is then a few times cheaper.
    #[must_use]
    pub fn counting_only(mut self) -> OwnSearch<V> {
        self.counts_only = self.target.is_none() && self.enough == usize::MAX;
        self
    }

    /// What counts is what [is reported](Entry), and for `Exactly` what the last hop reaches. `at_source` tells of the sources whether they are; of
    /// the others, `enter` does.
    #[must_use]
    pub fn reporting(mut self, mut at_source: impl FnMut(V) -> Entry) -> OwnSearch<V> {
        let mut reported = Reported { known: Bits::default(), vertices: Vec::new() };
        self.frontier.retain(|source| {
            let entry = at_source(*source);
            if matches!(entry, Entry::Reported | Entry::End) {
                reported.add(*source);
            }
            matches!(entry, Entry::Reported | Entry::Through)
        });
        self.reported = Some(reported);
        self
    }

    /// Whether as many were found as are wanted.
    fn has_enough(&self) -> bool {
        let next = self.next.length;
        match (&self.reported, self.walk) {
            (Some(reported), Walk::Within | Walk::WithinOrSource) => reported.vertices.len() >= self.enough,
            (Some(reported), Walk::Exactly) if reported.vertices.len() >= self.enough => true,
            (_, Walk::Exactly) => self.hop + 1 >= self.hops.0 && next >= self.enough,
            (None, Walk::Within | Walk::WithinOrSource) => self.reached.len() + next >= self.enough,
        }
    }

    /// Whether the hop that comes is only counted.
    fn counts_hop(&self) -> bool {
        self.counts_only && self.hop + 1 == self.hops.0
    }

    /// Goes on until about `edges` more edges were looked at, unless the next hop would go along more than `hop_edges_limit`. `enter` is asked
    /// of every vertex that was not entered before what becomes of it; sources are not asked.
    pub fn advance<T: Topology<Vertex = V>>(
        &mut self,
        topology: &mut T,
        enter: &mut impl FnMut(V) -> Entry,
        edges: u64,
        hop_edges_limit: HopEdges,
    ) -> Advance {
        let until = self.edges.saturating_add(edges);
        let is_bounded = self.enough < usize::MAX;
        while self.hop < self.hops.0
            && !self.frontier.is_empty()
            && self.answer.distance.is_none()
            && !(is_bounded && self.has_enough())
        {
            let counts = self.counts_hop();
            let limit = if counts { hop_edges_limit.counted } else { hop_edges_limit.kept };
            if self.position == 0 && self.is_large(topology, limit) {
                return Advance::Large;
            }
            while self.position < self.frontier.len() {
                if self.edges >= until {
                    return Advance::Paused;
                }
                // Who looks for little looks behind each vertex whether it is there.
                let ahead = if is_bounded || self.target.is_some() { self.position + 1 } else { self.frontier.len() };
                let vertices = &self.frontier[self.position..ahead];
                let (entered, next, steps_max) = (&mut self.entered, &mut self.next, until - self.edges);
                let (visited, edges) = match &mut self.reported {
                    None if counts => topology.visit_some(vertices, steps_max, &mut |neighbour| {
                        let is_new = entered.insert(neighbour.number()) && enter(neighbour) == Entry::Through;
                        self.counted += u64::from(is_new);
                    }),
                    None => topology.visit_some(vertices, steps_max, &mut |neighbour| {
                        let is_new = entered.insert(neighbour.number()) && enter(neighbour) == Entry::Through;
                        next.push_if(is_new, neighbour);
                    }),
                    Some(reported) => topology.visit_some(vertices, steps_max, &mut |neighbour| {
                        if entered.insert(neighbour.number()) {
                            let entry = enter(neighbour);
                            if matches!(entry, Entry::Reported | Entry::End) {
                                reported.add(neighbour);
                            }
                            next.push_if(matches!(entry, Entry::Reported | Entry::Through), neighbour);
                        }
                    }),
                };
                self.position += visited;
                // A vertex without edges is work as well.
                self.edges += visited as u64 + edges;
                if is_bounded && self.has_enough() {
                    break;
                }
                // Nothing further in this hop can be nearer.
                if self.walk != Walk::Exactly
                    && self.target.is_some_and(|own| self.next.as_slice().last() == Some(&own))
                {
                    break;
                }
            }
            self.end_hop();
        }
        Advance::Ended
    }

    fn is_large<T: Topology<Vertex = V>>(&self, topology: &T, hop_edges_limit: u64) -> bool {
        let mut ahead = 0;
        self.frontier.iter().any(|vertex| {
            ahead += topology.edges_ahead(*vertex);
            ahead > hop_edges_limit
        })
    }

    fn end_hop(&mut self) {
        self.hop += 1;
        let is_asked = self.walk != Walk::Exactly || self.hop == self.hops.0;
        let next = self.next.as_slice();
        if is_asked && self.target.is_some_and(|target| next.contains(&target)) {
            self.answer.distance = Some(self.hop);
        }
        self.answer.levels.push(next.len() as u64 + self.counted);
        if self.walk == Walk::Exactly {
            // What does not go on was entered in this hop as well.
            let ended = self.reported.as_ref().map_or(&[][..], |reported| &reported.vertices);
            next.iter().chain(ended).for_each(|vertex| self.entered.clear_near(vertex.number()));
        } else if !self.counts_only {
            self.reached.extend_from_slice(next);
        }
        self.next.swap_into(&mut self.frontier);
        self.position = 0;
    }

    /// Edges looked at so far.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let reported = self.reported.as_ref().map_or((0, 0), |own| (own.vertices.capacity(), own.known.bytes()));
        let vertices = self.frontier.capacity() + self.next.slots.capacity() + self.reached.capacity() + reported.0;
        vertices * size_of::<V>() + self.entered.bytes() + reported.1
    }

    /// The numbers by hop.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// The vertices that count, once the search has ended. None are known of one that [only counted](OwnSearch::counting_only).
    pub fn into_vertices(self) -> Vec<V> {
        if let Some(mut reported) = self.reported {
            if self.walk == Walk::Exactly && self.hop == self.hops.0 {
                self.frontier.into_iter().for_each(|vertex| reported.add(vertex));
            }
            return reported.vertices;
        }
        match self.walk {
            Walk::Within | Walk::WithinOrSource => self.reached,
            Walk::Exactly if self.hop < self.hops.0 => Vec::new(),
            Walk::Exactly => self.frontier,
        }
    }
}

/// Vertices of one page of bits.
const PAGE_VERTICES: u64 = 1 << 12;

/// Words of one page.
const PAGE_WORDS: usize = PAGE_VERTICES as usize / 64;

/// A set of vertices: a bit by number, in pages that are made when they are needed.
#[derive(Debug, Default)]
struct Bits {
    pages: Vec<Option<Box<[u64; PAGE_WORDS]>>>,
    made: usize,
}

impl Bits {
    /// True if it was not in it.
    #[inline(always)]
    fn insert(&mut self, number: u64) -> bool {
        let page = (number / PAGE_VERTICES) as usize;
        match self.pages.get_mut(page) {
            Some(Some(page)) => {
                let word = &mut page[number as usize % PAGE_VERTICES as usize / 64];
                let bit = 1 << (number % 64);
                let is_new = *word & bit == 0;
                *word |= bit;
                is_new
            }
            _ => {
                self.make(page);
                self.insert(number)
            }
        }
    }

    #[cold]
    fn make(&mut self, page: usize) {
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        self.pages[page] = Some(Box::new([0; PAGE_WORDS]));
        self.made += 1;
    }

    /// Takes out a vertex, and those whose numbers share its word.
    #[inline]
    fn clear_near(&mut self, number: u64) {
        if let Some(Some(page)) = self.pages.get_mut((number / PAGE_VERTICES) as usize) {
            page[number as usize % PAGE_VERTICES as usize / 64] = 0;
        }
    }

    fn bytes(&self) -> usize {
        self.pages.capacity() * size_of::<usize>() + self.made * size_of::<[u64; PAGE_WORDS]>()
    }
}
