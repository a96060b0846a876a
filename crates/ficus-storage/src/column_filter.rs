//! Drops many elements at once by what the columns of the base say of them.
//!
//! A filter behind a hop has hundreds of vertices to decide on. Asked one after the other, each costs the way from the root over its tablet
//! to a column, and waits for the memory there. Here the ways are looked up once, and the memory of many is asked for before the first is
//! needed.

use ficus_model::{KeyId, LabelId, VertexId};

use crate::number_range::NumberRange;
use crate::segment::{Place, StoredText};
use crate::{AtEdge, AtVertex, Snapshot};

/// As many vertices for each tablet, on average, are worth looking up the column of every tablet first.
const COLUMNS_FROM: usize = 2;

impl Snapshot {
    /// Drops vertices that have no value in the range under the key. Some of those that stay may have none either:
    /// what the columns of the base do not say at once stays, and so does all where reads are recorded. True if none has: all that
    /// stay have one value, which is in the range. Cost: some nanoseconds a vertex, as the memory of many is waited for at once.
    pub fn drop_outside<V: AtVertex>(&self, key: KeyId, range: &NumberRange, vertices: &mut Vec<V>) -> bool {
        let (layout, tablets) = (self.root.layout, self.root.tablets());
        let place = |vertex: VertexId| {
            tablets[layout.vertex_tablet(vertex)].number_place(layout.vertex_slot(vertex), key, range.of_moments)
        };
        if vertices.len() < COLUMNS_FROM * tablets.len() {
            return self.drop_by_column(vertices, |vertex| place(vertex.vertex()), |number| range.contains(number));
        }
        let columns: Vec<_> = tablets.iter().map(|tablet| tablet.plain_numbers(key, range.of_moments)).collect();
        let place = |vertex: &V| {
            let vertex = vertex.vertex();
            let column = columns[layout.vertex_tablet(vertex)].as_ref();
            column.map_or_else(|| place(vertex), |column| column.place(layout.vertex_slot(vertex)))
        };
        self.drop_by_column(vertices, place, |number| range.contains(number))
    }

    /// As [`Snapshot::drop_outside`], of edges by a value of theirs.
    pub fn drop_edges_outside<E: AtEdge>(&self, key: KeyId, range: &NumberRange, edges: &mut Vec<E>) -> bool {
        let (layout, tablets) = (self.root.layout, self.root.tablets());
        let place = |edge: &E| {
            let edge = edge.edge();
            tablets[layout.edge_tablet(edge)].edge_number_place(layout, edge, key, range.of_moments)
        };
        self.drop_by_column(edges, place, |number| range.contains(number))
    }

    /// Drops vertices that have no value under the key, or those that have one if `negated`. As with [`Snapshot::drop_outside`], some may
    /// stay that have to go; true if there are none.
    pub fn drop_without<V: AtVertex>(&self, key: KeyId, negated: bool, vertices: &mut Vec<V>) -> bool {
        let (layout, tablets) = (self.root.layout, self.root.tablets());
        let place = |vertex: &V| {
            let vertex = vertex.vertex();
            tablets[layout.vertex_tablet(vertex)].presence(layout.vertex_slot(vertex), key)
        };
        self.drop_by_column(vertices, place, |present| (present != 0) != negated)
    }

    /// Drops vertices that have no value under the key, or one text that does not pass. Others stay; true if there are none, so that all that
    /// stay have one text, which passes. All stay where reads are recorded.
    pub fn drop_by_text<V: AtVertex>(&self, key: KeyId, passes: impl Fn(&str) -> bool, vertices: &mut Vec<V>) -> bool {
        self.drop_by_stored(key, |text| passes(text.as_str()), vertices)
    }

    /// As [`Snapshot::drop_by_text`]: those pass that are one of the texts, or none of them if `negated`.
    pub fn drop_by_texts<V: AtVertex>(
        &self,
        key: KeyId,
        texts: &[impl AsRef<str>],
        negated: bool,
        vertices: &mut Vec<V>,
    ) -> bool {
        self.drop_by_stored(key, |text| texts.iter().any(|own| text.is(own.as_ref())) != negated, vertices)
    }

