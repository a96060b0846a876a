//! Vertices by place: consecutive numbers, those of the highest degree first.

use std::collections::HashMap;
use std::sync::Arc;

use ficus_model::VertexId;

use super::Place;

/// Which place each vertex has. Ids of vertices that were removed, or never were, have none.
#[derive(Clone, Debug)]
pub(super) struct Numbering {
    /// By place.
    vertices: Arc<[VertexId]>,
    /// By id, `NOWHERE` for none. Ids are given in turn, so there are few holes unless much was removed.
    places: Arc<[Place]>,
    /// Vertices that came since, by place behind those of the array. Ids are never given twice.
    added: Vec<VertexId>,
    /// Places of vertices that came or went since.
    changed: HashMap<VertexId, Option<Place>>,
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
        let (vertices, places) = (vertices.into(), places.into());
        Numbering { vertices, places, added: Vec::new(), changed: HashMap::new() }
    }

    /// Gives a vertex that has none the next place.
    pub(super) fn add(&mut self, vertex: VertexId) {
        self.changed.insert(vertex, Some(self.len() as Place));
        self.added.push(vertex);
    }

    /// Takes a vertex its place, which stays empty.
    pub(super) fn remove(&mut self, vertex: VertexId) {
        self.changed.insert(vertex, None);
    }

    #[inline(always)]
    pub(super) fn place(&self, vertex: VertexId) -> Option<Place> {
        if !self.changed.is_empty()
            && let Some(place) = self.changed.get(&vertex)
        {
            return *place;
        }
        self.places.get(vertex.0 as usize).copied().filter(|place| *place != NOWHERE)
    }

    #[inline(always)]
    pub(super) fn vertex(&self, place: Place) -> VertexId {
        match self.vertices.get(place as usize) {
            Some(vertex) => *vertex,
            None => self.added[place as usize - self.vertices.len()],
        }
    }

    /// Places there are, empty ones included.
    pub(super) fn len(&self) -> usize {
        self.vertices.len() + self.added.len()
    }

    /// Bytes of the arrays, which versions share.
    pub(super) fn shared_bytes(&self) -> u64 {
        (self.vertices.len() * size_of::<VertexId>() + self.places.len() * size_of::<Place>()) as u64
    }

    /// Bytes of what changed since.
    pub(super) fn own_bytes(&self) -> u64 {
        let entry = size_of::<(VertexId, Option<Place>)>() + 1;
        (self.added.capacity() * size_of::<VertexId>() + self.changed.capacity() * entry) as u64
    }
}
