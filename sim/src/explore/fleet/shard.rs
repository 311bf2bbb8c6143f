//! The share of the seeds that one machine searches.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Number of consecutive seeds that stay together. The strategies take turns from seed to seed, so a block
/// has many schedules of each.
pub const BLOCK: u64 = 256;

/// The share of the seeds that one machine searches: `I/N`, from `1/N` to `N/N`. The shards take turns with
/// [blocks](BLOCK) of seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    /// Its number, from 1.
    pub number: u64,
    /// The number of shards.
    pub of: u64,
}

/// A text that is no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no shard: give its number and the number of all, such as 1/4, from 1/4 to 4/4")]
pub struct ShardError(String);

impl Shard {
    /// All seeds.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Returns those of `seeds` that are in the shard, in their order.
    pub fn seeds(self, seeds: Range<u64>) -> impl Iterator<Item = u64> + Send {
        let Self { number, of } = self;
        let stride = BLOCK.saturating_mul(of.max(1));
        let first = seeds.start.saturating_add(BLOCK.saturating_mul(number.saturating_sub(1)));
        let blocks = std::iter::successors(Some(first), move |block| block.checked_add(stride));
        let end = seeds.end;
        let block = move |from: u64| from..from.saturating_add(BLOCK).min(end);
        blocks.take_while(move |from| *from < end).flat_map(block)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let numbers =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if 1 <= number && number <= of => Ok(Self { number, of }),
            _ => Err(ShardError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::explore::Portfolio;
    use crate::sim::Strategy;

    #[test]
    fn shards_are_disjoint_and_together_the_whole() {
        for (seeds, of) in [(1_000..11_000, 3), (0..100, 4), (7..2_000, 1), (u64::MAX - 999..u64::MAX, 2)] {
            let shards = (1..=of).map(|number| Shard { number, of }.seeds(seeds.clone()).collect::<Vec<_>>());
            let all: Vec<u64> = shards.flatten().collect();
            assert_eq!(all.len() as u64, seeds.end - seeds.start, "{seeds:?} in {of}");
            assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), seeds.collect(), "{of}");
        }
    }

    #[test]
    fn each_shard_has_all_strategies_alike() {
        let portfolio = Portfolio::default();
        let counts: BTreeSet<_> = (1..=4)
            .map(|number| {
                let mut count = BTreeMap::<String, u64>::new();
                let seeds = Shard { number, of: 4 }.seeds(0..4 * 4 * BLOCK);
                seeds.for_each(|seed| *count.entry(portfolio.of(seed).to_string()).or_default() += 1);
                count
            })
            .collect();
        assert_eq!(counts.len(), 1, "{counts:?}");
        let count = counts.first().unwrap();
        assert_eq!(count.len(), Strategy::ALL.len());
        assert!(count["uniform"] >= 4 * BLOCK / 4, "{count:?}");
    }

    #[test]
    fn a_shard_is_read_as_it_is_written() {
        assert_eq!("3/4".parse(), Ok(Shard { number: 3, of: 4 }));
        assert_eq!(Shard { number: 3, of: 4 }.to_string(), "3/4");
        for text in ["", "3", "0/4", "5/4", "1/0", "a/b", "1/4/2", "-1/4"] {
            let error = text.parse::<Shard>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is no shard")), "{error}");
        }
    }
}
