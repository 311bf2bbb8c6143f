//! The report of a load.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::{Histogram, RecordError};
use history::{Event, Fairness, Kind, Name, Nanos};
use serde::Serialize;

use super::handover::Handover;
use super::{Arm, Load};
use crate::primitive::Primitive;

/// Significant digits of a latency.
const DIGITS: u8 = 3;
/// The longest latency of a report, in microseconds: two weeks, twice the longest run.
const LATENCY_US_MAX: u64 = 14 * 24 * 3_600_000_000;
/// The quantiles that a report shows.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

/// The results of a load.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The load.
    pub load: Load,
    /// Attempts that were due.
    pub offered: u64,
    /// The time after which the load was stopped, if it was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_after: Option<Duration>,
    /// Attempts that were granted the lock.
    pub served: u64,
    /// Attempts still waiting at the end.
    pub unserved: u64,
    /// Attempts that gave up: see [`Load::patience`].
    pub abandoned: u64,
    /// Attempts that a full queue refused at once; they count in no latency.
    pub refused: u64,
    /// The time since the start at which the first one gave up.
    pub first_abandoned: Option<Duration>,
    /// The grants in each third of the load.
    pub thirds: [u64; 3],
    /// Attempts that failed.
    pub failed: u64,
    /// The reasons of failures, with their counts.
    pub failures: BTreeMap<String, u64>,
    /// Conditional updates that found another version or status: lost work, or no job found.
    pub conflicts: u64,
    /// Leases that had ended before their release: another holder may have worked at the same time.
    pub lost: u64,
    /// Attempts whose task another one had done: they got its result, or found no tick left to run.
    pub shared: u64,
    /// Critical sections a second.
    pub served_per_second: f64,
    /// From the time at which an attempt was due to its grant, over those served.
    pub acquire_served: Latencies,
    /// From the call to the grant, over those served; it omits the wait for a free contender.
    pub acquire_from_call: Latencies,
    /// From the time at which an attempt was due, over all attempts; those not served, or failed, count with
    /// the time they waited.
    pub acquire_all: Latencies,
    /// From the call of release to its answer.
    pub release: Latencies,
    /// The order of arrival compared with the order of grants.
    pub fairness: Fairness,
    /// Each attempt served, in the order of grants, and its wait since it was due.
    #[serde(skip)]
    pub grants: Vec<(u64, Duration)>,
    /// The waits of all attempts, as in [`Report::acquire_all`].
    #[serde(skip)]
    pub waits: Vec<Duration>,
    /// The changes from a holder to a waiter, each with the time since the start; empty without a lock. Of
    /// use for one key with one holder at a time.
    #[serde(skip)]
    pub handovers: Vec<(Duration, Handover)>,
}

/// Quantiles, in microseconds.
#[derive(Debug, Serialize)]
pub struct Latencies {
    /// The number of latencies.
    pub count: u64,
    /// Each quantile with its latency.
    pub quantiles: Vec<(f64, u64)>,
}

impl Latencies {
    pub(super) fn of<'a>(durations: impl IntoIterator<Item = &'a Duration>) -> Result<Self, RecordError> {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, LATENCY_US_MAX, DIGITS)
            .map_err(|_| RecordError::ValueOutOfRangeResizeDisabled)?;
        for duration in durations {
            histogram.saturating_record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1));
        }
        let quantile = |quantile| (quantile, histogram.value_at_quantile(quantile));
        Ok(Self { count: histogram.len(), quantiles: QUANTILES.map(quantile).to_vec() })
    }
}

