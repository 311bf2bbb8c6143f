//! Logs: the events of a command on standard error, as `RUST_LOG` asks, with or without a history.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use real::servers::{Launch, Persistence, Process, Redis, Stage};

use crate::eventually::eventually;

/// Runs `real` with this value of `RUST_LOG`; returns its exit code and what it printed on standard error.
fn real(arguments: &[&str], levels: Option<&str>) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(arguments).env_remove("RUST_LOG").envs(levels.map(|levels| ("RUST_LOG", levels)));
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// Starts a resource that logs, and returns its address.
fn resource(stage: &Stage) -> (Process, String) {
    let arguments = ["RUST_LOG=info", env!("CARGO_BIN_EXE_real"), "resource", "--listen", "127.0.0.1:0"];
    let launch = Launch::new("resource", "env", stage.directory());
    let process = stage.spawn(&launch.args(arguments).args(["--store", "memory"])).unwrap();
    let address = eventually("it listens", || {
        let log = fs::read_to_string(process.log()).unwrap();
        log.lines().find_map(|line| line.strip_prefix("listening on ")).map(str::to_owned)
    });
    (process, address)
}

fn count(text: &str, event: &str) -> usize {
    let (logged, recorded) = (format!("event=\"{event}\""), format!("\"event\":\"{event}\""));
    text.lines().filter(|line| line.contains(&logged) || line.contains(&recorded)).count()
}

#[test]
fn worker_and_resource_log_their_events_without_a_history() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let (process, address) = resource(&stage);
    let servers = redis.address();
    let worker = ["worker", "--servers", &servers, "--resource", &address, "--work", "0"];
    let (code, log) = real(&worker, None);
    assert_eq!((code, log.as_str()), (Some(0), ""), "silent unless asked");
    let (code, log) = real(&worker, Some(""));
    assert_eq!((code, log.as_str()), (Some(0), ""), "empty is as good as none");
    let (code, log) = real(&worker, Some("info"));
    assert_eq!(code, Some(0), "{log}");
    for event in ["lease_requested", "lease_acquired", "write_sent", "lease_released"] {
        assert_eq!(count(&log, event), 1, "{event} in\n{log}");
    }
    assert!(log.contains(r#" INFO dlock: event="lease_acquired" resource_type="account""#), "{log}");
    assert!(!log.contains("dlock.acquire"), "an event has all fields of its spans: {log}");
    let (_, log) = real(&worker, Some("worker=info"));
    assert_eq!((count(&log, "lease_acquired"), count(&log, "write_sent")), (0, 1), "{log}");
    assert_eq!(count(&fs::read_to_string(process.log()).unwrap(), "write_accepted"), 4);
}

#[test]
fn history_and_log_have_the_same_events() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let (_process, address) = resource(&stage);
    let run = |name: &str, levels| {
        let path = stage.directory().join(name);
        let (servers, history) = (redis.address(), path.to_str().unwrap().to_owned());
        let worker = ["worker", "--servers", &servers, "--resource", &address, "--work", "0"];
        let (code, log) = real(&[&worker[..], &["--history", &history]].concat(), levels);
        assert_eq!(code, Some(0), "{log}");
        (events(&path), log)
    };
    let (without_log, _) = run("a.jsonl", None);
    assert!(without_log.len() > 8 && without_log.contains(&"lease_acquired".to_owned()));
    // The log's levels do not touch the history.
    for (name, levels) in [("b.jsonl", "dlock=info"), ("c.jsonl", "error")] {
        let (with_log, log) = run(name, Some(levels));
        assert_eq!(with_log, without_log, "{levels}");
        assert_eq!(count(&log, "lease_acquired"), usize::from(levels == "dlock=info"), "{log}");
    }
}

/// Returns the names of the events of a history.
fn events(path: &Path) -> Vec<String> {
    let event = |line: &str| line.split("\"event\":\"").nth(1)?.split('"').next().map(str::to_owned);
    fs::read_to_string(path).unwrap().lines().filter_map(event).collect()
}

#[test]
fn load_and_long_run_log_theirs() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let servers = redis.address();
    let load = ["contend", "--servers", &servers, "--rate", "10", "--for", "500ms", "--work", "1ms"];
    let (code, log) = real(&load, Some("info"));
    assert_eq!(code, Some(0), "{log}");
    assert!(count(&log, "lease_acquired") > 1, "{log}");
    let out = stage.directory().join("out");
    let run = ["chaos", "--system", "redis", "--for", "1s", "--every", "300ms", "--faults", "pause-worker"];
    let (code, log) = real(&[&run[..], &["--out", out.to_str().unwrap()]].concat(), Some("fault=info"));
    assert_eq!(code, Some(0), "{log}");
    assert!(count(&log, "fault_applied") > 0, "{log}");
    assert_eq!(count(&log, "fault_applied"), count(&log, "fault_healed"), "{log}");
    assert!(log.contains(" stopped by SIGSTOP"), "{log}");
}

#[test]
fn levels_that_are_none_are_an_error() {
    let (code, error) = real(&["contend", "--servers", "127.0.0.1:1"], Some("dlock=loud"));
    assert_eq!(code, Some(2));
    assert!(
        error.contains("RUST_LOG=dlock=loud") && error.contains("such as info or dlock=debug"),
        "{error}"
    );
}
