//! `museum`: how many random schedules it takes until each mistake is found, and whether a correct lock is
//! accused in as many.

mod page;
mod row;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Args;
use sim::Strategy;
use sim::explore::{Portfolio, RUNS_MAX, Representation, Shrunk, explore, hunts_until, shrink};
use sim::lab::{Arm, System};
use sim::museum::{Museum, Mutant};

use self::row::{Hunted, Row, Smallest};
use super::explore::cores;
use super::stopwatch::Stopwatch;
use super::{Outcome, interrupt, interrupted, print, wrap};

/// The arguments of `museum`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Searches for this mistake only.
    #[arg(long)]
    mutant: Option<Mutant>,
    /// The number of searches for each mistake on each system.
    #[arg(long, default_value_t = 50)]
    hunts: u64,
    /// The most schedules of one search.
    #[arg(long, default_value_t = 10_000)]
    cap: u64,
    /// Draws faults by this strategy only: uniform, aimed, swarm, ordered or feedback. By default all in
    /// turns.
    #[arg(long)]
    strategy: Option<Strategy>,
    /// The number of searches by the uniform strategy alone, to compare; 0 for no comparison.
    #[arg(long, default_value_t = 0)]
    uniform: u64,
    /// Compares runs by these features, for the feedback strategy: states or pairs.
    #[arg(long, default_value_t = Representation::States)]
    novelty: Representation,
    /// The number of threads; by default one for each core.
    #[arg(long, value_parser = crate::cli::explore::threads())]
    threads: Option<usize>,
    /// The folder for the shrunk schedules, one for each mistake and system. A search for all mistakes writes
    /// its table there, too, as README.md.
    #[arg(long, default_value = "target/museum")]
    out: PathBuf,
}

/// Hunts each mistake of the museum. Returns false if a hunt did not find its mistake, or if a correct lock
/// is accused.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.hunts == 0 || arguments.cap == 0 {
        return Err("--hunts and --cap must be at least 1".into());
    }
    interrupt::watch()?;
    let Arguments { hunts, cap, out, .. } = arguments;
    let head = format!(
        "{hunts} hunts of at most {cap} random schedules with fencing on for each mistake. The median counts \
         a hunt that found nothing as {cap}."
    );
    print(&(wrap(&head, 0) + "\n" + &row::head()))?;
    let (mut rows, began) = (Vec::new(), Stopwatch::start());
    for mutant in Mutant::ALL.iter().filter(|mutant| arguments.mutant.is_none_or(|only| only == **mutant)) {
        for system in mutant.systems().into_iter().take_while(|_| !interrupted()) {
            let row = hunt(arguments, *mutant, system)?;
            print(&row.to_string())?;
            rows.push(row);
        }
    }
    print(&wrap(&row::shrinking(&rows), 2))?;
    print(&format!("{:.1} s; shrunk schedules: {}\n", began.elapsed().as_secs_f64(), out.display()))?;
    if arguments.mutant.is_none() {
        save(out, "README.md", &page::page(&rows, *cap))?;
    }
    let mut longest = BTreeMap::new();
    for row in &rows {
        let schedules: &mut u64 = longest.entry(row.system).or_default();
        *schedules = row.hunted.median.saturating_mul(*hunts).max(*schedules);
    }
    let mut acquitted = true;
    for (system, schedules) in longest.into_iter().take_while(|_| !interrupted()) {
        acquitted &= acquits(arguments, system, schedules)?;
    }
    Ok(rows.iter().all(|row| row.hunted.found == *hunts) && acquitted)
}

impl Arguments {
    fn portfolio(&self) -> Portfolio {
        Portfolio::from(self.strategy).by(self.novelty)
    }
}

/// Hunts one mistake on one system.
fn hunt(arguments: &Arguments, mutant: Mutant, system: System) -> Result<Row, Box<dyn Error>> {
    let Arguments { hunts: count, cap, out, .. } = arguments;
    let subject = Museum::new(Arm::Fenced).with(mutant).drawing(system);
    let ended = |count: u64, portfolio: &Portfolio| {
        hunts_until(&subject, count, *cap, portfolio, cores(arguments.threads), interrupted)
    };
    let began = Stopwatch::start();
    let found = ended(*count, &arguments.portfolio())?;
    let seconds = began.elapsed().as_secs_f64();
    let uniform = ended(arguments.uniform, &Portfolio::only(Strategy::Uniform))?;
    let first = found.iter().find_map(|hunt| hunt.violation.as_ref());
    let shrunk = first.map(|violation| {
        let began = Stopwatch::start();
        let Shrunk { mut schedule, runs, .. } =
            shrink(&subject, &violation.schedule, &violation.cause, RUNS_MAX);
        let seconds = began.elapsed().as_secs_f64();
        schedule.about = format!("{} Found as {}.", mutant.mistake(), violation.cause);
        let file = format!("{mutant}-{system}.toml");
        save(out, &file, &schedule.to_toml())?;
        Ok::<_, String>(Smallest { faults: schedule.faults.len(), file, runs, seconds })
    });
    let uniform = (!uniform.is_empty()).then(|| Hunted::of(&uniform));
    Ok(Row { mutant, system, hunted: Hunted::of(&found), seconds, shrunk: shrunk.transpose()?, uniform })
}

/// Runs that many schedules of the correct lock on the system. Returns false if one accuses it.
fn acquits(arguments: &Arguments, system: System, schedules: u64) -> Outcome {
    // Without a mistake, and judged by the same checks.
    let correct = Museum::new(Arm::Fenced).drawing(system);
    let (portfolio, threads) = (arguments.portfolio(), cores(arguments.threads));
    let tally = explore(&[correct], 0..schedules, &portfolio, threads, |_| !interrupted())?.tally;
    print(&format!("correct on {system}: {} schedules, {} violations\n", tally.schedules, tally.violations))?;
    Ok(tally.violations == 0)
}

/// Saves a file in the folder, which is created if need be.
fn save(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    let failed =
        |error: std::io::Error| format!("{}: {error}; choose another folder with --out", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(folder.join(name), text).map_err(failed)
}
