//! Brings edges from the order of the input into the order of the segments' columns, by counting.
//!
//! The *place* of a vertex is its rank in the order (tablet, slot). Edges are counted by the place of their source and
//! scattered label by label, which gives the order (tablet, slot, label, input); where an edge lands is its sequence. A second
//! scatter by the place of the target, in the order of sequences, gives the half-edges of targets, for a few tablets at a time:
//! all targets are read again for each of at most [`GROUPS_LIMIT`] groups, which costs less than keeping 9 bytes an edge. What
//! else is known of an edge travels along: where its properties are, and the position of its id.

use ficus_model::{LabelId, VertexId};

use super::chunk::NO_VERTEX;
use super::edge_rows::RowAddresses;
use super::loader::EdgePart;
use crate::tablet::IdLayout;

/// Groups of tablets whose half-edges of targets are found together.
const GROUPS_LIMIT: usize = 16;

/// From vertices to places and back.
#[derive(Clone, Debug)]
pub(super) struct Places {
    layout: IdLayout,
    /// The place of slot 0 of each tablet, and the number of vertices.
    first: Vec<u32>,
}

impl Places {
    /// Places of `vertices` vertices.
    pub(super) fn new(layout: IdLayout, vertices: u32) -> Places {
        let mut first = vec![0];
        for tablet in 0..layout.tablets() as u64 {
            let slots = (u64::from(vertices) + layout.tablets() as u64 - 1 - tablet) >> layout.tablet_bits;
            first.push(first[tablet as usize] + slots as u32);
        }
        Places { layout, first }
    }

    /// The place of a vertex.
    pub(super) fn of(&self, vertex: u32) -> usize {
        let tablet = self.layout.vertex_tablet(VertexId(u64::from(vertex)));
        (self.first[tablet] + (vertex >> self.layout.tablet_bits)) as usize
    }

    /// Number of slots of a tablet.
    pub(super) fn slots(&self, tablet: usize) -> u32 {
        self.first[tablet + 1] - self.first[tablet]
    }

    /// The place of slot 0 of a tablet.
    pub(super) fn first(&self, tablet: usize) -> usize {
        self.first[tablet] as usize
    }

    fn len(&self) -> usize {
        self.first[self.layout.tablets()] as usize
    }

    /// Tablets in groups of neighbours.
    pub(super) fn groups(&self) -> Vec<std::ops::Range<usize>> {
        let tablets = self.layout.tablets();
        let size = tablets.div_ceil(GROUPS_LIMIT);
        (0..tablets).step_by(size).map(|first| first..(first + size).min(tablets)).collect()
    }
}

/// Labels of edges in some order.
#[derive(Debug)]
enum Labels {
    One(LabelId),
    /// Position in the list of labels.
    Few(Vec<u8>, Vec<LabelId>),
    Many(Vec<LabelId>),
}

impl Labels {
    fn get(&self, position: usize) -> LabelId {
        match self {
            Labels::One(label) => *label,
            Labels::Few(codes, labels) => labels[codes[position] as usize],
            Labels::Many(labels) => labels[position],
        }
    }

    /// Labels of the same kind for `count` edges.
    fn empty(&self, count: usize) -> Labels {
        match self {
            Labels::One(label) => Labels::One(*label),
            Labels::Few(_, labels) => Labels::Few(vec![0; count], labels.clone()),
            Labels::Many(_) => Labels::Many(vec![LabelId(0); count]),
        }
    }

    /// Takes over a label from others of the same kind.
    #[inline]
    fn copy(&mut self, position: usize, other: &Labels, other_position: usize) {
        match (self, other) {
            (Labels::Few(codes, _), Labels::Few(others, _)) => codes[position] = others[other_position],
            (Labels::Many(labels), Labels::Many(others)) => labels[position] = others[other_position],
            _ => {}
        }
    }
}

/// Addresses of properties by sequence; 0 where there are none.
#[derive(Debug)]
enum Addresses {
    None,
    Near(Vec<u32>),
    Far(Vec<u64>),
}

