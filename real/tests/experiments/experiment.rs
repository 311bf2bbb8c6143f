//! The experiments on live servers, at a small size: each gives the expected findings, and altered findings
//! are not as expected.

use std::path::Path;
use std::process::Command;

use real::servers::Stage;
use serde_json::{Value, json};

use crate::support::experiment;

#[test]
fn fencing_refuses_the_write_after_a_long_pause() {
    // Worker b has nine seconds to write while a is paused: enough on a slow machine.
    let ran = experiment(1, &["--ttl", "1s", "--pause", "10s"]);
    let findings = ran.findings();
    let arms = findings["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 16, "four lock systems, two kinds of pause, fencing off and on");
    for arm in arms {
        judge(arm);
    }
    assert!(ran.printed.contains("fencing off") && ran.printed.contains("fencing on"), "{}", ran.printed);

    assert!(!ran.is_expected_after(1, |findings| do_not_fence(&mut findings["arms"])));
    assert!(!ran.is_expected_after(1, |findings| findings["arms"] = Value::Array(Vec::new())));
    assert!(ran.is_expected_after(1, |_| ()));
}

fn judge(arm: &Value) {
    let writers = |field: &str| {
        let writes = arm[field].as_array().unwrap().iter();
        writes.map(|write| write.as_str().unwrap().split(':').next().unwrap()).collect::<Vec<_>>().join(" ")
    };
    let verdicts = arm["verdicts"].to_string();
    assert!(verdicts.contains("overlap"), "{arm}");
    if arm["fence"] == "off" {
        assert_eq!((writers("accepted").as_str(), writers("refused").as_str()), ("b a", ""), "{arm}");
        assert!(verdicts.contains("stale_write"), "{arm}");
        assert_eq!(arm["value_of"], "a");
    } else {
        assert_eq!((writers("accepted").as_str(), writers("refused").as_str()), ("b", "a"), "{arm}");
        assert!(!verdicts.contains("stale_write"), "{arm}");
        assert_eq!(arm["value_of"], "b");
        assert_eq!(arm["stale_token_rejections_total"], 1);
        let answer = arm["answer_to_stale_token"].as_str().unwrap();
        assert!(answer.starts_with("HTTP/1.1 409 Conflict {\"error\":\"stale fencing token\""), "{answer}");
    }
}

#[test]
fn redlock_grants_only_with_a_majority_of_nodes() {
    let ran = experiment(2, &["--ttl", "1s", "--pause", "8s", "--set", "acquire_timeout=\"500ms\""]);
    let findings = ran.findings();
    let rows = |name: &str| findings[name].as_array().unwrap().len();
    assert_eq!((rows("availability"), rows("safety")), (7, 8));

    // A lock that is granted without a majority.
    let granted = |findings: &mut Value| {
        let majority_away =
            find(&mut findings["availability"], |run| run["fault"] == json!({ "cut_off": 3 }));
        majority_away["granted_after_ms"] = 1.0.into();
    };
    assert!(!ran.is_expected_after(2, granted));
    // A lock that is never granted again.
    let lost = |findings: &mut Value| findings["availability"][0]["next_after_ms"] = Value::Null;
    assert!(!ran.is_expected_after(2, lost));
    assert!(!ran.is_expected_after(2, |findings| do_not_fence(&mut findings["safety"])));
    assert!(ran.is_expected_after(2, |_| ()));
}

#[test]
fn a_release_by_get_and_del_deletes_foreign_locks() {
    let stage = Stage::new().unwrap();
    let histories = stage.directory().join("histories");
    let ran = experiment(3, &["--set", "rounds=20", "--histories", histories.to_str().unwrap()]);
    let findings = ran.findings();
    // `real audit` finds violations in two of the kept histories, as the experiment did in the runs.
    let judged = |number: u32| audit(&histories.join(format!("run-{number}.jsonl")));
    let mut codes = [1, 2, 3, 4].map(judged);
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(0), Some(1), Some(1)]);
    let forced = findings["forced"].as_array().unwrap();
    assert_eq!(forced.len(), 4, "both releases, fencing off and on");
    for run in forced {
        let verdicts = run["verdicts"].to_string();
        let is_mistaken = run["release"] == "get_then_del";
        assert_eq!(verdicts.contains("foreign_release"), is_mistaken, "{run}");
        assert_eq!(verdicts.contains("overlap"), is_mistaken, "{run}");
        assert_eq!(verdicts.contains("stale_write"), is_mistaken && run["fence"] == "off", "{run}");
    }

    // A release script that does not compare the owner.
    let does_not_compare = |findings: &mut Value| {
        let mistaken = find(&mut findings["forced"], |run| run["release"] == "get_then_del").clone();
        let safe = find(&mut findings["forced"], |run| run["release"] == "script");
        *safe = mistaken;
        safe["release"] = "script".into();
    };
    assert!(!ran.is_expected_after(3, does_not_compare));
    let strikes = |findings: &mut Value| {
        find(&mut findings["natural"], |run| run["release"] == "script")["struck"] = 1.into();
    };
    assert!(!ran.is_expected_after(3, strikes));
    assert!(!ran.is_expected_after(3, |findings| do_not_fence(&mut findings["forced"])));
    assert!(ran.is_expected_after(3, |_| ()));
}

