//! Measures the fairness of a lock, also of one that promises no order, where `unfair` is not judged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::events::Event;
use crate::vocabulary::{Kind, Name};

/// Order of arrival against order of grant, over the requests that were served. Requests for different keys
/// don't compete.
///
/// # Example
///
/// ```
/// use history::{Event, Fairness, Kind, Name, Nanos};
///
/// let event = |process: &str, is_grant: bool| {
///     let (key, owner, process) = (Name::from("6b6e"), Name::from(process), Name::from(process));
///     let (resource_type, ttl_millis, valid_micros) = (None, None, None);
///     let kind = match is_grant {
///         false => Kind::LeaseRequested { resource_type, key, owner, ttl_millis },
///         true => Kind::LeaseAcquired { resource_type, key, owner, token: 1, ttl_millis, valid_micros },
///     };
///     Event { at: Nanos(0), process, kind }
/// };
/// // a asks first, and is served last.
/// let history = [event("a", false), event("b", false), event("b", true), event("a", true)];
/// let fairness = Fairness::of(&history);
/// assert_eq!((fairness.served, fairness.inversions, fairness.overtaken_max), (2, 1, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fairness {
    /// Requests that were served.
    pub served: u64,
    /// Pairs of requests of which the later was served first. Zero for a lock that is first come, first
    /// served; half of all pairs for one that serves at random.
    pub inversions: u64,
    /// The largest number of later requests that were served before one earlier request.
    pub overtaken_max: u64,
}

impl Fairness {
    /// Measures `history`: arrival is `lease_requested`, service is `lease_acquired`. A request that
    /// continues under another owner (`lease_retried`) keeps its first time of arrival.
    pub fn of(history: &[Event]) -> Self {
        let mut fairness = Self::default();
        for grants in arrivals_in_order_of_grant(history).values() {
            fairness.add(grants);
        }
        fairness
    }

    /// Adds the grants of one key. `grants` has, for each grant in order, the number of requests of the key
    /// that had arrived before its own.
    fn add(&mut self, grants: &[usize]) {
        let mut served = Counts::up_to(grants.iter().max().map_or(0, |last| last + 1));
        for (granted_before, arrival) in (0_u64..).zip(grants) {
            let overtaken_by = granted_before - served.below(*arrival);
            self.inversions += overtaken_by;
            self.overtaken_max = self.overtaken_max.max(overtaken_by);
            served.increment(*arrival);
        }
        self.served += grants.len() as u64;
    }
}

fn arrivals_in_order_of_grant(history: &[Event]) -> BTreeMap<&Name, Vec<usize>> {
    let mut arrived: BTreeMap<&Name, usize> = BTreeMap::new();
    let mut waiting: BTreeMap<(&Name, &Name, &Name), usize> = BTreeMap::new();
    let mut given_up: BTreeMap<(&Name, &Name), usize> = BTreeMap::new();
    let mut grants: BTreeMap<&Name, Vec<usize>> = BTreeMap::new();
    for event in history {
        match &event.kind {
            Kind::LeaseRequested { key, owner, .. } => {
                let number = arrived.entry(key).or_default();
                waiting.insert((key, owner, &event.process), *number);
                *number += 1;
            }
            Kind::LeaseNotAcquired { key, owner, .. } => {
                if let Some(number) = waiting.remove(&(key, owner, &event.process)) {
                    given_up.insert((key, &event.process), number);
                }
            }
            Kind::LeaseRetried { key, owner, .. } => {
                if let Some(number) = given_up.remove(&(key, &event.process)) {
                    waiting.insert((key, owner, &event.process), number);
                }
            }
            Kind::LeaseAcquired { key, owner, .. } => {
                if let Some(number) = waiting.remove(&(key, owner, &event.process)) {
                    grants.entry(key).or_default().push(number);
                }
            }
            _ => {}
        }
    }
    grants
}

/// Counts the occurrences of each number, with fast sums.
///
/// Source: Fenwick, "A New Data Structure for Cumulative Frequency Tables" (1994).
struct Counts {
    /// Counted from one; the entry 0 is not used.
    tree: Vec<u64>,
}

impl Counts {
    /// Creates counts for the numbers below `size`.
    fn up_to(size: usize) -> Self {
        Self { tree: vec![0; size + 1] }
    }

    fn increment(&mut self, number: usize) {
        let mut at = number + 1;
        while let Some(sum) = self.tree.get_mut(at) {
            *sum += 1;
            at += lowest_bit(at);
        }
    }

    /// Returns the number of counted numbers that are below `number`.
    fn below(&self, number: usize) -> u64 {
        let mut at = number;
        let mut sum = 0;
        while at > 0 {
            sum += self.tree[at];
            at -= lowest_bit(at);
        }
        sum
    }
}

const fn lowest_bit(number: usize) -> usize {
    number & number.wrapping_neg()
}
