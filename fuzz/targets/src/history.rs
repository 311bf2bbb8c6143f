//! Histories: the reader of logs with one event in each line, the audit, and the words for events.
//!
//! Input: a byte that picks the rules of the audit, then a log.

use std::time::Duration;

use history::text::{Names, trace};
use history::{Beliefs, Fairness, History, Name, Nanos, Rules, Summary, audit, rule, story};

const SECOND: Duration = Duration::from_secs(1);

/// Asserts that a history is written as one that reads the same, and that two audits of it agree.
pub fn run(data: &[u8]) {
    let Some((rules, log)) = data.split_first() else { return };
    let Ok(history) = History::parse_json_lines(log) else { return };
    let mut written = Vec::new();
    for event in &history.events {
        event.write_json(&mut written).unwrap_or_else(|error| panic!("{event:?} can't be written: {error}"));
    }
    match History::parse_json_lines(&written[..]) {
        Ok(again) => assert_eq!(again, history),
        Err(error) => panic!("it is written as a log that is refused: {error}"),
    }
    let rules = rules_of(*rules);
    let verdicts = audit(&history.events, &rules);
    assert_eq!(verdicts, audit(&history.events, &rules), "two audits differ");
    for verdict in &verdicts {
        assert!(!rule(verdict.kind).is_empty());
        assert!(!verdict.to_string().is_empty());
    }
    describe(&history);
}

fn rules_of(flags: u8) -> Rules {
    let is = |bit: u8| flags & 1 << bit != 0;
    let servers = match flags >> 6 {
        0 => Vec::new(),
        1 => vec![Name::from("redis")],
        _ => ["redis-1", "redis-2", "redis-3"].map(Name::from).to_vec(),
    };
    Rules {
        fifo: is(0),
        healed_at: is(1).then_some(Nanos(2_000_000_000)),
        served_within: is(1).then_some(SECOND),
        ttl: is(2).then_some(SECOND),
        sessions: is(3),
        exact: is(4),
        longest_retry: is(5).then_some(SECOND),
        servers,
        ..Rules::default()
    }
}

/// Writes the history in all forms in which people read it.
fn describe(history: &History) {
    let events = &history.events;
    let text = trace(events, &Names::new(["orders:42"]));
    assert!(text.lines().count() >= usize::from(!events.is_empty()));
    let lines: Vec<String> = events.iter().filter_map(|event| story::line(event, Name::as_str)).collect();
    story::side_by_side(&[("one", &lines), ("two", &lines)]);
    let _ = Fairness::of(events);
    let mut beliefs = Beliefs::default();
    for event in events {
        let _ = beliefs.observe(event);
    }
    let summary = Summary::of(events);
    // A history may have writes without a token or a worker, which no expectation can name.
    let writes = summary.accepted.iter().chain(&summary.refused).chain(&summary.refused_reads);
    if writes.clone().any(|write| write.token == 0 || write.worker.as_str().is_empty()) {
        return;
    }
    let json = serde_json::to_string(&summary).unwrap_or_else(|error| panic!("{summary:?}: {error}"));
    match serde_json::from_str::<Summary>(&json) {
        Ok(again) => assert_eq!(again, summary),
        Err(error) => panic!("a summary is written as JSON that is refused: {error}"),
    }
}
