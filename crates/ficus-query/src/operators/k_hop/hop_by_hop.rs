//! What a search has come to, on its way out hop by hop.

use ficus_model::{Operator, Value, VertexId};

use crate::context::Result;
use crate::logical::KHopSeen;
use crate::traverser::Traverser;

/// The rows of a [`KHopSeen`].
pub struct HopByHop {
    vertices: std::vec::IntoIter<VertexId>,
    /// How many there are of each hop to come.
    hops: std::vec::IntoIter<u64>,
    /// Of those of this hop, how many are still to go.
    left: u64,
    /// Which hop it is, and the first of which there are rows.
    hop: u32,
    first_shown: u32,
    /// What rows of this hop have in common.
    row: Traverser,
    sack: Option<(Operator, Value)>,
}

impl HopByHop {
    /// Of `vertices` in the order of the hops, of which there are as many as `levels` says, beginning with those where the search starts, which are no
    /// rows. `start` is what rows would be there.
    pub fn new(
        seen: &KHopSeen,
        last_hop: Option<u32>,
        levels: &[u64],
        vertices: Vec<VertexId>,
        start: Traverser,
    ) -> HopByHop {
        let (starts, hops) = levels.split_first().map_or((0, &[][..]), |(starts, hops)| (*starts, hops));
        let first_shown = if seen.last_only { last_hop.unwrap_or(u32::MAX) } else { 1 };
        let mut rows = HopByHop {
            vertices: vertices.into_iter(),
            hops: Vec::from(hops).into_iter(),
            left: 0,
            hop: 0,
            first_shown,
            row: start,
            sack: seen.sack.clone(),
        };
        rows.pass_over(starts);
        rows
    }

    fn pass_over(&mut self, count: u64) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.vertices.by_ref().take(count).for_each(drop);
    }

    /// The next row.
    ///
    /// Errors: those of what is done to the sack.
    pub fn next(&mut self) -> Result<Option<Traverser>> {
        while self.left == 0 {
            let Some(count) = self.hops.next() else { return Ok(None) };
            self.hop += 1;
            if let (Some((operator, value)), true) = (&self.sack, count > 0) {
                let sack = self.row.sack().cloned().unwrap_or(Value::Null);
                self.row.set_sack(operator.apply(sack, value)?);
            }
            match self.hop < self.first_shown {
                true => self.pass_over(count),
                false => self.left = count,
            }
        }
        self.left -= 1;
        let vertex = self.vertices.next();
        Ok(vertex.map(|vertex| {
            let mut row = self.row.clone();
            row.put(Value::Vertex(vertex));
            row
        }))
    }
}
