//! The stories of two runs side by side.

use resource::audit::Kind;
use resource::story;

use crate::sim::Report;

/// The reports' stories in columns, under their titles.
pub fn side_by_side(columns: &[(&str, &Report)]) -> String {
    let stories: Vec<Vec<String>> = columns.iter().map(|(_, report)| lines(report)).collect();
    let titles = columns.iter().map(|(title, _)| *title);
    let columns: Vec<_> = titles.zip(stories.iter().map(Vec::as_slice)).collect();
    story::side_by_side(&columns)
}

/// How each lease ended by a release is left out: its story is told by then.
fn lines(report: &Report) -> Vec<String> {
    let is_told = |kind: &Kind| !matches!(kind, Kind::LeaseReleased { .. } | Kind::KeyDeleted { .. });
    let events = report.events.iter().filter(|event| is_told(&event.kind));
    events.filter_map(|event| story::line(event, |key| report.names.key(key))).collect()
}
