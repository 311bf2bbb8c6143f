//! Outputs are tried before the work, never replace an input, and are named; a history belongs to one run.
//!
//! No test here needs a server: a command that goes wrong as expected has started none.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use real::recording::Recorder;

/// Returns an empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outputs").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs the command in `folder`, where no server can be started.
fn real(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(arguments).current_dir(folder).env("TMPDIR", "/no/such/directory");
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// Asserts that the command ends with 2 and this error before it has done anything.
fn refused(folder: &Path, arguments: &[&str], why: &str) {
    let (code, printed, error) = real(folder, arguments);
    assert_eq!((code, printed.as_str()), (Some(2), ""), "{arguments:?}: {error}");
    assert!(error.contains(why), "{arguments:?}: {why:?} is not in {error}");
}

/// An event of a history.
const EVENT: &str = "{\"at\":5,\"process\":\"resource\",\"event\":\"write_accepted\",\
                     \"resource_id_hash\":\"k\",\"fencing_token\":2,\"version\":1}\n";

#[test]
fn an_audit_never_replaces_a_history() {
    let folder = folder("audit");
    fs::write(folder.join("w.jsonl"), EVENT).unwrap();
    fs::write(folder.join("v.jsonl"), EVENT).unwrap();
    symlink("w.jsonl", folder.join("soft.html")).unwrap();
    fs::hard_link(folder.join("w.jsonl"), folder.join("hard.svg")).unwrap();
    for output in
        [["--html", "w.jsonl"], ["--svg", "./w.jsonl"], ["--html", "soft.html"], ["--svg", "hard.svg"]]
    {
        let why = "it is the same file as the input w.jsonl";
        refused(&folder, &[&["audit", "v.jsonl", "w.jsonl"][..], &output].concat(), why);
        assert_eq!(fs::read_to_string(folder.join("w.jsonl")).unwrap(), EVENT, "{output:?}");
    }
    refused(&folder, &["audit", "w.jsonl", "--html", "none/x.html"], "can't write none/x.html: ");
    let (code, printed, error) = real(&folder, &["audit", "w.jsonl", "--html", "x.html", "--json"]);
    assert_eq!((code, error.as_str()), (Some(0), "written: x.html\n"), "{printed}");
    serde_json::from_str::<serde_json::Value>(&printed).unwrap();
    assert_eq!(names(&folder), ["hard.svg", "soft.html", "v.jsonl", "w.jsonl", "x.html"]);
}

#[test]
fn a_history_with_content_is_refused_and_left_as_it_is() {
    let folder = folder("history");
    let file = folder.join("h.jsonl");
    let commands = [
        &["worker", "--servers", "127.0.0.1:1"][..],
        &["resource", "--store", "memory", "--listen", "127.0.0.1:0"],
        &["contend", "--servers", "127.0.0.1:1"],
    ];
    fs::write(&file, EVENT).unwrap();
    for command in commands {
        let why = "--history h.jsonl: it has content, such as the history of an earlier run";
        refused(&folder, &[command, &["--history", "h.jsonl"]].concat(), why);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), EVENT);
    fs::write(&file, "").unwrap();
    let (_, recording) = Recorder::open("a", &file).unwrap();
    assert!(recording.failure().is_none());
    assert_eq!(fs::read_to_string(&file).unwrap(), "", "the trial leaves nothing");
}

#[test]
fn a_history_that_cannot_be_written_is_an_error_at_once() {
    let folder = folder("no-history");
    for place in ["none/h.jsonl", "/dev/null/h.jsonl", ".", "/dev/full"] {
        let why = format!("--history {place}: ");
        for command in [
            &["worker", "--servers", "127.0.0.1:1"][..],
            &["resource", "--store", "memory", "--listen", "127.0.0.1:0"],
        ] {
            refused(&folder, &[command, &["--history", place]].concat(), &why);
        }
    }
    assert_eq!(names(&folder), [""; 0]);
}

#[test]
fn an_output_is_tried_before_the_work() {
    let folder = folder("tried");
    fs::write(folder.join("file"), "").unwrap();
    fs::write(folder.join("h.jsonl"), "").unwrap();
    for command in [
        &["experiment", "1", "--out", "file/x.json"][..],
        &["experiment", "1", "--out", "x.json", "--histories", "file"],
        &["contend", "--servers", "127.0.0.1:1", "--out", "file/x.json"],
        &["gen", "--server", "127.0.0.1:1", "--out", "file/x.json"],
        &["peers", "--out", "file/x.json"],
        &["peers", "--out", "x.json", "--write"],
        &["up", "redis", "--state", "none/state"],
    ] {
        refused(&folder, command, "can't write ");
    }
    // It prints which run is next.
    let (code, _, error) = real(&folder, &["chaos", "--system", "redis", "--out", "file"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("can't write file/redis-on-1: "), "{error}");
    let both = ["contend", "--servers", "127.0.0.1:1", "--history", "h.jsonl", "--out", "./h.jsonl"];
    refused(&folder, &both, "the same file as the input h.jsonl");
    assert_eq!(names(&folder), ["file", "h.jsonl"]);
}

#[test]
fn a_changed_configuration_does_not_replace_the_results_of_the_repository() {
    let folder = folder("results");
    // Files in the places of folders: the errors show where the results would go.
    fs::write(folder.join("real"), "").unwrap();
    fs::write(folder.join("target"), "").unwrap();
    let committed = "can't write real/results/experiment-1.json: ";
    refused(&folder, &["experiment", "1"], committed);
    let own = "can't write target/experiments/experiment-1.json: ";
    refused(&folder, &["experiment", "1", "--system", "redis"], own);
    refused(&folder, &["experiment", "1", "--set", "rounds=1"], own);
    refused(&folder, &["peers"], "can't write target/peers.json: ");
    refused(&folder, &["peers", "--write"], "can't write real/results/peers.json: ");
}

#[test]
fn an_experiment_does_not_replace_its_configuration() {
    let folder = folder("configuration");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/1.toml")).unwrap();
    fs::write(folder.join("1.toml"), &text).unwrap();
    let both = ["experiment", "1", "--config", "1.toml", "--out", "./1.toml"];
    refused(&folder, &both, "the same file as the input 1.toml");
    assert_eq!(fs::read_to_string(folder.join("1.toml")).unwrap(), text);
}

#[test]
fn a_load_without_a_lock_has_no_primitive() {
    let folder = folder("primitive");
    let arm = ["contend", "--arm", "version", "--postgres", "postgresql://postgres@127.0.0.1:1/postgres"];
    let why = "--primitive: semaphore:3 needs a lock";
    refused(&folder, &[&arm[..], &["--primitive", "semaphore:3"]].concat(), why);
}

#[test]
fn a_comparison_without_time_is_refused() {
    let folder = folder("no-time");
    for time in [["--hot", "0"], ["--space", "0"], ["--space", "900us"]] {
        refused(&folder, &[&["peers"][..], &time].concat(), "must each be above zero");
    }
}

#[test]
fn a_report_that_cannot_be_printed_is_kept() {
    let folder = folder("full");
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(["contend", "--servers", "127.0.0.1:1", "--for", "200ms", "--rate", "10"]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let status = command.args(["--out", "r.json"]).current_dir(&folder).stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(2));
    assert_eq!(names(&folder), ["r.json"]);
}
