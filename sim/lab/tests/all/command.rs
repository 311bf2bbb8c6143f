//! The command: its exit codes, its JSON and its errors.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Writes `gc-pause.toml` to the file `name` with `from` replaced by `to`; returns the path.
fn changed(name: &str, from: &str, to: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../seeds/gc-pause.toml");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn expected_verdicts_exit_with_0() {
    let output = sim(&["replay", "seeds/gc-pause.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("PUT orders:42 a token=1 → 200"), "{text}");
    assert!(text.contains("PUT orders:42 a token=1 → 409 stale, seen 2"), "{text}");
}

#[test]
fn unexpected_verdicts_exit_with_1_and_are_shown() {
    let file =
        changed("hopeful.toml", r#"verdicts = ["overlap", "stale_write"]"#, r#"verdicts = ["overlap"]"#);
    let output = sim(&["replay", &file]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "NOT as expected: verdicts: expected overlap, found overlap, stale_write";
    assert!(stdout(&output).contains(expected), "{}", stdout(&output));
}

#[test]
fn a_fault_that_never_strikes_exits_with_1() {
    let second =
        "[[fault]]\nwhen = { at = \"59s\" }\nwhat = { pause = \"b\", for = \"1s\" }\n\n[expect.unfenced]";
    let file = changed("idle.toml", "[expect.unfenced]", second);
    let output = sim(&["replay", &file, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let never = "fault[1] never did (when = { at = \"59s\" }, what = { pause = \"b\", for = \"1s\" })";
    let mismatch = format!("fencing off: faults: expected each to strike, found {never}");
    assert_eq!(json["mismatches"][0], mismatch, "{json}");
}

#[test]
fn bad_input_exits_with_2_and_names_the_line() {
    let file = changed("typo.toml", "starts = \"100ms\"", "stars = \"100ms\"");
    let output = sim(&["replay", &file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("typo.toml:11: unknown field `stars`"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    assert_eq!(sim(&["replay", "seeds/no-such.toml"]).status.code(), Some(2));
    assert_eq!(sim(&["run", "--seed", "-1"]).status.code(), Some(2));
    assert_eq!(sim(&["corpus", "no-such-folder"]).status.code(), Some(2));
}

#[test]
fn json_is_one_object_with_all_fields() {
    for arguments in [&["replay", "seeds/gc-pause.toml", "--json"][..], &["run", "--seed", "7", "--json"]] {
        let output = sim(arguments);
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        for field in [
            "seed",
            "schedule",
            "verdicts",
            "counts",
            "trace_hash",
            "simulated_seconds",
            "commands",
            "wall_seconds",
        ] {
            assert!(object.get(field).is_some(), "{arguments:?} lacks {field}: {object}");
        }
    }
    let object: serde_json::Value =
        serde_json::from_slice(&sim(&["replay", "seeds/gc-pause.toml", "--json"]).stdout).unwrap();
    let verdict = &object["verdicts"][0];
    assert_eq!(verdict["kind"], "overlap");
    assert_eq!(verdict["key"], "orders:42");
    assert_eq!(verdict["processes"], serde_json::json!(["a", "b"]));
    assert!(verdict["at"].as_f64().unwrap() > 2.0);
    assert_eq!(object["as_expected"], true);
}

#[test]
fn the_same_seed_prints_the_same_trace_in_two_processes() {
    let trace = || stdout(&sim(&["run", "--seed", "11", "--trace"]));
    assert_eq!(trace(), trace());
}

/// Returns the lines of `text` that are longer than 80 columns.
fn wide(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.chars().count() > 80).collect()
}

#[test]
fn every_line_fits_a_terminal() {
    for arguments in [
        // The demonstration: the experiment, then random schedules.
        &[][..],
        &["run", "--seed", "11", "--fence", "off", "--trace"],
        &["run", "--seed", "2", "--trace"],
        &["replay", "seeds/gc-pause.toml"],
        &["replay", "seeds/get-then-del.toml"],
        &["replay", "seeds/cas-high-contention.toml"],
        &["corpus"],
    ] {
        let text = stdout(&sim(arguments));
        assert!(text.lines().count() > 10, "{arguments:?}: {text}");
        assert_eq!(wide(&text), [""; 0], "{arguments:?}");
    }
    let file = changed("wide.toml", r#"verdicts = ["overlap", "stale_write"]"#, "verdicts = []");
    let text = stdout(&sim(&["replay", &file]));
    assert!(text.contains("NOT as expected"), "{text}");
    // The path of the file has no spaces, so it can't be wrapped.
    let wide: Vec<_> = wide(&text).into_iter().filter(|line| !line.contains("wide.toml")).collect();
    assert_eq!(wide, [""; 0]);
}

#[test]
fn the_corpus_has_a_line_for_each_schedule() {
    let output = sim(&["corpus"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../seeds");
    let is_schedule = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_schedule);
    assert_eq!(stdout(&output).lines().filter(|line| line.starts_with("ok ")).count(), files.count());
}

#[test]
fn a_schedule_that_expects_nothing_is_not_as_expected() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("expects-nothing");
    std::fs::create_dir_all(&folder).unwrap();
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../seeds/gc-pause.toml");
    let text = std::fs::read_to_string(seed).unwrap();
    let (schedule, _) = text.split_once("[expect.").unwrap();
    std::fs::write(folder.join("gc-pause.toml"), schedule).unwrap();
    let output = sim(&["corpus", folder.to_str().unwrap()]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("FAIL gc-pause "), "{text}");
    assert!(text.ends_with("0 of 1 schedules as expected\n"), "{text}");
    assert!(text.contains("expects nothing: add [expect.unfenced] or [expect.fenced]"), "{text}");
}

#[test]
fn an_exploration_counts_its_schedules() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("violations");
    let output = sim(&["explore", "--seeds", "20", "--threads", "2", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).starts_with("20 random schedules with fencing on"), "{}", stdout(&output));
}

#[test]
fn an_exploration_of_one_system_draws_no_other() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("violations");
    let explore =
        |system: &str| sim(&["explore", "--seeds", "12", "--system", system, "--out", out.to_str().unwrap()]);
    let (redis, etcd) = (explore("redis"), explore("etcd"));
    assert_eq!((redis.status.code(), etcd.status.code()), (Some(0), Some(0)));
    let counts = |text: String| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        line.split_once("schedules a second), ").map(|(_, counts)| counts.to_owned()).unwrap()
    };
    assert_ne!(counts(stdout(&redis)), counts(stdout(&etcd)), "faults and commands differ");
    assert_eq!(explore("redi").status.code(), Some(2));
}

#[test]
fn an_exhaustive_search_prints_its_claim_and_continues() {
    let progress = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exhaust.json");
    let _ = std::fs::remove_file(&progress);
    let arguments =
        ["exhaust", "--subject", "redis", "--faults", "1", "--resume", progress.to_str().unwrap()];
    let (first, again) = (sim(&arguments), sim(&arguments));
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let claim = |output: &Output| stdout(output).split("\n\n").next().unwrap().replace("\n  ", " ");
    let text = claim(&first);
    assert!(text.starts_with("no violation in all ") && text.ends_with("; 0 remaining."), "{text}");
    assert_eq!(claim(&again), text);
    assert_eq!(wide(&stdout(&first)), [""; 0]);
    // The second search finds all runs but the first one in the file.
    assert!(stdout(&again).contains("\nruns: 1 in "), "{}", stdout(&again));
}

#[test]
fn an_exhaustive_search_without_fencing_saves_schedules_that_replay() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exhausted");
    let search = ["exhaust", "--subject", "redis", "--faults", "1", "--fence", "off"];
    let output = sim(&[&search[..], &["--out", out.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("violations, the smallest with 1 fault, in "), "{text}");
    assert!(text.contains("pause client: stale_write"), "{text}");
    let file = out.join("exhaust-redis-unfenced-1.toml");
    assert_eq!(sim(&["replay", file.to_str().unwrap()]).status.code(), Some(0));
}

#[test]
fn each_arm_exports_files_of_its_own() {
    let file = |name: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (pcap, perfetto) = (file("export.pcapng"), file("export.pftrace"));
    for stem in ["export", "export-fenced", "export-unfenced"] {
        // Left by an earlier run of this test.
        let _ = std::fs::remove_file(file(&format!("{stem}.pcapng")));
        let _ = std::fs::remove_file(file(&format!("{stem}.pftrace")));
    }
    let exports = ["--pcap", pcap.to_str().unwrap(), "--perfetto", perfetto.to_str().unwrap()];
    let output = sim(&[&["replay", "seeds/gc-pause.toml"], &exports[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for arm in ["unfenced", "fenced"] {
        let pcap = std::fs::read(file(&format!("export-{arm}.pcapng"))).unwrap();
        // The type of a section header of pcapng.
        assert!(pcap.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
        assert!(!std::fs::read(file(&format!("export-{arm}.pftrace"))).unwrap().is_empty());
    }
    let output = sim(&[&["run", "--seed", "7"], &exports[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(pcap.exists() && perfetto.exists());
}
