//! The `sim` command: parses its arguments, calls the library and prints the results.
//!
//! Exit codes: 0 as expected, 1 not as expected, 2 invalid input or nothing checked, 130 interrupted by
//! Ctrl-C or SIGTERM.
mod cli;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use history::VerdictKind;
use lab::System;
use lab::museum::Mutant;
use lab::serve::{self, Ports, RedisArguments};
use resource::Fencing;
use sim::Strategy;
use sim::allocator::Allocator;
use sim::explore::fleet::Shard;

use crate::cli::picture::Pictures;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Tests distributed locks: runs real lock clients against simulated servers, networks, clocks and disks.
///
/// Without a command: runs the safety experiment with fencing off and on, then random schedules for 5 s.
#[derive(Parser)]
#[command(name = "sim", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    pictures: Pictures,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the random schedule of a seed.
    Run {
        /// The seed of the schedule and of all randomness in its run.
        #[arg(long)]
        seed: u64,
        #[arg(long, help = cli::strategy_help("By default as `explore` does with this seed"))]
        strategy: Option<Strategy>,
        /// Turns the resource's check of fencing tokens on or off.
        #[arg(long, value_parser = cli::fencing::parser(), default_value = "on")]
        fence: Fencing,
        #[command(flatten)]
        shows: cli::replay::Shows,
    },
    /// Runs a schedule file and compares its verdicts with the expected ones.
    Replay {
        /// The schedule, such as seeds/gc-pause.toml.
        file: PathBuf,
        /// Prints one JSON object instead of text.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        exports: cli::exports::Exports,
        #[command(flatten)]
        pictures: Pictures,
    },
    /// Replays every schedule in a folder and prints a line for each.
    Corpus {
        /// The folder with the schedules.
        #[arg(default_value = "seeds")]
        folder: PathBuf,
    },
    /// Searches for violations: runs random schedules with fencing on.
    Explore {
        /// The largest number of schedules, of all shards together.
        #[arg(long, required_unless_present_any = ["seconds", "minutes", "until_stable"])]
        seeds: Option<u64>,
        /// The longest time, in seconds. A schedule that has begun is finished.
        #[arg(long)]
        seconds: Option<u64>,
        /// The longest time, in minutes.
        #[arg(long, conflicts_with = "seconds")]
        minutes: Option<u64>,
        /// Searches a share of the seeds, such as 1/4: each machine of a fleet another one.
        #[arg(long, default_value_t = Shard::WHOLE)]
        shard: Shard,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        first: u64,
        #[arg(long, help = cli::system_help())]
        system: Option<System>,
        /// Puts this mistake of the museum into all locks, or into the resource: the search must find it.
        #[arg(long)]
        mutant: Option<Mutant>,
        #[arg(long, help = cli::strategy_help("By default all in turns"))]
        strategy: Option<Strategy>,
        /// The number of threads; by default one for each core.
        #[arg(long, value_parser = cli::explore::threads())]
        threads: Option<usize>,
        /// Stops once ten batches of 64 schedules have reached no new state and no new probe.
        #[arg(long)]
        until_stable: bool,
        /// Fails if a probe is unmet: a situation that no run has reached, or a condition that none has
        /// evaluated, unless a kept schedule reaches it.
        #[arg(long)]
        probes: bool,
        /// Searches for a known mistake at the start and every hour, and fails if it is not found.
        #[arg(long)]
        canary: bool,
        /// Ends the search after this number of runs with a violation.
        #[arg(long, default_value_t = 100)]
        failures: u64,
        /// The longest real time of one schedule, in seconds. One that takes longer is saved, and ends the
        /// search.
        #[arg(long, default_value_t = 60)]
        hang: u64,
        /// The folder for violations and for a summary of the search, which `merge` reads. Each violation is
        /// saved as it is found: NAME.toml is the schedule, which `replay` runs again. By default
        /// `violations`, without a summary.
        #[arg(long)]
        out: Option<PathBuf>,
        #[command(flatten)]
        pictures: Pictures,
    },
    /// Makes one report of the folders that `explore --out` has written.
    Merge(cli::merge::Arguments),
    /// Reduces a schedule that fails to what its failure needs, and prints it.
    Shrink {
        /// The schedule, such as violations/seed-7-on.toml.
        file: PathBuf,
        /// The verdict to keep, if the schedule gives several. By default the first one that nothing in it
        /// explains, or else the last one.
        #[arg(long)]
        verdict: Option<VerdictKind>,
        /// The file to which the smaller schedule is written.
        #[arg(long)]
        out: Option<PathBuf>,
        #[command(flatten)]
        pictures: Pictures,
    },
    /// Says what happens in a schedule that fails, and which lengths of its faults still make it fail.
    Explain {
        /// The schedule, such as violations/seed-7-on.toml.
        file: PathBuf,
        /// The verdict to explain, if the schedule gives several. By default as for `shrink`.
        #[arg(long)]
        verdict: Option<VerdictKind>,
    },
    /// Searches for every mistake of the museum, with different seeds, and says how many schedules it took.
    Museum(cli::museum::Arguments),
    /// Writes a static site of all kept schedules: an index, a page each, the comparison, and a guided tour.
    Gallery(cli::gallery::Arguments),
    /// Runs every placement of at most so many faults in a small workload, and states what that shows.
    Exhaust(cli::exhaust::Arguments),
    /// Runs the searches of docs/exhaustive.md again, and writes their results and the page.
    ExhaustTable(cli::exhaust_table::Arguments),
    /// Runs every lock system under every class of faults, with fencing off and on, and counts the verdicts.
    Compare {
        /// The number of schedules for each row of the table.
        #[arg(long, default_value_t = 1500)]
        schedules: u64,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// The number of threads; by default one for each core.
        #[arg(long, value_parser = cli::explore::threads())]
        threads: Option<usize>,
        /// The Markdown file for the table, such as docs/comparison.md. Without it, the table is only
        /// printed.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Derives TTL, renewal and cap of a lease from measured work, and simulates how often it would be lost.
    Advise(cli::advise::Arguments),
    /// Serves the simulated Redis on a real port of this machine, for any Redis client.
    ServeRedis(RedisArguments),
    /// Serves the simulated etcd on a real port of this machine, for etcdctl and any etcd client.
    ServeEtcd(Ports),
    /// Serves the simulated ZooKeeper on a real port of this machine, for any ZooKeeper client.
    ServeZookeeper(Ports),
}

