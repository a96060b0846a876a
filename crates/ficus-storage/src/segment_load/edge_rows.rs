//! Encoded properties of edges, found by one number: they stay where they were read, and an edge carries their address while
//! it is sorted.
//!
//! Addresses count bytes from 1 through the chunks in their order; 0 is no properties. A row knows its own end.

use ficus_model::KeyId;

use super::chunk::RowBytes;

/// Address bits that a step of the table spans.
const TABLE_SHIFT: u32 = 16;

/// The rows of all edges.
#[derive(Debug)]
pub(super) struct EdgeRows {
    chunks: Vec<Chunk>,
    /// The chunk in which the addresses of each step begin.
    table: Vec<u32>,
    /// The next address.
    next: u64,
}

#[derive(Debug)]
struct Chunk {
    first: u64,
    /// Graph's keys by the chunk's.
    key_ids: Vec<KeyId>,
    bytes: Vec<u8>,
}

/// The addresses of the rows of one chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct RowAddresses {
    /// The address before the first.
    before: u64,
    /// Distances from there, 0 for none; empty if no edge has properties.
    distances: Vec<u32>,
}

impl RowAddresses {
    /// The address of a row.
    #[inline]
    pub(super) fn get(&self, row: usize) -> u64 {
        match self.distances.get(row) {
            None | Some(0) => 0,
            Some(distance) => self.before + u64::from(*distance),
        }
    }
}

impl Default for EdgeRows {
    fn default() -> EdgeRows {
        EdgeRows { chunks: Vec::new(), table: Vec::new(), next: 1 }
    }
}

impl EdgeRows {
    /// Adds the rows of a chunk with `count` edges.
    pub(super) fn add(&mut self, rows: RowBytes, count: usize, key_ids: Vec<KeyId>) -> RowAddresses {
        if rows.is_empty() {
            return RowAddresses::default();
        }
        let distances = (0..count).map(|row| rows.start(row).map_or(0, |start| start + 1)).collect();
        let addresses = RowAddresses { before: self.next - 1, distances };
        let chunk = Chunk { first: self.next, key_ids, bytes: rows.into_bytes() };
        self.next += chunk.bytes.len() as u64;
        while (self.table.len() as u64) << TABLE_SHIFT < self.next {
            self.table.push(self.chunks.len() as u32);
        }
        self.chunks.push(chunk);
        addresses
    }

    /// True if addresses fit 32 bits.
    pub(super) fn are_near(&self) -> bool {
        self.next <= u64::from(u32::MAX)
    }

    /// True if no edge has properties.
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// What begins at an address that is not 0: a row, with more behind it; and the keys it names.
    pub(super) fn at(&self, address: u64) -> (&[u8], &[KeyId]) {
        let step = (address >> TABLE_SHIFT) as usize;
        let last = self.table.get(step + 1).map_or(self.chunks.len(), |next| *next as usize + 1);
        let among = &self.chunks[self.table[step] as usize..last.min(self.chunks.len())];
        let chunk = &among[among.partition_point(|chunk| chunk.first <= address) - 1];
        (&chunk.bytes[(address - chunk.first) as usize..], &chunk.key_ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment_load::{EdgeChunk, LoadId, LoadValue};

    #[test]
    fn rows_are_found_in_small_and_large_chunks() {
        let mut rows = EdgeRows::default();
        let mut known = Vec::new();
        for size in [1usize, 3, 70_000, 2, 0, 200_000, 5, 5, 5] {
            let mut chunk = EdgeChunk::new();
            let (label, key) = (chunk.label("a").unwrap(), chunk.key("k").unwrap());
            for row in 0..3 {
                chunk.begin(label, ficus_model::VertexId(0), ficus_model::VertexId(0), LoadId::Made).unwrap();
                if row != 1 && size > 0 {
                    chunk.property(key, LoadValue::Text(&"x".repeat(size))).unwrap();
                }
                chunk.end();
            }
            let keys = vec![KeyId(known.len() as u32)];
            let own = chunk.rows.clone();
            let addresses = rows.add(chunk.rows, 3, keys.clone());
            known.extend((0..3).map(|row| (addresses.get(row), own.row(row).to_vec(), keys.clone())));
        }
        assert_eq!(known.len(), 27);
        for (address, row, keys) in known {
            assert_eq!(address == 0, row.is_empty());
            if address > 0 {
                let (found, found_keys) = rows.at(address);
                assert!(found.starts_with(&row));
                assert_eq!(found_keys, keys);
            }
        }
    }
}
