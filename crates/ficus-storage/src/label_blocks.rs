//! Which label all vertices of a stretch of ids have.
//!
//! Vertices that were loaded together mostly have one label for long stretches of ids, through all tablets alike. A table with one entry for
//! each stretch of equal length then tells the label of a vertex by a shift and one look into a few kilobytes, instead of by the way to the
//! tablet, its segment and the set of slots of a label there.

use ficus_model::VertexId;

use crate::segment::Segment;
use crate::tablet::IdLayout;

/// At most so many blocks, so that the table stays in the nearest cache.
const BLOCKS: u64 = 2048;

/// The vertices of a block have several labels, or are asked for otherwise.
const MIXED: u32 = u32::MAX;

/// No vertex is known to be in a block.
const EMPTY: u32 = u32::MAX - 1;

/// The labels of the vertices of a base by block. A block is a range of ids.
#[derive(Debug)]
pub(crate) struct LabelBlocks {
    /// The binary logarithm of the number of ids in a block.
    shift: u32,
    /// By block, the label of all its vertices, or [`MIXED`].
    labels: Box<[u32]>,
}

impl LabelBlocks {
    /// Reads which slots have which label, of sets that are kept as few ranges; of others, the first and the last slot.
    pub(crate) fn of(layout: IdLayout, segments: &[impl AsRef<Segment>]) -> LabelBlocks {
        let slots = segments.iter().map(|segment| segment.as_ref().slots()).max().unwrap_or(0);
        // In slots, as all tablets have those of a block.
        let shift = slots.div_ceil(BLOCKS).max(1).next_power_of_two().trailing_zeros();
        let mut labels = vec![EMPTY; slots.div_ceil(1 << shift) as usize];
        for segment in segments {
            segment.as_ref().visit_label_spans(&mut |label, span| {
                if span.is_empty() {
                    return;
                }
                let (first, last) = ((span.start >> shift) as usize, ((span.end - 1) >> shift) as usize);
                for own in labels.iter_mut().take(last + 1).skip(first) {
                    *own = if *own == EMPTY || *own == label.0 { label.0 } else { MIXED };
                }
            });
        }
        labels.iter_mut().filter(|own| **own == EMPTY).for_each(|own| *own = MIXED);
        LabelBlocks { shift: shift + u32::from(layout.tablet_bits), labels: labels.into() }
    }

    /// These blocks, for a state in which vertices from `end` on may have been made since.
    pub(crate) fn below(&self, end: VertexId) -> BlocksBelow<'_> {
        BlocksBelow { blocks: self, end }
    }
}

/// Blocks that say nothing of vertices from one on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlocksBelow<'a> {
    blocks: &'a LabelBlocks,
    end: VertexId,
}

impl BlocksBelow<'_> {
    /// The label of a vertex that is there, if the table says it.
    #[inline(always)]
    pub(crate) fn label(&self, vertex: VertexId) -> Option<u32> {
        let block = usize::try_from(vertex.0 >> self.blocks.shift).ok()?;
        let label = self.blocks.labels.get(block).copied().unwrap_or(MIXED);
        (label != MIXED && vertex < self.end).then_some(label)
    }
}
