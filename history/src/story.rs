//! A summary of a history: one line for each event, and several histories side by side in 80 columns.

use crate::events::Event;
use crate::vocabulary::{Kind, Name};

/// The width of one of two columns, in characters. Longer text is cut.
pub const WIDTH: usize = 38;

/// Returns the event as a line, or `None` for an event that the summary leaves out. `key` returns the name of
/// a lock's key.
pub fn line<'a>(event: &'a Event, key: impl FnOnce(&'a Name) -> &'a str) -> Option<String> {
    let by = |owner| holder(owner);
    let text = match &event.kind {
        Kind::LeaseRequested { key: of, .. } => format!("asks for {}", key(of)),
        Kind::LeaseAcquired { token: 0, .. } => "granted".to_owned(),
        Kind::LeaseAcquired { token, .. } => format!("granted, token {token}"),
        Kind::LeaseNotAcquired { .. } => "not granted".to_owned(),
        Kind::LeaseLost { .. } => "knows its lease is lost".to_owned(),
        Kind::LeaseReleased { outcome, .. } => format!("its release: {}", answer(outcome)),
        Kind::KeyDeleted { owner, client, .. } => format!("{client} deleted {}'s", by(Some(owner))),
        Kind::KeyExpired { owner, .. } => format!("lease of {} expired", by(owner.as_ref())),
        Kind::WriteAccepted { token, owner, .. } => format!("PUT {} token {token} → 200", by(owner.as_ref())),
        Kind::WriteRepeated { token, owner, .. } => {
            format!("PUT {} token {token} → 200 again", by(owner.as_ref()))
        }
        Kind::WriteRejected { token, owner, outcome, .. } => {
            format!("PUT {} token {token} → {}", by(owner.as_ref()), status(outcome))
        }
        Kind::WriteAnswered { outcome, .. } => format!("its write: {}", answer(outcome)),
        Kind::FaultApplied { detail, .. } | Kind::FaultHealed { detail, .. } => detail.to_string(),
        Kind::ProcessCrashed { detail } => detail.as_ref().map_or("crashed", Name::as_str).to_owned(),
        _ => return None,
    };
    Some(format!("{:>6} {:<8} {text}", event.at.to_string(), event.process.as_str()))
}

/// Formats stories in columns under their titles. A column that ends earlier stays empty.
///
/// # Example
///
/// ```
/// use history::story::side_by_side;
///
/// let stored = [" 5.023 resource PUT a token 1 → 200".to_owned()];
/// let refused = [" 5.023 resource PUT a token 1 → 409".to_owned()];
/// let text = side_by_side(&[("fencing off", &stored), ("fencing on", &refused)]);
/// assert!(text.ends_with(" 5.023 resource PUT a token 1 → 200    │  5.023 resource PUT a token 1 → 409\n"));
/// ```
pub fn side_by_side(columns: &[(&str, &[String])]) -> String {
    let rule = "─".repeat(WIDTH);
    let mut text = row(columns.iter().map(|(title, _)| *title));
    text += &row(columns.iter().map(|_| rule.as_str()));
    let rows = columns.iter().map(|(_, lines)| lines.len()).max().unwrap_or_default();
    for number in 0..rows {
        text += &row(columns.iter().map(|(_, lines)| lines.get(number).map_or("", String::as_str)));
    }
    text
}

/// Returns the name in an owner token: the part before the random digits.
pub fn holder(owner: Option<&Name>) -> &str {
    match owner {
        Some(owner) => owner.as_str().rsplit_once(':').map_or(owner.as_str(), |(name, _)| name),
        None => "somebody",
    }
}

/// Returns the HTTP status of a refusal with this outcome.
pub(crate) fn status(outcome: &Option<Name>) -> u16 {
    if outcome.as_ref().is_some_and(|outcome| outcome.as_str() == "jump") { 422 } else { 409 }
}

fn answer(outcome: &Option<Name>) -> &str {
    outcome.as_ref().map_or("no answer", Name::as_str)
}

fn row<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cut = |cell: &str| cell.chars().take(WIDTH).collect::<String>();
    let cells: Vec<String> = cells.map(|cell| format!("{:<WIDTH$}", cut(cell))).collect();
    cells.join(" │ ").trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_cut_to_its_column_and_ends_without_spaces() {
        let long = ["x".repeat(WIDTH + 5), "y".to_owned()];
        let text = side_by_side(&[("one", &long), ("two", &long[1..])]);
        let x = "x".repeat(WIDTH);
        let rule = "─".repeat(WIDTH);
        let first = format!("{:WIDTH$} │ two\n{rule} │ {rule}\n", "one");
        assert_eq!(text, format!("{first}{x} │ y\n{:WIDTH$} │\n", "y"));
    }
}
