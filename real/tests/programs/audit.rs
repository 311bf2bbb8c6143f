//! An audit that has nothing to judge, or not all of it, is no success.

use std::fs;
use std::process::{Command, Output};

use real::servers::{EtcdCluster, Stage, ZooKeeper};
use serde_json::Value;

/// Runs a command to its end: its exit code, its output and its errors.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_real")).args(arguments).output().unwrap();
    let Output { status, stdout, stderr } = output;
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A history of two writes.
fn history(token: u64) -> String {
    let line = |at: u64, token: u64, version: u64| {
        format!(
            "{{\"at\":{at},\"process\":\"resource\",\"event\":\"write_accepted\",\
             \"resource_id_hash\":\"k\",\"fencing_token\":{token},\"version\":{version}}}\n"
        )
    };
    line(5 + token, token, 1) + &line(9 + token, token + 1, 2)
}

#[test]
fn an_audit_of_nothing_is_an_error() {
    let stage = Stage::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = stage.directory().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (whole, empty) = (file("whole.jsonl", &history(1)), file("empty.jsonl", ""));
    assert_eq!(run(&["audit", &whole]).0, Some(0));
    for files in [&[&empty][..], &[&whole, &empty]] {
        let mut arguments = vec!["audit"];
        arguments.extend(files.iter().map(|file| file.as_str()));
        let (code, printed, error) = run(&arguments);
        assert_eq!((code, printed.as_str()), (Some(2), ""), "{error}");
        assert!(error.contains("empty.jsonl: has no event"), "{error}");
    }
    let fault = "{\"at\":1,\"process\":\"x\",\"event\":\"fault_applied\",\"fault\":0,\
                 \"verb\":\"pause\",\"effect\":\"pause\",\"detail\":\"paused\"}\n";
    let (code, _, error) = run(&["audit", &file("fault.jsonl", fault)]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("nothing was judged: none of the 1 events"), "{error}");
}

#[test]
fn an_audit_of_a_torn_file_is_no_success() {
    let stage = Stage::new().unwrap();
    let path = stage.directory().join("torn.jsonl");
    let file = path.to_str().unwrap();
    fs::write(&path, history(1) + "{\"at\":30,\"proc").unwrap();
    let (code, printed, error) = run(&["audit", file]);
    assert_eq!(code, Some(1), "{error}");
    assert!(printed.contains("2 writes accepted") && printed.ends_with("no verdicts\n"), "{printed}");
    assert!(error.contains("torn.jsonl: its last line is incomplete"), "{error}");
    // A last line that lacks nothing but its line feed is whole.
    fs::write(&path, history(1).trim_end()).unwrap();
    let (code, printed, error) = run(&["audit", file]);
    assert_eq!(code, Some(0), "{error}");
    assert!(printed.contains("2 writes accepted"), "{printed}");
}

#[test]
fn an_audit_of_the_same_events_twice_is_an_error() {
    let stage = Stage::new().unwrap();
    let path = |name: &str| stage.directory().join(name).to_str().unwrap().to_owned();
    let [one, copy, other, all] = ["one", "copy", "other", "all"].map(|name| path(&format!("{name}.jsonl")));
    fs::write(&one, history(1)).unwrap();
    fs::write(&copy, history(1)).unwrap();
    fs::write(&other, history(40)).unwrap();
    fs::write(&all, history(1) + &history(40)).unwrap();
    for files in [[&one, &one], [&one, &copy], [&all, &other]] {
        let (code, printed, error) = run(&["audit", files[0], files[1]]);
        assert_eq!((code, printed.as_str()), (Some(2), ""), "{error}");
        assert!(error.contains("have the same events: leave one out"), "{error}");
    }
    assert_eq!(run(&["audit", &other, &one]).0, Some(0));
}

/// Returns the history with each number in the field `name` changed.
fn changed(history: &str, name: &str, change: impl Fn(u64) -> u64) -> String {
    let line = |line: &str| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        if let Some(number) = event.get(name).and_then(Value::as_u64) {
            event[name] = change(number).into();
        }
        format!("{event}\n")
    };
    history.lines().filter(|text| !text.is_empty()).map(line).collect()
}

/// On etcd and ZooKeeper tokens are places: a load's own events prove who waited, and in which order they
/// were served.
#[test]
fn the_queue_of_a_live_load_is_judged_both_ways() {
    let stage = Stage::new().unwrap();
    let etcd = EtcdCluster::start_one(&stage).unwrap();
    let zookeeper = ZooKeeper::start(&stage).unwrap();
    for (system, address) in [("etcd", etcd.addresses()[0].clone()), ("zookeeper", zookeeper.address())] {
        let path = stage.directory().join(format!("{system}.jsonl"));
        let file = path.to_str().unwrap();
        let place = ["contend", "--system", system, "--servers", &address, "--history", file];
        // More attempts than the lock serves: the queue is always full.
        let load = "--primitive bounded:2 --contenders 6 --rate 100 --work 30ms --patience 1s --for 3s";
        let (code, _, error) = run(&place.into_iter().chain(load.split(' ')).collect::<Vec<_>>());
        assert_eq!(code, Some(0), "{system}: {error}");
        let audit = |history: &str| {
            fs::write(&path, history).unwrap();
            run(&["audit", "--queue", file])
        };
        let history = fs::read_to_string(&path).unwrap();
        let (code, printed, error) = audit(&history);
        assert_eq!(code, Some(0), "{system}: {printed}{error}");
        assert!(printed.ends_with("no verdicts\n"), "{system}: {printed}");
        for kind in ["unfair", "crowded"] {
            assert!(!printed.contains(&format!("not judged: {kind}")), "{system}: {printed}");
        }
        // The queue of two was full, so that it breaks a limit of one.
        let (code, printed, _) = audit(&changed(&history, "waiters_max", |_| 1));
        assert_eq!(code, Some(1), "{system}: {printed}");
        assert!(printed.contains("acquires did, where 1 may"), "{system}: {printed}");
        // The same grants at places in the opposite order.
        let opposite = |place| (1 << 48) - place;
        let turned = changed(&changed(&history, "position", opposite), "fencing_token", opposite);
        let (code, printed, _) = audit(&turned);
        assert_eq!(code, Some(1), "{system}: {printed}");
        assert!(printed.contains("unfair at "), "{system}: {printed}");
        let (_, printed, _) = run(&["audit", file]);
        for kind in ["unfair", "crowded"] {
            assert!(
                printed.contains(&format!("not judged: {kind} (only places that are tokens")),
                "{printed}"
            );
        }
    }
}
