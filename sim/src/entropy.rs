//! Keyed randomness: every site of randomness (a link, a node, a client, a fault) draws from a stream of its
//! own.
//!
//! One generator for all sites would couple all draws: without one fault of a schedule, all later draws would
//! change. Here a draw depends on the seed, the site's name and the number of earlier draws of that site, and
//! on nothing else. A shrunk schedule therefore fails like the one that it came from.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use xxhash_rust::xxh3::xxh3_64;

/// The bytes of the key after the seed. Another label changes every run of every seed.
const LABEL: &[u8; 24] = b"dlock simulation entropy";

/// The randomness of one run: a ChaCha key, made from the seed, and those that replace it later in the run.
#[derive(Clone, Debug)]
pub struct Entropy {
    key: ChaCha8Rng,
    /// The later keys, each with the true time in nanoseconds from which it applies, in the order of time.
    later: Vec<(u64, ChaCha8Rng)>,
}

/// The stream of one site. Two sites of the same name and seed draw the same numbers: name each site once.
#[derive(Clone, Debug)]
pub struct Site {
    stream: ChaCha8Rng,
}

impl Entropy {
    /// Creates the randomness of the run with this seed.
    pub fn new(seed: u64) -> Self {
        Self { key: key(seed), later: Vec::new() }
    }

    /// Replaces the key from the true time `at` on, in nanoseconds, by that of `seed`. Call it in the order
    /// of time.
    #[must_use]
    pub fn rekeyed(mut self, at: u64, seed: u64) -> Self {
        self.later.push((at, key(seed)));
        self
    }

    /// Returns the stream of the site `name`, from its beginning. The stream's number is the name's XXH3
    /// hash, which is the same on every machine and in every release.
    pub fn site(&self, name: &str) -> Site {
        self.site_of(0, name)
    }

    /// Returns how often the key has been replaced until the true time `now`.
    pub(crate) fn epoch(&self, now: u64) -> usize {
        self.later.iter().take_while(|(at, _)| *at <= now).count()
    }

    /// Returns the stream of the site `name` from the key of that epoch.
    pub(crate) fn site_of(&self, epoch: usize, name: &str) -> Site {
        let later = epoch.checked_sub(1).and_then(|epoch| self.later.get(epoch));
        let mut stream = later.map_or(&self.key, |(_, key)| key).clone();
        stream.set_stream(xxh3_64(name.as_bytes()));
        Site { stream }
    }
}

/// Returns the key of the seed.
fn key(seed: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..].copy_from_slice(LABEL);
    ChaCha8Rng::from_seed(key)
}

impl Site {
    /// Draws 64 bits. Every draw below but [`Site::fill`] takes exactly one of these numbers, whatever its
    /// arguments.
    pub fn u64(&mut self) -> u64 {
        self.stream.next_u64()
    }

    /// Draws a number from 0 to `limit` - 1, or 0 if `limit` is 0.
    ///
    /// Lemire's multiplication without the rejection step ("Fast random integer generation in an interval",
    /// 2019): the bias is below `limit` / 2⁶⁴, and the number of draws stays fixed.
    pub fn below(&mut self, limit: u64) -> u64 {
        let wide = u128::from(self.u64()) * u128::from(limit);
        (wide >> 64) as u64
    }

    /// Draws a number of nanoseconds from `min` to `max`, both included; `min` if `max` is not above it.
    pub fn range_nanos(&mut self, min: u64, max: u64) -> u64 {
        let width = u128::from(max.saturating_sub(min)) + 1;
        let wide = u128::from(self.u64()) * width;
        min + (wide >> 64) as u64
    }

    /// Draws one of `choices`, which must not be empty.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Returns true with the probability `p`: never for 0 or less, always for 1 or more.
    pub fn chance(&mut self, p: f64) -> bool {
        // The upper 53 bits: as many as an f64 holds exactly.
        let unit = (self.u64() >> 11) as f64 / (1_u64 << 53) as f64;
        unit < p
    }

