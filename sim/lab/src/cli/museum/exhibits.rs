//! The tables of `docs/museum.md`: the exhibits, and how their mistakes were found.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use lab::System;
use lab::exhaustive::page::thousands;
use lab::museum::Mutant;
use sim::explore::Broken;

use super::results::{DEFAULT, Results, Row, median};

const EXHIBITS: &str = "\
| number | name | mistake | made by | systems | convicted by | seen in | file |
|---|---|---|---|---|---|---|---|
";

const HUNTS: &str = "\
| name | system | found | schedules | runs | seconds | convicted by | met beside it |
|---|---|---|---|---|---|---|---|
";

/// Returns the table of the exhibits.
pub(super) fn exhibits() -> String {
    let mut text = EXHIBITS.to_owned();
    for mutant in Mutant::ALL {
        let file = mutant.file();
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "| {} | `{mutant}` | {} | {} | {} | {} | {} | [{}](../{file}) |",
            mutant.number(),
            mutant.mistake(),
            mutant.made_by(),
            systems(*mutant),
            signs(*mutant),
            mutant.source(),
            file.rsplit('/').next().unwrap_or(file),
        );
    }
    text
}

fn systems(mutant: Mutant) -> String {
    let systems = mutant.systems();
    if systems.len() == System::of_locks().count() {
        return "any".to_owned();
    }
    systems.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn signs(mutant: Mutant) -> String {
    let name = |sign: &Broken| match sign {
        Broken::Verdict(kind) => format!("`{kind}`"),
        other => other.to_string(),
    };
    mutant.signs().iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns the table of the hunts.
pub(super) fn hunts(results: &Results) -> String {
    let mut text = HUNTS.to_owned();
    for row in results.by(DEFAULT) {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{}", hunted(row));
    }
    let all = || results.by(DEFAULT);
    let (found, hunts) = (all().map(Row::found).sum(), all().map(Row::hunts).sum());
    let seconds: f64 = all().map(|row| row.processor_seconds).sum();
    let caps: BTreeSet<u64> = all().map(|row| row.cap).collect();
    let caps: Vec<String> = caps.into_iter().map(thousands).collect();
    let (found, hunts, hours) = (thousands(found), thousands(hunts), seconds / 3600.0);
    let found =
        format!("{found} of {hunts} hunts found their mistake, in {hours:.1} hours of processor time");
    text + &format!("\n{found}.\nEach ran at most {} schedules.\n{}", caps.join(" or "), later(results))
}

/// Returns a sentence on the rows that another program has measured than most; nothing if there are none.
fn later(results: &Results) -> String {
    let most = results.most_common_program();
    let others = results.by(DEFAULT).filter(|row| most != Some(&row.origin.program));
    let names: BTreeSet<String> = others.map(|row| format!("`{}`", row.key.mutant)).collect();
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.into_iter().collect();
    // A line has room for three of the longest names.
    let lines: Vec<String> = names.chunks(3).map(|names| names.join(", ")).collect();
    format!(
        "Measured by another version of the simulator than the others, which draws other options:\n{}.\n",
        lines.join(",\n")
    )
}

fn hunted(row: &Row) -> String {
    format!(
        "| `{}` | {} | {} of {} | {} | {} | {:.1} | {} | {} |",
        row.key.mutant,
        row.key.system,
        row.found(),
        row.hunts(),
        thousands(median(&row.schedules)),
        thousands(median(&row.runs)),
        row.seconds_each(),
        counts(&row.came),
        counts(&row.others),
    )
}

/// Returns what came with how often it came, such as `stuck 50`.
fn counts(came: &BTreeMap<String, u64>) -> String {
    let one = |(broken, times): (&String, &u64)| format!("{broken} {}", thousands(*times));
    came.iter().map(one).collect::<Vec<_>>().join(", ")
}
