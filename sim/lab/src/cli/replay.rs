//! `run` and `replay`: run one schedule and print its trace and its verdicts.

use std::fmt::Write;
use std::path::Path;

use history::Updates;
use lab::museum::{self, Museum};
use lab::{Arm, Lab};
use sim::Subject;
use sim::explore::Portfolio;
use sim::sim::{self as simulation, Mismatch, Report};

use super::exports::Exports;
use super::json::Object;
use super::picture::{Pictures, try_files};
use super::stopwatch::Stopwatch;
use super::{Outcome, arm_name, print, wrap};

/// What `run` prints and writes of a run.
#[derive(clap::Args)]
pub(crate) struct Shows {
    /// Prints the trace: one line for each event.
    #[arg(long)]
    trace: bool,
    /// Prints one JSON object instead of text.
    #[arg(long, conflicts_with = "trace")]
    json: bool,
    #[command(flatten)]
    exports: Exports,
    #[command(flatten)]
    pictures: Pictures,
}

/// Runs the schedule drawn from `seed` in one arm. Returns false if there is a violation.
pub(crate) fn random(seed: u64, portfolio: &Portfolio, arm: Arm, shows: &Shows) -> Outcome {
    try_files(&[shows.exports.files(&[None]), shows.pictures.files()].concat(), None)?;
    let schedule = Lab::new(arm).schedule(&mut portfolio.draw(seed))?;
    let began = Stopwatch::start();
    let mut world = simulation::build(&Lab::new(arm), &schedule)?;
    shows.exports.prepare(&mut world);
    shows.pictures.prepare(&mut world);
    let report = world.with_seed(seed).run()?;
    shows.exports.write(&report, None)?;
    let kept = sim::explore::violation(&Lab::new(arm), &schedule, &report).is_none();
    if shows.pictures.is_wanted() {
        let drawn = sim::explore::picture(&Lab::new(arm), &schedule, &report, arm_name(arm));
        shows.pictures.write(&[drawn], &format!("seed {seed}"), &schedule.to_toml())?;
    }
    if shows.json {
        let mut object = Object::new(&schedule, "drawn from the seed".to_owned());
        object.add(arm, &report, began.elapsed(), None);
        print(&object.text()?)?;
        return Ok(kept);
    }
    let mut text = format!("{}\n", schedule.to_toml());
    if shows.trace {
        text += &report.trace();
        text.push('\n');
    }
    text += &summary(&report);
    if !kept {
        let _ = writeln!(text, "violation: no known limit of this schedule explains these verdicts");
    }
    print(&text)?;
    Ok(kept)
}

/// Runs the schedule in `file` in each arm that it has expectations of, or in both if it has none. Returns
/// false if an arm does not give the expected outcome.
pub(crate) fn file(file: &Path, json: bool, exports: &Exports, pictures: &Pictures) -> Outcome {
    let schedule = museum::load(file)?;
    let mut object = Object::new(&schedule, file.display().to_string());
    let mut text = wrap(&format!("{}: {}", file.display(), schedule.about), 2);
    let (mut as_expected, mut drawn) = (true, Vec::new());
    let arms: Vec<Arm> = Arm::of(&schedule.expect).collect();
    let named = |arm| (arms.len() > 1).then_some(arm);
    let names: Vec<_> = arms.iter().map(|arm| named(*arm)).collect();
    try_files(&[exports.files(&names), pictures.files()].concat(), Some(file))?;
    for &arm in &arms {
        let began = Stopwatch::start();
        let mut world = simulation::build(&Museum::new(arm), &schedule)?;
        exports.prepare(&mut world);
        pictures.prepare(&mut world);
        let report = world.run()?;
        exports.write(&report, named(arm))?;
        let mismatches = schedule.mismatches(arm.name(), &report);
        as_expected &= mismatches.as_ref().is_none_or(Vec::is_empty);
        object.add(arm, &report, began.elapsed(), mismatches.as_deref());
        let _ = write!(text, "\n── {} ──\n{}\n{}", arm_name(arm), report.trace(), summary(&report));
        text += &comparison(mismatches.as_deref());
        if pictures.is_wanted() {
            drawn.push(sim::explore::picture(&Museum::new(arm), &schedule, &report, arm_name(arm)));
        }
    }
    print(&if json { object.text()? } else { text })?;
    if pictures.is_wanted() {
        pictures.write(&drawn, &file.display().to_string(), &std::fs::read_to_string(file)?)?;
    }
    Ok(as_expected)
}

/// Formats the verdicts, the writes and the counts of a run.
pub(crate) fn summary(report: &Report) -> String {
    let mut text = String::new();
    for verdict in &report.verdicts {
        let at = verdict.at.to_string();
        text += &wrap(&format!("{at:>8}  {}: {}", verdict.kind, verdict.detail), 10);
    }
    if report.verdicts.is_empty() {
        text += "no verdict\n";
    }
    let counts = report.summary();
    text += &wrap(&format!("accepted {}; refused {}", items(&counts.accepted), items(&counts.refused)), 2);
    if let Some(attempts) = counts.updates.attempts_per_update() {
        let Updates { made, conflicts, given_up, .. } = counts.updates;
        let line = format!(
            "{made} updates without a lock, {attempts:.2} attempts each; {conflicts} conflicts; \
             {given_up} given up"
        );
        text += &wrap(&line, 2);
    }
    let _ = writeln!(
        text,
        "{} grants; {:.3} s simulated, {} commands; trace {:016x}",
        counts.grants,
        report.simulated.as_secs_f64(),
        report.commands,
        report.hash
    );
    text
}

fn comparison(mismatches: Option<&[Mismatch]>) -> String {
    match mismatches {
        None => "the schedule expects nothing of this arm\n".to_owned(),
        Some([]) => "as expected\n".to_owned(),
        Some(mismatches) => {
            mismatches.iter().map(|mismatch| wrap(&format!("NOT as expected: {mismatch}"), 2)).collect()
        }
    }
}

fn items(writes: &[history::WriteBy]) -> String {
    let items: Vec<String> = writes.iter().map(ToString::to_string).collect();
    if items.is_empty() { "none".to_owned() } else { items.join(" ") }
}
