//! Brings edges from the order of the input into the order of the segments' columns, by counting.
//!
//! The *place* of a vertex is its rank in the order (tablet, slot). Edges are counted by the place of their source and
//! scattered label by label, which gives the order (tablet, slot, label, input); where an edge lands is its sequence. A second
//! scatter by the place of the target, in the order of sequences, gives the half-edges of targets.

use ficus_model::{LabelId, VertexId};

use super::chunk::NO_VERTEX;
use super::loader::EdgePart;
use crate::tablet::IdLayout;

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
}

/// Labels of edges by sequence.
#[derive(Debug)]
enum Labels {
    One(LabelId),
    /// Position in the list of labels.
    Few(Vec<u8>, Vec<LabelId>),
    Many(Vec<LabelId>),
}

/// Edges in the order of their sequences.
#[derive(Debug)]
pub(super) struct SortedEdges {
    pub(super) places: Places,
    labels: Labels,
    /// Where the edges of a place end.
    out_ends: Vec<u32>,
    targets: Vec<u32>,
    /// The number of each edge in the input; empty if nobody will ask.
    origins: Vec<u32>,
    in_ends: Vec<u32>,
    /// Sequence and source.
    in_edges: Vec<[u32; 2]>,
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
    pub(super) fn new(places: Places, parts: &mut [EdgePart], with_origins: bool) -> SortedEdges {
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
        let mut origins = vec![0u32; if with_origins { count } else { 0 }];
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
                if with_origins {
                    origins[sequence] = part.first + row as u32;
                }
            };
            match &run.rows {
                None => (0..part.sources.len()).for_each(place_row),
                Some(rows) => rows.iter().for_each(|row| place_row(*row as usize)),
            }
            uses[run.part] -= 1;
            if uses[run.part] == 0 {
                (part.sources, part.targets) = (Vec::new(), Vec::new());
            }
        }
        let (in_ends, in_edges) = by_target(&places, &out_ends, &targets);
        SortedEdges { places, labels, out_ends, targets, origins, in_ends, in_edges }
    }

    /// The label of an edge.
    pub(super) fn label(&self, sequence: usize) -> LabelId {
        match &self.labels {
            Labels::One(label) => *label,
            Labels::Few(codes, labels) => labels[codes[sequence] as usize],
            Labels::Many(labels) => labels[sequence],
        }
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

    /// The number of an edge in the input.
    pub(super) fn origin(&self, sequence: usize) -> u32 {
        self.origins[sequence]
    }

    /// True if the input's numbers were kept.
    pub(super) fn has_origins(&self) -> bool {
        !self.origins.is_empty()
    }

    /// Sequence and source of the edges that reach a place, in the order of sequences.
    pub(super) fn in_(&self, place: usize) -> &[[u32; 2]] {
        &self.in_edges[range(&self.in_ends, place)]
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

fn by_target(places: &Places, out_ends: &[u32], targets: &[u32]) -> (Vec<u32>, Vec<[u32; 2]>) {
    let mut ends = vec![0u32; places.len()];
    targets.iter().for_each(|target| ends[places.of(*target)] += 1);
    to_starts(&mut ends);
    let mut edges = vec![[0u32; 2]; targets.len()];
    for tablet in 0..places.layout.tablets() {
        for slot in 0..places.slots(tablet) {
            let source = places.layout.vertex_id(u64::from(slot), tablet).0 as u32;
            for sequence in range(out_ends, places.first(tablet) + slot as usize) {
                let next = &mut ends[places.of(targets[sequence])];
                edges[*next as usize] = [sequence as u32, source];
                *next += 1;
            }
        }
    }
    (ends, edges)
}
