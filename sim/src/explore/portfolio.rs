//! The strategies among which a search shares its schedules.

use std::fmt;

use crate::sim::{Draw, Strategy};

/// The strategies among which a search shares its schedules, by their seeds. Default: all in turns, so that
/// each has a share of its own and a seed names a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portfolio(Vec<Strategy>);

impl Portfolio {
    /// Returns a portfolio of one strategy.
    pub fn only(strategy: Strategy) -> Self {
        Self(vec![strategy])
    }

    /// Returns the strategy by which the schedule of `seed` is drawn.
    pub fn of(&self, seed: u64) -> Strategy {
        let at = seed % (self.0.len() as u64).max(1);
        self.0.get(at as usize).copied().unwrap_or(Strategy::Uniform)
    }

    /// Returns a source of draws from `seed` by its strategy.
    pub fn draw(&self, seed: u64) -> Draw {
        Draw::new(seed).by(self.of(seed))
    }
}

impl Default for Portfolio {
    fn default() -> Self {
        Self(Strategy::ALL.to_vec())
    }
}

impl From<Option<Strategy>> for Portfolio {
    fn from(strategy: Option<Strategy>) -> Self {
        strategy.map_or_else(Self::default, Self::only)
    }
}

impl fmt::Display for Portfolio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&names.join(", "))
    }
}
