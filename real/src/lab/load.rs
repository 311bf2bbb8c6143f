//! A load on one hot key of an experiment's servers.

use std::collections::BTreeMap;
use std::time::Duration;

use history::Span;
use tokio::runtime::{Builder, Handle};

use super::LabError;
use super::fleet::Fleet;
use crate::contend::{Arm, Arrivals, Load, Report, contend};
use crate::place::Place;
use crate::primitive::Primitive;
use crate::systems::System;
use dlock::TokioRuntime;

/// A load on one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HotKey<'a> {
    /// The prefix of the key: a different one for each load on the same servers.
    pub(crate) key: &'a str,
    pub(crate) contenders: u64,
    /// Attempts a second.
    pub(crate) rate: f64,
    /// How the attempts arrive.
    pub(crate) arrivals: Arrivals,
    /// The time since it was due after which an attempt gives up.
    pub(crate) patience: Option<Duration>,
    pub(crate) work: Span,
    pub(crate) ttl: Span,
    pub(crate) lasts: Span,
    /// True if waiters on a single Redis only poll.
    pub(crate) polled: bool,
}

impl HotKey<'_> {
    /// Offers the load to `fleet`.
    pub(crate) fn offer(&self, system: System, fleet: &Fleet) -> Result<Report, LabError> {
        self.offer_by(Arm::Lock, fleet.place(system))
    }

    /// Offers the load to the servers at `place`: those of a lock, or a PostgreSQL for an arm without one.
    pub(crate) fn offer_by(&self, arm: Arm, place: Place) -> Result<Report, LabError> {
        let name = if arm == Arm::Lock { place.system.as_str() } else { "postgres" };
        let load = Load {
            arm,
            place,
            primitive: Primitive::Mutex,
            ttl: self.ttl.0,
            work: self.work.0,
            pause: Duration::ZERO,
            contenders: self.contenders,
            key: self.key.to_owned(),
            keys: 1,
            rate: self.rate,
            arrivals: self.arrivals,
            patience: self.patience,
            lasts: self.lasts.0,
            polled: self.polled,
            fenced: true,
        };
        let failed = |error: String| LabError::Failed(format!("the load on {name}: {error}"));
        let executor = Builder::new_current_thread().enable_all().build();
        let executor = executor.map_err(|error| failed(error.to_string()))?;
        let offered = executor.block_on(async { contend(load, TokioRuntime::new(Handle::current())).await });
        let report = offered.map_err(|error| failed(error.to_string()))?;
        // Waiters left over release their grants in the background: the next load must not find them.
        executor.shutdown_timeout(Duration::from_secs(1));
        match report.failures.keys().next() {
            Some(failure) if report.served == 0 => Err(failed(failure.clone())),
            _ => Ok(report),
        }
    }
}

/// Returns the latency at `quantile`, in milliseconds.
pub(crate) fn millis(latencies: &crate::contend::Latencies, quantile: f64) -> f64 {
    let found = latencies.quantiles.iter().find(|(other, _)| (other - quantile).abs() < 1e-9);
    found.map_or(0.0, |(_, micros)| *micros as f64 / 1e3)
}

/// Describes the failed attempts of the load `whose`; `None` if there are none.
pub(crate) fn failures(whose: &str, failures: &BTreeMap<String, u64>) -> Option<String> {
    let reasons: Vec<_> =
        failures.iter().map(|(reason, count)| format!("{count} with \"{reason}\"")).collect();
    (!reasons.is_empty()).then(|| format!("Attempts that failed on {whose}: {}.", reasons.join("; ")))
}
