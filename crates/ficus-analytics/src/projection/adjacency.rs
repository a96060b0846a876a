//! Neighbours of every vertex in one direction, as two arrays, and what changed since they were made.

use std::ops::Range;
use std::sync::Arc;

use rayon::slice::ParallelSliceMut;

use super::Place;

/// Neighbours of all vertices in one direction: `neighbours[offsets[v]..offsets[v + 1]]` are those of `v`, ascending, which
/// means that those of the highest degree come first. Parallel edges are kept. Versions of a projection share the arrays; a
/// patch has the lists that are others.
#[derive(Clone, Debug)]
pub struct Adjacency {
    pub(super) offsets: Arc<[u64]>,
    pub(super) neighbours: Arc<[Place]>,
    patch: Option<Patch>,
}

/// Lists that stand before those of the arrays.
#[derive(Clone, Debug)]
struct Patch {
    /// Vertices that have one, a bit each.
    there: Vec<u64>,
    /// Lists of vertices before each word of bits.
    before: Vec<u32>,
    lists: Vec<Arc<[Place]>>,
    vertices: usize,
    edges: u64,
    /// Neighbours in its lists.
    own_edges: u64,
}

impl Patch {
    #[inline(always)]
    fn list(&self, vertex: Place) -> Option<&Arc<[Place]>> {
        let (word, bit) = (vertex as usize / 64, vertex % 64);
        let there = self.there[word];
        if there >> bit & 1 == 0 {
            return None;
        }
        let position = self.before[word] + (there & ((1 << bit) - 1)).count_ones();
        Some(&self.lists[position as usize])
    }

    /// All lists with their vertices, ascending.
    fn all(&self) -> impl Iterator<Item = (Place, &Arc<[Place]>)> {
        let places = self.there.iter().enumerate().flat_map(|(word, there)| {
            (0..64).filter(move |bit| there >> bit & 1 == 1).map(move |bit| word as Place * 64 + bit)
        });
        places.zip(&self.lists)
    }
}

impl Adjacency {
    /// From arrays as they are described above.
    pub(super) fn of_arrays(offsets: Vec<u64>, neighbours: Arc<[Place]>) -> Adjacency {
        Adjacency { offsets: offsets.into(), neighbours, patch: None }
    }

    /// From pairs of a vertex and its neighbour, which it sorts.
    pub(super) fn of_pairs(vertices: usize, pairs: &mut [(Place, Place)]) -> Adjacency {
        pairs.par_sort_unstable();
        let mut offsets = vec![0; vertices + 1];
        pairs.iter().for_each(|pair| offsets[pair.0 as usize + 1] += 1);
        for vertex in 0..vertices {
            offsets[vertex + 1] += offsets[vertex];
        }
        Adjacency::of_arrays(offsets, pairs.iter().map(|pair| pair.1).collect())
    }

    /// A version with `vertices` vertices in which those that are given, ascending, have other neighbours.
    ///
    /// Cost: the lists of all patches since the arrays were made, without what is in them.
    pub(super) fn patched(&self, vertices: usize, changed: Vec<(Place, Arc<[Place]>)>) -> Adjacency {
        let edges = changed.iter().fold(self.edge_count(), |edges, (place, list)| {
            let before = if (*place as usize) < self.vertices() { self.degree(*place) } else { 0 };
            edges + list.len() as u64 - before
        });
        let words = vertices.div_ceil(64);
        let mut patch =
            Patch { there: vec![0; words], before: vec![0; words], lists: Vec::new(), vertices, edges, own_edges: 0 };
        let mut add = |place: Place, list: Arc<[Place]>| {
            patch.there[place as usize / 64] |= 1 << (place % 64);
            patch.own_edges += list.len() as u64;
            patch.lists.push(list);
        };
        let mut changed = changed.into_iter().peekable();
        for (place, list) in self.patch.iter().flat_map(Patch::all) {
            while let Some((place, list)) = changed.next_if(|change| change.0 < place) {
                add(place, list);
            }
            match changed.next_if(|change| change.0 == place) {
                Some((place, list)) => add(place, list),
                None => add(place, list.clone()),
            }
        }
        changed.for_each(|(place, list)| add(place, list));
        let mut before = 0;
        for (own, there) in patch.before.iter_mut().zip(&patch.there) {
            *own = before;
            before += there.count_ones();
        }
        Adjacency { patch: Some(patch), ..self.clone() }
    }

