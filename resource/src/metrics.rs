//! The counters of one service. Each service has counters of its own, since a simulation runs many services
//! in one process, and renders them itself. The same counts go to the recorder of the `metrics` crate, if the
//! process has one.
//!
//! | counter | labels | meaning |
//! |---|---|---|
//! | `resource_stale_token_rejections_total` | resource_type | writes and claims refused for a stale token |
//! | `redis_lease_fencing_rejected_total` | resource_type, downstream | requests that the fence check refused |
//! | `resource_writes_total` | resource_type, outcome | well-formed writes |
//! | `resource_reads_total` | resource_type, outcome | well-formed reads |
//! | `resource_bad_requests_total` | | requests that were not well-formed |
//! | `resource_store_failures_total` | | requests that failed because the store did |
//! | `resource_unauthorized_total` | | requests without an accepted bearer token |
//! | `resource_rate_limited_total` | | requests beyond the rate of their address |
//! | `resource_connections_refused_total` | | connections beyond the limit |
//! | `resource_fences_set_total` | | fences set by operators |
//!
//! `resource_type` is the type in the key
//! ([`ResourceKey::resource_type`](crate::ResourceKey::resource_type)). It is `other` for keys without one,
//! and for all types after the first 64: clients choose the keys, and must not be able to fill the memory.
//! The counters of a type begin at zero with its first request.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{Key, Label, Level, Metadata, SharedString};

use crate::ResourceKey;
use crate::fence::{Refusal, WriteOutcome};
use crate::store::ReadOutcome;

/// The largest number of resource types with counters of their own.
const TYPES_MAX: usize = 64;
/// The label of all other types, and of keys without a type.
const OTHER: &str = "other";

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
/// assert!(app.metrics().render().contains("resource_bad_requests_total 0"));
/// ```
#[derive(Debug, Default)]
pub struct Metrics {
    by_type: Mutex<BTreeMap<Arc<str>, Arc<Counters>>>,
    plain: [AtomicU64; Plain::ALL.len()],
}

impl Metrics {
    /// Returns the number of writes and claims refused for a stale token, of all resource types:
    /// `resource_stale_token_rejections_total`.
    pub fn stale_token_rejections(&self) -> u64 {
        self.sum(Series::StaleToken)
    }

    /// Returns the number of applied writes.
    pub fn writes_accepted(&self) -> u64 {
        self.sum(Series::WriteAccepted)
    }

    pub(crate) fn write_answered(&self, key: &ResourceKey, outcome: &WriteOutcome) {
        let counters = self.of(key);
        match outcome {
            WriteOutcome::Accepted(_) => counters.add(Series::WriteAccepted),
            WriteOutcome::Repeated(_) => counters.add(Series::WriteRepeated),
            WriteOutcome::Refused(refusal) => {
                counters.add(match refusal {
                    Refusal::Stale { .. } => Series::WriteStale,
                    Refusal::ForeignOwner { .. } => Series::WriteForeign,
                    Refusal::Conflict { .. } => Series::WriteConflicting,
                    Refusal::Fenced { .. } => Series::WriteFenced,
                    Refusal::Jump { .. } => Series::WriteJumping,
                });
                counters.refused(*refusal);
            }
        }
    }

    pub(crate) fn read_answered(&self, key: &ResourceKey, outcome: &ReadOutcome) {
        let counters = self.of(key);
        match outcome {
            ReadOutcome::Read(_) => counters.add(Series::ReadAnswered),
            ReadOutcome::Refused(refusal) => {
                counters.add(match refusal {
                    Refusal::ForeignOwner { .. } => Series::ReadForeign,
                    Refusal::Jump { .. } => Series::ReadJumping,
                    _ => Series::ReadStale,
                });
                counters.refused(*refusal);
            }
        }
    }

    /// Adds 1 to a counter without labels.
    pub(crate) fn count(&self, plain: Plain) {
        self.plain[plain as usize].fetch_add(1, Ordering::Relaxed);
        metrics::counter!(plain.family().0).increment(1);
    }

