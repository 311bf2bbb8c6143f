//! `advise`: derives the terms of a lease from measurements, and counts how often leases would be lost.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use files::Parents;
use lab::advise::{CRASHES, Measured, Terms, Trial, Work, shows, try_ttl, wilson};
use serde::Serialize;
use sim::Span;

use super::explore::{cores, threads};
use super::progress::Progress;
use super::{Outcome, interrupt, interrupted, print, wrap, written};

/// The arguments of `advise`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The measured time of the critical section: its median and its 99th percentile, such as 200ms,800ms.
    #[arg(long, value_name = "P50,P99", value_parser = Work::percentiles, required_unless_present = "durations")]
    work: Option<Work>,
    /// A file with measured times instead: milliseconds, one number a line.
    #[arg(long, value_name = "FILE", conflicts_with = "work")]
    durations: Option<PathBuf>,
    /// The pause of the process to survive: 99 of 100 pauses are shorter, such as 2s.
    #[arg(long, value_name = "TIME")]
    pause: Span,
    /// The answer of the lock server to survive: 99 of 100 arrive sooner, such as 200ms.
    #[arg(long, value_name = "TIME")]
    network: Span,
    /// The share of sections in which the connection to the lock server breaks, such as 1%.
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = share)]
    loss: f64,
    /// The work does not renew its lease.
    #[arg(long)]
    no_renewal: bool,
    /// The number of sections that are simulated for each TTL.
    #[arg(long, default_value_t = 2000)]
    sections: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// The number of threads; by default one for each core. The counts do not depend on it.
    #[arg(long, value_parser = threads())]
    threads: Option<usize>,
    /// Prints one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// The file for the schedule of a lost lease, which `replay` runs: that of the longest TTL that lost one.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Prints the terms and the counts.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.sections == 0 {
        return Err("--sections is 0: give at least 1".into());
    }
    let inputs: Vec<&Path> = arguments.durations.iter().map(PathBuf::as_path).collect();
    let outputs: Vec<&Path> = arguments.out.iter().map(PathBuf::as_path).collect();
    let measured = measured(arguments)?;
    let terms = measured.terms()?;
    files::try_outputs(&outputs, &inputs, Parents::Exist)?;
    interrupt::watch()?;
    let trials = trials(arguments, &measured, &terms)?;
    if arguments.json {
        print(&json(arguments, &measured, &terms, &trials)?)?;
    } else {
        print(&text(arguments, &measured, &terms, &trials))?;
    }
    if let Some(out) = &arguments.out {
        let lost = trials.iter().rev().find_map(|(_, trial)| Some((trial.ttl, trial.first_lost?)));
        let (ttl, seed) = lost.ok_or_else(|| {
            format!("no lease was lost, so {} was not written: give more --sections", out.display())
        })?;
        files::write(out, shows(&measured, &terms, ttl, seed)?.to_toml())?;
        written(out);
    }
    Ok(true)
}

/// Parses a share such as `1%`.
fn share(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
    let share = percent.filter(|percent| (0.0..=100.0).contains(percent)).map(|percent| percent / 100.0);
    share.ok_or_else(|| format!("`{text}` is no share: write a percentage from 0% to 100%, such as 1%"))
}

fn measured(arguments: &Arguments) -> Result<Measured, Box<dyn std::error::Error>> {
    let work = match (&arguments.work, &arguments.durations) {
        (Some(work), _) => work.clone(),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                format!("{}: {error}: name a file with milliseconds, one number a line", file.display())
            })?;
            Work::durations(&text).map_err(|error| format!("{}: {error}", file.display()))?
        }
        (None, None) => return Err("give the measured work: --work P50,P99 or --durations FILE".into()),
    };
    let Arguments { pause, network, loss, no_renewal, .. } = *arguments;
    Ok(Measured { work, pause, network, loss, renews: !no_renewal })
}

