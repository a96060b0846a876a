//! Doors for `benches/segment.rs`, which measures what is not public. Only there with the feature `measure`.

use ficus_model::{EdgeId, KeyId, LabelId, Value, VertexId};

use crate::property_row::PropertyEntry;
use crate::segment::{Neighbours, Segment, SegmentBuilder, SegmentOrigin, Side};
use crate::simulated_disk::Seeded;
use crate::tablet::IdLayout;

/// Out and in half-edges of a random graph in plain arrays.
pub struct PlainCsr {
    out: CsrSide,
    in_: CsrSide,
}

struct CsrSide {
    offsets: Vec<u32>,
    neighbours: Vec<u32>,
    /// Of every half-edge, the number of its edge.
    edges: Vec<u32>,
}

impl CsrSide {
    fn of(vertices: usize, edges: &[(u32, u32)]) -> CsrSide {
        let mut offsets = vec![0u32; vertices + 1];
        edges.iter().for_each(|(from, _)| offsets[*from as usize + 1] += 1);
        for vertex in 0..vertices {
            offsets[vertex + 1] += offsets[vertex];
        }
        let mut next = offsets.clone();
        let mut side = CsrSide { neighbours: vec![0; edges.len()], edges: vec![0; edges.len()], offsets };
        for (number, (from, to)) in edges.iter().enumerate() {
            let place = &mut next[*from as usize];
            side.neighbours[*place as usize] = *to;
            side.edges[*place as usize] = number as u32;
            *place += 1;
        }
        side
    }

    fn of_vertex(&self, vertex: usize) -> std::ops::Range<usize> {
        self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize
    }
}

impl PlainCsr {
    /// A graph of so many vertices with so many edges each, in the order of their sources.
    pub fn random(vertices: usize, degree: usize) -> PlainCsr {
        let mut random = Seeded::new(7);
        let edges: Vec<(u32, u32)> = (0..vertices * degree)
            .map(|number| ((number / degree) as u32, random.below(vertices as u64) as u32))
            .collect();
        let turned: Vec<(u32, u32)> = edges.iter().map(|(source, target)| (*target, *source)).collect();
        PlainCsr { out: CsrSide::of(vertices, &edges), in_: CsrSide::of(vertices, &turned) }
    }

    /// Number of edges.
    pub fn half_edges(&self) -> usize {
        self.out.neighbours.len()
    }

    fn vertices(&self) -> usize {
        self.out.offsets.len() - 1
    }

    /// All vertices in no order.
    pub fn shuffled_vertices(&self) -> Vec<u32> {
        let mut random = Seeded::new(8);
        let mut vertices: Vec<u32> = (0..self.vertices() as u32).collect();
        for last in (1..vertices.len()).rev() {
            vertices.swap(last, random.below(last as u64 + 1) as usize);
        }
        vertices
    }

    /// Reads the targets of all edges of these vertices.
    pub fn sum_of_neighbours(&self, vertices: &[u32]) -> u64 {
        let of =
            |vertex: &u32| self.out.neighbours[self.out.of_vertex(*vertex as usize)].iter().map(|id| u64::from(*id));
        vertices.iter().map(|vertex| of(vertex).sum::<u64>()).sum()
    }
}

/// The same graph as the segment of its only tablet, with one property per vertex.
pub struct MeasuredSegment(Segment);

impl MeasuredSegment {
    /// As a bulk load builds it: edges numbered in the order of their sources.
    pub fn loaded(csr: &PlainCsr) -> MeasuredSegment {
        MeasuredSegment::build(csr, |edge| edge)
    }

    /// As edges of many commits: numbered in no order. Within a vertex they still rise.
    pub fn consolidated(csr: &PlainCsr) -> MeasuredSegment {
        let degree = (csr.half_edges() / csr.vertices()) as u32;
        let vertices = csr.vertices() as u32;
        MeasuredSegment::build(csr, |edge| edge % degree * vertices + edge / degree)
    }

