//! Random numbers of a query: small, fast, seedable, not for secrets.

/// xoshiro256++ seeded by SplitMix64.
///
/// Source: Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// A generator whose sequence depends on `seed` alone.
    pub fn seeded(seed: u64) -> Random {
        let mut mixer = seed;
        let mut next = || {
            mixer = mixer.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = mixer;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        Random { state: [next(), next(), next(), next()] }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let mut state = [a, b ^ a, c ^ a, d ^ b];
        state = [state[0] ^ state[3], state[1] ^ state[2], state[2] ^ (b << 17), state[3].rotate_left(45)];
        self.state = state;
        result
    }

    /// Uniform in `0.0..1.0`.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The bias of the multiply-shift is below 2⁻³² for bounds that fit memory.
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }
}
