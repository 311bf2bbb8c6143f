//! The stories of several runs side by side.

use history::story;
use history::{Event, Kind};

use super::text::Names;

/// Writes the stories of runs in columns. A column has a title, the events of a run and its names.
pub fn side_by_side(columns: &[(&str, &[Event], &Names)]) -> String {
    let stories: Vec<Vec<String>> = columns.iter().map(|(_, events, names)| lines(events, names)).collect();
    let titles = columns.iter().map(|(title, ..)| *title);
    let columns: Vec<_> = titles.zip(stories.iter().map(Vec::as_slice)).collect();
    story::side_by_side(&columns)
}

/// Formats a run's story, a line for each event. Releases are left out: they add nothing to the story.
fn lines(events: &[Event], names: &Names) -> Vec<String> {
    let is_shown = |kind: &Kind| !matches!(kind, Kind::LeaseReleased { .. } | Kind::KeyDeleted { .. });
    let shown = events.iter().filter(|event| is_shown(&event.kind));
    shown.filter_map(|event| story::line(event, |key| names.key(key))).collect()
}