/// Returns the audit's measure of fairness: attempts arrive in the order of their numbers.
pub(super) fn fairness(grants: &[(u64, u64)]) -> Fairness {
    let name = |number: u64| Name::from(number.to_string().as_str());
    let event = |kind| Event { at: Nanos(0), process: Name::from("contend"), kind };
    let mut arrivals = grants.to_vec();
    arrivals.sort_unstable_by_key(|(_, attempt)| *attempt);
    let requested = |(key, attempt): &(u64, u64)| {
        let (key, owner) = (name(*key), name(*attempt));
        event(Kind::LeaseRequested { resource_type: None, key, owner, ttl_millis: None })
    };
    let acquired = |(key, attempt): &(u64, u64)| {
        let (resource_type, key, owner) = (None, name(*key), name(*attempt));
        let (token, ttl_millis, valid_micros) = (attempt + 1, None, None);
        event(Kind::LeaseAcquired { resource_type, key, owner, token, ttl_millis, valid_micros })
    };
    let history: Vec<_> = arrivals.iter().map(requested).chain(grants.iter().map(acquired)).collect();
    Fairness::of(&history)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load { arm, place, contenders, keys, rate, ttl, work, .. } = &self.load;
        writeln!(
            f,
            "{}: {contenders} contenders, {keys} keys, {rate}/s offered, TTL {ttl:?}, work {work:?}{}",
            match arm {
                Arm::Lock => place.system.as_str(),
                Arm::Version => "version column",
                Arm::Jobs => "job pick-up",
            },
            place.tokens.note(),
        )?;
        writeln!(
            f,
            "{} attempts: {} served ({:.1}/s), {} still waiting at the end, {} failed",
            self.offered, self.served, self.served_per_second, self.unserved, self.failed
        )?;
        writeln!(
            f,
            "{:24} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "milliseconds", "p50", "p90", "p99", "p99.9", "max"
        )?;
        for (name, latencies) in [
            ("acquire, served only", &self.acquire_served),
            ("acquire, all attempts", &self.acquire_all),
            ("acquire, from the call", &self.acquire_from_call),
            ("release", &self.release),
        ] {
            // A task has no release of its own.
            if latencies.count == 0 && name == "release" {
                continue;
            }
            write!(f, "{name:24}")?;
            for (_, micros) in &latencies.quantiles {
                write!(f, " {:>10.3}", *micros as f64 / 1000.0)?;
            }
            writeln!(f)?;
        }
        if let Some(after) = self.first_abandoned {
            let after = after.as_secs_f64();
            writeln!(f, "{} attempts gave up, the first after {after:.1} s", self.abandoned)?;
        }
        if self.refused > 0 {
            writeln!(f, "{} attempts were refused by a full queue", self.refused)?;
        }
        let Fairness { inversions, overtaken_max, .. } = self.fairness;
        writeln!(f, "order: {inversions} overtakings, at most {overtaken_max} of one attempt")?;
        if self.lost > 0 {
            writeln!(f, "{} leases had ended before their release", self.lost)?;
        }
        match self.load.primitive {
            Primitive::SingleFlight => writeln!(f, "{} attempts got the result of another", self.shared)?,
            Primitive::Cron { .. } => writeln!(f, "{} attempts found no tick left to run", self.shared)?,
            _ => {}
        }
        if self.conflicts > 0 {
            writeln!(f, "{} conditional updates found another state", self.conflicts)?;
        }
        if let Some(after) = self.stopped_after {
            let (after, lasts) = (after.as_secs_f64(), self.load.lasts);
            writeln!(f, "interrupted after {after:.1} s of {lasts:?}")?;
        }
        for (reason, count) in &self.failures {
            writeln!(f, "{count} failed: {reason}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_of_a_day_is_recorded() {
        let latencies = Latencies::of(&[Duration::from_secs(24 * 3600)]).unwrap();
        let (_, most) = latencies.quantiles[4];
        assert!((86_300_000_000..=86_500_000_000).contains(&most), "{most}");
    }

    #[test]
    fn fairness_counts_overtakings() {
        assert_eq!(fairness(&[(0, 0), (0, 1), (0, 2)]).inversions, 0);
        let last_first = fairness(&[(0, 2), (0, 0), (0, 1)]);
        assert_eq!((last_first.inversions, last_first.overtaken_max), (2, 1));
        // Different keys do not compete.
        assert_eq!(fairness(&[(1, 1), (0, 0)]).inversions, 0);
    }

    #[test]
    fn a_quantile_is_kept_to_three_digits() {
        let durations: Vec<_> = (1..=1000).map(Duration::from_millis).collect();
        let latencies = Latencies::of(&durations).unwrap();
        let (_, median) = latencies.quantiles[0];
        assert!((499_000..=501_000).contains(&median), "{median}");
        assert_eq!(latencies.count, 1000);
    }
}
