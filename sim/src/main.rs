//! The `sim` command: parses its arguments, calls the library, prints what it says.
//!
//! Exit codes: 0 as expected, 1 not as expected, 2 bad input.
mod cli;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use resource::Fencing;
use sim::lab::System;

#[global_allocator]
static ALLOCATOR: sim::allocator::Allocator = sim::allocator::Allocator;

/// Distributed locks, proved: real lock clients against simulated servers, networks, clocks and disks.
///
/// Without a command: the safety experiment, with fencing off and on, then some seconds of random schedules.
#[derive(Parser)]
#[command(name = "sim", version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the random schedule that a seed gives.
    Run {
        /// The seed that the schedule and all its randomness come from.
        #[arg(long)]
        seed: u64,
        /// Whether the resource checks fencing tokens.
        #[arg(long, value_parser = cli::fencing::parser(), default_value = "on")]
        fence: Fencing,
        /// Prints the trace, a line an event.
        #[arg(long)]
        trace: bool,
        /// Prints one JSON object instead of text.
        #[arg(long, conflicts_with = "trace")]
        json: bool,
    },
    /// Runs a schedule file and compares the verdicts with those it demands.
    Replay {
        /// The schedule, such as seeds/gc-pause.toml.
        file: PathBuf,
        /// Prints one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Replays every schedule of a folder, a line each.
    Corpus {
        /// The folder with the schedules.
        #[arg(default_value = "seeds")]
        folder: PathBuf,
    },
    /// Runs random schedules, with fencing off and on, in search of a violation.
    Explore {
        /// How many schedules to run.
        #[arg(long)]
        seeds: u64,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// Runs schedules of this lock system alone: redis, redlock, etcd or zookeeper.
        #[arg(long)]
        system: Option<System>,
        /// How many threads to use; by default as many as there are cores.
        #[arg(long)]
        threads: Option<usize>,
        /// Fails if a probe is unmet: a situation that no run has reached, or a condition that none has
        /// evaluated, unless it is marked rare.
        #[arg(long)]
        probes: bool,
        /// The folder in which violations are saved, as schedules that replay.
        #[arg(long, default_value = "violations")]
        out: PathBuf,
    },
    /// Runs every lock system under every class of faults, with fencing off and on, and counts the verdicts.
    Compare {
        /// How many schedules to run in each cell of the table.
        #[arg(long, default_value_t = 1500)]
        schedules: u64,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// How many threads to use; by default as many as there are cores.
        #[arg(long)]
        threads: Option<usize>,
        /// The file to which the table is written, as Markdown.
        #[arg(long, default_value = "docs/comparison.md")]
        out: PathBuf,
    },
    /// Sets up a crate of your own, so that `sim` builds as its dependency: writes .cargo/config.toml and
    /// .cargo/protoc.
    Init {
        /// The folder of your crate.
        folder: PathBuf,
    },
    /// Serves the simulated Redis on a real port of this machine, for any Redis client.
    ServeRedis {
        /// The port on 127.0.0.1; 0 picks a free one.
        #[arg(long)]
        port: u16,
    },
    /// Serves the simulated etcd on a real port of this machine, for etcdctl and any etcd client.
    ServeEtcd {
        /// The port on 127.0.0.1; 0 picks a free one.
        #[arg(long)]
        port: u16,
    },
    /// Serves the simulated ZooKeeper on a real port of this machine, for any ZooKeeper client.
    ServeZookeeper {
        /// The port on 127.0.0.1; 0 picks a free one.
        #[arg(long)]
        port: u16,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        None => cli::demo::demo(),
        Some(Command::Run { seed, fence, trace, json }) => {
            cli::replay::random(seed, fence.into(), trace, json)
        }
        Some(Command::Replay { file, json }) => cli::replay::file(&file, json),
        Some(Command::Corpus { folder }) => cli::corpus::corpus(&folder),
        Some(Command::Explore { seeds, first, system, threads, probes, out }) => {
            cli::explore::explore(system, first, seeds, threads, probes, &out)
        }
        Some(Command::Compare { schedules, first, threads, out }) => {
            cli::compare::compare(first, schedules, threads, &out)
        }
        Some(Command::Init { folder }) => cli::init::init(&folder),
        Some(Command::ServeRedis { port }) => {
            sim::serve::serve_redis(port).map(|()| true).map_err(Into::into)
        }
        Some(Command::ServeEtcd { port }) => sim::serve::serve_etcd(port).map(|()| true).map_err(Into::into),
        Some(Command::ServeZookeeper { port }) => {
            sim::serve::serve_zookeeper(port).map(|()| true).map_err(Into::into)
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("sim: {error}");
            ExitCode::from(2)
        }
    }
}
