//! Shows answers as text that is the same for servers that agree: revisions count from the script's
//! beginning, and ids that a server chooses are left out.

use std::fmt::Debug;

use etcd_client::{Error, EventType, WatchResponse};

/// Lease ids above this are chosen by the server.
const CHOSEN_ID: i64 = 1_000_000_000;

/// Shows an answer or its error.
pub(crate) fn answer<T: Debug>(answer: &Result<T, Error>, revision: i64) -> String {
    match answer {
        Ok(answer) => masked(&format!("{answer:?}"), revision),
        Err(Error::GRpcStatus(status)) => format!("{:?}: {}", status.code(), status.message()),
        Err(other) => other.to_string(),
    }
}

/// Shows each part of a watch's message as one text, with the id of its watch.
pub(crate) fn message(message: &WatchResponse, revision: i64) -> Vec<(i64, String)> {
    let id = message.watch_id();
    let at = message.header().map_or(0, |header| relative(header.revision(), revision));
    let mut parts = Vec::new();
    if message.created() {
        parts.push((id, format!("created at {at}")));
    }
    for event in message.events() {
        let kind = if event.event_type() == EventType::Put { "put" } else { "delete" };
        parts.push((id, masked(&format!("{kind} {:?} was {:?}", event.kv(), event.prev_kv()), revision)));
    }
    if message.canceled() {
        let compacted = relative(message.compact_revision(), revision);
        parts.push((id, format!("cancelled, compacted at {compacted}: {}", message.cancel_reason())));
    } else if !message.created() && message.events().is_empty() {
        parts.push((id, format!("progress at {at}")));
    }
    parts
}

fn relative(number: i64, revision: i64) -> i64 {
    if number > 0 { number - revision } else { number }
}

/// Makes the numbers in `text`, the debug output of a message, comparable, and its bytes readable.
fn masked(text: &str, revision: i64) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(": ") {
        let name = rest[..at].rsplit([' ', '{', '(']).next().unwrap_or_default();
        out.push_str(&rest[..at + 2]);
        rest = &rest[at + 2..];
        let end = rest.find([',', ' ', '}', ')']).unwrap_or(rest.len());
        if let Ok(number) = rest[..end].parse::<i64>() {
            out.push_str(&shown(name, number, revision));
            rest = &rest[end..];
        } else if let Some((bytes, after)) = bytes(rest) {
            out.push_str(&format!("{:?}", String::from_utf8_lossy(&bytes)));
            rest = after;
        } else if name.ends_with("_id") {
            // A number beyond an i64.
            rest = &rest[end..];
            out.push('_');
        }
    }
    out.push_str(rest);
    out
}

fn shown(name: &str, number: i64, revision: i64) -> String {
    match name {
        "cluster_id" | "member_id" | "raft_term" => String::from("_"),
        "id" if number > CHOSEN_ID => String::from("_"),
        // The remaining time of a lease, in seconds.
        "ttl" if number > 0 => String::from("_"),
        _ if name.ends_with("revision") => relative(number, revision).to_string(),
        _ => number.to_string(),
    }
}

/// Returns the list of bytes at the beginning of `text`, and the rest.
fn bytes(text: &str) -> Option<(Vec<u8>, &str)> {
    let (list, rest) = text.strip_prefix('[')?.split_once(']')?;
    let bytes: Result<Vec<u8>, _> =
        list.split(", ").filter(|byte| !byte.is_empty()).map(str::parse).collect();
    // An empty list of any type counts as bytes.
    bytes.ok().map(|bytes| (bytes, rest))
}
