//! Experiments 4, 5 and 7, at a size too small for meaningful figures.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/experiments.rs"]
mod experiments;

use experiments::experiment;
use serde_json::Value;

#[test]
fn contention_measures_each_system_and_number_of_contenders() {
    let small = ["contenders=[4, 40, 80]", "rate=5.0", "lasts=\"2s\"", "work=\"20ms\""];
    let arguments: Vec<_> = small.iter().flat_map(|change| ["--set", change]).collect();
    let ran = experiment(4, &arguments);
    // Throughput and waits mean little on a machine that is busy with other tests: assert only what holds on
    // any machine.
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.printed);
    let record: Value = serde_json::from_str(&ran.record).unwrap();
    let findings = &record["findings"];
    let points = findings["points"].as_array().unwrap();
    assert_eq!(points.len(), 12, "{findings}");
    for point in points {
        let of = |field: &str| point[field].as_f64().unwrap();
        // On a busy machine an attempt may fail now and then; it must give a reason.
        assert!(of("failed") <= of("offered_per_second") / 100.0, "{point}");
        let reasons: u64 =
            point["failures"].as_object().unwrap().values().filter_map(|count| count.as_u64()).sum();
        assert_eq!(point["failed"], reasons, "{point}");
        assert!(of("p50_ms") <= of("p99_ms") && of("p99_ms") <= of("p999_ms"), "{point}");
        // At most 50 sections of 20 ms fit into a second.
        assert!(of("served_per_second") <= 50.5, "{point}");
    }
    // Set the figures of a quiet machine: some 45 grants a second, and waits that grow with the load.
    let quiet = |findings: &mut Value| {
        for point in findings["points"].as_array_mut().unwrap() {
            let offered = point["offered_per_second"].as_f64().unwrap();
            point["served_per_second"] = offered.min(45.0).into();
            point["p50_ms"] = offered.into();
            point["failed"] = 0.into();
        }
    };
    assert!(ran.is_expected_after(4, quiet));
    // A lock can't serve more because more contenders ask.
    assert!(!ran.is_expected_after(4, |findings| {
        quiet(findings);
        findings["points"][2]["served_per_second"] = 400.0.into();
    }));
    assert!(!ran.is_expected_after(4, |findings| {
        quiet(findings);
        findings["points"][2]["p50_ms"] = 1.0.into();
    }));
}

#[test]
fn fairness_distinguishes_queues_from_unordered_locks() {
    let small = ["contenders=300", "rate=80.0", "lasts=\"3s\"", "work=\"20ms\""];
    let arguments: Vec<_> = small.iter().flat_map(|change| ["--set", change]).collect();
    let ran = experiment(5, &arguments);
    let findings = ran.findings();
    let arms = findings["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 5, "Redis with wake-ups and polling alone, Redlock, etcd, ZooKeeper: {findings}");
    assert!(!ran.is_expected_after(5, |findings| findings["arms"][3]["inversions"] = 1_000_000.into()));
    assert!(!ran.is_expected_after(5, |findings| findings["arms"][0]["inversions"] = 0.into()));
}

#[test]
fn a_load_without_contention_is_refused() {
    let ran = experiment(5, &["--set", "rate=10.0"]);
    assert_eq!(ran.code, Some(2), "{}", ran.printed);
    assert!(ran.printed.contains("set a rate above 1 / work"), "{}", ran.printed);
}

#[test]
fn many_locks_show_memory_and_expiry_for_each_layout() {
    let small = ["keys=20000", "shards=10", "expiry_ttl=\"3s\"", "every=\"200ms\"", "expiry_timeout=\"60s\""];
    let etcd = ["etcd_keys=2000", "etcd_rounds=300"];
    let arguments: Vec<_> = small.iter().chain(&etcd).flat_map(|change| ["--set", change]).collect();
    let ran = experiment(7, &arguments);
    let findings = ran.findings();
    let memory = findings["memory"].as_array().unwrap();
    let keys: Vec<_> = memory.iter().map(|memory| memory["keys"].as_u64().unwrap()).collect();
    assert_eq!(keys, [20_000, 40_000, 20_010], "no counters, one for each lock, ten");
    for curve in findings["expiry"].as_array().unwrap() {
        let last = curve["samples"].as_array().unwrap().last().unwrap();
        assert_eq!((&last["live"], &last["dbsize"]), (&0.into(), &0.into()), "{curve}");
    }
    assert_eq!(findings["expiry"][1]["idle"]["dbsize"], 20_000);
    assert!(!ran.is_expected_after(7, |findings| findings["expiry"][1]["idle"]["dbsize"] = 5.into()));
    assert!(!ran.is_expected_after(7, |findings| {
        findings["growth"]["defragmented"] = findings["growth"]["after"].clone();
    }));
}
