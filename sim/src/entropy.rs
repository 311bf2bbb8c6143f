//! Keyed randomness: every site of randomness (a link, a node, a client, a fault) draws from a stream of its own.
//!
//! A generator that is drawn from in sequence couples everything to everything: take one fault out of a schedule, and all
//! that follows changes. Here a draw depends on the seed, the site's name and how often that site has drawn before, and on
//! nothing else. That is what makes a shrunk schedule fail in the same way as the one it came from.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use xxhash_rust::xxh3::xxh3_64;

/// Fills the key behind the seed. Changing it changes every run of every seed.
const LABEL: &[u8; 24] = b"dlock simulation entropy";

/// The randomness of one run: a ChaCha key, made from the seed.
#[derive(Clone, Debug)]
pub struct Entropy {
    key: ChaCha8Rng,
}

/// The stream of one site. Two sites of the same name and seed draw the same numbers: name each site once.
#[derive(Clone, Debug)]
pub struct Site {
    stream: ChaCha8Rng,
}

impl Entropy {
    /// The randomness of the run with this seed.
    pub fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..].copy_from_slice(LABEL);
        Self { key: ChaCha8Rng::from_seed(key) }
    }

    /// The stream of the site called `name`, from its beginning. The stream's number is the name's XXH3 hash, which is
    /// the same on every machine and in every release.
    pub fn site(&self, name: &str) -> Site {
        let mut stream = self.key.clone();
        stream.set_stream(xxh3_64(name.as_bytes()));
        Site { stream }
    }
}

impl Site {
    /// The next 64 bits. Every draw below but [`Site::fill`] takes exactly one of these, whatever its arguments.
    pub fn u64(&mut self) -> u64 {
        self.stream.next_u64()
    }

    /// A number from 0 to `bound` - 1, or 0 if `bound` is 0.
    ///
    /// Lemire's multiplication without the rejection step ("Fast random integer generation in an interval", 2019): the
    /// bias is below `bound` / 2⁶⁴, and the number of draws stays fixed.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.u64()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// A number of nanoseconds from `min` to `max`, both included; `min` if `max` is not above it.
    pub fn range_nanos(&mut self, min: u64, max: u64) -> u64 {
        let width = u128::from(max.saturating_sub(min)) + 1;
        let wide = u128::from(self.u64()) * width;
        min + (wide >> 64) as u64
    }

    /// True with the probability `p`: never for 0 or less, always for 1 or more.
    pub fn chance(&mut self, p: f64) -> bool {
        // The upper 53 bits: as many as an f64 holds exactly.
        let unit = (self.u64() >> 11) as f64 / (1_u64 << 53) as f64;
        unit < p
    }

    /// Fills `bytes`. Takes whole 32-bit words from the stream.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.stream.fill_bytes(bytes);
    }
}
