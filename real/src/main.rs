//! The `real` command: parses its arguments, calls the library, prints what it says.
//!
//! Exit codes: 0 as expected, 1 not as expected, 2 bad input or a server that failed.

mod cli;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Distributed locks on live servers: the same code that the simulator breaks.
///
/// Every flag may come from the environment: --ttl from DLOCK_TTL, and so on.
#[derive(Parser)]
#[command(name = "real", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts lock servers on free ports, and leaves them running.
    Up(cli::up::Up),
    /// Ends what `up` started.
    Down(cli::up::Down),
    /// Serves the protected resource over HTTP.
    Resource(cli::resource::Resource),
    /// Acquires a lock, works, writes to the resource and releases.
    Worker(cli::worker::Worker),
    /// Offers attempts to acquire at a fixed rate, and measures how they are served.
    Contend(cli::contend::Contend),
    /// Fills a Redis with locks by the million, all drawn from a seed.
    Gen(cli::fill::Gen),
    /// Runs workers for a long time, with a fault every few seconds, and judges what happened.
    Chaos(cli::chaos::Chaos),
    /// Judges the history that the processes of a run have left.
    Audit(cli::audit::Audit),
    /// Repeats an experiment of the lab on servers of its own.
    Experiment(cli::experiment::Experiment),
    /// Makes the page docs/experiments.md of the results of the experiments.
    Report(cli::report::Report),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Up(up) => up.run(),
        Command::Down(down) => down.run(),
        Command::Resource(resource) => resource.run(),
        Command::Worker(worker) => worker.run(),
        Command::Contend(contend) => contend.run(),
        Command::Gen(fill) => fill.run(),
        Command::Chaos(chaos) => chaos.run(),
        Command::Audit(audit) => audit.run(),
        Command::Experiment(experiment) => experiment.run(),
        Command::Report(report) => report.run(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("real: {error}");
            ExitCode::from(2)
        }
    }
}
