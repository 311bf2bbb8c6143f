//! The times at which attempts are due.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::Serialize;

/// How the attempts of a load arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// At even intervals. Below the capacity of a lock nobody waits for another.
    #[default]
    Even,
    /// As from many independent callers: a Poisson process, drawn from a seed. Attempts that happen to come
    /// at almost the same time wait for each other, the more the closer the load is to the capacity.
    Random {
        /// The seed.
        seed: u64,
    },
}

/// The times since the beginning of a load at which its attempts are due, in their order. It is not to be
/// asked again after the last one: random arrivals would go on.
pub(super) struct Due {
    /// Attempts a second.
    rate: f64,
    lasts: Duration,
    /// The number of the next attempt.
    next: u64,
    /// When the last attempt was due, in seconds.
    last: f64,
    random: Option<ChaCha8Rng>,
}

impl Due {
    /// Attempts at `rate` a second until `lasts` is over.
    pub(super) fn new(arrivals: Arrivals, rate: f64, lasts: Duration) -> Self {
        let random = match arrivals {
            Arrivals::Even => None,
            Arrivals::Random { seed } => Some(ChaCha8Rng::seed_from_u64(seed)),
        };
        Self { rate, lasts, next: 0, last: 0.0, random }
    }
}

impl Iterator for Due {
    type Item = (u64, Duration);

    fn next(&mut self) -> Option<(u64, Duration)> {
        let number = self.next;
        let at = match &mut self.random {
            None => number as f64 / self.rate,
            Some(random) => {
                // 53 random bits, as many as the fraction of a number has, and never zero.
                let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                self.last - uniform.ln() / self.rate
            }
        };
        let due = Duration::try_from_secs_f64(at).ok().filter(|due| *due < self.lasts)?;
        (self.next, self.last) = (number + 1, at);
        Some((number, due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_attempts_are_due_at_even_intervals() {
        let due: Vec<_> = Due::new(Arrivals::Even, 4.0, Duration::from_secs(1)).collect();
        assert_eq!(due, [0, 250, 500, 750].map(|ms| (ms / 250, Duration::from_millis(ms))));
    }

    #[test]
    fn random_attempts_are_those_of_a_poisson_process() {
        let draw = |seed| {
            let due = Due::new(Arrivals::Random { seed }, 100.0, Duration::from_secs(100));
            due.map(|(_, due)| due.as_secs_f64()).collect::<Vec<_>>()
        };
        let due = draw(7);
        assert_eq!(due, draw(7));
        assert_ne!(due, draw(8));
        // 10,000 are expected, with a standard deviation of 100.
        assert!((9_600..=10_400).contains(&due.len()), "{}", due.len());
        let gaps: Vec<_> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap > 0.0));
        // Of exponentially distributed gaps, 1 - 1/e are shorter than their mean.
        let short = gaps.iter().filter(|gap| **gap < 0.01).count() as f64 / gaps.len() as f64;
        assert!((0.61..0.655).contains(&short), "{short}");
    }
}
