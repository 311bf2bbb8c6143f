//! The counters of one service. Each service has counters of its own, since a simulation runs many services
//! in one process, and renders them itself. The same counts go to the recorder of the `metrics` crate, if the
//! process has one.

use std::fmt::{self, Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fence::{Refusal, WriteOutcome};
use crate::store::ReadOutcome;

/// The counters of one service.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
///
/// use resource::http::{App, Config};
/// use resource::store::MemoryStore;
///
/// let app = App::new(Arc::new(MemoryStore::new()), Config::default());
/// assert_eq!(app.metrics().writes_accepted(), 0);
/// assert!(app.metrics().render().contains("resource_stale_token_rejections_total 0"));
/// ```
#[derive(Debug, Default)]
pub struct Metrics {
    writes_accepted: Counter,
    writes_repeated: Counter,
    writes_stale: Counter,
    writes_foreign: Counter,
    writes_conflicting: Counter,
    writes_without_token: Counter,
    reads_answered: Counter,
    reads_stale: Counter,
    reads_foreign: Counter,
    requests_refused: Counter,
    store_failures: Counter,
}

#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Counter {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metrics {
    /// Returns the number of writes and claims refused for a stale token:
    /// `resource_stale_token_rejections_total`.
    pub fn stale_token_rejections(&self) -> u64 {
        self.writes_stale.value() + self.reads_stale.value()
    }

    /// Returns the number of applied writes.
    pub fn writes_accepted(&self) -> u64 {
        self.writes_accepted.value()
    }

    pub(crate) fn write_answered(&self, outcome: &WriteOutcome) {
        let (counter, label) = match outcome {
            WriteOutcome::Accepted(_) => (&self.writes_accepted, "accepted"),
            WriteOutcome::Repeated(_) => (&self.writes_repeated, "repeated"),
            WriteOutcome::Refused(refusal) => (self.refused_writes(*refusal), refusal.as_str()),
        };
        counter.add();
        metrics::counter!("resource_writes_total", "outcome" => label).increment(1);
        if let WriteOutcome::Refused(refusal) = outcome {
            rejected(*refusal);
        }
    }

    const fn refused_writes(&self, refusal: Refusal) -> &Counter {
        match refusal {
            Refusal::Stale { .. } => &self.writes_stale,
            Refusal::ForeignOwner { .. } => &self.writes_foreign,
            Refusal::Conflict { .. } => &self.writes_conflicting,
            Refusal::Fenced { .. } => &self.writes_without_token,
        }
    }

    pub(crate) fn read_answered(&self, outcome: &ReadOutcome) {
        let (counter, label) = match outcome {
            ReadOutcome::Read(_) => (&self.reads_answered, "answered"),
            ReadOutcome::Refused(refusal @ Refusal::ForeignOwner { .. }) => {
                (&self.reads_foreign, refusal.as_str())
            }
            ReadOutcome::Refused(refusal) => (&self.reads_stale, refusal.as_str()),
        };
        counter.add();
        metrics::counter!("resource_reads_total", "outcome" => label).increment(1);
        if let ReadOutcome::Refused(refusal) = outcome {
            rejected(*refusal);
        }
    }

    pub(crate) fn request_refused(&self) {
        self.requests_refused.add();
        metrics::counter!("resource_bad_requests_total").increment(1);
    }

    pub(crate) fn store_failed(&self) {
        self.store_failures.add();
        metrics::counter!("resource_store_failures_total").increment(1);
    }

    /// Returns the counters in the Prometheus text format, version 0.0.4.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(2048);
        // Writing to a String can't fail.
        let _ = self.write_families(&mut text);
        text
    }

    fn write_families(&self, text: &mut String) -> fmt::Result {
        let fenced_off = self.stale_token_rejections()
            + self.writes_foreign.value()
            + self.reads_foreign.value()
            + self.writes_without_token.value();
        family(
            text,
            "resource_stale_token_rejections_total",
            "Writes and claims refused for a stale fencing token.",
        )?;
        sample(text, "resource_stale_token_rejections_total", self.stale_token_rejections())?;
        // No label for the type of the resource: a client could create unlimited types.
        family(text, "redis_lease_fencing_rejected_total", "Requests that the fence check refused.")?;
        sample(text, "redis_lease_fencing_rejected_total{downstream=\"resource\"}", fenced_off)?;
        family(text, "resource_writes_total", "Well-formed writes, by outcome.")?;
        sample(text, "resource_writes_total{outcome=\"accepted\"}", self.writes_accepted.value())?;
        sample(text, "resource_writes_total{outcome=\"repeated\"}", self.writes_repeated.value())?;
        sample(text, "resource_writes_total{outcome=\"stale\"}", self.writes_stale.value())?;
        sample(text, "resource_writes_total{outcome=\"owner\"}", self.writes_foreign.value())?;
        sample(text, "resource_writes_total{outcome=\"conflict\"}", self.writes_conflicting.value())?;
        sample(text, "resource_writes_total{outcome=\"fenced\"}", self.writes_without_token.value())?;
        family(text, "resource_reads_total", "Well-formed reads, by outcome.")?;
        sample(text, "resource_reads_total{outcome=\"answered\"}", self.reads_answered.value())?;
        sample(text, "resource_reads_total{outcome=\"stale\"}", self.reads_stale.value())?;
        sample(text, "resource_reads_total{outcome=\"owner\"}", self.reads_foreign.value())?;
        family(text, "resource_bad_requests_total", "Requests that were not well-formed.")?;
        sample(text, "resource_bad_requests_total", self.requests_refused.value())?;
        family(text, "resource_store_failures_total", "Requests that failed because the store did.")?;
        sample(text, "resource_store_failures_total", self.store_failures.value())
    }
}

/// Counts a refusal of the fence check. A version conflict is not one.
fn rejected(refusal: Refusal) {
    if let Refusal::Stale { .. } = refusal {
        metrics::counter!("resource_stale_token_rejections_total").increment(1);
    }
    if refusal.seen().is_some() {
        metrics::counter!("redis_lease_fencing_rejected_total", "downstream" => "resource").increment(1);
    }
}

fn family(text: &mut String, name: &str, help: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter")
}

fn sample(text: &mut String, series: &str, value: impl Display) -> fmt::Result {
    writeln!(text, "{series} {value}")
}
