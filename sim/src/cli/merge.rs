//! `merge`: one report of the folders that shards of a search have written.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use sim::explore::fleet::{self, Merged};

use super::stopwatch::unix_seconds;
use super::{Outcome, print};

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
    let merged = fleet::merge(folders)?;
    if let Some(out) = out {
        let failed = |error| format!("{}: {error}; choose another folder with --out", out.display());
        std::fs::create_dir_all(out).map_err(failed)?;
        let capsules = merged.causes.values().flat_map(|found| &found.capsules);
        capsules.map(|capsule| capsule.save(out)).collect::<Result<Vec<_>, _>>()?;
    }
    let lines = trend.as_deref().map(|file| extend(file, &merged)).transpose()?;
    if *json {
        print(&(serde_json::to_string_pretty(&merged)? + "\n"))?;
    } else {
        print(&merged.to_string())?;
        print(&lines.map_or_else(String::new, |lines| table(&lines)))?;
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
    let added = serde_json::to_string(&line).map_err(|error| failed(error.into()))? + "\n";
    let mut opened = OpenOptions::new().create(true).append(true).open(file).map_err(failed)?;
    opened.write_all(added.as_bytes()).map_err(failed)?;
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
