//! `exhaust`: runs every placement of a few faults in a small workload, and prints the claim.

use std::num::NonZeroU8;
use std::path::{Path, PathBuf};

use clap::Args;
use lab::exhaustive::{self, Searched};
use lab::museum::{self, Mutant};
use lab::{Arm, Options, System, small_with_keys};
use resource::Fencing;
use sim::Schedule;
use sim::explore::exhaust::{Break, Exhausted, Scope, exhaust, faults_needed_watched};

use super::exhaust_table::{Meter, record};
use super::picture::try_files;
use super::progress::Progress;
use super::{Outcome, explore, interrupt, interrupted, print, wrap, written};

/// The arguments of `exhaust`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The schedule whose workload is searched. Its own faults strike in every run.
    #[arg(required_unless_present = "subject", conflicts_with = "subject")]
    file: Option<PathBuf>,
    /// Searches two workers that want the same key and write once each, on this system.
    #[arg(long)]
    subject: Option<System>,
    /// The keys that each worker of --subject locks at once and writes, the one in the opposite order of the
    /// other.
    #[arg(long, requires = "subject", default_value = "1")]
    keys: NonZeroU8,
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
    /// The file of results in which the result is recorded, such as sim/lab/results/exhaustive.json.
    #[arg(long, requires = "subject", conflicts_with_all = ["mutant", "needed", "everywhere"])]
    record: Option<PathBuf>,
    /// The folder in which the smallest violations are saved, as schedules that replay.
    #[arg(long, default_value = "violations")]
    out: PathBuf,
}

/// Searches, and prints the claim. Returns false if a placement breaks a promise.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    files::try_folder(&arguments.out)?;
    let outputs: Vec<PathBuf> = arguments.resume.iter().chain(&arguments.record).cloned().collect();
    try_files(&outputs, arguments.file.as_deref())?;
    let base = base(arguments)?;
    let subject = exhaustive::subject(arguments.fence);
    let threads = explore::cores(arguments.threads);
    let scope = Scope {
        threads,
        progress: arguments.resume.clone(),
        is_pruned: !arguments.everywhere,
        stop: interrupted,
        ..Scope::of(arguments.faults)
    };
    interrupt::watch()?;
    let (progress, meter) = (Progress::new(0, "first faults"), Meter::start(threads));
    let go_on = |found: &sim::explore::exhaust::Progress| {
        progress.set_length(found.all as u64);
        let more = format!("{} placements, {} causes of violations", found.runs, found.broken);
        progress.set(found.done as u64, &more);
        true
    };
    if arguments.needed {
        let needed = faults_needed_watched(&subject, &base, &scope, go_on)?;
        progress.finish();
        print(&format!("faults needed: {needed}\n{}", note(arguments)))?;
        return Ok(true);
    }
    let found = exhaust(&subject, &base, &scope, go_on)?;
    progress.finish();
    print(&claim(&found))?;
    let cost = meter.cost();
    let seconds = cost.seconds;
    let runs = found.runs - found.resumed;
    let speed = runs as f64 / seconds.max(1e-9);
    print(&format!("\nruns: {runs} in {seconds:.1} s on {threads} threads ({speed:.0} a second)\n"))?;
    if found.resumed > 0 {
        print(&format!("from the progress file: {}\n", found.resumed))?;
    }
    if let Some(resume) = &arguments.resume {
        written(resume);
    }
    for (number, broken) in found.breaks.iter().enumerate() {
        report(number + 1, broken, arguments.fence.into(), &arguments.out)?;
    }
    // A part of a search does not take the place of a whole one.
    if let (Some(file), Some(system), 0) = (&arguments.record, arguments.subject, found.remaining) {
        let cost = (found.resumed == 0).then_some(cost);
        let workload = (system, arguments.fence, arguments.keys);
        record(file, Searched { cost, ..Searched::of(workload, &found) })?;
    }
    print(&note(arguments))?;
    Ok(found.breaks.is_empty())
}

/// Says that the search was interrupted, if it was, and how it goes on.
fn note(arguments: &Arguments) -> String {
    let how = match &arguments.resume {
        Some(_) => ": the same command goes on",
        None if arguments.needed => "",
        None => "; --resume FILE keeps the progress",
    };
    if interrupted() { format!("interrupted{how}\n") } else { String::new() }
}

/// Returns the workload: that of the file, or the small one of the system.
fn base(arguments: &Arguments) -> Result<Schedule<Options>, Box<dyn std::error::Error>> {
    let mut base = match (&arguments.file, arguments.subject) {
        (Some(file), _) => museum::load(file)?,
        (None, Some(system)) => small_with_keys(system, arguments.keys),
        (None, None) => return Err("name a schedule file, or a system with --subject".into()),
    };
    if let Some(mutant) = arguments.mutant {
        base.options.mutant = Some(mutant.name().to_owned());
        // The small workload may lack an option without which the mistake can't be made.
        if arguments.file.is_none() {
            mutant.suit(&mut base.options);
        }
    }
    Ok(base)
}

/// Returns the claim, wrapped for a terminal. Indented lines are kept as they are.
fn claim(found: &Exhausted<Options>) -> String {
    let line = |line: &str| if line.starts_with(' ') { format!("{line}\n") } else { wrap(line, 2) };
    found.claim().lines().map(line).collect()
}

/// Prints a violation, saves it as a schedule, and prints how to replay it. If it can't be saved, prints the
/// whole schedule and the reason.
fn report(number: usize, found: &Break<Options>, arm: Arm, out: &Path) -> std::io::Result<()> {
    let mut schedule = found.violation.schedule.clone();
    schedule.about = format!("{}; found by an exhaustive search", found.cause);
    let text = schedule.to_toml();
    let faults: String = text.split_inclusive("\n\n").filter(|part| part.starts_with("[[fault]]")).collect();
    print(&format!("\n{number}. {}\n\n{faults}", found.cause))?;
    let name = format!("exhaust-{}-{arm}-{number}", schedule.options.system);
    match files::keep(out, &name, "toml", &text) {
        Ok(path) => print(&format!("replay it: cargo run --release -- replay {}\n", path.display())),
        Err(error) => print(&format!("{text}\nNOT KEPT: save the schedule above. {error} (--out)\n")),
    }
}
