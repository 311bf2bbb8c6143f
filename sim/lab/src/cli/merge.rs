//! `merge`: one report of the folders that shards of a search have written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use files::Parents;
use serde::{Deserialize, Serialize};
use sim::explore::fleet::{self, Merged};

use super::stopwatch::unix_seconds;
use super::{Outcome, print, written};

/// The most lines of a trend that are printed.
const LINES_MAX: usize = 10;

/// The arguments of `merge`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The folders that `explore --out` has written, one for each shard.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Prints one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// Adds a line with the figures of this report to the file, and compares them with the lines before.
    #[arg(long)]
    trend: Option<PathBuf>,
    /// The folder for the best capsules of each cause.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// A line of a trend: the figures of one report.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    /// When it was made, in seconds since the Unix epoch.
    at: u64,
    schedules: u64,
    schedules_per_core_day: f64,
    causes: BTreeSet<String>,
}

/// Merges the folders. Returns false if a shard has found a violation, or if something is wrong with one.
pub(crate) fn merge(arguments: &Arguments) -> Outcome {
    let Arguments { folders, json, trend, out } = arguments;
    if let Some(out) = out {
        files::try_folder(out)?;
        if let Some(input) = folders.iter().find(|folder| files::is_same(folder, out)) {
            return Err(files::Error::Input { path: out.clone(), input: input.clone() }.into());
        }
    }
    if let Some(trend) = trend {
        files::try_outputs(&[trend], &[], Parents::Exist)?;
    }
    let merged = fleet::merge(folders)?;
    // The report is shown first, since saving may fail.
    print(&if *json { serde_json::to_string_pretty(&merged)? + "\n" } else { merged.to_string() })?;
    if let Some(out) = out {
        for mut capsule in merged.causes.values().flat_map(|found| found.capsules.clone()) {
            capsule.save_beside(out)?;
            written(&out.join(format!("{}.toml", capsule.name)));
        }
    }
    if let Some(trend) = trend {
        let lines = extend(trend, &merged)?;
        print(&if *json { String::new() } else { table(&lines) })?;
    }
    Ok(merged.is_clean())
}

/// Adds a line to the trend in `file`, and returns all lines.
fn extend(file: &Path, merged: &Merged) -> Result<Vec<Line>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}; choose another --trend", file.display());
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| format!("{}:{}: is no line of a trend: {error}", file.display(), number + 1))
    };
    let mut lines = text.lines().enumerate().map(read).collect::<Result<Vec<Line>, String>>()?;
    let line = Line {
        at: unix_seconds(),
        schedules: merged.schedules,
        schedules_per_core_day: merged.schedules_per_core_day,
        causes: merged.causes.keys().cloned().collect(),
    };
    let added = serde_json::to_string(&line).map_err(|error| failed(error.into()))?;
    files::write(file, format!("{text}{added}\n")).map_err(|error| error.to_string())?;
    written(file);
    lines.push(line);
    Ok(lines)
}

/// Formats the last lines of a trend, and which causes are new or gone.
fn table(lines: &[Line]) -> String {
    let mut text = format!("\n{:>12}{:>14}{:>22}{:>10}\n", "at", "schedules", "a core and day", "causes");
    for line in &lines[lines.len().saturating_sub(LINES_MAX)..] {
        let Line { at, schedules, schedules_per_core_day, causes } = line;
        text += &format!("{at:>12}{schedules:>14}{schedules_per_core_day:>22.0}{:>10}\n", causes.len());
    }
    if let [.., before, last] = lines {
        for (what, one, other) in [("new", last, before), ("gone", before, last)] {
            one.causes.difference(&other.causes).for_each(|cause| text += &format!("{what}: {cause}\n"));
        }
    }
    text
}
