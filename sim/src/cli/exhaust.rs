//! `exhaust`: runs every placement of a few faults in a small workload, and prints the claim.

use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use resource::Fencing;
use sim::Schedule;
use sim::exhaustive::{self, Searched};
use sim::explore::exhaust::{Break, Exhausted, Scope, exhaust, faults_needed};
use sim::lab::{Arm, Options, System, small};
use sim::museum::{self, Mutant};

use super::exhaust_table::{Meter, record};
use super::{Outcome, explore, print, wrap};

/// The arguments of `exhaust`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The schedule whose workload is searched. Its own faults strike in every run.
    #[arg(required_unless_present = "subject", conflicts_with = "subject")]
    file: Option<PathBuf>,
    /// Searches two workers with one key and one write each, on this system.
    #[arg(long)]
    subject: Option<System>,
    /// Searches with this mistake of the museum.
    #[arg(long)]
    mutant: Option<Mutant>,
    /// The largest number of faults of a placement.
    #[arg(long)]
    faults: usize,
    /// Fencing. Without it, the promises of fencing are still demanded: the search names what breaks them.
    #[arg(long, value_parser = super::fencing::parser(), default_value = "on")]
    fence: Fencing,
    /// The number of threads; by default one for each core.
    #[arg(long, value_parser = explore::threads())]
    threads: Option<usize>,
    /// The file that keeps the progress. If it exists, the search continues from it.
    #[arg(long)]
    resume: Option<PathBuf>,
    /// Prints only the least number of faults that breaks a promise.
    #[arg(long, conflicts_with = "resume")]
    needed: bool,
    /// Leaves nothing out: places every fault at every point. It takes several times as long.
    #[arg(long)]
    everywhere: bool,
    /// The file of results in which the result is recorded, such as sim/results/exhaustive.json.
    #[arg(long, requires = "subject", conflicts_with_all = ["mutant", "needed", "everywhere"])]
    record: Option<PathBuf>,
    /// The folder in which the smallest violations are saved, as schedules that replay.
    #[arg(long, default_value = "violations")]
    out: PathBuf,
}

/// Searches, and prints the claim. Returns false if a placement breaks a promise.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let base = base(arguments)?;
    let subject = exhaustive::subject(arguments.fence);
    let threads = explore::cores(arguments.threads);
    let scope = Scope {
        threads,
        progress: arguments.resume.clone(),
        is_pruned: !arguments.everywhere,
        ..Scope::of(arguments.faults)
    };
    if arguments.needed {
        let needed = faults_needed(&subject, &base, &scope)?;
        print(&format!("faults needed: {needed}\n"))?;
        return Ok(true);
    }
    let (bar, meter) = (bar(), Meter::start(threads));
    let found = exhaust(&subject, &base, &scope, |progress| {
        bar.set_length(progress.all as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(format!("{} placements, {} causes of violations", progress.runs, progress.broken));
        true
    })?;
    bar.finish_and_clear();
    print(&claim(&found))?;
    let cost = meter.cost();
    let seconds = cost.seconds;
    let runs = found.runs - found.resumed;
    let speed = runs as f64 / seconds.max(1e-9);
    print(&format!("\nruns: {runs} in {seconds:.1} s on {threads} threads ({speed:.0} a second)\n"))?;
    if found.resumed > 0 {
        print(&format!("from the progress file: {}\n", found.resumed))?;
    }
    for (number, broken) in found.breaks.iter().enumerate() {
        report(number + 1, broken, arguments.fence.into(), &arguments.out)?;
    }
    if let (Some(file), Some(system)) = (&arguments.record, arguments.subject) {
        let cost = (found.resumed == 0).then_some(cost);
        record(file, Searched { cost, ..Searched::of(system, arguments.fence, &found) })?;
    }
    Ok(found.breaks.is_empty())
}

/// Creates a progress bar. It hides itself without a terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} first faults, {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Returns the workload: that of the file, or the small one of the system.
fn base(arguments: &Arguments) -> Result<Schedule<Options>, Box<dyn std::error::Error>> {
    let mut base = match (&arguments.file, arguments.subject) {
        (Some(file), _) => museum::load(file)?,
        (None, Some(system)) => small(system),
        (None, None) => return Err("name a schedule file, or a system with --subject".into()),
    };
    if let Some(mutant) = arguments.mutant {
        base.options.mutant = Some(mutant.name().to_owned());
    }
    Ok(base)
}

/// Returns the claim, wrapped for a terminal. Indented lines are kept as they are.
fn claim(found: &Exhausted<Options>) -> String {
    let line = |line: &str| if line.starts_with(' ') { format!("{line}\n") } else { wrap(line, 2) };
    found.claim().lines().map(line).collect()
}

/// Saves a violation as a schedule, and prints how to replay it.
fn report(
    number: usize,
    found: &Break<Options>,
    arm: Arm,
    out: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let failed =
        |error: std::io::Error| format!("{}: {error}; choose another folder with --out", out.display());
    std::fs::create_dir_all(out).map_err(failed)?;
    let mut schedule = found.violation.schedule.clone();
    schedule.about = format!("{}; found by an exhaustive search", found.cause);
    let path = out.join(format!("exhaust-{}-{arm}-{number}.toml", schedule.options.system));
    let text = schedule.to_toml();
    std::fs::write(&path, &text).map_err(failed)?;
    let faults: String = text.split_inclusive("\n\n").filter(|part| part.starts_with("[[fault]]")).collect();
    print(&format!(
        "\n{number}. {}\n\n{faults}replay it: cargo run --release -- replay {}\n",
        found.cause,
        path.display()
    ))?;
    Ok(())
}