    /// Returns the counters in the Prometheus text format, version 0.0.4.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(2048);
        // Writing to a String can't fail.
        let _ = self.write_families(&mut text);
        text
    }

    fn write_families(&self, text: &mut String) -> fmt::Result {
        for series in Series::ALL.chunk_by(|one, other| one.family() == other.family()) {
            let (name, help) = series[0].family();
            family(text, name, help)?;
            for (resource_type, counters) in self.by_type().iter() {
                for series in series {
                    write!(text, "{name}{{resource_type=\"{}\"", escaped(resource_type))?;
                    if let Some((label, value)) = series.label() {
                        write!(text, ",{label}=\"{value}\"")?;
                    }
                    writeln!(text, "}} {}", counters.value(*series))?;
                }
            }
        }
        for plain in Plain::ALL {
            let (name, help) = plain.family();
            family(text, name, help)?;
            writeln!(text, "{name} {}", self.plain[plain as usize].load(Ordering::Relaxed))?;
        }
        Ok(())
    }

    /// Returns the counters of the key's resource type.
    fn of(&self, key: &ResourceKey) -> Arc<Counters> {
        let mut by_type = self.by_type();
        let resource_type = key.resource_type();
        let mut resource_type = resource_type.as_deref().unwrap_or(OTHER);
        if by_type.len() >= TYPES_MAX && !by_type.contains_key(resource_type) {
            resource_type = OTHER;
        }
        if let Some(counters) = by_type.get(resource_type) {
            return Arc::clone(counters);
        }
        let counters = Arc::new(Counters::new(resource_type));
        by_type.insert(resource_type.into(), Arc::clone(&counters));
        counters
    }

    fn sum(&self, series: Series) -> u64 {
        self.by_type().values().map(|counters| counters.value(series)).sum()
    }

    fn by_type(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<Counters>>> {
        self.by_type.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A counter without labels, in the order in which they are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    BadRequests,
    StoreFailures,
    Unauthorized,
    RateLimited,
    ConnectionsRefused,
    FencesSet,
}

impl Plain {
    const ALL: [Self; 6] = [
        Self::BadRequests,
        Self::StoreFailures,
        Self::Unauthorized,
        Self::RateLimited,
        Self::ConnectionsRefused,
        Self::FencesSet,
    ];

    /// Returns its name and its help text.
    const fn family(self) -> (&'static str, &'static str) {
        match self {
            Self::BadRequests => ("resource_bad_requests_total", "Requests that were not well-formed."),
            Self::StoreFailures => {
                ("resource_store_failures_total", "Requests that failed because the store did.")
            }
            Self::Unauthorized => {
                ("resource_unauthorized_total", "Requests without an accepted bearer token.")
            }
            Self::RateLimited => {
                ("resource_rate_limited_total", "Requests beyond the rate of their address.")
            }
            Self::ConnectionsRefused => {
                ("resource_connections_refused_total", "Connections beyond the limit.")
            }
            Self::FencesSet => ("resource_fences_set_total", "Fences set by operators."),
        }
    }
}

/// A time series of each resource type, in the order in which they are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Series {
    StaleToken,
    FencedOff,
    WriteAccepted,
    WriteRepeated,
    WriteStale,
    WriteForeign,
    WriteConflicting,
    WriteFenced,
    WriteJumping,
    ReadAnswered,
    ReadStale,
    ReadForeign,
    ReadJumping,
}

impl Series {
    const ALL: [Self; 13] = [
        Self::StaleToken,
        Self::FencedOff,
        Self::WriteAccepted,
        Self::WriteRepeated,
        Self::WriteStale,
        Self::WriteForeign,
        Self::WriteConflicting,
        Self::WriteFenced,
        Self::WriteJumping,
        Self::ReadAnswered,
        Self::ReadStale,
        Self::ReadForeign,
        Self::ReadJumping,
    ];

    /// Returns the name of its metric, and that metric's help text.
    const fn family(self) -> (&'static str, &'static str) {
        match self {
            Self::StaleToken => (
                "resource_stale_token_rejections_total",
                "Writes and claims refused for a stale fencing token.",
            ),
            Self::FencedOff => {
                ("redis_lease_fencing_rejected_total", "Requests that the fence check refused.")
            }
            Self::WriteAccepted
            | Self::WriteRepeated
            | Self::WriteStale
            | Self::WriteForeign
            | Self::WriteConflicting
            | Self::WriteFenced
            | Self::WriteJumping => ("resource_writes_total", "Well-formed writes, by outcome."),
            Self::ReadAnswered | Self::ReadStale | Self::ReadForeign | Self::ReadJumping => {
                ("resource_reads_total", "Well-formed reads, by outcome.")
            }
        }
    }

    /// Returns its label beside `resource_type`. The outcomes of refusals are those of [`Refusal::as_str`].
    const fn label(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::StaleToken => None,
            Self::FencedOff => Some(("downstream", "resource")),
            Self::WriteAccepted => Some(("outcome", "accepted")),
            Self::WriteRepeated => Some(("outcome", "repeated")),
            Self::WriteStale | Self::ReadStale => Some(("outcome", "stale")),
            Self::WriteForeign | Self::ReadForeign => Some(("outcome", "owner")),
            Self::WriteConflicting => Some(("outcome", "conflict")),
            Self::WriteFenced => Some(("outcome", "fenced")),
            Self::WriteJumping | Self::ReadJumping => Some(("outcome", "jump")),
            Self::ReadAnswered => Some(("outcome", "answered")),
        }
    }
}

/// The counters of one resource type.
#[derive(Debug)]
struct Counters {
    values: [AtomicU64; Series::ALL.len()],
    /// The names of the same series for the process's recorder.
    keys: [Key; Series::ALL.len()],
}

const METADATA: Metadata<'_> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

impl Counters {
    fn new(resource_type: &str) -> Self {
        let resource_type = SharedString::from_shared(resource_type.into());
        let key = |series: Series| {
            let label = series.label().map(|(name, value)| Label::from_static_parts(name, value));
            let labels = [Label::new("resource_type", resource_type.clone())].into_iter().chain(label);
            Key::from_parts(series.family().0, labels.collect::<Vec<_>>())
        };
        Self { values: Default::default(), keys: Series::ALL.map(key) }
    }

    fn add(&self, series: Series) {
        self.values[series as usize].fetch_add(1, Ordering::Relaxed);
        let key = &self.keys[series as usize];
        metrics::with_recorder(|recorder| recorder.register_counter(key, &METADATA).increment(1));
    }

    /// Counts a refusal of the fence check. A version conflict is not one.
    fn refused(&self, refusal: Refusal) {
        if let Refusal::Stale { .. } = refusal {
            self.add(Series::StaleToken);
        }
        if !matches!(refusal, Refusal::Conflict { .. }) {
            self.add(Series::FencedOff);
        }
    }

    fn value(&self, series: Series) -> u64 {
        self.values[series as usize].load(Ordering::Relaxed)
    }
}

fn family(text: &mut String, name: &str, help: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter")
}

/// Escapes a label's value. Keys have no control characters.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"")
}
