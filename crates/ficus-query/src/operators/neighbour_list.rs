//! The neighbours of a vertex, to be asked whether others are among them: most that are not are told by a mark, in two nanoseconds.

use ficus_model::VertexId;

/// Vertices in order, and marks by which most others are told from them.
#[derive(Debug)]
pub struct NeighbourList {
    members: Box<[VertexId]>,
    /// A power of two of bits, of which each member has set the one that its number is scattered to.
    marks: Box<[u64]>,
    /// How far the scattered number is moved to give a bit.
    shift: u32,
}

impl NeighbourList {
    /// Bits for each member: an eighth to a sixteenth of what is no member finds a mark.
    const MARKS_PER_MEMBER: usize = 8;

    /// Of these, which are sorted in place.
    pub fn new(vertices: &mut [VertexId]) -> NeighbourList {
        vertices.sort_unstable();
        let bits = (vertices.len() * Self::MARKS_PER_MEMBER).next_power_of_two().max(64);
        let mut list = NeighbourList {
            members: (&*vertices).into(),
            marks: vec![0; bits / 64].into(),
            shift: u64::BITS - bits.trailing_zeros(),
        };
        for vertex in vertices {
            let bit = list.bit(*vertex);
            list.marks[bit / 64] |= 1 << (bit % 64);
        }
        list
    }

    #[inline]
    fn bit(&self, vertex: VertexId) -> usize {
        // Numbers of vertices lie close together; the golden ratio scatters them.
        (vertex.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Whether it may be a member.
    #[inline]
    fn is_marked(&self, vertex: VertexId) -> bool {
        let bit = self.bit(vertex);
        self.marks[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Whether it is a member.
    #[inline]
    pub fn contains(&self, vertex: VertexId) -> bool {
        self.is_marked(vertex) && self.members.binary_search(&vertex).is_ok()
    }

    /// How many members a vertex is.
    #[inline]
    pub fn count(&self, vertex: VertexId) -> u64 {
        if !self.is_marked(vertex) {
            return 0;
        }
        let first = self.members.partition_point(|own| *own < vertex);
        self.members[first..].iter().take_while(|own| **own == vertex).count() as u64
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// What it takes.
    pub fn bytes(&self) -> usize {
        size_of::<NeighbourList>() + size_of_val(&*self.members) + size_of_val(&*self.marks)
    }
}
