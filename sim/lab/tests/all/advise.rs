//! `sim advise`: the same input gives the same output, a shorter TTL loses more leases, and mistakes in the
//! input are named.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lab::advise::{Measured, Trial, Work, section, try_ttl};
use sim::Span;

/// The number of sections for each TTL: enough to tell the TTLs apart.
const SECTIONS: u64 = 300;

/// A service with pauses and without other trouble.
const USUAL: [&str; 7] = ["advise", "--work", "200ms,800ms", "--pause", "2s", "--network", "200ms"];

fn sim(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
    command.args(arguments).current_dir(env!("CARGO_TARGET_TMPDIR")).output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = sim(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn measured(renews: bool) -> Measured {
    let (pause, network) = (Span::from_secs(2), Span::from_millis(200));
    Measured { work: Work::percentiles("200ms,800ms").unwrap(), pause, network, loss: 0.0, renews }
}

fn trials(measured: &Measured) -> [Trial; 3] {
    let terms = measured.terms().unwrap();
    terms.tried().map(|(_, ttl)| try_ttl((measured, &terms, ttl), (0, SECTIONS), 2, || true).unwrap())
}

#[test]
fn a_shorter_ttl_loses_more_leases_and_blocks_for_less() {
    for renews in [true, false] {
        let [half, advised, double] = trials(&measured(renews));
        assert_eq!([half.sections, advised.sections, double.sections], [SECTIONS; 3]);
        assert!(half.lost >= 2 * advised.lost.max(1), "{half:?} {advised:?}");
        assert!(half.lost > advised.lost && advised.lost >= double.lost, "{advised:?} {double:?}");
        assert!(half.blocked < advised.blocked && advised.blocked < double.blocked, "{half:?} {double:?}");
        for trial in [half, advised, double] {
            // Waiters ask soon after the end of the lease.
            let blocked = trial.blocked.duration();
            let ttl = trial.ttl.duration();
            assert!(blocked > ttl / 2 && blocked < ttl.mul_f64(1.2), "{trial:?}");
        }
    }
}

#[test]
fn the_fence_refuses_late_writes_of_lost_leases() {
    // A holder that renews drops its work when it wakes up.
    let measured = measured(false);
    let terms = measured.terms().unwrap();
    let trial = try_ttl((&measured, &terms, Span::from_millis(300)), (0, SECTIONS), 2, || true).unwrap();
    // One pause in ten comes right before the write.
    assert!(trial.lost > SECTIONS / 3 && trial.refused > SECTIONS / 100, "{trial:?}");
    assert!(trial.refused < trial.lost / 2 && trial.first_refused >= trial.first_lost, "{trial:?}");
}

#[test]
fn work_longer_than_the_ttl_needs_renewals() {
    let lost = [true, false].map(|renews| {
        let measured = Measured { work: Work::percentiles("1s,1s").unwrap(), ..measured(renews) };
        let terms = measured.terms().unwrap();
        try_ttl((&measured, &terms, Span::from_millis(900)), (0, 100), 2, || true).unwrap().lost
    });
    assert!(lost[0] < 50 && lost[1] == 100, "{lost:?}");
}

#[test]
fn the_ttls_are_tried_with_the_same_work_and_faults() {
    let measured = Measured { loss: 1.0, ..measured(true) };
    let terms = measured.terms().unwrap();
    for seed in 0..20 {
        let [half, advised, _] = terms.tried().map(|(_, ttl)| section(&measured, &terms, ttl, seed));
        assert_eq!(half.faults, advised.faults);
        assert_eq!(half.faults.len(), 3, "a pause, a cut and a reset");
        let work = |schedule: &sim::Schedule<lab::Options>| schedule.options.workers[0].work;
        assert_eq!(work(&half), work(&advised));
        assert!(half.options.ttl < advised.options.ttl);
        lab::validate(&half).unwrap();
    }
}

#[test]
fn the_same_input_prints_the_same_text() {
    let print = |threads: &str| stdout(&[&USUAL[..], &["--sections", "40", "--threads", threads]].concat());
    let text = print("1");
    assert_eq!(text, print("2"));
    for part in ["TTL           3.46s", "renew every   1.15s", "threshold     577ms", "cap           4.72s"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert_eq!(wide, [""; 0]);
    let other = stdout(&[&USUAL[..], &["--sections", "40", "--first", "40"]].concat());
    assert_ne!(text, other);
}

#[test]
fn the_json_has_the_counts_of_the_text() {
    let arguments = [&USUAL[..], &["--sections", "40", "--json", "--loss", "5%"]].concat();
    let object: serde_json::Value = serde_json::from_str(&stdout(&arguments)).unwrap();
    assert_eq!((&object["ttl_ms"], &object["loss"]), (&3462.0.into(), &0.05.into()), "{object}");
    let names: Vec<_> = object["trials"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["half", "advised", "double"]);
    for row in object["trials"].as_array().unwrap() {
        let (low, high) =
            (row["lost_interval"][0].as_f64().unwrap(), row["lost_interval"][1].as_f64().unwrap());
        let share = row["lost"].as_f64().unwrap() / row["sections"].as_f64().unwrap();
        assert!(low <= share && share <= high, "{row}");
    }
}

#[test]
fn a_file_of_durations_replaces_percentiles() {
    let path = file("durations.txt");
    let lines: String = (1..=1000).map(|millis| format!("{millis}\n")).collect();
    std::fs::write(&path, format!("# milliseconds\n{lines}")).unwrap();
    let arguments = ["advise", "--durations", path.to_str().unwrap(), "--pause", "2s", "--network", "1s"];
    let text = stdout(&[&arguments[..], &["--sections", "5"]].concat());
    assert!(text.starts_with("work     median 500ms, p99 990ms, p99.9 999ms, of 1000 durations\n"), "{text}");
    assert!(text.contains("TTL           4.00s"), "{text}");
    assert!(!text.contains("measure more"), "{text}");
    std::fs::write(&path, "100\n200").unwrap();
    let text = stdout(&[&arguments[..], &["--sections", "5"]].concat());
    assert!(text.contains("fewer than 1000: the p99.9 is the longest; measure more"), "{text}");
}

#[test]
fn the_schedule_of_a_lost_lease_replays() {
    let path = file("lost.toml");
    let arguments = ["--no-renewal", "--sections", "100", "--out", path.to_str().unwrap()];
    stdout(&[&USUAL[..], &arguments].concat());
    let trace = stdout(&["replay", path.to_str().unwrap()]);
    assert!(trace.contains("expired orders:42 of a"), "{trace}");
}

#[test]
fn mistakes_in_the_input_are_named() {
    let bad = file("bad-durations.txt");
    std::fs::write(&bad, "12.5\n12ms\n").unwrap();
    let bad = bad.to_str().unwrap();
    let with = |flag: &'static str, value: &'static str| {
        let mut arguments = USUAL.to_vec();
        let at = arguments.iter().position(|argument| *argument == flag);
        match at {
            Some(at) => arguments[at + 1] = value,
            None => arguments.extend([flag, value]),
        }
        arguments
    };
    let durations = |file| vec!["advise", "--durations", file, "--pause", "2s", "--network", "1s"];
    for (arguments, expected) in [
        (with("--work", "200ms"), "`200ms` is no pair of times: write the median and the 99th percentile"),
        (with("--work", "2s,1s"), "the median 2s is above the 99th percentile 1s: write the median first"),
        (with("--work", "2h,3h"), "is too long for a lease (30m at most): own work of this length durably"),
        (with("--pause", "2"), "`2` is no span of time"),
        (with("--loss", "0.01"), "`0.01` is no share: write a percentage from 0% to 100%, such as 1%"),
        (with("--loss", "101%"), "`101%` is no share"),
        (with("--sections", "0"), "--sections is 0: give at least 1"),
        (with("--out", "no/folder/x"), "can't write no/folder/x"),
        (durations(bad), "bad-durations.txt: line 2: `12ms` is no duration: write milliseconds"),
        (durations("none.txt"), "none.txt: No such file or directory"),
        (vec!["advise", "--pause", "2s", "--network", "1s"], "--work <P50,P99>"),
    ] {
        let output = sim(&arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
