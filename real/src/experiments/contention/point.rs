//! What one load showed.

use std::collections::BTreeMap;
use std::time::Duration;

use history::Span;
use serde::{Deserialize, Serialize};

use super::changes::Changes;
use crate::contend::Report;
use crate::lab::load::{HotKey, millis};
use crate::lab::statistics::quantile_interval;
use crate::systems::System;

/// A load is beyond the capacity if more than this share of its attempts gave up.
pub(in crate::experiments) const GAVE_UP: f64 = 0.05;

/// One system with one number of contenders.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) system: System,
    pub(super) work: Span,
    pub(super) contenders: u64,
    pub(super) attempts: u64,
    pub(super) offered_per_second: f64,
    pub(super) served_per_second: f64,
    /// In the first third of the load, and in the last.
    pub(super) served_first_per_second: f64,
    pub(super) served_last_per_second: f64,
    /// Over all attempts, from the time at which each was due, in milliseconds.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    /// Between which the p99 of all possible attempts is, with a confidence of 95 %, in milliseconds; `None`
    /// if the attempts are too few to say so.
    pub(super) p99_between_ms: Option<(f64, f64)>,
    /// The mean over the attempts that were served.
    pub(super) mean_ms: f64,
    /// Latency of the calls of release.
    pub(super) release_p50_ms: f64,
    /// Attempts that gave up, and the time after which the first one did, in seconds.
    pub(super) abandoned: u64,
    pub(super) first_abandoned_s: Option<f64>,
    pub(super) failed: u64,
    /// The reasons of failures, with their counts.
    pub(super) failures: BTreeMap<String, u64>,
    /// The changes of holders in each third of the load.
    pub(super) changes: [Changes; 3],
}

impl Point {
    pub(super) fn of(system: System, contenders: u64, load: &HotKey<'_>, report: &Report) -> Self {
        let lasts = load.lasts.0.as_secs_f64();
        let [first, _, last] = report.thirds.map(|served| served as f64 * 3.0 / lasts);
        let waited: Duration = report.grants.iter().map(|(_, wait)| *wait).sum();
        let waits: Vec<_> = report.waits.iter().map(|wait| wait.as_secs_f64() * 1e3).collect();
        Self {
            system,
            work: load.work,
            contenders,
            attempts: report.offered,
            offered_per_second: report.offered as f64 / lasts,
            served_per_second: report.served_per_second,
            served_first_per_second: first,
            served_last_per_second: last,
            p50_ms: millis(&report.acquire_all, 0.5),
            p99_ms: millis(&report.acquire_all, 0.99),
            p999_ms: millis(&report.acquire_all, 0.999),
            p99_between_ms: quantile_interval(&waits, 0.99),
            mean_ms: waited.as_secs_f64() * 1e3 / report.served.max(1) as f64,
            release_p50_ms: millis(&report.release, 0.5),
            abandoned: report.abandoned,
            first_abandoned_s: report.first_abandoned.map(|after| after.as_secs_f64()),
            failed: report.failed,
            failures: report.failures.clone(),
            changes: Changes::of_thirds(&report.handovers, load.lasts.0),
        }
    }

    /// Returns whether more was offered than fits: then the queue grew until some gave up.
    pub(super) fn is_full(&self) -> bool {
        self.abandoned as f64 > GAVE_UP * self.attempts as f64
    }

    /// Returns whether waiters only poll: nobody wakes them, and no server keeps their order.
    pub(super) fn polls(&self) -> bool {
        self.system == System::Redlock
    }

    /// Returns what was served a second in the second third of the load.
    pub(super) fn served_middle_per_second(&self) -> f64 {
        3.0 * self.served_per_second - self.served_first_per_second - self.served_last_per_second
    }

    /// Returns the growth of the queue, in attempts a second.
    pub(super) fn growth_per_second(&self) -> f64 {
        (self.offered_per_second - self.served_per_second).max(0.0)
    }

    /// Returns the time of a section and of the change to the next one, in seconds, if sections followed each
    /// other without a break.
    pub(super) fn cycle(&self) -> Option<f64> {
        (self.is_full() && self.served_per_second > 0.0).then(|| 1.0 / self.served_per_second)
    }

    /// Returns the time after which the first attempt of a queue in the order of arrival gives up, in
    /// seconds: one that comes `t` after the beginning finds `growth × t` before it, and waits for as many
    /// cycles.
    pub(super) fn expected_abandoned_s(&self, patience: f64) -> Option<f64> {
        let growth = self.growth_per_second();
        (self.is_full() && growth > 0.0).then(|| patience * self.offered_per_second / growth)
    }

    /// Returns the mean wait for others in a queue with one server, random arrivals, and a service that takes
    /// `cycle` seconds (M/D/1), in milliseconds; `None` if the load is not below the capacity.
    pub(super) fn predicted_wait_ms(&self, cycle: f64) -> Option<f64> {
        let busy = self.offered_per_second * cycle;
        (busy < 1.0).then(|| busy * cycle / (2.0 * (1.0 - busy)) * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(offered: f64, served: f64) -> Point {
        Point {
            system: System::Redis,
            work: Span(Duration::from_millis(50)),
            contenders: 1,
            attempts: 10,
            offered_per_second: offered,
            served_per_second: served,
            served_first_per_second: served,
            served_last_per_second: served,
            p50_ms: 1.0,
            p99_ms: 1.0,
            p999_ms: 1.0,
            p99_between_ms: None,
            mean_ms: 1.0,
            release_p50_ms: 1.0,
            abandoned: if offered > served { 1 } else { 0 },
            first_abandoned_s: None,
            failed: 0,
            failures: BTreeMap::new(),
            changes: Changes::of_thirds(&[], Duration::from_secs(3)),
        }
    }

    #[test]
    fn a_queue_below_the_capacity_waits_as_pollaczek_and_khinchine_say() {
        // Half busy, with a service of 50 ms: 0.5 × 50 / (2 × 0.5).
        assert_eq!(point(10.0, 10.0).predicted_wait_ms(0.05), Some(25.0));
        assert_eq!(point(20.0, 20.0).predicted_wait_ms(0.05), None);
    }

    #[test]
    fn a_queue_beyond_the_capacity_grows_until_the_first_gives_up() {
        let full = point(40.0, 20.0);
        assert!(full.is_full());
        assert_eq!((full.cycle(), full.growth_per_second()), (Some(0.05), 20.0));
        // Who comes after 2 s finds 40 before it, and waits for them for 2 s.
        assert_eq!(full.expected_abandoned_s(2.0), Some(4.0));
        assert_eq!(point(10.0, 10.0).expected_abandoned_s(2.0), None);
    }
}
