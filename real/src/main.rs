//! The `real` command: parses its arguments, calls the library and prints the result.
//!
//! Exit codes: 0 as expected, 1 not as expected, 2 bad input, nothing checked, or a server that failed, 130
//! interrupted by Ctrl-C or SIGTERM.

mod cli;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Distributed locks on live servers, with the same code that runs in the simulator.
///
/// Most flags can also be set by an environment variable, which their help names: --ttl by DLOCK_TTL.
#[derive(Parser)]
#[command(name = "real", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts servers on free ports and leaves them running.
    Up(cli::up::Up),
    /// Stops the servers that `up` has started.
    Down(cli::up::Down),
    /// Serves the protected resource over HTTP.
    Resource(cli::resource::Resource),
    /// Acquires a lock, works, writes to the resource and releases.
    Worker(cli::worker::Worker),
    /// Offers acquires at a fixed rate and measures latency, throughput and fairness.
    Contend(cli::contend::Contend),
    /// Fills a server with millions of locks, all drawn from a seed.
    Gen(cli::fill::Gen),
    /// Runs workers for a long time with a fault every few seconds, and judges the history.
    Chaos(cli::chaos::Chaos),
    /// Judges the histories that the processes of a run have written.
    Audit(cli::audit::Audit),
    /// Shows the state of one lock and says what does not fit together.
    Inspect(cli::inspect::Inspect),
    /// Deletes the lease of a holder that no longer renews.
    Clear(cli::clear::Clear),
    /// Raises a lost fencing counter above what the resource has seen.
    Raise(cli::raise::Raise),
    /// Measures these locks and other libraries side by side.
    Peers(cli::peers::Peers),
    /// Runs an experiment of the lab on servers of its own.
    Experiment(cli::experiment::Experiment),
    /// Writes the pages of figures in docs/ from the kept results.
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
        Command::Inspect(inspect) => inspect.run(),
        Command::Clear(clear) => clear.run(),
        Command::Raise(raise) => raise.run(),
        Command::Peers(peers) => peers.run(),
        Command::Experiment(experiment) => experiment.run(),
        Command::Report(report) => report.run(),
    };
    match outcome {
        Ok(_) if cli::interrupted() => ExitCode::from(real::stop::EXIT_CODE),
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("real: {error}");
            ExitCode::from(2)
        }
    }
}
