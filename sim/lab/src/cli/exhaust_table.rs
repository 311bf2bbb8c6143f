//! `exhaust-table`: runs the searches of `docs/exhaustive.md` again, and writes their results and the page.

use std::error::Error;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use files::Parents;
use lab::exhaustive::{self, Cost, Mistake, Results, Searched, page};

use super::stopwatch::{Stopwatch, processor_time};
use super::{Outcome, explore, must_exist, print, written};

/// The arguments of `exhaust-table`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The file of the results. It keeps the searches for more than one fault: `exhaust --record FILE`.
    #[arg(long, default_value = "sim/lab/results/exhaustive.json")]
    results: PathBuf,
    /// The page, whose parts between `<!-- NAME -->` and `<!-- /NAME -->` show the results.
    #[arg(long, default_value = "docs/exhaustive.md")]
    page: PathBuf,
    /// Runs no search: makes the page from the results.
    #[arg(long)]
    page_only: bool,
    /// Runs and writes nothing; exits with 1 if the page differs from the results.
    #[arg(long)]
    check: bool,
    /// The number of threads; by default one for each core.
    #[arg(long, value_parser = explore::threads())]
    threads: Option<usize>,
}

/// Writes the results and the page, or compares the two. Returns false if they differ.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { results: file, page: path, page_only, check, threads } = arguments;
    if !check {
        files::try_outputs(&[file, path], &[], Parents::Exist)?;
    }
    if *page_only || *check {
        must_exist(file)?;
    }
    let mut results = load(file)?;
    if !page_only && !check {
        search(&mut results, explore::cores(*threads))?;
        save(file, &results)?;
    }
    let known = std::fs::read_to_string(path)
        .map_err(|error| format!("{}: {error}; name the page with --page", path.display()))?;
    let made =
        page::with_results(&known, &results).map_err(|error| format!("{}: {error}", path.display()))?;
    if *check {
        if made != known {
            let (path, file) = (path.display(), file.display());
            print(&format!("{path} differs from {file}: run `exhaust-table --page-only`\n"))?;
        }
        return Ok(made == known);
    }
    files::write(path, made)?;
    written(path);
    Ok(true)
}

/// Runs the searches for one fault, and those for the mistakes of the museum.
fn search(results: &mut Results, threads: usize) -> Result<(), Box<dyn Error>> {
    for (system, fencing, keys) in exhaustive::workloads() {
        let meter = Meter::start(threads);
        let found = exhaustive::search((system, fencing, keys), threads)?;
        let placements = found.placements;
        print(&format!("{system}, fencing {}, keys {keys}: {placements} placements\n", fencing.as_str()))?;
        results.record(Searched { cost: Some(meter.cost()), ..found });
    }
    results.mistakes.clear();
    for (mutant, system) in exhaustive::mistakes() {
        let row = Mistake::of(mutant, system, &exhaustive::needed(mutant, system, threads)?);
        print(&format!("{mutant} on {system}: {}\n", row.faults))?;
        results.mistakes.push(row);
    }
    Ok(())
}

/// Adds a search to the file of results.
pub(super) fn record(file: &Path, searched: Searched) -> Result<(), Box<dyn Error>> {
    let mut results = load(file)?;
    results.record(searched);
    save(file, &results)?;
    print(&format!("recorded in {}; `exhaust-table --page-only` makes the page\n", file.display()))?;
    Ok(())
}

/// Reads the results; none if there is no such file.
fn load(file: &Path) -> Result<Results, String> {
    match std::fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Results::default()),
        Err(error) => Err(format!("{}: {error}; name another file", file.display())),
        Ok(text) => Results::parse(&text).map_err(|error| {
            format!("{}: these are no results of exhaustive searches: {error}", file.display())
        }),
    }
}

fn save(file: &Path, results: &Results) -> Result<(), Box<dyn Error>> {
    Ok(files::write(file, results.to_json()?)?)
}

/// Measures what a search costs.
pub(super) struct Meter {
    threads: usize,
    began: Stopwatch,
    processor_seconds: f64,
}

impl Meter {
    pub(super) fn start(threads: usize) -> Self {
        let processor_seconds = processor_time().as_secs_f64();
        Self { threads, began: Stopwatch::start(), processor_seconds }
    }

    /// Returns the cost of the search since the start.
    pub(super) fn cost(&self) -> Cost {
        Cost {
            threads: self.threads,
            seconds: rounded(self.began.elapsed().as_secs_f64()),
            processor_seconds: rounded(processor_time().as_secs_f64() - self.processor_seconds),
            is_release: !cfg!(debug_assertions),
        }
    }
}

/// Rounds to milliseconds.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}
