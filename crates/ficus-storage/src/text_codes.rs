//! Texts of a column with few different ones, by their codes.
//!
//! Whoever counts or groups vertices by such a text need not make a value of each, hash it and compare it: within one tablet equal texts
//! have equal codes, and codes are small numbers in a row, so that what belongs to a text is found by its place in a table.

use std::sync::Arc;

use ficus_model::{KeyId, VertexId};

use crate::Snapshot;
use crate::segment::Place;

/// A text under a key, as a snapshot keeps it: the tablet whose dictionary has it, and its place there. It means nothing to other
/// snapshots, and nothing under other keys. Equal texts of different tablets have different codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextCode {
    /// A small number, as there are few tablets.
    pub tablet: u32,
    /// A small number as well: no more than the dictionary has texts, 65,536 at most.
    pub code: u32,
}

impl Snapshot {
    /// Appends a code for each vertex: that of its only value under a key, a text, or `None` if it has no value. False if columns do not say
    /// so of all of these vertices, or if reads are recorded; what was appended means nothing then. Cost: some nanoseconds a vertex.
    pub fn text_codes(&self, key: KeyId, vertices: &[VertexId], out: &mut Vec<Option<TextCode>>) -> bool {
        const AT_ONCE: usize = 64;
        if self.reads.is_recording() {
            return false;
        }
        let (layout, tablets) = (self.root.layout, self.root.tablets());
        let mut places = [(0, Place::Unknown); AT_ONCE];
        out.reserve(vertices.len());
        for part in vertices.chunks(AT_ONCE) {
            // First where they are, so that the processor waits for the memory of many at once.
            for (vertex, own) in part.iter().zip(&mut places) {
                let tablet = layout.vertex_tablet(*vertex);
                let place = tablets[tablet].code_place(layout.vertex_slot(*vertex), key);
                if let Place::At(codes, place) = place {
                    codes.prefetch(place);
                }
                *own = (tablet, place);
            }
            for (tablet, place) in &places[..part.len()] {
                match place {
                    Place::At(codes, place) => {
                        out.push(Some(TextCode { tablet: *tablet as u32, code: codes.get(*place) as u32 }));
                    }
                    Place::Nowhere => out.push(None),
                    Place::Known(_) | Place::Unknown => return false,
                }
            }
        }
        true
    }

    /// The text of a code that this snapshot gave for a vertex under this key.
    pub fn text_of_code(&self, key: KeyId, code: TextCode) -> Option<Arc<str>> {
        self.root.tablets().get(code.tablet as usize)?.text_of_code(key, u64::from(code.code)).cloned()
    }
}