#[test]
fn a_killed_holder_blocks_the_lock_until_its_ttl() {
    let small = ["--set", "ttls=[\"500ms\", \"4s\"]", "--set", "rounds=2", "--set", "pause=\"2500ms\""];
    let ran = experiment(6, &small);
    let findings = ran.findings();
    let rows = |name: &str| findings[name].as_array().unwrap().len();
    assert_eq!((rows("kills"), rows("pauses")), (16, 32));
    assert!(ran.printed.contains("Of 32 holders that paused for 2.5s"), "{}", ran.printed);

    let never_served = |findings: &mut Value| findings["kills"][0]["blocked_ms"] = Value::Null;
    assert!(!ran.is_expected_after(6, never_served));
    let overlap = |findings: &mut Value| findings["kills"][0]["verdicts"] = json!(["overlap"]);
    assert!(!ran.is_expected_after(6, overlap));
    assert!(!ran.is_expected_after(6, |findings| do_not_fence(&mut findings["pauses"])));
    assert!(ran.is_expected_after(6, |_| ()));
    // Earlier results have one run with a pause for each system, TTL and arm.
    assert!(ran.is_expected_after(6, |findings| {
        let pauses = findings["pauses"].as_array().unwrap();
        findings["pauses"] = pauses.iter().step_by(2).cloned().collect();
    }));
}

#[test]
fn renewing_narrows_the_window_and_does_not_close_it() {
    let sizes = ["pauses=[0.5, 2.0]", "phases=4", "transits=2", "holders=2", "attempts=2"];
    let small: Vec<_> = sizes.iter().flat_map(|size| ["--set", size]).collect();
    let ran = experiment(8, &[&["--ttl", "1s"][..], &small[..]].concat());
    let findings = ran.findings();
    let rows = |name: &str| findings[name].as_array().unwrap().len();
    assert_eq!((rows("pauses"), rows("under_way"), rows("long_work")), (32, 32, 8), "on four systems");
    for work in findings["long_work"].as_array().unwrap() {
        assert_eq!(work["grants"], 4, "two holders, twice each: {work}");
    }
    assert!(ran.printed.contains("begun 2 times by each of 2 holders"), "{}", ran.printed);
    // The first run of a cell keeps its story, the others keep the facts alone.
    let stories = findings["under_way"].as_array().unwrap().iter().map(|run| &run["story"]);
    assert_eq!(stories.filter(|story| **story != json!([])).count(), 16);

    let closes = |findings: &mut Value| {
        for run in findings["pauses"].as_array_mut().unwrap() {
            run["overlaps"] = 0.into();
        }
    };
    assert!(!ran.is_expected_after(8, closes));
    let taken = |findings: &mut Value| {
        find(&mut findings["pauses"], |run| run["fence"] == "on")["stale_writes"] = 1.into();
    };
    assert!(!ran.is_expected_after(8, taken));
    assert!(!ran.is_expected_after(8, |findings| do_not_fence(&mut findings["under_way"])));
    let written = |findings: &mut Value| {
        find(&mut findings["long_work"], |work| work["renewing"] == false)["written"] = 1.into();
    };
    assert!(!ran.is_expected_after(8, written));
    assert!(ran.is_expected_after(8, |_| ()));
}

