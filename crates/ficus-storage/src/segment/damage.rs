//! What a reader does who finds that a column contradicts itself.
//!
//! Opening a segment reads no column, so that a start does not read the graph; checksums of columns are compared beside the queries. Until then a
//! damaged column is found by whoever reads it: an index that is outside, a text that is none. Reads have no error to return, and must not
//! pay for one; so the reader is unwound, past all that it was doing, to whoever runs it ([`crate::Snapshot::examine`] then names
//! the file and the place). That is no panic: nobody's bug is reported.

use std::panic::resume_unwind;

/// Ends a read of a column that contradicts itself.
#[cold]
#[inline(never)]
pub(super) fn damaged() -> ! {
    resume_unwind(Box::new("a column of a segment contradicts itself".to_string()))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use ficus_model::{Cardinality, Direction, Value};

    use crate::check::check_disk;
    use crate::environment::Disk;
    use crate::simulated_disk::SimulatedDisk;
    use crate::{Finding, HalfEdgeCursor, ScanCursor, Snapshot, Store, StoreError, StoreOptions};

    fn open(disk: &SimulatedDisk) -> Arc<Store> {
        Store::open(StoreOptions { tablet_bits: 1, ..StoreOptions::default() }, disk.environment()).unwrap()
    }

    /// A store whose graph lies in segments, with columns of all forms.
    fn stored() -> SimulatedDisk {
        let disk = SimulatedDisk::new();
        let store = open(&disk);
        let graph = store.create_graph("g").unwrap();
        let mut writing = graph.begin();
        let mut vertices = Vec::new();
        for number in 0..150i64 {
            let id = if number % 3 == 0 { Value::String(format!("v{number}").into()) } else { Value::Long(number * 7) };
            let vertex = writing.add_vertex(["a", "b"][number as usize % 2], Some(id)).unwrap();
            let mut set = |key: &str, value| {
                writing.set_vertex_property(vertex, key, value, Cardinality::List, None).unwrap();
            };
            set("few", Value::String(format!("t{}", number % 5).into()));
            set("text", Value::String("ä".repeat(number as usize % 9).into()));
            set("number", Value::Long(number * number));
            set("letter", Value::Char(char::from(b'a' + (number % 26) as u8)));
            if number % 4 == 0 {
                set("mixed", if number % 8 == 0 { Value::Bool(true) } else { Value::Int(number as i32) });
                set("number", Value::Double(0.5));
            }
            vertices.push(vertex);
        }
        for number in 0..400usize {
            let (out, in_) = (vertices[number * 31 % 150], vertices[number * 17 % 13]);
            let edge = writing.add_edge(["x", "y"][number % 2], out, in_, None).unwrap();
            if number % 3 == 0 {
                writing.set_edge_property(edge, "since", Value::Int(number as i32)).unwrap();
            }
        }
        writing.commit().unwrap();
        store.consolidate().unwrap();
        store.close().unwrap();
        disk
    }

    fn read_all(snapshot: &Snapshot) {
        let (mut cursor, mut vertices) = (ScanCursor::default(), Vec::new());
        while snapshot.scan_vertices(&mut cursor, 64, &mut vertices) {}
        for vertex in vertices {
            let (mut properties, mut half_edges) = (Vec::new(), Vec::new());
            snapshot.vertex_properties(vertex, None, &mut properties);
            let id = snapshot.vertex_id(vertex);
            id.map(|id| snapshot.find_vertex(&id));
            snapshot.vertex_label(vertex);
            snapshot.half_edges(vertex, Direction::Both, &[], &mut HalfEdgeCursor::default(), 1000, &mut half_edges);
        }
        let (mut cursor, mut edges) = (ScanCursor::default(), Vec::new());
        while snapshot.scan_edges(&mut cursor, 64, &mut edges) {}
        for edge in edges {
            snapshot.edge_properties(edge, &mut Vec::new());
            snapshot.edge_id(edge);
        }
    }

    #[test]
    fn a_damaged_column_is_named_and_ends_no_process() {
        let first =
            std::env::var("FICUS_TEST_SEED").map_or(0, |seed| seed.parse().expect("FICUS_TEST_SEED is a number"));
        let (sound, mut unwound) = (stored(), 0);
        let names: Vec<String> =
            sound.list().unwrap().into_iter().filter(|name| name.starts_with("segment-")).collect();
        assert_eq!(names.len(), 2);
        for seed in first..first + 150u64 {
            let disk = sound.crash(seed);
            let name = &names[seed as usize % 2];
            let file = disk.open(name).unwrap();
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut next = || {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                state >> 33
            };
            // Behind the header, before the directory.
            let mut counts = [0; 4];
            file.read_exact_at(&mut counts, 36).unwrap();
            let columns_end = file.length().unwrap() - u64::from(u32::from_le_bytes(counts)) * 64;
            let offset = 64 + next() % (columns_end - 64);
            let mut byte = [0];
            file.read_exact_at(&mut byte, offset).unwrap();
            file.write_all_at(&[byte[0] ^ (1 << (next() % 8))], offset).unwrap();
            file.sync().unwrap();
            let report = check_disk(&(Arc::new(disk.clone()) as Arc<dyn Disk>)).unwrap();
            let is_told = report.files.iter().any(|file| file.finding == Finding::Bad && file.text.contains(name));
            assert!(is_told, "{report:?} for byte {offset} of {name}; FICUS_TEST_SEED={seed} repeats it");
            let store = open(&disk);
            let snapshot = store.graph("g").unwrap().snapshot();
            unwound += usize::from(catch_unwind(AssertUnwindSafe(|| read_all(&snapshot))).is_err());
            match snapshot.examine() {
                Err(StoreError::Corrupt { file, .. }) if file == *name => {}
                // Opening read this column: the start went back to the log, which has all of it.
                Ok(()) if snapshot.root.base().is_none() && snapshot.vertex_count() == 150 => {}
                other => panic!("{other:?} for byte {offset} of {name}; FICUS_TEST_SEED={seed} repeats it"),
            }
        }
        assert!(unwound > 5, "{unwound}");
    }
}
