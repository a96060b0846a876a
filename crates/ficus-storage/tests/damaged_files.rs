//! Whatever is in the files, a start ends with a store or with an error: it never panics and never asks for endless memory.
//!
//! Files are damaged in two ways: as a disk would, which the checksums have to notice; and forged, with checksums made right
//! again, so that the damage reaches the decoders behind them. A failure prints its seed; `FICUS_TEST_SEED=<seed>` starts
//! with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use ficus_model::{Cardinality, Shared, Value};
use ficus_storage::simulated_disk::{Seeded, SimulatedDisk};
use ficus_storage::{
    Disk, Environment, ErrorKind, HalfEdgeCursor, Random, ScanCursor, Store, StoreError, StoreOptions, SystemClock,
};

struct FixedRandom(Mutex<Seeded>);

impl Random for FixedRandom {
    fn number(&self) -> u64 {
        self.0.lock().unwrap().number()
    }
}

fn open(disk: &SimulatedDisk) -> Result<Arc<Store>, StoreError> {
    let environment = Environment {
        clock: Arc::new(SystemClock),
        disk: Some(Arc::new(disk.clone())),
        random: Arc::new(FixedRandom(Mutex::new(Seeded::new(1)))),
        spawn: None,
    };
    let mut options = StoreOptions::default();
    options.tablet_bits = 1;
    Store::open(options, environment)
}

/// A store with a base, a checkpoint and a tail of the log, as after a power cut.
fn sound() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let store = open(&disk).unwrap();
    let graph = store.create_graph("g").unwrap();
    graph.create_index(None, "k0").unwrap();
    for round in 0..6 {
        let mut writing = graph.begin();
        let vertices = [0, 1, 2].map(|number| writing.add_vertex(["a", "b"][number % 2], None).unwrap());
        for (position, vertex) in vertices.into_iter().enumerate() {
            let value = Value::List(Shared::new(vec![Value::Int(round), Value::String("text".into()), Value::Null]));
            let set = |writing: &mut ficus_storage::Transaction, key, value| {
                writing.set_vertex_property(vertex, key, value, Cardinality::List, None).unwrap()
            };
            set(&mut writing, "k0", Value::Int(round));
            let property = set(&mut writing, "k1", value);
            writing.set_meta_property(vertex, property, "m", Value::Double(0.5)).unwrap();
            let edge = writing.add_edge("e", vertex, vertices[(position + 1) % 3], None).unwrap();
            writing.set_edge_property(edge, "k2", Value::Long(7)).unwrap();
        }
        writing.commit().unwrap();
        match round {
            1 => store.consolidate().unwrap(),
            3 => store.checkpoint().unwrap(),
            _ => {}
        }
    }
    disk.crash(1)
}

/// Opens, and reads all there is.
fn start(disk: &SimulatedDisk) -> Result<(), StoreError> {
    let store = open(disk)?;
    for name in store.graph_names() {
        let snapshot = store.graph(&name).unwrap().snapshot();
        // What is forged may break the rules of a graph; looking for that must work all the same.
        let _ = snapshot.check_invariants();
        let mut vertices = Vec::new();
        snapshot.scan_vertices(&mut ScanCursor::default(), 1000, &mut vertices);
        for vertex in vertices {
            let (mut properties, mut half_edges) = (Vec::new(), Vec::new());
            snapshot.vertex_properties(vertex, None, &mut properties);
            let direction = ficus_model::Direction::Both;
            snapshot.half_edges(vertex, direction, &[], &mut HalfEdgeCursor::default(), 1000, &mut half_edges);
        }
    }
    Ok(())
}

/// Changes a few bytes.
fn damage(content: &mut Vec<u8>, random: &mut Seeded) {
    let place = random.below(content.len() as u64) as usize;
    match random.below(6) {
        0 => content[place] ^= 1 << random.below(8),
        1 => content[place] = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
        2 => {
            // A number as large as a varint can be.
            let end = content.len().min(place + 9);
            content[place..end].fill(0xff);
        }
        3 => content.truncate(place),
        4 => drop(content.splice(place..place, (0..1 + random.below(8)).map(|byte| byte as u8))),
        _ => {
            let from = random.below(content.len() as u64) as usize;
            let length = (1 + random.below(16) as usize).min(content.len() - place.max(from));
            content.copy_within(from..from + length, place);
        }
    }
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    let first = std::env::var("FICUS_TEST_SEED").map_or(0, |seed| seed.parse().expect("FICUS_TEST_SEED is a number"));
    first..first + count
}