    /// Vertices in it.
    fn vertices(&self) -> usize {
        self.patch.as_ref().map_or(self.offsets.len() - 1, |patch| patch.vertices)
    }

    /// The neighbours of a vertex.
    #[inline(always)]
    pub fn of(&self, vertex: Place) -> &[Place] {
        if let Some(patch) = &self.patch {
            return self.of_patched(patch, vertex);
        }
        &self.neighbours[self.offsets[vertex as usize] as usize..self.offsets[vertex as usize + 1] as usize]
    }

    #[inline]
    fn of_patched<'a>(&'a self, patch: &'a Patch, vertex: Place) -> &'a [Place] {
        if let Some(list) = patch.list(vertex) {
            return list;
        }
        match self.offsets.get(vertex as usize..) {
            Some([start, end, ..]) => &self.neighbours[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// How many there are.
    #[inline(always)]
    pub fn degree(&self, vertex: Place) -> u64 {
        match &self.patch {
            Some(patch) => self.of_patched(patch, vertex).len() as u64,
            None => self.offsets[vertex as usize + 1] - self.offsets[vertex as usize],
        }
    }

    /// Where the neighbours of a vertex are among all edges, for values kept beside the edges. Panics if the projection is
    /// [patched](super::Projection::is_patched).
    #[inline(always)]
    pub fn edges_of(&self, vertex: Place) -> Range<usize> {
        assert!(self.patch.is_none(), "values lie beside the edges of whole projections only");
        self.offsets[vertex as usize] as usize..self.offsets[vertex as usize + 1] as usize
    }

    /// Number of edges.
    pub fn edge_count(&self) -> u64 {
        self.patch.as_ref().map_or(self.neighbours.len() as u64, |patch| patch.edges)
    }

    /// Neighbours that are in lists of their own.
    pub(super) fn patched_edges(&self) -> u64 {
        self.patch.as_ref().map_or(0, |patch| patch.own_edges)
    }

    /// Whether any are.
    pub(super) fn is_patched(&self) -> bool {
        self.patch.is_some()
    }

    /// Cuts the vertices into ranges of about `work` edges and vertices each, so that ranges cost about the same. All bounds
    /// but the last are multiples of 64. Of a patched projection, vertices count as they were when its arrays were made.
    pub fn balanced_ranges(&self, work: u64) -> Vec<Range<Place>> {
        let vertices = self.vertices();
        let known = self.offsets.len() - 1;
        let behind = |vertex: usize| self.offsets[vertex.min(known)] + vertex as u64;
        let mut ranges = Vec::new();
        let mut start = 0;
        while start < vertices {
            let goal = behind(start) + work.max(1);
            // The first vertex at which so much lies behind; cost grows by at least one a vertex.
            let (mut low, mut high) = (start + 1, vertices);
            while low < high {
                let middle = (low + high) / 2;
                (low, high) = if behind(middle) < goal { (middle + 1, high) } else { (low, middle) };
            }
            let end = low.next_multiple_of(64).min(vertices);
            ranges.push(start as Place..end as Place);
            start = end;
        }
        ranges
    }

    /// Bytes of the arrays, which versions share.
    pub(super) fn shared_bytes(&self) -> u64 {
        (self.offsets.len() * size_of::<u64>() + self.neighbours.len() * size_of::<Place>()) as u64
    }

    /// Bytes of the patch.
    pub(super) fn own_bytes(&self) -> u64 {
        self.patch.as_ref().map_or(0, |patch| {
            let words = patch.there.len() * (size_of::<u64>() + size_of::<u32>());
            // A list has its counters and its place in the patch besides.
            let lists = patch.lists.len() * 4 * size_of::<u64>() + patch.own_edges as usize * size_of::<Place>();
            (words + lists) as u64
        })
    }
}
