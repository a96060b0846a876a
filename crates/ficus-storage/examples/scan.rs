/// The edges of a graph with 2^`scale` vertices and at most `edge_factor` edges for each, ascending by source and target.
pub fn kronecker(scale: u32, edge_factor: u64, seed: u64) -> Vec<(u32, u32)> {
    let mut random = Mixer(seed);
    let count = edge_factor << scale;
    let mut edges: Vec<u64> = (0..count).map(|_| throw(scale, &mut random)).collect();
    edges.retain(|edge| edge >> 32 != edge & 0xffff_ffff);
    edges.sort_unstable();
    edges.dedup();
    edges.into_iter().map(|edge| ((edge >> 32) as u32, edge as u32)).collect()
}

/// One edge, source in the high half.
fn throw(scale: u32, random: &mut Mixer) -> u64 {
    // Of 2^16: A, A + B, A + B + C.
    const BOUNDS: [u64; 3] = [37_355, 49_807, 62_259];
    let (mut source, mut target) = (0u64, 0u64);
    let mut bits = 0;
    for level in 0..scale {
        if level % 4 == 0 {
            bits = random.next();
        }
        let dice = bits & 0xffff;
        bits >>= 16;
        let quarter = BOUNDS.iter().filter(|bound| dice >= **bound).count() as u64;
        source = source << 1 | quarter >> 1;
        target = target << 1 | quarter & 1;
    }
    // Numbers of vertices must not tell their degree.
    let mask = (1u64 << scale) - 1;
    let mix = |vertex: u64| {
        let odd = vertex.wrapping_mul(0x9E37_79B9_7F4A_7C15 | 1) & mask;
        (odd ^ odd >> (scale / 2 + 1)).wrapping_mul(0xD1B5_4A32_D192_ED03 | 1) & mask
    };
    mix(source) << 32 | mix(target)
}

/// SplitMix64: every seed gives another long sequence.
struct Mixer(u64);

impl Mixer {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
}

use ficus_model::{Direction, VertexId};
use ficus_storage::*;
use std::time::*;
fn rss() -> u64 {
    let s = std::fs::read_to_string("/proc/self/status").unwrap();
    s.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap().trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        * 1024
}
fn main() {
    let scale: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    let edges = kronecker(scale, 16, 1);
    let n = 1usize << scale;
    let mut offsets = vec![0u32; n + 1];
    for (s, _) in &edges {
        offsets[*s as usize + 1] += 1;
    }
    for v in 0..n {
        offsets[v + 1] += offsets[v];
    }
    let targets: Vec<u32> = edges.iter().map(|e| e.1).collect();
    let dir = std::path::PathBuf::from("/tmp/scan-store");
    let _ = std::fs::remove_dir_all(&dir);
    let store = Store::open(StoreOptions::default(), Environment::on_directory(&dir).unwrap()).unwrap();
    let graph = store.create_graph("g").unwrap();
    let mut bulk = graph.bulk();
    let ids: Vec<VertexId> = (0..n).map(|_| bulk.add_vertex("p", None, vec![]).unwrap()).collect();
    let t = Instant::now();
    for (i, (s, d)) in edges.iter().enumerate() {
        if i % 20 != 7 {
            bulk.add_edge("k", ids[*s as usize], ids[*d as usize], None, vec![]).unwrap();
        }
    }
    bulk.finish().unwrap();
    println!("bulk {:?} rss {} B/edge", t.elapsed(), rss() / edges.len() as u64);
    let t = Instant::now();
    store.consolidate().unwrap();
    println!("consolidate {:?}", t.elapsed());
    let scan = |what: &str, snapshot: &Snapshot| {
        let (mut a, mut b, mut c) = (Duration::MAX, Duration::MAX, Duration::MAX);
        for _ in 0..7 {
            let t = Instant::now();
            let mut sum = 0u64;
            for v in 0..n {
                sum += targets[offsets[v] as usize..offsets[v + 1] as usize].iter().map(|x| *x as u64).sum::<u64>();
            }
            std::hint::black_box(sum);
            a = a.min(t.elapsed());
            let t = Instant::now();
            let mut sum = 0u64;
            let mut count = 0;
            for v in &ids {
                snapshot.visit_neighbours(*v, Direction::Out, None, &mut |n| {
                    sum += n.0;
                    count += 1;
                });
            }
            std::hint::black_box((sum, count));
            b = b.min(t.elapsed());
            let t = Instant::now();
            let mut halves = Vec::new();
            let mut sum = 0;
            for v in &ids {
                halves.clear();
                snapshot.half_edges(*v, Direction::Out, &[], &mut HalfEdgeCursor::default(), usize::MAX, &mut halves);
                sum += halves.len();
            }
            std::hint::black_box(sum);
            c = c.min(t.elapsed());
        }
        println!("{what}: plain {a:?} store {b:?} ratio {:.3}; half_edges {c:?}", a.as_secs_f64() / b.as_secs_f64());
    };
    scan("consolidated", &graph.snapshot());
    if std::env::args().nth(2).is_some() {
        let s = graph.snapshot();
        for _ in 0..200 {
            let mut sum = 0u64;
            for v in &ids {
                s.visit_neighbours(*v, Direction::Out, None, &mut |n| sum += n.0);
            }
            std::hint::black_box(sum);
        }
    }
    let mut bulk = graph.bulk();
    for r in 0..997 {
        for (i, (s, d)) in edges.iter().enumerate().skip(r).step_by(997) {
            if i % 20 == 7 {
                bulk.add_edge("k", ids[*s as usize], ids[*d as usize], None, vec![]).unwrap();
            }
        }
    }
    bulk.finish().unwrap();
    scan("5 % deltas", &graph.snapshot());
    drop(graph);
    store.close().unwrap();
    drop(store);
    let r = rss();
    let t = Instant::now();
    let store = Store::open(StoreOptions::default(), Environment::on_directory(&dir).unwrap()).unwrap();
    println!("open {:?}", t.elapsed());
    let s = store.graph("g").unwrap().snapshot();
    scan("reopened", &s);
    println!("grown {} B/edge", (rss() - r) / edges.len() as u64);
}
