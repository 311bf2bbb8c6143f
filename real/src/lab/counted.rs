//! A counter of the lock library's own metrics, for the time of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder,
};

/// Runs `run`, and also returns by how much the counters `name` with the outcome `done` were raised on this
/// thread meanwhile.
pub(crate) fn count_done<T>(name: &'static str, run: impl FnOnce() -> T) -> (T, u64) {
    let counted = Counted { name, sum: Arc::default() };
    let result = with_local_recorder(&counted, run);
    (result, counted.sum.load(Ordering::Acquire))
}

/// A recorder that adds up some counters, and ignores all other metrics.
struct Counted {
    name: &'static str,
    sum: Arc<AtomicU64>,
}

impl Recorder for Counted {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let is_done = || key.labels().any(|label| (label.key(), label.value()) == ("outcome", "done"));
        if key.name() == self.name && is_done() {
            Counter::from_arc(Arc::clone(&self.sum))
        } else {
            Counter::noop()
        }
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[cfg(test)]
mod tests {
    use metrics::{counter, gauge};

    use super::count_done;

    #[test]
    fn only_the_named_counter_with_its_outcome_is_counted() {
        let (result, count) = count_done("renewals", || {
            counter!("renewals", "outcome" => "done", "system" => "redis").increment(2);
            counter!("renewals", "outcome" => "error").increment(10);
            counter!("other", "outcome" => "done").increment(100);
            gauge!("renewals", "outcome" => "done").set(1000.0);
            7
        });
        assert_eq!((result, count), (7, 2));
    }
}
