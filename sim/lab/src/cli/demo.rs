//! The demonstration, which `sim` runs without a command: the safety experiment in both arms, then some
//! seconds of random schedules.

use std::fmt::Write;
use std::time::Duration;

use history::Kind;
use lab::{Arm, Lab, run};
use sim::explore::{Found, Portfolio};
use sim::sim::Report;
use sim::trace::side_by_side;

use super::explore::{cores, estimate, show, show_end, table};
use super::picture::{Pictures, try_files};
use super::progress::Progress;
use super::stopwatch::Stopwatch;
use super::{Outcome, arm_name, print, wrap};

/// The schedule of the experiment. `corpus` replays the same file.
const EXPERIMENT: &str = include_str!("../../../../seeds/gc-pause.toml");

/// Real time for which random schedules run.
const SEARCH: Duration = Duration::from_secs(5);

/// Runs the experiment and the search. Returns false if an arm of the experiment does not give the expected
/// outcome, or if the search finds a violation.
pub(crate) fn demo(pictures: &Pictures) -> Outcome {
    try_files(&pictures.files(), None)?;
    let schedule = lab::parse("seeds/gc-pause.toml", EXPERIMENT)?;
    let unfenced = run(&schedule, Arm::Unfenced, schedule.seed)?;
    let fenced = run(&schedule, Arm::Fenced, schedule.seed)?;
    let mut text = wrap(&format!("The safety experiment: {}", schedule.about), 0) + "\n";
    text += &side_by_side(&[
        (arm_name(Arm::Unfenced), &unfenced.events, &unfenced.names),
        (arm_name(Arm::Fenced), &fenced.events, &fenced.names),
    ]);
    text.push('\n');
    let mut as_expected = true;
    for (arm, report) in [(Arm::Unfenced, &unfenced), (Arm::Fenced, &fenced)] {
        text += &verdicts(arm, report);
        for mismatch in schedule.mismatches(arm.name(), report).unwrap_or_default() {
            as_expected = false;
            text += &wrap(&format!("  NOT as expected: {mismatch}"), 4);
        }
    }
    print(&text)?;
    if pictures.is_wanted() {
        let drawn = [Arm::Unfenced, Arm::Fenced]
            .map(|arm| sim::explore::pictured(&Lab::new(arm), &schedule, arm_name(arm)));
        let drawn = drawn.into_iter().collect::<Result<Vec<_>, _>>()?;
        pictures.write(&drawn, "seeds/gc-pause.toml", EXPERIMENT)?;
    }
    Ok(search()? && as_expected)
}

/// Formats the run of one arm: its verdicts, the accepted writers and the refused writes.
fn verdicts(arm: Arm, report: &Report) -> String {
    let mut text = format!("{}:\n", arm_name(arm));
    for verdict in &report.verdicts {
        text += &wrap(&format!("  {}: {}", verdict.kind, verdict.detail), 4);
    }
    let summary = report.summary();
    let writers: Vec<String> = summary.accepted.iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "  accepted writers (worker:token): {}", writers.join(", "));
    for event in &report.events {
        if let Kind::WriteRejected { seen, token, .. } = &event.kind {
            let answer = format!(r#"409 {{"error":"stale fencing token","seen":{seen},"got":{token}}}"#);
            let _ = writeln!(text, "  refused: {answer}");
        }
    }
    text
}

fn search() -> Outcome {
    let seeds = 0..u64::MAX;
    print(&format!("\nNow random schedules for {} seconds:\n\n", SEARCH.as_secs()))?;
    let began = Stopwatch::start();
    let progress = Progress::new(100, "schedules");
    // A violation is told by its seed.
    let all = Portfolio::of_seeds();
    let Found { tally, violations } =
        sim::explore::explore(&Lab::arms(), seeds, &all, cores(None), |tally| {
            progress.set_length(estimate(tally.schedules, began.elapsed(), SEARCH));
            show(&progress, tally);
            began.elapsed() < SEARCH
        })?;
    show_end(&progress, &tally);
    print(&table(&tally, &[Arm::Unfenced, Arm::Fenced], began.elapsed().as_secs_f64()))?;
    for violation in &violations {
        let seed = violation.drawn_from;
        let fence = if violation.arm == Arm::Fenced.name() { "on" } else { "off" };
        print(&format!("violation: cargo run --release -- run --seed {seed} --fence {fence} --trace\n"))?;
    }
    Ok(violations.is_empty())
}