    fn build(csr: &PlainCsr, sequence: impl Fn(u32) -> u32) -> MeasuredSegment {
        let mut builder = SegmentBuilder::new(SegmentOrigin::default(), IdLayout { tablet_bits: 0 }, 0);
        let mut incoming = Vec::new();
        for vertex in 0..csr.vertices() {
            builder.begin_vertex(vertex as u64, LabelId(0), &Value::Long(vertex as i64));
            let value = Value::Long((vertex as i64).wrapping_mul(2_654_435_761));
            builder.property(&PropertyEntry::new(vertex as u64, KeyId(0), value), &[]);
            for place in csr.out.of_vertex(vertex) {
                let sequence = u64::from(sequence(csr.out.edges[place]));
                let target = VertexId(u64::from(csr.out.neighbours[place]));
                builder.out_half_edge(LabelId(0), EdgeId(sequence), target, &Value::Long(sequence as i64), &[]);
            }
            incoming.clear();
            incoming.extend(
                csr.in_.of_vertex(vertex).map(|place| (sequence(csr.in_.edges[place]), csr.in_.neighbours[place])),
            );
            incoming.sort_unstable();
            for (sequence, source) in &incoming {
                builder.in_half_edge(LabelId(0), EdgeId(u64::from(*sequence)), VertexId(u64::from(*source)));
            }
        }
        MeasuredSegment(Segment::open(builder.finish().into_bytes(), "measured").expect("it was just built"))
    }

    /// Length of the file.
    pub fn bytes(&self) -> usize {
        self.0.file_bytes()
    }

    /// Reads the targets of all edges of these vertices.
    pub fn sum_of_neighbours(&self, vertices: &[u32]) -> u64 {
        let of = |vertex: &u32| match self.0.half_edges(u64::from(*vertex), Side::Out).neighbours() {
            Neighbours::U32(ids) => ids.iter().map(|id| u64::from(*id)).sum::<u64>(),
            Neighbours::U64(ids) => ids.iter().sum(),
        };
        vertices.iter().map(of).sum()
    }

    /// The same of one label.
    pub fn sum_of_neighbours_with_label(&self, vertices: &[u32]) -> u64 {
        let half_edges = |vertex: &u32| self.0.half_edges(u64::from(*vertex), Side::Out).with_label(LabelId(0));
        let of = |vertex: &u32| match half_edges(vertex).neighbours() {
            Neighbours::U32(ids) => ids.iter().map(|id| u64::from(*id)).sum::<u64>(),
            Neighbours::U64(ids) => ids.iter().sum(),
        };
        vertices.iter().map(of).sum()
    }

    /// Reads target and sequence of all edges of these vertices, one by one.
    pub fn sum_of_half_edges(&self, vertices: &[u32]) -> u64 {
        let of = |vertex: &u32| {
            let half_edges = self.0.half_edges(u64::from(*vertex), Side::Out);
            (0..half_edges.len())
                .map(|index| half_edges.sequence(index).wrapping_add(half_edges.neighbour(index).0))
                .fold(0, u64::wrapping_add)
        };
        vertices.iter().map(of).fold(0, u64::wrapping_add)
    }

    /// Reads the property of these vertices.
    pub fn sum_of_property(&self, vertices: &[u32]) -> i64 {
        let of = |vertex: &u32| match self.0.first_property(u64::from(*vertex), KeyId(0)) {
            Some(Value::Long(value)) => value,
            _ => 0,
        };
        vertices.iter().map(of).fold(0, i64::wrapping_add)
    }

    /// Finds these vertices by their user ids.
    pub fn find_vertices(&self, vertices: &[u32]) -> u64 {
        let of = |vertex: &u32| self.0.find_vertex_by_affine_id(&Value::Long(i64::from(*vertex)));
        vertices.iter().filter_map(of).sum()
    }

    /// Finds edges by their sequences, as many as there are vertices.
    pub fn find_edges(&self, vertices: &[u32]) -> u64 {
        let of = |vertex: &u32| self.0.find_edge(u64::from(*vertex) * 13 % self.0.edge_count());
        vertices.iter().filter_map(of).map(|position| position.0).sum()
    }
}
