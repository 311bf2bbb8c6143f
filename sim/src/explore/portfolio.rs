//! The strategies among which a search shares its schedules.

use std::fmt;

use crate::sim::{Draw, Strategy};

/// The strategies among which a search shares its schedules, by their seeds. Default: all in turns, with a
/// quarter of the schedules uniform.
///
/// # Example
///
/// ```
/// use sim::Strategy;
/// use sim::explore::Portfolio;
///
/// // By default a quarter of the schedules is uniform: four turns in each round of sixteen.
/// assert!(Portfolio::default().shares().contains(&(Strategy::Uniform, 4)));
/// assert_eq!(Portfolio::only(Strategy::Aimed).of(7), Strategy::Aimed);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portfolio {
    turns: Vec<Strategy>,
}

/// The turns of the default portfolio: `docs/strategies.md` has the hunts that decided them.
const TURNS: [Strategy; 16] = [
    Strategy::Uniform,
    Strategy::Aimed,
    Strategy::Swarm,
    Strategy::Aimed,
    Strategy::Uniform,
    Strategy::Aimed,
    Strategy::Ordered,
    Strategy::Aimed,
    Strategy::Uniform,
    Strategy::Aimed,
    Strategy::Swarm,
    Strategy::Aimed,
    Strategy::Uniform,
    Strategy::Aimed,
    Strategy::Feedback,
    Strategy::Aimed,
];

impl Portfolio {
    /// Returns a portfolio of one strategy.
    pub fn only(strategy: Strategy) -> Self {
        Self { turns: vec![strategy] }
    }

    /// Returns the strategies whose schedules depend on their seeds alone: a seed identifies a schedule.
    pub fn of_seeds() -> Self {
        let turns = TURNS.into_iter().filter(|strategy| *strategy != Strategy::Feedback).collect();
        Self { turns }
    }

    /// Returns the number of turns of each strategy in a round, in the order of [`Strategy::ALL`].
    pub fn shares(&self) -> Vec<(Strategy, usize)> {
        let turns = |strategy: Strategy| self.turns.iter().filter(|turn| **turn == strategy).count();
        Strategy::ALL.iter().map(|strategy| (*strategy, turns(*strategy))).collect()
    }

    /// Returns the strategy by which the schedule of `seed` is drawn.
    pub fn of(&self, seed: u64) -> Strategy {
        let at = seed % (self.turns.len() as u64).max(1);
        self.turns.get(at as usize).copied().unwrap_or(Strategy::Uniform)
    }

    /// Returns a source of draws from `seed` by its strategy. It has no schedule for the feedback strategy to
    /// continue.
    pub fn draw(&self, seed: u64) -> Draw {
        Draw::new(seed).by(self.of(seed))
    }

    /// Returns true if some schedules are drawn by the feedback strategy.
    pub(super) fn has_feedback(&self) -> bool {
        self.turns.contains(&Strategy::Feedback)
    }
}

impl Default for Portfolio {
    fn default() -> Self {
        Self { turns: TURNS.to_vec() }
    }
}

impl From<Option<Strategy>> for Portfolio {
    fn from(strategy: Option<Strategy>) -> Self {
        strategy.map_or_else(Self::default, Self::only)
    }
}

impl fmt::Display for Portfolio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.turns.iter().map(ToString::to_string).collect();
        f.write_str(&names.join(", "))
    }
}
