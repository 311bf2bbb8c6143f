//! The metrics of a lock, by the `metrics` facade. Without a recorder a sample costs some nanoseconds.
//!
//! | metric | kind | further labels | meaning |
//! |---|---|---|---|
//! | `redis_lease_acquire_attempts_total` | counter | | acquires that began |
//! | `redis_lease_acquire_total` | counter | outcome | acquires that ended |
//! | `redis_lease_acquire_latency_ms` | histogram | | from the call to the grant, waiting included |
//! | `redis_lease_contention_total` | counter | | requests that found another holder |
//! | `redis_lease_held` | gauge | | leases held now |
//! | `redis_lease_held_past_ttl` | gauge | | those of them that are held for longer than their first TTL, noticed at the renewals |
//! | `redis_lease_held_ms` | histogram | | from the grant until the lease is lost, left or about to be released |
//! | `redis_lease_extend_total` | counter | outcome | renewals that ended |
//! | `redis_lease_lost_total` | counter | | leases whose holder had to stop |
//! | `redis_lease_release_total` | counter | outcome | releases that ended |
//! | `redis_lease_stale_release_total` | counter | | releases that found another owner or none, and changed nothing; these also count as `redis_lease_release_total` with the outcome `not_owner` |
//! | `release_by_non_owner_total` | counter | | the same number, under another name in use |
//!
//! All have the labels `system` and `resource_type`. The names are those of the field guides and stay the
//! same for every backend; `system` says which it is: `redis`, `redlock`, `etcd` or `zookeeper`
//! ([`Backend::system`](crate::Backend::system)). `resource_type` is that of the [`LockKey`]: keep the
//! number of types small, since each is a time series of its own. The values of `outcome` are those of
//! [`Outcome::as_str`]. The resource counts `redis_lease_fencing_rejected_total`.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{
    Key, Label, Level, Metadata, SharedString, Unit, describe_counter, describe_gauge, describe_histogram,
    with_recorder,
};

use crate::event::Outcome;
use crate::key::LockKey;
use crate::sync::Guarded;

/// Gives the recorder the help text of each metric. Call it once after a recorder was installed.
///
/// # Example
///
/// ```
/// // After the program has installed its recorder, such as that of `metrics-exporter-prometheus`:
/// dlock::metrics::describe();
/// ```
pub fn describe() {
    describe_counter!("redis_lease_acquire_attempts_total", "Acquires that began");
    describe_counter!("redis_lease_acquire_total", "Acquires that ended, by outcome");
    describe_counter!("redis_lease_contention_total", "Requests that found another holder");
    describe_counter!("redis_lease_extend_total", "Renewals that ended, by outcome");
    describe_counter!("redis_lease_lost_total", "Leases whose holder had to stop");
    describe_counter!("redis_lease_release_total", "Releases that ended, by outcome");
    describe_counter!("redis_lease_stale_release_total", "Releases of a lease that was no longer owned");
    describe_counter!("release_by_non_owner_total", "Releases of a lease that was no longer owned");
    describe_gauge!("redis_lease_held", "Leases held now");
    describe_gauge!("redis_lease_held_past_ttl", "Leases held now for longer than their first TTL");
    let unit = Unit::Milliseconds;
    describe_histogram!("redis_lease_acquire_latency_ms", unit, "From the call to the grant");
    describe_histogram!("redis_lease_held_ms", unit, "From the grant until it is released, lost or left");
}

/// The meters of one lock. Each is created when its resource type is first used: naming a sample by its
/// labels costs more than taking it.
pub(crate) struct Meters {
    system: &'static str,
    by_type: Guarded<BTreeMap<Arc<str>, Arc<Meter>>>,
}

impl Meters {
    pub(crate) fn new(system: &'static str) -> Self {
        Self { system, by_type: Guarded::default() }
    }

    /// Returns the meter of the key's resource type.
    pub(crate) fn of(&self, key: &LockKey) -> Arc<Meter> {
        let mut meters = self.by_type.lock();
        if let Some(meter) = meters.get(key.resource_type()) {
            return Arc::clone(meter);
        }
        let meter = Arc::new(Meter::new(self.system, key.resource_type()));
        meter.show_rare();
        meters.insert(key.resource_type().into(), Arc::clone(&meter));
        meter
    }
}

/// The metrics of one resource type with their labels, each created when it is first counted.
pub(crate) struct Meter {
    system: &'static str,
    resource_type: SharedString,
    attempts: OnceLock<Key>,
    acquire: ByOutcome,
    acquire_latency: OnceLock<Key>,
    contention: OnceLock<Key>,
    extend: ByOutcome,
    lost: OnceLock<Key>,
    release: ByOutcome,
    stale_release: OnceLock<Key>,
    by_non_owner: OnceLock<Key>,
    held: OnceLock<Key>,
    held_past_ttl: OnceLock<Key>,
    held_time: OnceLock<Key>,
}