/// The counts for each TTL, with its name.
type Trials = Vec<(&'static str, Trial)>;

fn trials(arguments: &Arguments, measured: &Measured, terms: &Terms) -> Result<Trials, sim::RunError> {
    let tried = terms.tried();
    let progress = Progress::new(arguments.sections.saturating_mul(tried.len() as u64), "sections");
    let go_on = || {
        progress.inc();
        !interrupted()
    };
    let seeds = (arguments.first, arguments.sections);
    let mut trials = Vec::new();
    for (name, ttl) in tried {
        if !interrupted() {
            trials.push((name, try_ttl((measured, terms, ttl), seeds, cores(arguments.threads), go_on)?));
        }
    }
    progress.finish();
    Ok(trials)
}

fn text(arguments: &Arguments, measured: &Measured, terms: &Terms, trials: &Trials) -> String {
    let mut text = inputs(measured);
    text += &advice(measured, terms);
    let heads = ["TTL", "after a crash", "leases lost", "late writes refused"];
    let _ = writeln!(text, "\n{:8}{:>8}{:>15}  {:24}{}", "", heads[0], heads[1], heads[2], heads[3]);
    for (name, trial) in trials {
        let (ttl, blocked) = (brief(trial.ttl), brief(trial.blocked));
        let [lost, refused] = [trial.lost, trial.refused].map(|hits| share_of(hits, trial.sections));
        let _ = writeln!(text, "{name:8}{ttl:>8}{blocked:>15}  {lost:24}{refused}");
    }
    text.push('\n');
    text += &wrap(&about_runs(arguments, measured, trials), 0);
    for (name, trial) in trials {
        if let Some(seed) = trial.first_lost {
            let refused = trial.first_refused.map(|seed| format!(", refused with {seed}"));
            let _ = writeln!(text, "{name}: first lost with seed {seed}{}", refused.unwrap_or_default());
        }
    }
    text
}

/// Repeats the measurements.
fn inputs(measured: &Measured) -> String {
    let Measured { work, pause, network, loss, .. } = measured;
    let from = match work.measurements() {
        None => "log-normal through both".to_owned(),
        Some(1) => "of 1 duration".to_owned(),
        Some(number) => format!("of {number} durations"),
    };
    let percentiles = [work.p50(), work.p99(), work.p99_9()].map(brief);
    let [p50, p99, p99_9] = percentiles;
    let mut text = format!("work     median {p50}, p99 {p99}, p99.9 {p99_9}, {from}\n");
    if work.measurements().is_some_and(|number| number < 1000) {
        text += "         fewer than 1000: the p99.9 is the longest; measure more\n";
    }
    let _ = writeln!(text, "pause    {}", brief(*pause));
    let _ = writeln!(text, "network  {}, connections that break: {}", brief(*network), percent(*loss));
    text
}

fn advice(measured: &Measured, terms: &Terms) -> String {
    let mut text = format!("\nTTL        {:>8}  p99.9 of the work + pause + network\n", brief(terms.ttl));
    let mut line = |name: &str, span: Span, why: &str| {
        let _ = writeln!(text, "{name:11}{:>8}  {why}", brief(span));
    };
    if measured.renews {
        line("renew every", terms.renew_interval, "a third of the TTL, so that two may fail");
    }
    line("threshold", terms.stop_threshold, "a sixth: with less left, begin no further step");
    if measured.renews {
        line("cap", terms.cap, "the TTL + p99.9 of the work: then renewals end");
    }
    text
}

fn about_runs(arguments: &Arguments, measured: &Measured, trials: &Trials) -> String {
    let done: u64 = trials.iter().map(|(_, trial)| trial.sections).min().unwrap_or_default();
    let renewed = if measured.renews { "renewed" } else { "not renewed" };
    let end = if interrupted() { " Interrupted: some TTLs have fewer sections, or are missing." } else { "" };
    format!(
        "{done} simulated sections for each TTL, from seed {}, on one Redis; leases are {renewed}. Each meets \
         one pause and one time without network, exponential, 99 of 100 within the times above. A lease is \
         lost if it is over before the write is accepted. After a crash: the longest time that the lock \
         stayed taken, of {CRASHES}. In brackets: 95 % confidence (Wilson).{end}",
        arguments.first
    )
}

/// Formats a share and its interval.
fn share_of(hits: u64, sections: u64) -> String {
    let (low, high) = wilson(hits, sections);
    let share = hits as f64 / (sections.max(1)) as f64;
    format!("{} ({} to {})", percent(share), number(low), number(high))
}

fn percent(share: f64) -> String {
    format!("{} %", number(share))
}

/// Formats a share in percent, with one decimal place, or two below 1 %.
fn number(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 1.0 { format!("{percent:.1}") } else { format!("{percent:.2}") }
}

/// Formats a time in three or four digits.
fn brief(span: Span) -> String {
    let seconds = span.duration().as_secs_f64();
    match seconds {
        0.0 => "0s".to_owned(),
        _ if seconds < 0.01 => format!("{:.2}ms", seconds * 1e3),
        _ if seconds < 1.0 => format!("{:.0}ms", seconds * 1e3),
        _ => format!("{seconds:.2}s"),
    }
}

/// The object that `--json` prints. Times are in milliseconds, shares from 0 to 1.
#[derive(Serialize)]
struct Object {
    work_p50_ms: f64,
    work_p99_ms: f64,
    work_p99_9_ms: f64,
    pause_ms: f64,
    network_ms: f64,
    loss: f64,
    renews: bool,
    ttl_ms: f64,
    renew_interval_ms: f64,
    stop_threshold_ms: f64,
    cap_ms: f64,
    first_seed: u64,
    trials: Vec<Row>,
}

/// The counts of one TTL.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    ttl_ms: f64,
    sections: u64,
    lost: u64,
    lost_interval: (f64, f64),
    refused: u64,
    refused_interval: (f64, f64),
    first_lost_seed: Option<u64>,
    first_refused_seed: Option<u64>,
    blocked_after_a_crash_ms: f64,
}

fn json(
    arguments: &Arguments,
    measured: &Measured,
    terms: &Terms,
    trials: &Trials,
) -> Result<String, serde_json::Error> {
    let row = |(name, trial): &(&'static str, Trial)| Row {
        name,
        ttl_ms: millis(trial.ttl),
        sections: trial.sections,
        lost: trial.lost,
        lost_interval: wilson(trial.lost, trial.sections),
        refused: trial.refused,
        refused_interval: wilson(trial.refused, trial.sections),
        first_lost_seed: trial.first_lost,
        first_refused_seed: trial.first_refused,
        blocked_after_a_crash_ms: millis(trial.blocked),
    };
    let object = Object {
        work_p50_ms: millis(measured.work.p50()),
        work_p99_ms: millis(measured.work.p99()),
        work_p99_9_ms: millis(measured.work.p99_9()),
        pause_ms: millis(measured.pause),
        network_ms: millis(measured.network),
        loss: measured.loss,
        renews: measured.renews,
        ttl_ms: millis(terms.ttl),
        renew_interval_ms: millis(terms.renew_interval),
        stop_threshold_ms: millis(terms.stop_threshold),
        cap_ms: millis(terms.cap),
        first_seed: arguments.first,
        trials: trials.iter().map(row).collect(),
    };
    Ok(serde_json::to_string_pretty(&object)? + "\n")
}

fn millis(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e6
}
