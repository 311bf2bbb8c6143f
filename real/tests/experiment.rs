//! The experiments on live servers, at a small size: what each must show, and that each can fail.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/experiments.rs"]
mod support;

use serde_json::Value;

use support::experiment;

#[test]
fn a_pause_longer_than_the_ttl() {
    // Worker b has nine seconds to write while a is away, on however slow a machine.
    let ran = experiment(1, &["--ttl", "1s", "--pause", "10s"]);
    let findings = ran.findings();
    let arms = findings["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 16, "four kinds of servers, two ways to pause, fencing off and on");
    for arm in arms {
        judge(arm);
    }
    assert!(ran.told.contains("fencing off") && ran.told.contains("fencing on"), "{}", ran.told);

    // A resource that was told to fence and does not.
    let not_fenced = |findings: &mut Value| {
        let unfenced = findings["arms"][0].clone();
        findings["arms"][1] = unfenced;
        findings["arms"][1]["fence"] = "on".into();
    };
    assert!(!ran.is_expected_after(1, not_fenced));
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
fn what_is_no_experiment_is_refused() {
    let cases: [(u32, &[&str], &str); 4] = [
        (99, &[], "real: there is no experiment 99: there are 1"),
        (1, &["--pause", "1s"], "the pause must be longer than TTL and work"),
        (1, &["--set", "rounds=3"], "the flags of experiment 1: unknown field `rounds`"),
        (1, &["--config", "/no/such.toml"], "/no/such.toml: No such file"),
    ];
    for (number, arguments, says) in cases {
        let ran = experiment(number, arguments);
        assert_eq!(ran.code, Some(2), "{}", ran.told);
        assert!(ran.told.contains(says), "{}", ran.told);
    }
}
