//! Pictures of histories that these tests write by hand.

#![allow(clippy::unwrap_used)]

mod faults;
mod forms;
mod limits;
mod markup;
mod state;

use std::collections::BTreeMap;

use history::text::Names;
use history::{Event, Fate, History, Message, Nanos, Rules, Verdict, audit};
use picture::{Finding, Picture, Run};

/// A history of a holder that pauses for longer than its lease, and writes after the next one has written.
fn late_write() -> History {
    history(&[
        (0, "a", "lease_requested", r#""owner_token_prefix":"a:1""#),
        (
            2,
            "redis-1",
            "key_granted",
            r#""owner_token_prefix":"a:1","fencing_token":1,"ttl_millis":2000,"client":"a""#,
        ),
        (
            3,
            "a",
            "lease_acquired",
            r#""owner_token_prefix":"a:1","fencing_token":1,"ttl_millis":2000,"valid_micros":1950000"#,
        ),
        (3, "a", "section_entered", r#""owner_token_prefix":"a:1","fencing_token":1"#),
        (4, "a", "fault_applied", r#""verb":"pause","effect":"pause","detail":"5s","fault":0"#),
        (2002, "redis-1", "key_expired", r#""owner_token_prefix":"a:1""#),
        (
            2002,
            "redis-1",
            "key_granted",
            r#""owner_token_prefix":"b:1","fencing_token":2,"ttl_millis":2000,"client":"b""#,
        ),
        (
            2003,
            "b",
            "lease_acquired",
            r#""owner_token_prefix":"b:1","fencing_token":2,"ttl_millis":2000,"valid_micros":1950000"#,
        ),
        (2003, "b", "section_entered", r#""owner_token_prefix":"b:1","fencing_token":2"#),
        (2010, "resource", "write_accepted", r#""owner_token_prefix":"b:1","fencing_token":2,"version":1"#),
        (5004, "a", "fault_healed", r#""verb":"pause","effect":"pause","detail":"","fault":0"#),
        (5010, "resource", "write_accepted", r#""owner_token_prefix":"a:1","fencing_token":1,"version":2"#),
    ])
}

/// Returns the history of these events on one key: milliseconds, process, event, and its other fields.
fn history(events: &[(u64, &str, &str, &str)]) -> History {
    let lines = events.iter().map(|(millis, process, event, fields)| {
        let at = millis * 1_000_000;
        let key = if event.starts_with("fault") { "" } else { r#""resource_id_hash":"k","# };
        format!(r#"{{"at":{at},"process":{process:?},"event":{event:?},{key}{fields}}}"#) + "\n"
    });
    History::parse_json_lines(lines.collect::<String>().as_bytes()).unwrap()
}

/// Returns the picture of a history, with what the audit finds in it.
fn picture(title: &str, events: &[Event]) -> Picture {
    picture_with(title, events, &[])
}

fn picture_with(title: &str, events: &[Event], messages: &[Message]) -> Picture {
    let verdicts = audit(events, &Rules::default());
    let finding = |verdict: Verdict| Finding { sentence: verdict.detail.clone(), is_excused: false, verdict };
    let findings: Vec<Finding> = verdicts.into_iter().map(finding).collect();
    Picture::of(&Run {
        title,
        about: "",
        events,
        names: &Names::default(),
        findings: &findings,
        messages,
        roles: &BTreeMap::new(),
    })
}

/// Returns a message from `a` to `redis-1` with this content.
fn message(words: &str, sent: u64, fate: Fate) -> Message {
    Message {
        connection: 0,
        from: "a".to_owned(),
        to: "redis-1".to_owned(),
        sent: Nanos(sent),
        fate,
        is_reply: false,
        words: words.to_owned(),
        bytes: b"*1\r\n".to_vec(),
    }
}
