//! The text trace has a line for every kind of event.

use history::text::{Names, describe};
use history::{EventName, Kind, Record};

/// Every field of every event.
const FIELDS: &str = r#"{ "event": "EVENT", "resource_id_hash": "k", "owner_token_prefix": "a:12345678",
    "fencing_token": 1, "seq": 1, "ttl_millis": 1, "valid_micros": 1, "permits": 1, "position": 1, "outcome": "o",
    "seen": 1, "version": 1, "expected": 1, "client": "a", "step": "read", "fault": 0, "verb": "pause", "rate": 1,
    "effect": "pause", "until": 1,
    "detail": "d", "body": "b", "task": 1, "waiters_max": 1, "above": 1 }"#;

#[test]
fn no_event_is_a_blank_line() {
    for name in EventName::ALL {
        let record: Record = serde_json::from_str(&FIELDS.replace("EVENT", name.as_str())).unwrap();
        let text = describe(&Kind::try_from(record).unwrap(), &Names::default());
        assert!(!text.trim().is_empty(), "{}", name.as_str());
    }
}
