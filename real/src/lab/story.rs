//! The events of a run as lines for people, and two runs side by side.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use resource::audit::{Event, Kind, Name};

/// The width of one column, in characters.
const COLUMN: usize = 38;

/// One line for each event that a reader must know. Who asks again and again is told of once.
pub(crate) fn lines(history: &[Event]) -> Vec<String> {
    let mut asking = BTreeSet::new();
    let mut is_news = |event: &Event| match event.kind {
        Kind::LeaseRequested { .. } => asking.insert(event.process.clone()),
        Kind::LeaseAcquired { .. } => {
            asking.remove(&event.process);
            true
        }
        _ => true,
    };
    let told = history.iter().filter(|event| is_news(event));
    let line = |event: &Event| {
        Some(format!("{:>6} {:8} {}", event.at.to_string(), event.process, tell(&event.kind)?))
    };
    told.filter_map(line).collect()
}

fn tell(kind: &Kind) -> Option<String> {
    let by = |owner: &Option<Name>| match owner {
        Some(owner) => owner.as_str().split(':').next().unwrap_or_default().to_owned(),
        None => "somebody".to_owned(),
    };
    Some(match kind {
        Kind::LeaseRequested { .. } => "asks for the lock".to_owned(),
        Kind::LeaseAcquired { token, .. } => format!("granted, token {token}"),
        Kind::LeaseLost { .. } => "its lease is lost".to_owned(),
        Kind::ProcessCrashed { detail } => detail.as_ref().map_or("crashed", Name::as_str).to_owned(),
        Kind::FaultApplied { detail, .. } | Kind::FaultHealed { detail, .. } => detail.to_string(),
        Kind::WriteAccepted { owner, token, .. } => format!("PUT {} token {token} → 200", by(owner)),
        Kind::WriteRejected { owner, token, .. } => {
            format!("PUT {} token {token} → 409", by(owner))
        }
        Kind::KeyDeleted { owner, client, .. } => {
            let owner = owner.as_str().split(':').next().unwrap_or_default();
            format!("{client} deleted {owner}'s")
        }
        Kind::WriteAnswered { outcome, .. } => {
            format!("its write: {}", outcome.as_ref().map_or("no answer", Name::as_str))
        }
        Kind::LeaseReleased { outcome, .. } => {
            format!("its release: {}", outcome.as_ref().map_or("no answer", Name::as_str))
        }
        _ => return None,
    })
}

/// Two columns with their headings.
pub(crate) fn side_by_side(headings: [&str; 2], left: &[String], right: &[String]) -> String {
    let mut text = String::new();
    // What is longer is cut: two columns have 80 characters.
    let cell = |column: &[String], row: usize| {
        column.get(row).map(|line| line.chars().take(COLUMN).collect::<String>()).unwrap_or_default()
    };
    // Writing to a String can't fail.
    let _ = writeln!(text, "{:COLUMN$} │ {}", headings[0], headings[1]);
    let _ = writeln!(text, "{0:─<COLUMN$} │ {0:─<COLUMN$}", "");
    for row in 0..left.len().max(right.len()) {
        let _ = writeln!(text, "{:COLUMN$} │ {}", cell(left, row), cell(right, row));
    }
    text
}
