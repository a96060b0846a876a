//! Vertices by place: consecutive numbers, those of the highest degree first.

use ficus_model::VertexId;

use super::Place;

/// Which place each vertex has. Ids of vertices that were removed, or never were, have none.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// By place.
    vertices: Vec<VertexId>,
    /// By id, `NOWHERE` for none. Ids are given in turn, so there are few holes unless much was removed.
    places: Vec<Place>,
}

const NOWHERE: Place = Place::MAX;

impl Numbering {
    /// Gives places in this order.
    pub(super) fn new(vertices: Vec<VertexId>) -> Numbering {
        let end = vertices.iter().map(|vertex| vertex.0 + 1).max().unwrap_or(0);
        let mut places = vec![NOWHERE; end as usize];
        for (place, vertex) in vertices.iter().enumerate() {
            places[vertex.0 as usize] = place as Place;
        }
        Numbering { vertices, places }
    }

    #[inline(always)]
    pub(super) fn place(&self, vertex: VertexId) -> Option<Place> {
        self.places.get(vertex.0 as usize).copied().filter(|place| *place != NOWHERE)
    }

    #[inline(always)]
    pub(super) fn vertex(&self, place: Place) -> VertexId {
        self.vertices[place as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.vertices.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.vertices.capacity() * size_of::<VertexId>() + self.places.capacity() * size_of::<Place>()) as u64
    }
}
