//! The state beside an event is that at the time of the event.

use picture::{Change, Picture};

use crate::{history, late_write, picture};

const A: &str = r#""owner_token_prefix":"a:1","fencing_token":1,"ttl_millis":2000,"valid_micros":1950000"#;

/// Returns the value of a fact after the event with the number `mark`.
fn value(drawn: &Picture, mark: usize, fact: &str) -> Option<String> {
    let mut changes = drawn.marks[..=mark].iter().flat_map(|mark| &mark.changes);
    changes.rfind(|change| change.fact == fact).map(|change| change.after.clone())
}

#[test]
fn the_highest_token_never_falls() {
    let drawn = picture("run", &late_write().events);
    let stored = |mark: usize| value(&drawn, mark, "resource: k").unwrap();
    assert_eq!(stored(9), "version 1, highest token so far 2");
    assert_eq!(stored(11), "version 2, highest token so far 2", "the write of token 1 came after token 2");
}

#[test]
fn a_holder_trusts_no_lease_whose_validity_is_over() {
    let drawn = picture("run", &late_write().events);
    let trusts = |mark: usize| value(&drawn, mark, "a on k").unwrap();
    assert_eq!(trusts(4), "trusts token 1 until 1.953");
    assert_eq!(trusts(11), "trusts no lease: token 1 was valid until 1.953");
    let is_by_time = |change: &&Change| change.fact == "a on k" && change.is_by_time;
    let changed = drawn.marks.iter().position(|mark| mark.changes.iter().any(|change| is_by_time(&change)));
    assert_eq!(changed, Some(5), "the first event after the end of the validity");
    let page = picture::page(&[drawn], None);
    assert!(page.contains("before it, by time: a on k"), "the table has it, too");
}

#[test]
fn a_slow_clock_trusts_its_lease_for_longer() {
    let events = history(&[
        (0, "a", "clock_rate", r#""rate":500000000"#),
        (0, "a", "lease_acquired", A),
        (3000, "a", "worker_step", r#""step":"works""#),
        (4000, "a", "worker_step", r#""step":"works""#),
    ]);
    let drawn = picture("run", &events.events);
    assert_eq!(value(&drawn, 1, "a on k").unwrap(), "trusts token 1 until 3.900");
    assert_eq!(value(&drawn, 2, "a on k").unwrap(), "trusts no lease: token 1 was valid until 3.900");
}

#[test]
fn a_process_runs_when_the_last_of_its_pauses_ends() {
    let events = history(&[
        (0, "a", "lease_acquired", A),
        (1, "a", "fault_applied", r#""verb":"pause","effect":"pause","detail":"5s","fault":0"#),
        (2, "a", "fault_applied", r#""verb":"pause","effect":"pause","detail":"1s","fault":1"#),
        (3, "a", "fault_healed", r#""verb":"pause","effect":"pause","detail":"","fault":1"#),
        (4, "a", "fault_healed", r#""verb":"pause","effect":"pause","detail":"","fault":0"#),
    ]);
    let drawn = picture("run", &events.events);
    assert_eq!(value(&drawn, 3, "a").unwrap(), "paused", "the first pause goes on");
    assert_eq!(value(&drawn, 4, "a").unwrap(), "runs");
}
