//! Numbers beyond all limits are refused at once, with the limit.

use std::process::Command;

fn refused(arguments: &[&str]) -> String {
    let servers = ["--system", "redis", "--servers", "127.0.0.1:1"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    let output = command.args(arguments).args(&servers[..if arguments[0] == "chaos" { 2 } else { 4 }]);
    let output = output.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_billion_contenders_are_refused() {
    assert!(refused(&["contend", "--contenders", "1000000000"]).contains("1..=100000"));
    assert!(refused(&["worker", "--contenders", "1000000000"]).contains("1..=1000"));
}

#[test]
fn a_run_of_ten_thousand_hours_is_refused() {
    for command in ["contend", "chaos"] {
        assert!(refused(&[command, "--for", "10000h"]).contains("at most a week, 168h"));
    }
}

#[test]
fn a_rate_that_is_no_number_is_named() {
    assert!(refused(&["contend", "--rate", "NaN"]).contains("--rate NaN is no number of attempts a second"));
    assert!(refused(&["contend", "--rate", "0"]).contains("--rate is zero"));
}
