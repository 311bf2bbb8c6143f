//! A metrics recorder that keeps a lock's counters, for the tests of one thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// The counters by name, all labels together.
#[derive(Clone, Default)]
pub struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

struct Named {
    counts: Counts,
    name: String,
}

impl Counts {
    /// Returns the value of the counter `name`.
    pub fn of(&self, name: &str) -> u64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

impl CounterFn for Named {
    fn increment(&self, value: u64) {
        *self.counts.0.lock().unwrap().entry(self.name.clone()).or_default() += value;
    }

    fn absolute(&self, value: u64) {
        self.counts.0.lock().unwrap().insert(self.name.clone(), value);
    }
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Named { counts: self.clone(), name: key.name().to_owned() }))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
