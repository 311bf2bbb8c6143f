//! The outcomes of the runs of one cell of a table, counted.

use history::VerdictKind;
use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::statistics::share_interval;

/// The number of runs with each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) runs: u32,
    /// Runs with two holders at once.
    pub(crate) overlaps: u32,
    /// Runs in which the resource took a stale write.
    pub(crate) stale_writes: u32,
    /// Runs in which the resource refused a stale write.
    pub(crate) refused: u32,
    /// Runs with any other violation.
    pub(crate) other_violations: u32,
}

impl Tally {
    /// Counts the outcomes of runs.
    pub(crate) fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        outcomes.into_iter().fold(Self::default(), |tally, outcome| {
            let known = [VerdictKind::Overlap, VerdictKind::StaleWrite];
            let is_other = outcome.verdicts.iter().any(|kind| !known.contains(kind));
            Self {
                runs: tally.runs + 1,
                overlaps: tally.overlaps + u32::from(outcome.has(VerdictKind::Overlap)),
                stale_writes: tally.stale_writes + u32::from(outcome.has(VerdictKind::StaleWrite)),
                refused: tally.refused + u32::from(!outcome.refused.is_empty()),
                other_violations: tally.other_violations + u32::from(is_other),
            }
        })
    }
}

/// Formats the share of all possible runs that are hits, in per cent, with a confidence of 95 %: `10 to 37`.
pub(crate) fn percent_interval(hits: u32, runs: u32) -> String {
    let (low, high) = share_interval(hits, runs);
    format!("{:.0} to {:.0}", 100.0 * low, 100.0 * high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(verdicts: &[VerdictKind]) -> Outcome {
        Outcome {
            accepted: Vec::new(),
            refused: Vec::new(),
            verdicts: verdicts.to_vec(),
            details: Vec::new(),
            story: Vec::new(),
        }
    }

    #[test]
    fn each_run_counts_once_for_each_kind_of_outcome() {
        use VerdictKind::{ForeignRelease, Overlap, StaleWrite};
        let runs = [
            outcome(&[]),
            outcome(&[Overlap]),
            outcome(&[Overlap, StaleWrite, StaleWrite]),
            outcome(&[ForeignRelease]),
        ];
        let expected = Tally { runs: 4, overlaps: 2, stale_writes: 1, refused: 0, other_violations: 1 };
        assert_eq!(Tally::of(&runs), expected);
        assert_eq!(percent_interval(6, 30), "10 to 37");
    }
}
