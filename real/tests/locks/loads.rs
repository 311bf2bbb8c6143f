//! `contend` with the primitives that nobody holds: its attempts want a result, fire a cron, or work on jobs.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

use history::{Event, Kind};
use real::recording::read;
use real::servers::{EtcdCluster, Persistence, Redis, Stage, ZooKeeper};
use serde_json::Value;

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_real")).args(arguments).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

/// Offers 150 attempts a second of 20 ms, for 2 s, to one key; returns what was printed, the report and the
/// history, which the audit finds clean.
fn load(stage: &Stage, system: &str, servers: &str, primitive: &str) -> (String, Value, Vec<Event>) {
    let file = |end: &str| stage.directory().join(format!("{system}-{}.{end}", primitive.replace(':', "-")));
    let [out, history] = ["json", "jsonl"].map(|end| file(end).display().to_string());
    let mut arguments = vec!["contend", "--system", system, "--servers", servers, "--primitive", primitive];
    arguments.extend(["--out", &out, "--history", &history]);
    arguments.extend("--contenders 12 --rate 150 --work 20ms --for 2s".split(' '));
    let (code, printed) = run(&arguments);
    assert_eq!(code, Some(0), "{system} {primitive}: {printed}");
    let (code, audited) = run(&["audit", &history]);
    assert_eq!(code, Some(0), "{system} {primitive}: {audited}");
    let report = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    (printed, report, read(&[file("jsonl")]).unwrap().events)
}

/// Returns the numbers of the attempts that were served, and of those whose task another one had done.
fn served(report: &Value) -> (u64, u64) {
    for none in ["failed", "lost", "refused"] {
        assert_eq!(report[none], 0, "{none}: {report}");
    }
    (report["served"].as_u64().unwrap(), report["shared"].as_u64().unwrap())
}

fn count(events: &[Event], wanted: fn(&Kind) -> bool) -> u64 {
    events.iter().filter(|event| wanted(&event.kind)).count() as u64
}

#[test]
fn flights_share_results_and_a_tick_runs_once() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let etcd = EtcdCluster::start_one(&stage).unwrap();
    let zookeeper = ZooKeeper::start(&stage).unwrap();
    let places = [
        ("redis", redis.address()),
        ("etcd", etcd.addresses()[0].clone()),
        ("zookeeper", zookeeper.address()),
    ];
    for (system, servers) in places {
        let (printed, report, events) = load(&stage, system, &servers, "single-flight");
        let (served, shared) = self::served(&report);
        let computed = count(&events, |kind| matches!(kind, Kind::ComputationStarted { .. }));
        assert_eq!(computed, served - shared, "{system}: {printed}");
        assert!(shared > 0 && computed > 0, "{system}: {printed}");
        assert!(printed.contains(&format!("{shared} attempts got the result of another")), "{printed}");
        assert!(!printed.contains("release"), "a flight releases by itself: {printed}");

        let (printed, report, events) = load(&stage, system, &servers, "cron:100ms");
        let (served, shared) = self::served(&report);
        let ran = |event: &Event| match event.kind {
            Kind::TaskStarted { task, .. } => Some(task),
            _ => None,
        };
        let ticks: Vec<_> = events.iter().filter_map(ran).collect();
        let different: BTreeSet<_> = ticks.iter().collect();
        assert_eq!(ticks.len(), different.len(), "{system}: {ticks:?}");
        assert!(
            (5..=21).contains(&ticks.len()) && served - shared <= ticks.len() as u64,
            "{system}: {printed}"
        );
        assert!(printed.contains(&format!("{shared} attempts found no tick left to run")), "{printed}");
    }
}

#[test]
fn each_attempt_adds_a_job_and_claims_one() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let (printed, report, events) = load(&stage, "redis", &redis.address(), "jobs");
    let (served, shared) = self::served(&report);
    assert!(served > 40 && shared == 0, "{printed}");
    assert_eq!(count(&events, |kind| matches!(kind, Kind::WriteAccepted { .. })), served, "{printed}");
    assert!(!printed.contains("release"), "{printed}");
}
