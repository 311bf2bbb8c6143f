//! Two traces side by side, in 80 columns: what a reader must see of each, in few words.

use std::fmt::Write;

use resource::audit::{Event, Kind, Name};

use super::text::{Names, holder};
use crate::sim::Report;

/// The width of one trace, in columns.
const WIDTH: usize = 38;

/// The reports' traces in columns, under their titles. Lines that happen at the same place of each trace stand side by
/// side; a column that ends earlier stays empty.
pub fn side_by_side(columns: &[(&str, &Report)]) -> String {
    let traces: Vec<Vec<String>> =
        columns.iter().map(|(_, report)| lines(&report.events, &report.names)).collect();
    let mut text = row(columns.iter().map(|(title, _)| *title));
    text += &row(columns.iter().map(|_| "─".repeat(WIDTH)).collect::<Vec<_>>().iter().map(String::as_str));
    let rows = traces.iter().map(Vec::len).max().unwrap_or_default();
    for number in 0..rows {
        text += &row(traces.iter().map(|trace| trace.get(number).map_or("", String::as_str)));
    }
    text
}

fn row<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cells: Vec<String> = cells.map(|cell| format!("{cell:<WIDTH$}")).collect();
    cells.join(" │ ").trim_end().to_owned() + "\n"
}

fn lines(events: &[Event], names: &Names) -> Vec<String> {
    let mut lines = Vec::new();
    for event in events {
        if let Some(text) = brief(&event.kind, names) {
            let mut line = String::new();
            let _ = write!(line, "{:>6} {:<8} {text}", event.at.to_string(), event.process.as_str());
            lines.push(line.chars().take(WIDTH).collect());
        }
    }
    lines
}

/// The event in at most 22 columns, or nothing if a reader in a hurry can do without it.
fn brief(kind: &Kind, names: &Names) -> Option<String> {
    Some(match kind {
        Kind::LeaseRequested { key, .. } => format!("asks for {}", names.key(key)),
        Kind::LeaseAcquired { token, .. } => format!("granted, token {token}"),
        Kind::LeaseNotAcquired { .. } => "not granted".to_owned(),
        Kind::LeaseLost { .. } => "knows its lease is lost".to_owned(),
        Kind::KeyExpired { owner, .. } => format!("lease of {} expired", holder(owner.as_ref())),
        Kind::WriteAccepted { token, owner, .. } => format!("PUT {} token {token} → 200", writer(owner)),
        Kind::WriteRepeated { token, owner, .. } => {
            format!("PUT {} token {token} → 200 again", writer(owner))
        }
        Kind::WriteRejected { token, owner, .. } => format!("PUT {} token {token} → 409", writer(owner)),
        Kind::WriteAnswered { outcome, .. } => {
            format!("its write: {}", outcome.as_ref().map_or("", Name::as_str))
        }
        Kind::FaultApplied { detail, .. } | Kind::FaultHealed { detail, .. } => detail.to_string(),
        Kind::ProcessCrashed { .. } => "crashed".to_owned(),
        _ => return None,
    })
}

fn writer(owner: &Option<Name>) -> &str {
    holder(owner.as_ref())
}
