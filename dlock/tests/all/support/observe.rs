//! Records the events and metrics of a lock.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit,
};
use tracing::field::{Field, Visit};
use tracing::span;

/// Keeps events as `name outcome`, without the outcome if there is none, and the fields of the last one.
#[derive(Clone, Default)]
pub struct Events {
    lines: Arc<Mutex<Vec<String>>>,
    fields: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

impl Events {
    /// Returns the events since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }

    /// Returns a field of the last event.
    pub fn field(&self, name: &str) -> Option<String> {
        self.fields.lock().unwrap().get(name).cloned()
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.into());
    }
}

impl tracing::Subscriber for Events {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "dlock"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let outcome = fields.0.get("outcome").map(|outcome| format!(" {outcome}")).unwrap_or_default();
        self.lines.lock().unwrap().push(format!("{}{outcome}", fields.0["event"]));
        *self.fields.lock().unwrap() = fields.0;
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Sums up samples by `name{label values}`.
#[derive(Clone, Default)]
pub struct Meter(Arc<Mutex<BTreeMap<String, Samples>>>);

#[derive(Default)]
struct Samples {
    number: u32,
    sum: f64,
}

impl Meter {
    /// Returns the sum of the samples, zero if there are none.
    pub fn sum(&self, name: &str) -> f64 {
        self.0.lock().unwrap().get(name).map_or(0.0, |samples| samples.sum)
    }

    /// Returns the number of samples.
    pub fn samples(&self, name: &str) -> u32 {
        self.0.lock().unwrap().get(name).map_or(0, |samples| samples.number)
    }

    /// Returns true if there is a sample.
    pub fn has(&self, name: &str) -> bool {
        self.0.lock().unwrap().contains_key(name)
    }

    fn cell(&self, key: &Key) -> Arc<Cell> {
        let labels: Vec<_> = key.labels().map(metrics::Label::value).collect();
        Arc::new(Cell { meter: self.clone(), name: format!("{}{{{}}}", key.name(), labels.join(",")) })
    }
}

struct Cell {
    meter: Meter,
    name: String,
}

impl Cell {
    fn add(&self, value: f64) {
        let mut meter = self.meter.0.lock().unwrap();
        let samples = meter.entry(self.name.clone()).or_default();
        samples.number += 1;
        samples.sum += value;
    }
}

impl CounterFn for Cell {
    fn increment(&self, value: u64) {
        self.add(f64::from(u32::try_from(value).unwrap()));
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Cell {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, _: f64) {}
}

impl HistogramFn for Cell {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl metrics::Recorder for Meter {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}
