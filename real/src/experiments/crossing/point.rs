//! The result of one way with one number of contenders.

use history::Span;
use serde::{Deserialize, Serialize};

use super::updates::Updates;
use super::{Way, Work};
use crate::lab::statistics::median;

/// One way with one number of contenders.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) way: Way,
    pub(super) work: Work,
    pub(super) contenders: u64,
    /// The median over the runs.
    pub(super) updates_per_second: f64,
    /// From the begin of an update to its success, in milliseconds: the medians over the runs. What was not
    /// done by the end counts with the time until then.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// Works that were done in vain, for each success: the median over the runs.
    pub(super) in_vain: f64,
    pub(super) runs: Vec<Run>,
}

/// One run of a point.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) updates_per_second: f64,
    /// From the begin of an update to its success, in milliseconds; `None` if the quantile is that of an
    /// update that was not done by the end.
    pub(super) p50_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    pub(super) in_vain: f64,
    /// The number of contenders that had no success.
    pub(super) unserved: u64,
}

impl Point {
    /// Sums up the runs of a way, a work and a number of contenders.
    pub(super) fn of((way, work, contenders): (Way, Work, u64), runs: &[Updates], lasts: Span) -> Self {
        let of = |each: &dyn Fn(&Updates) -> f64| {
            median(&runs.iter().map(each).collect::<Vec<_>>()).unwrap_or_default()
        };
        Self {
            way,
            work,
            contenders,
            updates_per_second: of(&|updates| updates.per_second(lasts)),
            p50_ms: of(&|updates| updates.quantile(0.5).unwrap_or_default().0),
            p99_ms: of(&|updates| updates.quantile(0.99).unwrap_or_default().0),
            in_vain: of(&Updates::in_vain_each),
            runs: runs.iter().map(|updates| Run::of(updates, lasts)).collect(),
        }
    }

    /// Returns the lowest and the highest number of updates a second of its runs.
    pub(super) fn range(&self) -> (f64, f64) {
        let rates = || self.runs.iter().map(|run| run.updates_per_second);
        (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max))
    }

    /// Returns the share of the contenders that had no success, over all runs.
    pub(super) fn unserved(&self) -> f64 {
        let unserved: u64 = self.runs.iter().map(|run| run.unserved).sum();
        unserved as f64 / (self.runs.len().max(1) as f64 * self.contenders.max(1) as f64)
    }

    /// Returns the median over the runs of a quantile; `None` if it is unknown in one of them.
    pub(super) fn known(&self, quantile: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        median(&self.runs.iter().map(quantile).collect::<Option<Vec<_>>>()?)
    }

    /// Returns the p99 if every contender was served in every run.
    pub(super) fn p99_of_served_ms(&self) -> Option<f64> {
        self.known(|run| run.p99_ms.filter(|_| run.unserved == 0))
    }
}

impl Run {
    fn of(updates: &Updates, lasts: Span) -> Self {
        let done = |share| updates.quantile(share).filter(|(_, is_done)| *is_done).map(|(ms, _)| ms);
        Self {
            updates_per_second: updates.per_second(lasts),
            p50_ms: done(0.5),
            p99_ms: done(0.99),
            in_vain: updates.in_vain_each(),
            unserved: updates.unserved,
        }
    }
}

impl Updates {
    fn per_second(&self, lasts: Span) -> f64 {
        self.done as f64 / lasts.0.as_secs_f64()
    }

    /// Returns the works in vain for each success.
    fn in_vain_each(&self) -> f64 {
        self.in_vain as f64 / self.done.max(1) as f64
    }

    /// Returns the time in milliseconds below which this share of the times is, and whether its update was
    /// done; `None` without updates.
    fn quantile(&self, share: f64) -> Option<(f64, bool)> {
        let mut sorted = self.times_ms.clone();
        sorted.sort_by(|(one, _), (next, _)| one.total_cmp(next));
        let last = sorted.len().checked_sub(1)?;
        sorted.get((share * last as f64).round() as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn point(runs: &[Updates]) -> Point {
        let work = Work { takes: Span(Duration::from_millis(2)), computes: false };
        Point::of((Way::Lock, work, 2), runs, Span(Duration::from_secs(2)))
    }

    /// Returns a run of three updates, the longest of which was done or not.
    fn run(done: u64, is_done: bool, unserved: u64) -> Updates {
        Updates { times_ms: vec![(9.0, is_done), (1.0, true), (2.0, true)], done, in_vain: 6, unserved }
    }

    #[test]
    fn a_point_has_the_median_and_the_range_of_its_runs() {
        let three = point(&[run(4, true, 0), run(2, true, 0), run(6, true, 0)]);
        assert_eq!((three.updates_per_second, three.range()), (2.0, (1.0, 3.0)));
        assert_eq!((three.p50_ms, three.p99_of_served_ms(), three.in_vain), (2.0, Some(9.0), 1.5));
        assert_eq!(three.unserved(), 0.0);
    }

    #[test]
    fn a_p99_is_known_only_if_all_were_served_and_its_update_done() {
        let unfinished = point(&[run(4, true, 0), run(4, false, 0)]);
        assert_eq!((unfinished.p99_of_served_ms(), unfinished.p99_ms), (None, 9.0));
        assert_eq!(unfinished.known(|run| run.p50_ms), Some(2.0));
        let unserved = point(&[run(4, true, 1), run(4, true, 0)]);
        assert_eq!((unserved.p99_of_served_ms(), unserved.unserved()), (None, 0.25));
    }
}
