//! Capsules: the files in which a search keeps a violation with all that replays it, and the summary beside
//! them. Machines of one search exchange them.
//!
//! Input: JSON.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sim::explore::fleet::{Capsule, Summary};

use crate::schedule;

/// Asserts that a capsule, or a summary, is written as one that reads the same. Reads the capsule's
/// schedules.
pub fn run(data: &[u8]) {
    round_trips::<Summary>(data);
    if let Some(capsule) = round_trips::<Capsule>(data) {
        schedule::round_trips(&capsule.schedule);
        schedule::round_trips(&capsule.drawn);
    }
}

fn round_trips<T: Serialize + DeserializeOwned + PartialEq + Debug>(data: &[u8]) -> Option<T> {
    let read: T = serde_json::from_slice(data).ok()?;
    let written = serde_json::to_string_pretty(&read).unwrap_or_else(|error| panic!("{read:?}: {error}"));
    match serde_json::from_str::<T>(&written) {
        Ok(again) => assert_eq!(again, read),
        Err(error) => panic!("it is written as JSON that is refused: {error}\n{written}"),
    }
    Some(read)
}
