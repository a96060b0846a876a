//! Encoded properties of vertices, tablet by tablet in the order of slots: a block for each chunk of the input.
//!
//! Vertices of one chunk lie in all tablets. Taking their properties apart as they come costs one copy; in exchange a tablet is
//! built from memory that lies in order, and gives it back when it is done.

use super::chunk::RowBytes;
use crate::tablet::IdLayout;

/// The rows of one tablet.
#[derive(Clone, Debug, Default)]
pub(super) struct TabletRows {
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
struct Block {
    /// The slot of the first row.
    first: u32,
    /// Where each row ends.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl TabletRows {
    /// Adds those rows of a chunk that lie in a tablet. The chunk has `count` vertices, the first of which is `first`.
    pub(super) fn add(&mut self, rows: &RowBytes, first: u32, count: usize, tablet: usize, layout: IdLayout) {
        if rows.is_empty() {
            return;
        }
        let tablets = layout.tablets();
        // The tablet is what the low bits of a vertex say.
        let start = (tablet + tablets - first as usize % tablets) % tablets;
        let own = || (start..count).step_by(tablets);
        let bytes = own().map(|row| rows.row(row).len()).sum();
        if bytes == 0 {
            return;
        }
        let mut block = Block {
            first: (first + start as u32) >> layout.tablet_bits,
            ends: Vec::with_capacity(own().len()),
            bytes: Vec::with_capacity(bytes),
        };
        for row in own() {
            block.bytes.extend_from_slice(rows.row(row));
            block.ends.push(block.bytes.len() as u32);
        }
        self.blocks.push(block);
    }

    /// Reads the rows in ascending slots.
    pub(super) fn reader(&self) -> TabletRowReader<'_> {
        TabletRowReader { blocks: self.blocks.iter(), block: None }
    }
}

/// Reads the rows of a tablet in ascending slots.
pub(super) struct TabletRowReader<'a> {
    blocks: std::slice::Iter<'a, Block>,
    block: Option<&'a Block>,
}

impl<'a> TabletRowReader<'a> {
    /// The row of a slot, which is not below the last one asked for.
    pub(super) fn row(&mut self, slot: u32) -> &'a [u8] {
        loop {
            if let Some(block) = self.block {
                let row = match slot.checked_sub(block.first) {
                    Some(row) => row as usize,
                    None => return &[],
                };
                if let Some(end) = block.ends.get(row) {
                    let start = row.checked_sub(1).map_or(0, |before| block.ends[before]);
                    return &block.bytes[start as usize..*end as usize];
                }
            }
            match self.blocks.next() {
                Some(next) => self.block = Some(next),
                None => return &[],
            }
        }
    }
}
