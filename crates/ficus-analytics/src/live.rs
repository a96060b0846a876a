//! A k-hop question answered on the store itself, a part at a time: for one that nobody shares a projection with.

use ficus_model::{Direction, LabelId, VertexId};
use ficus_storage::Snapshot;

use crate::question::Walk;
use crate::{Answer, Hops};

/// A search that can be interrupted after every vertex.
#[derive(Debug)]
pub struct LiveSearch {
    walk: Walk,
    hops: Hops,
    /// Vertices entered: in any hop, for `Exactly` in this one.
    entered: VertexBits,
    frontier: Vec<VertexId>,
    position: usize,
    next: Vec<VertexId>,
    /// The vertices that count, unless they are those of the last frontier.
    reached: Vec<VertexId>,
    answer: Answer,
    hop: u32,
    edges: u64,
    /// The only vertex that is wanted.
    target: Option<VertexId>,
}

impl LiveSearch {
    /// A search that has not gone anywhere, to a target if there is one. Sources given twice are given once.
    pub fn new(walk: Walk, hops: Hops, mut sources: Vec<VertexId>, target: Option<VertexId>) -> LiveSearch {
        sources.sort_unstable();
        sources.dedup();
        let mut entered = VertexBits::default();
        let mut reached = Vec::new();
        if walk == Walk::WithinOrSource {
            sources.iter().for_each(|source| {
                entered.insert(*source);
            });
            reached.clone_from(&sources);
        }
        let counted = if walk == Walk::Within { 0 } else { sources.len() as u64 };
        let counts_source = walk == Walk::WithinOrSource || walk == Walk::Exactly && hops.0 == 0;
        let is_there = counts_source && target.is_some_and(|target| sources.contains(&target));
        let answer = Answer { levels: vec![counted], distance: is_there.then_some(0) };
        LiveSearch {
            walk,
            hops,
            entered,
            frontier: sources,
            position: 0,
            next: Vec::new(),
            reached,
            answer,
            hop: 0,
            edges: 0,
            target,
        }
    }

    /// Goes on until about `edges` more edges were looked at, along edges with one of these labels (`None`: all). True if the
    /// search has ended.
    pub fn advance(
        &mut self,
        snapshot: &Snapshot,
        direction: Direction,
        labels: Option<&[LabelId]>,
        edges: u64,
    ) -> bool {
        let views: Vec<_> = match labels {
            None => vec![snapshot.neighbours(direction, None)],
            Some(labels) => labels.iter().map(|label| snapshot.neighbours(direction, Some(*label))).collect(),
        };
        let until = self.edges.saturating_add(edges);
        while self.hop < self.hops.0 && !self.frontier.is_empty() && self.answer.distance.is_none() {
            while let Some(vertex) = self.frontier.get(self.position).copied() {
                if self.edges >= until {
                    return false;
                }
                self.position += 1;
                // A vertex without edges is work as well.
                self.edges += 1;
                let (entered, next, seen) = (&mut self.entered, &mut self.next, &mut self.edges);
                for view in &views {
                    view.visit(vertex, &mut |slice| {
                        *seen += slice.len() as u64;
                        slice.for_each(|neighbour| {
                            if entered.insert(neighbour) {
                                next.push(neighbour);
                            }
                        });
                    });
                }
                // Nothing further in this hop can be nearer.
                if self.walk != Walk::Exactly && self.target.is_some_and(|target| self.next.last() == Some(&target)) {
                    break;
                }
            }
            self.end_hop();
        }
        true
    }

    fn end_hop(&mut self) {
        self.hop += 1;
        let is_asked = self.walk != Walk::Exactly || self.hop == self.hops.0;
        if is_asked && self.target.is_some_and(|target| self.next.contains(&target)) {
            self.answer.distance = Some(self.hop);
        }
        self.answer.levels.push(self.next.len() as u64);
        if self.walk == Walk::Exactly {
            self.entered.clear(&self.next);
        } else {
            self.reached.extend_from_slice(&self.next);
        }
        std::mem::swap(&mut self.frontier, &mut self.next);
        self.next.clear();
        self.position = 0;
    }

    /// Edges looked at so far.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let vertices = self.frontier.capacity() + self.next.capacity() + self.reached.capacity();
        vertices * size_of::<VertexId>() + self.entered.bytes()
    }

    /// The numbers by hop.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// The vertices that count, once the search has ended.
    pub fn into_vertices(self) -> Vec<VertexId> {
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

/// A set of vertices: a bit by id, in pages that are made when they are needed.
#[derive(Debug, Default)]
struct VertexBits {
    pages: Vec<Option<Box<[u64; PAGE_WORDS]>>>,
    made: usize,
}

impl VertexBits {
    /// True if it was not in it.
    #[inline(always)]
    fn insert(&mut self, vertex: VertexId) -> bool {
        let page = (vertex.0 / PAGE_VERTICES) as usize;
        match self.pages.get_mut(page) {
            Some(Some(page)) => {
                let word = &mut page[vertex.0 as usize % PAGE_VERTICES as usize / 64];
                let bit = 1 << (vertex.0 % 64);
                let is_new = *word & bit == 0;
                *word |= bit;
                is_new
            }
            _ => {
                self.make(page);
                self.insert(vertex)
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

    /// Takes out all, which are these.
    fn clear(&mut self, vertices: &[VertexId]) {
        for vertex in vertices {
            if let Some(Some(page)) = self.pages.get_mut((vertex.0 / PAGE_VERTICES) as usize) {
                page[vertex.0 as usize % PAGE_VERTICES as usize / 64] = 0;
            }
        }
    }

    fn bytes(&self) -> usize {
        self.pages.capacity() * size_of::<usize>() + self.made * size_of::<[u64; PAGE_WORDS]>()
    }
}
