//! `exhaust`: every placement of a few faults in a small workload, and the claim that this allows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use resource::Fencing;
use resource::audit::VerdictKind;
use sim::Schedule;
use sim::explore::exhaust::{Break, Demanding, Exhausted, Scope, exhaust, faults_needed};
use sim::lab::{Arm, Options, System, small};
use sim::museum::{self, Museum, Mutant};

use super::stopwatch::Stopwatch;
use super::{Outcome, explore, print, wrap};

/// The arguments of `exhaust`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The schedule whose workload is searched; its faults strike in every run. It may name a mutant.
    #[arg(required_unless_present = "subject", conflicts_with = "subject")]
    file: Option<PathBuf>,
    /// Searches two workers with one key and one write each on this system: redis, redlock, etcd or
    /// zookeeper.
    #[arg(long)]
    subject: Option<System>,
    /// The mistake of all locks or of the resource, by its name in the museum.
    #[arg(long)]
    mutant: Option<String>,
    /// The most faults of a placement.
    #[arg(long)]
    faults: usize,
    /// Whether the resource checks fencing tokens. Without them it is held to the same promises.
    #[arg(long, value_parser = super::fencing::parser(), default_value = "on")]
    fence: Fencing,
    /// How many threads to use; by default as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
    /// The file that keeps the progress. If it exists, the search goes on where it stopped.
    #[arg(long)]
    resume: Option<PathBuf>,
    /// Prints only how many faults it takes to break a promise.
    #[arg(long, conflicts_with = "resume")]
    needed: bool,
    /// The folder in which the smallest violations are saved, as schedules that replay.
    #[arg(long, default_value = "violations")]
    out: PathBuf,
}

/// The verdicts that a resource without fencing excuses, and that fencing promises.
const FENCED: [VerdictKind; 3] = [VerdictKind::StaleWrite, VerdictKind::LateWrite, VerdictKind::LostUpdate];

/// Searches, and prints the claim. Not as expected if a placement breaks a promise.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let base = base(arguments)?;
    let arm = Arm::from(arguments.fence);
    let demanded = if arm == Arm::Unfenced { BTreeSet::from(FENCED) } else { BTreeSet::new() };
    let subject = Demanding { subject: Museum::new(arm), demanded };
    let threads = explore::cores(arguments.threads);
    let scope = Scope { threads, progress: arguments.resume.clone(), ..Scope::of(arguments.faults) };
    let began = Stopwatch::start();
    if arguments.needed {
        let needed = faults_needed(&subject, &base, &scope)?;
        print(&format!("faults needed: {needed}\n"))?;
        return Ok(true);
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} first faults, {msg}") {
        bar.set_style(style);
    }
    let found = exhaust(&subject, &base, &scope, |progress| {
        bar.set_length(progress.all as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(format!("{} placements, {} causes of violations", progress.runs, progress.broken));
        true
    })?;
    bar.finish_and_clear();
    print(&claim(&found))?;
    let seconds = began.elapsed().as_secs_f64();
    let speed = found.runs as f64 / seconds.max(1e-9);
    print(&format!(
        "\n{} runs in {seconds:.1} s on {threads} threads ({speed:.0} runs a second)\n",
        found.runs
    ))?;
    for (number, broken) in found.breaks.iter().enumerate() {
        report(number + 1, broken, arm, &arguments.out)?;
    }
    Ok(found.breaks.is_empty())
}

/// Returns the workload: that of the file, or the small one of the system.
fn base(arguments: &Arguments) -> Result<Schedule<Options>, Box<dyn std::error::Error>> {
    let mut base = match (&arguments.file, arguments.subject) {
        (Some(file), _) => museum::load(file)?,
        (None, Some(system)) => small(system),
        (None, None) => return Err("name a schedule file, or a system with --subject".into()),
    };
    if let Some(name) = &arguments.mutant {
        if Mutant::named(name).is_none() {
            let known: Vec<&str> = Mutant::ALL.iter().map(|mutant| mutant.name()).collect();
            return Err(format!("unknown mutant `{name}`: known are {}", known.join(", ")).into());
        }
        base.options.mutant = Some(name.clone());
    }
    Ok(base)
}

/// Returns the claim on lines of a terminal's width; what is indented stays as it is.
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
    schedule.about = format!("{}; found by exhaustive search", found.cause);
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
