//! The events of a run as lines of text.

use std::collections::BTreeSet;

use history::story;
use history::{Event, Kind};

/// Returns one line for each event of interest. Repeated requests of one client become one line.
pub(crate) fn lines(history: &[Event]) -> Vec<String> {
    let mut asking = BTreeSet::new();
    let is_news = |event: &&Event| match event.kind {
        Kind::LeaseRequested { .. } => asking.insert(event.process.clone()),
        Kind::LeaseAcquired { .. } => {
            asking.remove(&event.process);
            true
        }
        // Omitted, since only some of the servers under test report them.
        Kind::LeaseNotAcquired { .. } | Kind::KeyExpired { .. } | Kind::WriteRepeated { .. } => false,
        _ => true,
    };
    let news = history.iter().filter(is_news);
    news.filter_map(|event| story::line(event, |_| "the lock")).collect()
}
