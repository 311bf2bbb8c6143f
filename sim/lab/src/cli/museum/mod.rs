//! `museum`: how many random schedules it takes until each mistake is found, and whether what convicts it
//! acquits the same without the mistake.

mod exhibits;
mod identity;
mod measure;
mod pages;
mod results;
mod row;
mod strategies;

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Args;
use files::Parents;
use lab::museum::{Museum, Mutant};
use lab::{Arm, System};
use sim::Strategy;
use sim::explore::{Portfolio, explore};

use self::measure::Target;
use self::results::{DEFAULT, Key, Origin, Results, Row};
use super::explore::cores;
use super::stopwatch::Stopwatch;
use super::{Outcome, interrupt, interrupted, must_exist, print, wrap, written};

/// The results that are kept in the repository.
const KEPT: &str = "sim/lab/results/museum.json";

/// The arguments of `museum`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Searches for this mistake only.
    #[arg(long)]
    mutant: Option<Mutant>,
    /// Searches on this system only.
    #[arg(long)]
    system: Option<System>,
    /// The number of searches for each mistake on each system.
    #[arg(long, default_value_t = 50)]
    hunts: u64,
    /// The most schedules of one search.
    #[arg(long, default_value_t = 10_000)]
    cap: u64,
    #[arg(long, help = super::strategy_help("By default all in turns"))]
    strategy: Option<Strategy>,
    /// The number of schedules that the correct lock is run on, for each system: none must accuse it.
    #[arg(long, default_value_t = 0)]
    correct: u64,
    /// The number of threads; by default one for each core.
    #[arg(long, value_parser = crate::cli::explore::threads())]
    threads: Option<usize>,
    /// The folder for the shrunk schedules, one for each mistake and system.
    #[arg(long, default_value = "target/museum")]
    out: PathBuf,
    /// Keeps the results in this file, after each row. Rows of other mistakes, systems and strategies stay as
    /// they are, and a row that has hunts of this program already gets those that are missing. `--report` and
    /// `--check` read `sim/lab/results/museum.json` by default.
    #[arg(long)]
    results: Option<PathBuf>,
    /// Writes the results into `docs/museum.md` and `docs/strategies.md` of the folder in which it runs, and
    /// searches for nothing.
    #[arg(long, conflicts_with = "check")]
    report: bool,
    /// Fails if these pages, or the rows, are not those of the results and of the exhibits; searches for
    /// nothing.
    #[arg(long)]
    check: bool,
}

/// Hunts each mistake of the museum. Returns false if a hunt did not find its mistake, or if a correct lock
/// is accused.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.report || arguments.check {
        let file = arguments.results.as_deref().unwrap_or(Path::new(KEPT));
        must_exist(file)?;
        let results = Results::load(file)?;
        return if arguments.report { pages::write(&results) } else { pages::check(&results) };
    }
    arguments.check()?;
    files::try_folder(&arguments.out)?;
    if let Some(file) = &arguments.results {
        files::try_outputs(&[file], &[], Parents::Exist)?;
    }
    interrupt::watch()?;
    let (began, all) = (Stopwatch::start(), measure(arguments)?);
    if interrupted() {
        print("interrupted\n")?;
    }
    let mut acquitted = all.iter().all(|row| row.accused.is_empty());
    for system in systems(arguments).take_while(|_| arguments.correct > 0 && !interrupted()) {
        acquitted &= acquits(arguments, system)?;
    }
    print(&format!(
        "{:.1} s; shrunk schedules: {}\n",
        began.elapsed().as_secs_f64(),
        arguments.out.display()
    ))?;
    Ok(all.iter().all(|row| row.found() == row.hunts()) && acquitted)
}

/// Measures all rows that are asked for. Each is kept as soon as it is there.
fn measure(arguments: &Arguments) -> Result<Vec<Row>, Box<dyn Error>> {
    let Arguments { hunts, cap, .. } = arguments;
    let head = format!(
        "{hunts} hunts of at most {cap} random schedules with fencing on for each mistake. The medians count \
         a hunt that found nothing as {cap} schedules; seconds are the processor time of a hunt."
    );
    print(&(wrap(&head, 0) + "\n" + &row::head()))?;
    let mut kept = match &arguments.results {
        Some(file) => Results::load(file)?,
        None => Results::default(),
    };
    let (origin, mut rows) = (identity::origin(&arguments.portfolio())?, Vec::new());
    for (mutant, system) in chosen(arguments) {
        let row = measure_row(arguments, mutant, system, &origin, &kept)?;
        print(&row::line(&row))?;
        if let Some(file) = arguments.results.as_ref().filter(|_| row.hunts() > 0) {
            kept.put(row.clone());
            kept.save(file)?;
        }
        rows.push(row);
        if interrupted() {
            break;
        }
    }
    Ok(rows)
}

