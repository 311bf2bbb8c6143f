//! The events of a run as lines for people.

use std::collections::BTreeSet;

use resource::audit::{Event, Kind};
use resource::story;

/// One line for each event that a reader must know. A client that asks again and again does so in one line.
pub(crate) fn lines(history: &[Event]) -> Vec<String> {
    let mut asking = BTreeSet::new();
    let is_news = |event: &&Event| match event.kind {
        Kind::LeaseRequested { .. } => asking.insert(event.process.clone()),
        Kind::LeaseAcquired { .. } => {
            asking.remove(&event.process);
            true
        }
        // Only some of the servers under test tell of these.
        Kind::LeaseNotAcquired { .. } | Kind::KeyExpired { .. } | Kind::WriteRepeated { .. } => false,
        _ => true,
    };
    let news = history.iter().filter(is_news);
    news.filter_map(|event| story::line(event, |_| "the lock")).collect()
}
