//! Random graphs of the Kronecker kind, whose degrees are as uneven as those of social networks.
//!
//! Every edge is thrown into the adjacency matrix by halving it `scale` times in both directions, with the probabilities of the
//! Graph 500 benchmark (A = .57, B = .19, C = .19). Then loops and repetitions are removed.
//! Source: R-MAT (Chakrabarti, Zhan, Faloutsos, SDM 2004).

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_are_uneven_and_every_edge_is_there_once() {
        let edges = kronecker(12, 16, 7);
        assert!(edges.is_sorted_by(|a, b| a < b));
        assert!(edges.iter().all(|(source, target)| source != target && *source < 4096 && *target < 4096));
        let mut degrees = vec![0u32; 4096];
        edges.iter().for_each(|(source, _)| degrees[*source as usize] += 1);
        let largest = degrees.iter().max().copied().unwrap_or(0);
        let without = degrees.iter().filter(|degree| **degree == 0).count();
        assert!(largest > 200 && without > 400, "largest {largest}, without edges {without}");
        assert_eq!(edges, kronecker(12, 16, 7));
    }
}
