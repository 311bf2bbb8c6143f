//! The results of the probes of a search, as text.

use std::fmt::Write;
use std::io;

use sim::probes::{ProbeKind, Probes, Seen};

use super::{print, wrap};

/// Lists how many probes were hit, and each that was not.
pub(crate) fn list(probes: &Probes) -> String {
    let all: Vec<Seen<'_>> = probes.iter().filter(is_searched).collect();
    let (conditions, situations): (Vec<Seen<'_>>, Vec<_>) =
        all.into_iter().partition(|seen| seen.kind == ProbeKind::Always);
    let hit = situations.iter().filter(|seen| seen.is_met()).count();
    let evaluated = conditions.iter().filter(|seen| seen.is_met()).count();
    let violated = conditions.iter().filter(|seen| seen.is_violated()).count();
    let mut text = format!(
        "\nprobes: {hit} of {} hit; always: {evaluated} of {} evaluated, {violated} violated\n",
        situations.len(),
        conditions.len()
    );
    for seen in situations.iter().filter(|seen| seen.kind == ProbeKind::Closest) {
        if let Some(least) = seen.count.least {
            let _ = writeln!(text, "  closest: {} {least}", seen.name);
        }
    }
    let missed = |seen: &&Seen<'_>| !seen.is_met();
    for (heading, seen) in [
        ("never hit", situations.iter().filter(missed).collect::<Vec<_>>()),
        ("never evaluated", conditions.iter().filter(missed).collect()),
        ("violated", conditions.iter().filter(|seen| seen.is_violated()).collect()),
    ] {
        if !seen.is_empty() {
            let _ = writeln!(text, "{heading}:");
            seen.iter().for_each(|seen| text += &wrap(&format!("  {seen}"), 6));
        }
    }
    text
}

/// Returns false for the probes of the simulated PostgreSQL, which no search draws: its own tests reach them.
fn is_searched(seen: &Seen<'_>) -> bool {
    !seen.file.contains("servers/postgres/")
}

/// Prints the probes that are unmet and that no kept schedule reaches; returns whether there are any.
pub(crate) fn has_unmet(probes: &Probes) -> io::Result<bool> {
    let unmet: Vec<_> = probes.unmet().into_iter().filter(is_searched).collect();
    if !unmet.is_empty() {
        let names: Vec<_> = unmet.iter().map(|seen| seen.name).collect();
        let advice = "run more schedules, or keep one that reaches them";
        print(&wrap(&format!("unmet: {}; {advice}", names.join(", ")), 2))?;
    }
    Ok(!unmet.is_empty())
}
