//! What a lock counts, by the `metrics` facade: without a recorder a sample costs one short-lived allocation.
//!
//! | metric | labels | meaning |
//! |---|---|---|
//! | `redis_lease_acquire_total` | resource_type, outcome | acquires that ended |
//! | `redis_lease_acquire_latency_ms` | resource_type | from the call to the grant, waiting included |
//! | `redis_lease_contention_total` | resource_type | attempts that found another holder |
//! | `redis_lease_extend_total` | resource_type, outcome | renewals that ended |
//! | `redis_lease_lost_total` | resource_type | leases whose holder had to stop |
//! | `redis_lease_release_total` | resource_type, outcome | releases that ended |
//! | `redis_lease_stale_release_total`, `release_by_non_owner_total` | resource_type | releases that found another owner or none: no-ops. Two names for one number, since dashboards know it by either |
//! | `redis_lease_held_ms` | resource_type | from the grant to its release or loss |
//!
//! The names are those of the field guides and stay the same for every backend. `redis_lease_fencing_rejected_total` is
//! the resource's to count. The values of `outcome` are those of [`Outcome::as_str`].

use std::time::Duration;

use metrics::{SharedString, Unit, counter, describe_counter, describe_histogram, histogram};

use crate::event::Outcome;
use crate::key::LockKey;

/// Tells the recorder what each metric means. Call it once after a recorder was installed; without it only the help
/// texts are missing.
pub fn describe() {
    describe_counter!("redis_lease_acquire_total", "Acquires that ended, by outcome");
    describe_counter!("redis_lease_contention_total", "Attempts that found another holder");
    describe_counter!("redis_lease_extend_total", "Renewals that ended, by outcome");
    describe_counter!("redis_lease_lost_total", "Leases whose holder had to stop");
    describe_counter!("redis_lease_release_total", "Releases that ended, by outcome");
    describe_counter!("redis_lease_stale_release_total", "Releases of a lease that was no longer owned");
    describe_counter!("release_by_non_owner_total", "As redis_lease_stale_release_total");
    let unit = Unit::Milliseconds;
    describe_histogram!("redis_lease_acquire_latency_ms", unit, "From the call to the grant");
    describe_histogram!("redis_lease_held_ms", unit, "From the grant to its release or loss");
}

pub(crate) fn acquired(key: &LockKey, waited: Duration) {
    count("redis_lease_acquire_total", key, Outcome::Done);
    millis("redis_lease_acquire_latency_ms", key, waited);
}

pub(crate) fn not_acquired(key: &LockKey, outcome: Outcome) {
    count("redis_lease_acquire_total", key, outcome);
}

pub(crate) fn contended(key: &LockKey) {
    counter!("redis_lease_contention_total", "resource_type" => kind(key)).increment(1);
}

pub(crate) fn extended(key: &LockKey, outcome: Outcome) {
    count("redis_lease_extend_total", key, outcome);
}

pub(crate) fn lost(key: &LockKey) {
    counter!("redis_lease_lost_total", "resource_type" => kind(key)).increment(1);
}

pub(crate) fn held(key: &LockKey, time: Duration) {
    millis("redis_lease_held_ms", key, time);
}

pub(crate) fn released(key: &LockKey, outcome: Outcome) {
    count("redis_lease_release_total", key, outcome);
    if outcome == Outcome::NotOwner {
        counter!("redis_lease_stale_release_total", "resource_type" => kind(key)).increment(1);
        counter!("release_by_non_owner_total", "resource_type" => kind(key)).increment(1);
    }
}

fn count(name: &'static str, key: &LockKey, outcome: Outcome) {
    counter!(name, "resource_type" => kind(key), "outcome" => outcome.as_str()).increment(1);
}

fn millis(name: &'static str, key: &LockKey, time: Duration) {
    histogram!(name, "resource_type" => kind(key)).record(time.as_secs_f64() * 1000.0);
}

fn kind(key: &LockKey) -> SharedString {
    SharedString::from_shared(key.resource_type_shared())
}