/// Returns the mistakes to hunt, each with a system.
fn chosen(arguments: &Arguments) -> impl Iterator<Item = (Mutant, System)> {
    let mutants = Mutant::ALL.iter().copied();
    let meant = mutants.filter(|mutant| arguments.mutant.is_none_or(|only| only == *mutant));
    let on_each = meant.flat_map(|mutant| mutant.systems().into_iter().map(move |system| (mutant, system)));
    on_each.filter(|(_, system)| arguments.includes(*system))
}

impl Arguments {
    /// Returns an error for a search that would hunt nothing.
    fn check(&self) -> Result<(), String> {
        if self.hunts == 0 || self.cap == 0 {
            return Err("--hunts and --cap must be at least 1".to_owned());
        }
        match (chosen(self).next(), self.mutant, self.system) {
            (None, Some(mutant), Some(system)) => {
                let systems: Vec<String> = mutant.systems().iter().map(ToString::to_string).collect();
                let systems = systems.join(" or ");
                Err(format!("--mutant {mutant} does not apply to --system {system}: give {systems}"))
            }
            (None, _, Some(system)) => Err(format!("no mistake applies to --system {system}: leave it out")),
            _ => Ok(()),
        }
    }

    fn portfolio(&self) -> Portfolio {
        Portfolio::from(self.strategy)
    }

    fn includes(&self, system: System) -> bool {
        self.system.is_none_or(|only| only == system)
    }

    /// Returns the name of the strategy in the results.
    fn strategy(&self) -> String {
        self.strategy.map_or_else(|| DEFAULT.to_owned(), |strategy| strategy.to_string())
    }
}

/// Hunts one mistake on one system, from where the kept row of the same program ends.
fn measure_row(
    arguments: &Arguments,
    mutant: Mutant,
    system: System,
    origin: &Origin,
    kept: &Results,
) -> Result<Row, Box<dyn Error>> {
    let key = Key::new(mutant, system, &arguments.strategy());
    let same = |row: &&Row| row.origin == *origin && row.cap == arguments.cap;
    let fresh = || Row::new(key.clone(), origin.clone(), arguments.cap);
    let mut row = kept.row(&key).filter(same).cloned().unwrap_or_else(fresh);
    let (portfolio, threads) = (arguments.portfolio(), cores(arguments.threads));
    let target = Target { mutant, system, portfolio: &portfolio, threads };
    let ended = target.hunt(&mut row, arguments.hunts, interrupted)?;
    let first = ended.iter().find_map(|hunt| hunt.found.as_ref());
    if let Some((_, violation)) = first.filter(|_| row.faults.is_none()) {
        row.faults = Some(target.shrink(violation, &arguments.out)?);
    }
    Ok(row)
}

fn systems(arguments: &Arguments) -> impl Iterator<Item = System> {
    System::searched().filter(|system| arguments.includes(*system))
}

/// Runs schedules of the correct lock on the system. Returns false if one accuses it.
fn acquits(arguments: &Arguments, system: System) -> Outcome {
    // Without a mistake, and judged by the same checks.
    let correct = Museum::new(Arm::Fenced).drawing(system);
    let (portfolio, threads) = (arguments.portfolio(), cores(arguments.threads));
    let tally = explore(&[correct], 0..arguments.correct, &portfolio, threads, |_| !interrupted())?.tally;
    print(&format!("correct on {system}: {} schedules, {} violations\n", tally.schedules, tally.violations))?;
    Ok(tally.violations == 0)
}

/// Saves a file in the folder, which is created if need be.
fn save(folder: &Path, name: &str, text: &str) -> Result<(), files::Error> {
    let file = folder.join(name);
    files::create_folder(folder)?;
    files::write(&file, text)?;
    written(&file);
    Ok(())
}
