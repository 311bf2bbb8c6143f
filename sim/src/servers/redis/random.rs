//! The generator behind `math.random`: `drand48`, of which Redis has its own copy, so that scripts draw the
//! same numbers on every machine. Source: `rand.c` of Redis. A second one, whose seed is the server's name,
//! makes the random choices of commands.

/// The 48 bits of the generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rand48(u64);

impl Default for Rand48 {
    fn default() -> Self {
        Self(0x1234_ABCD_330E)
    }
}

impl Rand48 {
    pub(crate) fn seeded(seed: i32) -> Self {
        Self(u64::from(seed.cast_unsigned()) << 16 | 0x330E)
    }

    /// Returns the generator of a server's random choices; `digest` is that of the server's name.
    pub(crate) fn keyed(digest: &[u8]) -> Self {
        Self(digest.iter().fold(0, |state: u64, byte| state.wrapping_mul(31).wrapping_add(u64::from(*byte))))
    }

    /// Draws a number below `limit`, which must be above 0 and is far below 2^31.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.next_u31() as usize % limit
    }

    /// Returns the next number below 2^31.
    pub(crate) fn next_u31(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & 0xFFFF_FFFF_FFFF;
        // 48 less 17 bits are 31.
        (self.0 >> 17) as u32
    }
}