fn survives(disk: &SimulatedDisk, seed: u64, name: &str) -> Result<(), StoreError> {
    let outcome = catch_unwind(AssertUnwindSafe(|| start(disk)));
    outcome.unwrap_or_else(|_| panic!("a damaged {name} makes it panic; FICUS_TEST_SEED={seed} repeats it"))
}

#[test]
fn damage_is_noticed_or_does_no_harm() {
    let sound = sound();
    // The columns of a segment and the tables of ids are verified when they are written and by `ficus admin check`, not at every start.
    let is_read_whole = |name: &String| !name.starts_with("segment-") && !name.starts_with("ids-");
    let names: Vec<_> = sound.list().unwrap().into_iter().filter(is_read_whole).collect();
    let mut refused = 0;
    for seed in seeds(1500) {
        let mut random = Seeded::new(seed);
        let disk = sound.crash(1);
        let name = &names[random.below(names.len() as u64) as usize];
        let mut content = disk.content(name).unwrap();
        damage(&mut content, &mut random);
        disk.put(name, content);
        if let Err(error) = survives(&disk, seed, name) {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}; FICUS_TEST_SEED={seed}");
            refused += 1;
        }
    }
    assert!(refused > 300, "{refused}");
}

fn number(content: &[u8], place: usize) -> Option<usize> {
    Some(u32::from_le_bytes(content.get(place..place + 4)?.try_into().ok()?) as usize)
}

/// Bytes of a frame around its payload: length, checksum, and in a log position and flushed position.
fn frame_bytes(name: &str) -> usize {
    if name.starts_with("log-") { 24 } else { 8 }
}

/// Where the payloads of a log or checkpoint file are.
fn payloads(name: &str, content: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut place = 32;
    while let Some(length) = number(content, place) {
        let start = place + frame_bytes(name);
        if start + length > content.len() {
            break;
        }
        found.push(start..start + length);
        place = start + length;
    }
    found
}

/// Puts another payload into a file and makes lengths, positions and checksums right again.
fn forge(name: &str, content: &[u8], position: usize, payload: &[u8]) -> Vec<u8> {
    let mut forged = content[..32].to_vec();
    for (at, range) in payloads(name, content).into_iter().enumerate() {
        let payload = if at == position { payload } else { &content[range.clone()] };
        let start = forged.len();
        forged.extend_from_slice(&content[range.start - frame_bytes(name)..range.start]);
        forged.extend_from_slice(payload);
        forged[start..start + 4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        if name.starts_with("log-") {
            let file_start = u64::from_le_bytes(content[24..32].try_into().unwrap());
            forged[start + 8..start + 16].copy_from_slice(&(file_start + start as u64).to_le_bytes());
        }
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&forged[start..start + 4]), &forged[start + 8..]);
        forged[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
    }
    forged
}

#[test]
fn forged_records_and_checkpoints_are_refused_or_read() {
    let sound = sound();
    let names: Vec<_> = sound.list().unwrap().into_iter().filter(|name| !name.starts_with("segment-")).collect();
    let files: Vec<_> =
        names.iter().filter(|name| name.starts_with("log-") || name.starts_with("checkpoint-")).collect();
    assert!(files.len() >= 2, "{names:?}");
    let (mut refused, mut read) = (0, 0);
    for seed in seeds(3000) {
        let mut random = Seeded::new(seed);
        let disk = sound.crash(1);
        let name = files[random.below(files.len() as u64) as usize];
        let content = disk.content(name).unwrap();
        let ranges = payloads(name, &content);
        let position = random.below(ranges.len() as u64) as usize;
        let mut payload = content[ranges[position].clone()].to_vec();
        (0..1 + random.below(2)).for_each(|_| {
            if !payload.is_empty() {
                damage(&mut payload, &mut random);
            }
        });
        disk.put(name, forge(name, &content, position, &payload));
        match survives(&disk, seed, name) {
            Ok(()) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 200 && read > 200, "{refused} refused, {read} read");
}

#[test]
fn an_unchanged_file_stays_as_it_is_when_forged() {
    let sound = sound();
    for name in sound.list().unwrap() {
        let content = sound.content(&name).unwrap();
        if let (true, [.., last]) =
            (name.starts_with("log-") || name.starts_with("checkpoint-"), &payloads(&name, &content)[..])
        {
            let position = payloads(&name, &content).len() - 1;
            let forged = forge(&name, &content, position, &content[last.clone()]);
            assert_eq!(forged[..], content[..forged.len()], "{name}");
        }
    }
}