#[test]
fn a_clock_that_is_set_forward_ends_a_lease_early() {
    let ran = experiment(12, &["--set", "steps=[-0.5, 0.0, 0.5]", "--set", "rounds=1"]);
    let findings = ran.findings();
    assert_eq!(findings["runs"].as_array().unwrap().len(), 4 * 3, "one Redis, and three numbers of clocks");

    let of_minority = |findings: &mut Value| {
        let run = find(&mut findings["runs"], |run| run["system"] == "redlock" && run["clocks"] == 2);
        run["both_ms"] = 1.0.into();
    };
    assert!(!ran.is_expected_after(12, of_minority));
    let unnoticed = |findings: &mut Value| {
        let run = find(&mut findings["runs"], |run| run["system"] == "redis" && run["step"] == 0.5);
        run["both_ms"] = 0.0.into();
    };
    assert!(!ran.is_expected_after(12, unnoticed));
    let regresses = |findings: &mut Value| findings["runs"][0]["tokens_rise"] = false.into();
    assert!(!ran.is_expected_after(12, regresses));
    assert!(ran.is_expected_after(12, |_| ()));
}

#[test]
fn an_unexpected_result_exits_with_1() {
    // No pause is long enough to cause an overlap.
    let sizes = ["pauses=[0.01]", "phases=1", "transits=1", "holders=1", "attempts=1"];
    let short: Vec<_> = sizes.iter().flat_map(|size| ["--set", size]).collect();
    let ran = experiment(8, &[&["--ttl", "2s"][..], &short[..]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.printed);
    assert!(
        ran.printed.contains("! NOT AS EXPECTED, this does not hold: renewing narrows the window"),
        "{}",
        ran.printed
    );
    assert!(ran.record.contains(r#""as_expected": false"#), "{}", ran.record);
}

#[test]
fn simulated_and_live_runs_give_the_same_verdicts() {
    let small = ["--system", "redis,etcd", "--set", "runs=2", "--set", "seeds=1"];
    let ran = experiment(9, &small);
    let findings = ran.findings();
    assert_eq!(findings["cells"].as_array().unwrap().len(), 16, "four scenarios, two systems, two arms");

    let differs = |findings: &mut Value| findings["cells"][0]["live"] = json!({ "none": 2 });
    assert!(!ran.is_expected_after(9, differs));
    let unsafe_with_fencing = |findings: &mut Value| {
        let cell = find(&mut findings["cells"], |cell| cell["fence"] == "on");
        (cell["live"], cell["simulated"]) = (json!({ "stale_write": 2 }), json!({ "stale_write": 2 }));
    };
    assert!(!ran.is_expected_after(9, unsafe_with_fencing));
    assert!(ran.is_expected_after(9, |_| ()));

    let ran = experiment(9, &["--set", "sim=\"/no/such/sim\""]);
    assert_eq!(ran.code, Some(2), "{}", ran.printed);
    assert!(
        ran.printed.contains("no simulator at /no/such/sim: there is no such file; run `cargo build"),
        "{}",
        ran.printed
    );
}

/// Returns the exit code of `real audit` on `history`.
fn audit(history: &Path) -> Option<i32> {
    Command::new(env!("CARGO_BIN_EXE_real")).arg("audit").arg(history).output().unwrap().status.code()
}

/// Returns the first of `runs` that `is` accepts.
fn find(runs: &mut Value, is: impl Fn(&Value) -> bool) -> &mut Value {
    runs.as_array_mut().unwrap().iter_mut().find(|run| is(run)).unwrap()
}

/// Alters the runs to those of a resource that does not fence although fencing is on: a run without fencing
/// replaces one with fencing. It takes a run with a stale write, the only difference that fencing makes.
fn do_not_fence(runs: &mut Value) {
    let stale = |run: &Value| run["fence"] == "off" && run["verdicts"].to_string().contains("stale_write");
    let unfenced = find(runs, stale).clone();
    let fenced = find(runs, |run| run["fence"] == "on");
    *fenced = unfenced;
    fenced["fence"] = "on".into();
}

#[test]
fn an_unknown_experiment_is_refused() {
    let cases: [(u32, &[&str], &str); 4] = [
        (99, &[], "real: there is no experiment 99: there are 1"),
        (1, &["--pause", "1s"], "the pause must be longer than TTL and work"),
        (1, &["--set", "rounds=3"], "the flags of experiment 1: unknown field `rounds`"),
        (1, &["--config", "/no/such.toml"], "/no/such.toml: No such file"),
    ];
    for (number, arguments, says) in cases {
        let ran = experiment(number, arguments);
        assert_eq!(ran.code, Some(2), "{}", ran.printed);
        assert!(ran.printed.contains(says), "{}", ran.printed);
    }
}