    /// Fills `bytes`, and takes whole 32-bit words from the stream.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.stream.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn first(seed: u64, name: &str) -> [u64; 3] {
        let mut site = Entropy::new(seed).site(name);
        [site.u64(), site.u64(), site.u64()]
    }

    /// If these numbers change, every run of every kept seed changes.
    #[test]
    fn the_numbers_of_a_site_never_change() {
        assert_eq!(
            first(0, "link: a to redis-1"),
            [18_040_894_121_998_969_229, 10_880_744_715_113_647_940, 9_938_809_527_902_751_131]
        );
        assert_eq!(
            first(42, ""),
            [13_015_758_384_887_863_235, 864_923_284_842_959_060, 5_490_121_343_583_684_979]
        );
        let mut site = Entropy::new(7).site("node: a");
        let mut bytes = [0; 7];
        site.fill(&mut bytes);
        assert_eq!((bytes, site.u64()), ([20, 104, 39, 66, 79, 79, 59], 12_467_555_184_401_370_562));
    }

    #[test]
    fn seeds_and_names_have_streams_of_their_own() {
        let streams = [first(0, "a"), first(1, "a"), first(0, "b"), first(1, "b"), first(u64::MAX, "a")];
        for (at, stream) in streams.iter().enumerate() {
            assert!(!streams[..at].contains(stream), "stream {at} is another's: {stream:?}");
        }
    }

    #[test]
    fn a_later_key_is_that_of_its_seed() {
        let entropy = Entropy::new(1).rekeyed(10, 2).rekeyed(20, 3);
        assert_eq!([0, 9, 10, 19, 20, 99].map(|now| entropy.epoch(now)), [0, 0, 1, 1, 2, 2]);
        for (epoch, seed) in [(0, 1), (1, 2), (2, 3)] {
            assert_eq!(entropy.site_of(epoch, "a").u64(), first(seed, "a")[0]);
        }
    }

    /// The ranges are narrow enough to show a biased draw. The stream is fixed, so the counts never change.
    #[test]
    fn draws_are_spread_evenly() {
        let mut site = Entropy::new(1).site("dice");
        let mut counts = [0_u32; 6];
        let mut heads = 0;
        for _ in 0..60_000 {
            counts[site.below(6) as usize] += 1;
            heads += u32::from(site.chance(0.25));
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        assert!((14_600..15_400).contains(&heads), "{heads}");
    }

    #[test]
    fn draws_keep_to_their_ranges() {
        let mut site = Entropy::new(1).site("ends");
        assert_eq!(site.below(0), 0);
        assert_eq!(site.below(1), 0);
        assert_eq!(site.range_nanos(9, 3), 9);
        assert!((0..1000).all(|_| !site.chance(0.0) && site.chance(1.0)));
        let mut pair = std::collections::BTreeSet::new();
        for _ in 0..100 {
            pair.insert(site.range_nanos(4, 5));
        }
        assert_eq!(pair.into_iter().collect::<Vec<_>>(), [4, 5]);
    }

    proptest! {
        #[test]
        fn draws_of_one_site_move_no_other(seed: u64, before in 0..40_usize, between in 0..40_usize) {
            let entropy = Entropy::new(seed);
            let mut alone = entropy.site("a");
            let (mut site, mut other) = (entropy.site("a"), entropy.site("b"));
            for _ in 0..before {
                other.u64();
            }
            for _ in 0..20 {
                prop_assert_eq!(site.u64(), alone.u64());
                for _ in 0..between {
                    other.below(10);
                }
            }
        }

        #[test]
        fn every_draw_takes_one_number(seed: u64, limit: u64, min: u64, max: u64, p: f64) {
            let entropy = Entropy::new(seed);
            let (mut site, mut plain) = (entropy.site("a"), entropy.site("a"));
            prop_assert!(site.below(limit) < limit.max(1));
            let drawn = site.range_nanos(min, max);
            prop_assert!(drawn >= min && drawn <= max.max(min));
            site.chance(p);
            for _ in 0..3 {
                plain.u64();
            }
            prop_assert_eq!(site.u64(), plain.u64());
        }
    }
}