type ByOutcome = [OnceLock<Key>; Outcome::ALL.len()];

impl Meter {
    fn new(system: &'static str, resource_type: &str) -> Self {
        Self {
            system,
            resource_type: resource_type.to_owned().into(),
            attempts: OnceLock::new(),
            acquire: ByOutcome::default(),
            acquire_latency: OnceLock::new(),
            contention: OnceLock::new(),
            extend: ByOutcome::default(),
            lost: OnceLock::new(),
            release: ByOutcome::default(),
            stale_release: OnceLock::new(),
            by_non_owner: OnceLock::new(),
            held: OnceLock::new(),
            held_past_ttl: OnceLock::new(),
            held_time: OnceLock::new(),
        }
    }

    pub(crate) fn system(&self) -> &'static str {
        self.system
    }

    /// Shows the rare counters at zero: a monitor sees no increase in a series that begins with its first
    /// event.
    fn show_rare(&self) {
        add(self.plain(&self.lost, "redis_lease_lost_total"), 0);
        add(self.plain(&self.stale_release, "redis_lease_stale_release_total"), 0);
        add(self.plain(&self.by_non_owner, "release_by_non_owner_total"), 0);
    }

    pub(crate) fn began(&self) {
        count(self.plain(&self.attempts, "redis_lease_acquire_attempts_total"));
    }

    pub(crate) fn acquired(&self, waited: Duration) {
        self.count(&self.acquire, "redis_lease_acquire_total", Outcome::Done);
        millis(self.plain(&self.acquire_latency, "redis_lease_acquire_latency_ms"), waited);
    }

    pub(crate) fn not_acquired(&self, outcome: Outcome) {
        self.count(&self.acquire, "redis_lease_acquire_total", outcome);
    }

    pub(crate) fn contended(&self) {
        count(self.plain(&self.contention, "redis_lease_contention_total"));
    }

    pub(crate) fn extended(&self, outcome: Outcome) {
        self.count(&self.extend, "redis_lease_extend_total", outcome);
    }

    pub(crate) fn lost(&self) {
        count(self.plain(&self.lost, "redis_lease_lost_total"));
    }

    pub(crate) fn hold_began(&self) {
        change(self.plain(&self.held, "redis_lease_held"), 1.0);
    }

    pub(crate) fn passed_ttl(&self) {
        change(self.plain(&self.held_past_ttl, "redis_lease_held_past_ttl"), 1.0);
    }

    /// Counts the end of a hold after `time`; `is_past_ttl` if [`Meter::passed_ttl`] has counted it.
    pub(crate) fn hold_ended(&self, time: Duration, is_past_ttl: bool) {
        change(self.plain(&self.held, "redis_lease_held"), -1.0);
        if is_past_ttl {
            change(self.plain(&self.held_past_ttl, "redis_lease_held_past_ttl"), -1.0);
        }
        millis(self.plain(&self.held_time, "redis_lease_held_ms"), time);
    }

    pub(crate) fn released(&self, outcome: Outcome) {
        self.count(&self.release, "redis_lease_release_total", outcome);
        if outcome == Outcome::NotOwner {
            count(self.plain(&self.stale_release, "redis_lease_stale_release_total"));
            count(self.plain(&self.by_non_owner, "release_by_non_owner_total"));
        }
    }

    fn count(&self, keys: &ByOutcome, name: &'static str, outcome: Outcome) {
        count(keys[outcome as usize].get_or_init(|| {
            let outcome = Label::from_static_parts("outcome", outcome.as_str());
            let [system, resource_type] = self.labels();
            Key::from_parts(name, vec![system, resource_type, outcome])
        }));
    }

    fn plain<'a>(&self, key: &'a OnceLock<Key>, name: &'static str) -> &'a Key {
        key.get_or_init(|| Key::from_parts(name, self.labels().to_vec()))
    }

    fn labels(&self) -> [Label; 2] {
        let system = Label::from_static_parts("system", self.system);
        [system, Label::new("resource_type", self.resource_type.clone())]
    }
}

const METADATA: Metadata<'_> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

fn count(key: &Key) {
    add(key, 1);
}

fn add(key: &Key, number: u64) {
    with_recorder(|recorder| recorder.register_counter(key, &METADATA).increment(number));
}

fn change(key: &Key, by: f64) {
    with_recorder(|recorder| recorder.register_gauge(key, &METADATA).increment(by));
}

fn millis(key: &Key, time: Duration) {
    with_recorder(|recorder| recorder.register_histogram(key, &METADATA).record(time.as_secs_f64() * 1000.0));
}
