//! A metrics recorder that keeps a lock's counters, for the tests of one thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// The counters by name, all labels together, and by `name outcome` if they have that label.
#[derive(Clone, Default)]
pub struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

struct Named {
    counts: Counts,
    names: Vec<String>,
}

impl Counts {
    /// Returns the value of the counter `name`.
    pub fn of(&self, name: &str) -> u64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }

    /// Returns the part of the counter `name` with this outcome.
    pub fn of_outcome(&self, name: &str, outcome: &str) -> u64 {
        self.of(&format!("{name} {outcome}"))
    }
}

impl CounterFn for Named {
    fn increment(&self, value: u64) {
        let mut counts = self.counts.0.lock().unwrap();
        for name in &self.names {
            *counts.entry(name.clone()).or_default() += value;
        }
    }

    fn absolute(&self, value: u64) {
        let mut counts = self.counts.0.lock().unwrap();
        counts.extend(self.names.iter().map(|name| (name.clone(), value)));
    }
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let name = key.name();
        let outcomes = key.labels().filter(|label| label.key() == "outcome");
        let mut names: Vec<_> = outcomes.map(|outcome| format!("{name} {}", outcome.value())).collect();
        names.push(name.to_owned());
        Counter::from_arc(Arc::new(Named { counts: self.clone(), names }))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
