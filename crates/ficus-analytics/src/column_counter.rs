//! Counts, for each of many lanes, in how many words its bit was set, without looking at single bits.

/// A bit for each of `64 * W` lanes.
pub type Lanes<const W: usize> = [u64; W];

/// Planes of a counter: it is emptied when they are full, so more would only make emptying rarer.
const PLANES: usize = 16;

/// Counters of `64 * W` lanes, bit-sliced: plane `p` holds bit `p` of every lane's count. Adding a word costs two
/// operations on average, since half of the carries end in each plane.
#[derive(Clone, Debug)]
pub struct ColumnCounter<const W: usize> {
    planes: [Lanes<W>; PLANES],
    added: u32,
    totals: Vec<u64>,
}

impl<const W: usize> Default for ColumnCounter<W> {
    fn default() -> Self {
        ColumnCounter { planes: [[0; W]; PLANES], added: 0, totals: vec![0; 64 * W] }
    }
}

impl<const W: usize> ColumnCounter<W> {
    /// Counts the lanes that are set.
    #[inline(always)]
    pub fn add(&mut self, lanes: Lanes<W>) {
        let mut carry = lanes;
        for plane in &mut self.planes {
            let mut rest = 0;
            for word in 0..W {
                let both = plane[word] & carry[word];
                plane[word] ^= carry[word];
                carry[word] = both;
                rest |= both;
            }
            if rest == 0 {
                break;
            }
        }
        self.added += 1;
        if self.added == (1 << PLANES) - 1 {
            self.empty();
        }
    }

    /// The counts by lane.
    pub fn finish(mut self) -> Vec<u64> {
        self.empty();
        self.totals
    }

    #[cold]
    fn empty(&mut self) {
        for (lane, total) in self.totals.iter_mut().enumerate() {
            let bit = |plane: &Lanes<W>| plane[lane / 64] >> (lane % 64) & 1;
            *total += self.planes.iter().enumerate().map(|(number, plane)| bit(plane) << number).sum::<u64>();
        }
        self.planes = [[0; W]; PLANES];
        self.added = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_a_loop_over_bits_counts() {
        let mut counter = ColumnCounter::<2>::default();
        let mut expected = [0u64; 128];
        let mut word = 0x9E37_79B9_7F4A_7C15u64;
        // More than the planes hold at once.
        for round in 0..150_000u64 {
            word = word.rotate_left(17).wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ round;
            let lanes = [word | 1, word & word.rotate_left(9)];
            (0..128).for_each(|lane| expected[lane] += lanes[lane / 64] >> (lane % 64) & 1);
            counter.add(lanes);
        }
        assert_eq!(counter.finish(), expected);
    }
}
