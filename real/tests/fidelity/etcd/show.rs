//! Answers as texts that two servers have in common: revisions count from the script's beginning, and what
//! each server names by itself is left out.

use std::fmt::Debug;

use etcd_client::{Error, EventType, WatchResponse};

/// Lease ids above this are the server's own choice.
const CHOSEN_ID: i64 = 1_000_000_000;

/// An answer.
pub(crate) fn answer<T: Debug>(answer: &Result<T, Error>, revision: i64) -> String {
    match answer {
        Ok(answer) => masked(&format!("{answer:?}"), revision),
        Err(Error::GRpcStatus(status)) => format!("{:?}: {}", status.code(), status.message()),
        Err(other) => other.to_string(),
    }
}

/// What a message of a watch says: one text for each thing, with the watch that it concerns.
pub(crate) fn message(message: &WatchResponse, revision: i64) -> Vec<(i64, String)> {
    let id = message.watch_id();
    let at = message.header().map_or(0, |header| relative(header.revision(), revision));
    let mut told = Vec::new();
    if message.created() {
        told.push((id, format!("created at {at}")));
    }
    for event in message.events() {
        let kind = if event.event_type() == EventType::Put { "put" } else { "delete" };
        told.push((id, masked(&format!("{kind} {:?} was {:?}", event.kv(), event.prev_kv()), revision)));
    }
    if message.canceled() {
        let compacted = relative(message.compact_revision(), revision);
        told.push((id, format!("cancelled, compacted at {compacted}: {}", message.cancel_reason())));
    } else if !message.created() && message.events().is_empty() {
        told.push((id, format!("progress at {at}")));
    }
    told
}

fn relative(number: i64, revision: i64) -> i64 {
    if number > 0 { number - revision } else { number }
}

/// `text`, the debug output of a message, with its numbers made comparable and its bytes readable.
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
            // Beyond an i64.
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
        // The rest of a lease, in seconds.
        "ttl" if number > 0 => String::from("_"),
        _ if name.ends_with("revision") => relative(number, revision).to_string(),
        _ => number.to_string(),
    }
}

/// A list of bytes at the beginning of `text`, and what follows it.
fn bytes(text: &str) -> Option<(Vec<u8>, &str)> {
    let (list, rest) = text.strip_prefix('[')?.split_once(']')?;
    let bytes: Result<Vec<u8>, _> =
        list.split(", ").filter(|byte| !byte.is_empty()).map(str::parse).collect();
    // An empty list may be one of anything.
    bytes.ok().map(|bytes| (bytes, rest))
}
