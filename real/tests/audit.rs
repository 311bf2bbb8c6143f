//! An audit that has nothing to judge, or not all of it, is no success.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::{Command, Output};

use real::servers::Stage;

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