    fn drop_by_stored<V: AtVertex>(
        &self,
        key: KeyId,
        passes: impl Fn(StoredText<'_>) -> bool,
        vertices: &mut Vec<V>,
    ) -> bool {
        if self.reads.is_recording() {
            return false;
        }
        let (layout, tablets) = (self.root.layout, self.root.tablets());
        let mut all_known = true;
        vertices.retain(|vertex| {
            let vertex = vertex.vertex();
            match tablets[layout.vertex_tablet(vertex)].text(layout.vertex_slot(vertex), key) {
                None => false,
                Some(Some(text)) => passes(text),
                Some(None) => {
                    all_known = false;
                    true
                }
            }
        });
        all_known
    }

    /// Drops vertices that have none of these labels, or one of them if `negated`. As with [`Snapshot::drop_outside`], some may
    /// stay that have to go; true if there are none. Cost: about a nanosecond a vertex where neighbouring ones have one label, as most have
    /// that were loaded together.
    pub fn drop_by_label<V: AtVertex>(&self, labels: &[LabelId], negated: bool, vertices: &mut Vec<V>) -> bool {
        match labels {
            [label] => self.drop_by_labels(labels, |own| (own == label.0) != negated, vertices),
            _ => self.drop_by_labels(labels, |own| labels.iter().any(|label| label.0 == own) != negated, vertices),
        }
    }

    fn drop_by_labels<V: AtVertex>(
        &self,
        labels: &[LabelId],
        wanted: impl Fn(u32) -> bool,
        vertices: &mut Vec<V>,
    ) -> bool {
        if self.reads.is_recording() {
            return false;
        }
        let Some(blocks) = self.root.label_blocks() else { return vertices.is_empty() };
        let (layout, tablets) = (self.root.layout, self.root.tablets());
        let (mut kept, mut all_known) = (0, true);
        for index in 0..vertices.len() {
            let vertex = vertices[index].vertex();
            let stays = match blocks.label(vertex) {
                Some(label) => wanted(label),
                None => {
                    let tablet = &tablets[layout.vertex_tablet(vertex)];
                    match tablet.label_place(layout.vertex_slot(vertex), labels) {
                        Place::At(numbers, place) => wanted(numbers.get(place) as u32),
                        // No label has a number that large.
                        Place::Known(label) => wanted(u32::try_from(label).unwrap_or(u32::MAX)),
                        Place::Nowhere => false,
                        Place::Unknown => {
                            all_known = false;
                            true
                        }
                    }
                }
            };
            vertices[kept] = vertices[index];
            kept += usize::from(stays);
        }
        vertices.truncate(kept);
        all_known
    }

    /// Drops vertices or edges by a number: `place` says where it is, `wanted` whether the element stays. First the places of many are
    /// looked up, then their numbers are read in a loop that does nothing else and has no branch to guess, so that the processor
    /// waits for the memory of many at once. True if all numbers are known.
    fn drop_by_column<'a, E: Copy>(
        &'a self,
        elements: &mut Vec<E>,
        place: impl Fn(&E) -> Place<'a>,
        wanted: impl Fn(u64) -> bool,
    ) -> bool {
        const AT_ONCE: usize = 64;
        if self.reads.is_recording() {
            return false;
        }
        let mut places = [Place::Unknown; AT_ONCE];
        let (mut kept, mut all_known) = (0, true);
        for start in (0..elements.len()).step_by(AT_ONCE) {
            let part = start..elements.len().min(start + AT_ONCE);
            for (element, own) in elements[part.clone()].iter().zip(&mut places) {
                *own = place(element);
                if let Place::At(numbers, place) = own {
                    numbers.prefetch(*place);
                }
            }
            for (index, own) in part.zip(&places) {
                let stays = match own {
                    Place::At(numbers, place) => wanted(numbers.get(*place)),
                    Place::Known(number) => wanted(*number),
                    Place::Nowhere => false,
                    Place::Unknown => {
                        all_known = false;
                        true
                    }
                };
                elements[kept] = elements[index];
                kept += usize::from(stays);
            }
        }
        elements.truncate(kept);
        all_known
    }
}
