//! The words of messages, in runs of the corpus.

use sim::lab::Arm;

use super::{page, recorded};

/// Asserts that messages with these words were sent, in this order; others may be between.
#[track_caller]
fn assert_said(name: &str, arm: Arm, expected: &[&str]) {
    let report = recorded(name, arm);
    let mut words = report.messages.iter().map(|message| message.words.as_str());
    for expected in expected {
        let said = words.any(|words| matches(words, expected));
        assert!(said, "no `{expected}` after those before it:\n{}", page(&report));
    }
}

/// Returns true if `words` are those of `pattern`, in which `#` stands for hexadecimal digits.
fn matches(words: &str, pattern: &str) -> bool {
    let mut rest = words;
    for (number, part) in pattern.split('#').enumerate() {
        if number > 0 {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        }
        match rest.strip_prefix(part) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

#[test]
fn redis_and_the_resource_are_read() {
    let expected = [
        "EVALSHA acquire orders:42 a:# 2000",
        "(error) NOSCRIPT No matching script. Please use EVAL.",
        "EVAL acquire orders:42 a:# 2000",
        "1",
        "PUT /r/orders%3A42 token 1 by a:# body a:1",
        "409 stale fencing token, seen 2, got 1",
    ];
    assert_said("gc-pause", Arm::Fenced, &expected);
}

#[test]
fn an_owner_token_appears_as_in_the_trace() {
    let report = recorded("gc-pause", Arm::Fenced);
    let trace = report.trace();
    let granted = trace.lines().find_map(|line| Some(line.split_once("granted to ")?.1)).unwrap();
    let owner = granted.split(',').next().unwrap().split(' ').next().unwrap();
    assert!(
        report.messages.iter().any(|message| message.words.contains(owner)),
        "{owner}\n{}",
        page(&report)
    );
}
