//! The service's metrics: their labels, and the recorder of the process that they reach.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::common::service::{app, ask, put};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// Keeps the names and labels of the counters that were counted.
#[derive(Clone, Default)]
struct Counted(Arc<Mutex<BTreeSet<String>>>);

impl Recorder for Counted {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        self.0.lock().unwrap().insert(format!("{}{{{}}}", key.name(), labels.join(",")));
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn resource_types_beyond_the_first_64_share_their_counters() {
    let app = app();
    for number in 0..70 {
        ask(&app, &format!("GET /r/type-{number}:1"), &[], b"");
    }
    ask(&app, "GET /r/untyped", &[], b"");
    ask(&app, "GET /r/type-3:2", &[], b"");
    let text = ask(&app, "GET /metrics", &[], b"").body;
    let count = |resource_type: &str| {
        let series =
            format!(r#"resource_reads_total{{resource_type="{resource_type}",outcome="answered"}} "#);
        text.lines().find_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok())
    };
    assert_eq!((count("type-3"), count("type-63")), (Some(2), Some(1)));
    assert_eq!((count("type-64"), count("other")), (None, Some(7)));
}

#[test]
fn counts_reach_the_process_s_recorder() {
    let recorder = Counted::default();
    metrics::with_local_recorder(&recorder, || {
        let app = app();
        put(&app, 34, Some("b"), "b");
        put(&app, 33, Some("a"), "a");
    });
    let expected = [
        "redis_lease_fencing_rejected_total{resource_type=orders,downstream=resource}",
        "resource_stale_token_rejections_total{resource_type=orders}",
        "resource_writes_total{resource_type=orders,outcome=accepted}",
        "resource_writes_total{resource_type=orders,outcome=stale}",
    ];
    let counted = recorder.0.lock().unwrap();
    assert_eq!(counted.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
