//! The safety experiment on live processes: two accepted writers without fencing, a 409 with it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use real::servers::Stage;
use serde_json::Value;

#[test]
fn a_pause_longer_than_the_ttl() {
    let stage = Stage::new().unwrap();
    let file = stage.directory().join("results.json");
    let output = Command::new(env!("CARGO_BIN_EXE_real"))
        // Worker b has nine seconds to write while a is away, on however slow a machine.
        .args(["experiment", "1", "--ttl", "1s", "--pause", "10s", "--out"])
        .arg(&file)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    let results: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let arms = results["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 16, "four kinds of servers, two ways to pause, fencing off and on: {told}");
    for arm in arms {
        judge(arm);
    }
    assert!(told.contains("fencing off") && told.contains("fencing on"), "{told}");
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