fn main() -> ExitCode {
    Allocator::keep_freed_memory();
    let Arguments { command, pictures } = Arguments::parse();
    let outcome = match command {
        None => cli::demo::demo(&pictures),
        Some(Command::Run { seed, strategy, fence, shows }) => {
            cli::replay::random(seed, &strategy.into(), fence.into(), &shows)
        }
        Some(Command::Replay { file, json, exports, pictures }) => {
            cli::replay::file(&file, json, &exports, &pictures)
        }
        Some(Command::Corpus { folder }) => cli::corpus::corpus(&folder),
        Some(Command::Explore {
            seeds,
            seconds,
            minutes,
            shard,
            first,
            system,
            mutant,
            strategy,
            threads,
            until_stable,
            probes,
            canary,
            failures,
            hang,
            out,
            pictures,
        }) => {
            let seconds = seconds.or(minutes.map(|minutes| minutes.saturating_mul(60)));
            cli::explore::explore(&cli::explore::Plan {
                system,
                mutant,
                portfolio: strategy.into(),
                first,
                seeds: seeds.unwrap_or(u64::MAX),
                longest: seconds.map(Duration::from_secs),
                shard,
                threads,
                until_stable,
                must_meet: probes,
                has_canary: canary,
                failures,
                hang: Duration::from_secs(hang),
                out,
                pictures,
            })
        }
        Some(Command::Merge(arguments)) => cli::merge::merge(&arguments),
        Some(Command::Shrink { file, verdict, out, pictures }) => {
            cli::shrink::shrink(&file, verdict, out.as_deref(), &pictures)
        }
        Some(Command::Explain { file, verdict }) => cli::shrink::explain(&file, verdict),
        Some(Command::Museum(arguments)) => cli::museum::run(&arguments),
        Some(Command::Gallery(arguments)) => cli::gallery::run(&arguments),
        Some(Command::Exhaust(arguments)) => cli::exhaust::run(&arguments),
        Some(Command::ExhaustTable(arguments)) => cli::exhaust_table::run(&arguments),
        Some(Command::Compare { schedules, first, threads, out }) => {
            cli::compare::compare(first, schedules, threads, out.as_deref())
        }
        Some(Command::Advise(arguments)) => cli::advise::run(&arguments),
        Some(Command::ServeRedis(arguments)) => {
            serve::serve_redis(arguments).map(|()| true).map_err(Into::into)
        }
        Some(Command::ServeEtcd(ports)) => serve::serve_etcd(ports).map(|()| true).map_err(Into::into),
        Some(Command::ServeZookeeper(ports)) => {
            serve::serve_zookeeper(ports).map(|()| true).map_err(Into::into)
        }
    };
    match outcome {
        Ok(_) if cli::interrupted() => ExitCode::from(cli::interrupt::EXIT_CODE),
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("sim: {error}");
            ExitCode::from(2)
        }
    }
}