impl Addresses {
    #[inline]
    fn set(&mut self, sequence: usize, rows: &RowAddresses, row: usize) {
        match self {
            Addresses::None => {}
            Addresses::Near(addresses) => addresses[sequence] = rows.get(row) as u32,
            Addresses::Far(addresses) => addresses[sequence] = rows.get(row),
        }
    }
}

/// What is to be known of every edge besides its ends and its label.
#[derive(Clone, Copy, Debug)]
pub(super) struct Along {
    /// Some edges came with an id.
    pub(super) ids: bool,
    /// Some edges have properties.
    pub(super) rows: bool,
    /// Addresses of properties fit 32 bits.
    pub(super) rows_are_near: bool,
}

/// Edges in the order of their sequences.
#[derive(Debug)]
pub(super) struct SortedEdges {
    pub(super) places: Places,
    labels: Labels,
    /// Where the edges of a place end.
    out_ends: Vec<u32>,
    targets: Vec<u32>,
    rows: Addresses,
    /// One more than the position of the id of an edge, 0 for none; empty if no edge came with one.
    ids: Vec<u32>,
}

/// Edges by target, for the tablets of a group.
#[derive(Debug)]
pub(super) struct InEdges {
    /// The first place of the group.
    first: usize,
    ends: Vec<u32>,
    /// Sequence and source.
    edges: Vec<[u32; 2]>,
    /// In the order of `edges`.
    labels: Labels,
}

impl InEdges {
    /// Sequence and source of the edges that reach a place, in the order of sequences.
    pub(super) fn of(&self, place: usize) -> &[[u32; 2]] {
        &self.edges[range(&self.ends, place - self.first)]
    }

    /// The labels of the edges that [`InEdges::of`] gives.
    pub(super) fn labels(&self, place: usize) -> impl Iterator<Item = LabelId> + '_ {
        range(&self.ends, place - self.first).map(|position| self.labels.get(position))
    }
}

/// Edges of one part with one label.
struct Run {
    label: LabelId,
    part: usize,
    /// The rows, or all rows of the part.
    rows: Option<Vec<u32>>,
}

impl SortedEdges {
    /// Sorts all edges. Their ends are taken out of the parts as they are used.
    pub(super) fn new(places: Places, parts: &mut [EdgePart], along: Along) -> SortedEdges {
        let runs = runs(parts);
        let mut out_ends = vec![0u32; places.len()];
        for part in parts.iter() {
            for source in part.sources.iter().filter(|source| **source != NO_VERTEX) {
                out_ends[places.of(*source)] += 1;
            }
        }
        let count = to_starts(&mut out_ends);
        let mut labels = empty_labels(&runs, count);
        let mut targets = vec![0u32; count];
        let mut rows = match along {
            Along { rows: false, .. } => Addresses::None,
            Along { rows_are_near: true, .. } => Addresses::Near(vec![0; count]),
            _ => Addresses::Far(vec![0; count]),
        };
        let mut ids = vec![0u32; if along.ids { count } else { 0 }];
        let mut uses = vec![0u32; parts.len()];
        runs.iter().for_each(|run| uses[run.part] += 1);
        for run in &runs {
            let part = &mut parts[run.part];
            let code = match &labels {
                Labels::Few(_, known) => known.binary_search(&run.label).unwrap_or(0) as u8,
                _ => 0,
            };
            let mut place_row = |row: usize| {
                let source = part.sources[row];
                if source == NO_VERTEX {
                    return;
                }
                let next = &mut out_ends[places.of(source)];
                let sequence = *next as usize;
                *next += 1;
                targets[sequence] = part.targets[row];
                match &mut labels {
                    Labels::One(_) => {}
                    Labels::Few(codes, _) => codes[sequence] = code,
                    Labels::Many(labels) => labels[sequence] = run.label,
                }
                rows.set(sequence, &part.rows, row);
                if let (true, Some(first)) = (along.ids, part.first_id) {
                    ids[sequence] = first + row as u32 + 1;
                }
            };
            match &run.rows {
                None => (0..part.sources.len()).for_each(place_row),
                Some(chosen) => chosen.iter().for_each(|row| place_row(*row as usize)),
            }
            uses[run.part] -= 1;
            if uses[run.part] == 0 {
                (part.sources, part.targets, part.rows) = Default::default();
            }
        }
        SortedEdges { places, labels, out_ends, targets, rows, ids }
    }

    /// The label of an edge.
    pub(super) fn label(&self, sequence: usize) -> LabelId {
        self.labels.get(sequence)
    }

    /// True if not all edges have the same label.
    pub(super) fn has_several_labels(&self) -> bool {
        !matches!(self.labels, Labels::One(_))
    }

    /// Sequences of the edges that leave a place.
    pub(super) fn out(&self, place: usize) -> std::ops::Range<usize> {
        range(&self.out_ends, place)
    }

    /// Where an edge leads.
    pub(super) fn target(&self, sequence: usize) -> VertexId {
        VertexId(u64::from(self.targets[sequence]))
    }

    /// The address of an edge's properties.
    #[inline]
    pub(super) fn row(&self, sequence: usize) -> Option<u64> {
        let address = match &self.rows {
            Addresses::None => 0,
            Addresses::Near(addresses) => u64::from(addresses[sequence]),
            Addresses::Far(addresses) => addresses[sequence],
        };
        (address > 0).then_some(address)
    }

    /// The position of an edge's id, if it came with one.
    #[inline]
    pub(super) fn id(&self, sequence: usize) -> Option<usize> {
        (*self.ids.get(sequence)? as usize).checked_sub(1)
    }

    /// The edges that reach the vertices of some tablets.
    pub(super) fn by_target(&self, tablets: std::ops::Range<usize>) -> InEdges {
        let places = &self.places;
        let (first, end) = (places.first(tablets.start), places.first(tablets.end));
        let mut ends = vec![0u32; end - first];
        // One comparison tells whether a target belongs here.
        let place = |target: u32| places.of(target).wrapping_sub(first);
        for target in &self.targets {
            if let Some(count) = ends.get_mut(place(*target)) {
                *count += 1;
            }
        }
        let count = to_starts(&mut ends);
        let mut edges = vec![[0u32; 2]; count];
        let mut labels = self.labels.empty(count);
        for tablet in 0..places.layout.tablets() {
            for slot in 0..places.slots(tablet) {
                let source = places.layout.vertex_id(u64::from(slot), tablet).0 as u32;
                for sequence in range(&self.out_ends, places.first(tablet) + slot as usize) {
                    let Some(next) = ends.get_mut(place(self.targets[sequence])) else { continue };
                    let position = *next as usize;
                    *next += 1;
                    edges[position] = [sequence as u32, source];
                    labels.copy(position, &self.labels, sequence);
                }
            }
        }
        InEdges { first, ends, edges, labels }
    }
}

fn range(ends: &[u32], place: usize) -> std::ops::Range<usize> {
    let start = place.checked_sub(1).map_or(0, |before| ends[before]);
    start as usize..ends[place] as usize
}

/// Turns counts into the sums before them; gives the sum of all.
fn to_starts(counts: &mut [u32]) -> usize {
    let mut sum = 0;
    for count in counts {
        (*count, sum) = (sum, sum + *count);
    }
    sum as usize
}

/// Runs of all parts in the order (label, input).
fn runs(parts: &[EdgePart]) -> Vec<Run> {
    let mut runs = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        match part.labels.all() {
            Some(label) => runs.push(Run { label: part.label_ids[label as usize], part: number, rows: None }),
            None => {
                let label = |row: &u32| part.label_ids[part.labels.get(*row as usize) as usize];
                let mut rows: Vec<u32> = (0..part.sources.len() as u32).collect();
                rows.sort_by_key(label);
                for rows in rows.chunk_by(|a, b| label(a) == label(b)) {
                    runs.push(Run { label: label(&rows[0]), part: number, rows: Some(rows.to_vec()) });
                }
            }
        }
    }
    runs.sort_by_key(|run| run.label);
    runs
}

fn empty_labels(runs: &[Run], count: usize) -> Labels {
    let mut labels: Vec<LabelId> = runs.iter().map(|run| run.label).collect();
    labels.dedup();
    match labels.len() {
        0 => Labels::One(LabelId(0)),
        1 => Labels::One(labels[0]),
        2..=256 => Labels::Few(vec![0; count], labels),
        _ => Labels::Many(vec![LabelId(0); count]),
    }
}
