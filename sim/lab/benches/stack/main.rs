//! Measures the cost of the whole stack, as rates and as ratios to other simulators.
//!
//! 1. Redis commands a second: three workers acquire and release by script on five servers, ten rounds; the
//!    real `redis` client, RESP2, Lua, the simulated network, with every event recorded and hashed. Compared
//!    with the same exchange over madsim's own `Endpoint` RPC and turmoil's TCP, without any protocol.
//! 2. Schedules a second of the safety experiment, a pause of five seconds: two workers and the HTTP
//!    resource, on one Redis and with Redlock on five; audit and trace hash included.
//!
//! `cargo bench --bench stack -- instructions` counts the instructions of a call instead, which do not
//! depend on the machine's speed. It needs `valgrind` on the `PATH`.
//!
//! `cargo bench --bench stack -- memory` makes a million runs of random schedules on two threads instead, and
//! prints the peak memory.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a benchmark reads the clock"
)]

#[path = "../search/instructions.rs"]
mod instructions;
mod memory;
mod ours;
mod peers;

use std::time::Duration;

use lab::{Arm, run};
use sim::allocator::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The size of one exchange.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) workers: usize,
    pub(crate) servers: usize,
    pub(crate) rounds: usize,
}

const SHAPE: Shape = Shape { workers: 3, servers: 5, rounds: 10 };

/// Number of measurements. Two contenders are measured right after one another, and take turns in going
/// first. A processor that is shared with other machines changes its speed for seconds at a time: so
/// measurements are short, and medians count.
const MEASUREMENTS: usize = 41;
/// Length of one measurement, in processor time of this process ([`busy`]): other processes don't count.
const MEASURED: Duration = Duration::from_millis(100);

fn main() {
    Allocator::keep_freed_memory();
    if std::env::args().any(|argument| argument == "memory") {
        return memory::million();
    }
    if std::env::args().any(|argument| argument == "profile") {
        return profile();
    }
    if std::env::args().any(|argument| argument == "figures") {
        return figures();
    }
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    match arguments.next().as_deref() {
        Some("instructions") => return count_instructions(),
        Some("exchanges") => {
            let [number, count] = [(); 2].map(|()| arguments.next().and_then(|text| text.parse().ok()));
            let contender = &contenders()[number.expect("exchanges NUMBER COUNT") as usize];
            (0..count.expect("exchanges NUMBER COUNT")).for_each(|seed| _ = (contender.run)(SHAPE, seed));
            return;
        }
        _ => {}
    }
    exchange();
    figures();
}

/// Our stack, and the contenders that it is compared to.
fn contenders() -> Vec<Contender> {
    [OURS].into_iter().chain(PEERS.into_iter().map(|(peer, _)| peer)).collect()
}

/// Prints the instructions of a call of each contender, and their ratio to ours.
fn count_instructions() {
    let mut ours = None;
    for (number, contender) in contenders().into_iter().enumerate() {
        let calls = (contender.run)(SHAPE, 0) as f64;
        let per_call = instructions::of_one(["exchanges", &number.to_string()], [20, 60]) / calls;
        let ratio = per_call / *ours.get_or_insert(per_call);
        println!("{per_call:>10.0} instructions a call, {ratio:.2} times ours: {}", contender.name);
    }
}

const OURS: Contender =
    Contender { name: "whole stack: redis client, RESP2, Lua, network, events, hash", run: ours::run };

/// The contenders that ours is compared to, each with the label of the ratio.
const PEERS: [(Contender, &str); 3] = [
    (
        Contender { name: "madsim Endpoint RPC, plain structs", run: peers::madsim_rpc::run },
        "of madsim's RPC",
    ),
    (
        Contender {
            name: "turmoil TCP, plain frames, our latencies",
            run: peers::turmoil_tcp::with_our_latencies,
        },
        "times turmoil at our latencies",
    ),
    (
        Contender {
            name: "turmoil TCP, plain frames, its own defaults",
            run: peers::turmoil_tcp::with_its_defaults,
        },
        "times turmoil at its defaults",
    ),
];

fn exchange() {
    println!(
        "calls a second, {} workers, {} servers, {} rounds, one core; median of {MEASUREMENTS} measurements:",
        SHAPE.workers, SHAPE.servers, SHAPE.rounds
    );
    for (peer, ratio) in &PEERS {
        let pairs: Vec<[f64; 2]> =
            (0..MEASUREMENTS as u64).map(|number| measure_pair(peer, number)).collect();
        println!("  {:>10.0}  {}", median(pairs.iter().map(|[ours, _]| *ours)), OURS.name);
        println!("  {:>10.0}  {}", median(pairs.iter().map(|[_, peer]| *peer)), peer.name);
        println!("  {:>10.2}  {ratio}", median(pairs.iter().map(|[ours, peer]| ours / peer)));
    }
}

/// Measures our stack and `peer` right after one another. Returns both rates, ours first.
fn measure_pair(peer: &Contender, number: u64) -> [f64; 2] {
    let measure = |contender: &Contender| rate(|seed| (contender.run)(SHAPE, seed), number);
    if number.is_multiple_of(2) {
        let ours = measure(&OURS);
        return [ours, measure(peer)];
    }
    let peer = measure(peer);
    [measure(&OURS), peer]
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Runs our own exchange alone, for a profiler: it counts instructions, where clocks show mostly noise.
fn profile() {
    const RUNS: u64 = 200;
    let calls: u64 = (0..RUNS).map(|seed| ours::run(SHAPE, seed)).sum();
    println!("{RUNS} runs, {calls} calls");
}

/// An implementation of the exchange. `run` takes its shape and a seed, and returns the number of answered
/// calls.
struct Contender {
    name: &'static str,
    run: fn(Shape, u64) -> u64,
}

/// Repeats `work` for one measurement, the one numbered `number`. Returns units of work a second; `work`
/// takes a seed and returns the units that it did.
fn rate(work: impl Fn(u64) -> u64, number: u64) -> f64 {
    let began = busy();
    let mut done = 0;
    let mut seed = number << 32;
    while busy() - began < MEASURED {
        done += work(seed);
        seed += 1;
    }
    done as f64 / (busy() - began).as_secs_f64()
}

/// Returns the processor time that this process has used, ended threads included.
fn busy() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

/// The schedules of Kleppmann's figure: on one Redis, and with Redlock on five.
const FIGURES: [(&str, &str); 2] = [
    ("seeds/gc-pause.toml", include_str!("../../../../seeds/gc-pause.toml")),
    ("seeds/gc-pause-redlock.toml", include_str!("../../../../seeds/gc-pause-redlock.toml")),
];

fn figures() {
    println!(
        "Kleppmann's figure, fencing on, one core, audit and trace hash included; \
         median of {MEASUREMENTS} measurements:"
    );
    for (file, text) in FIGURES {
        let schedule = lab::parse(file, text).unwrap();
        let judged = |seed| {
            let report = run(&schedule, Arm::Fenced, seed).unwrap();
            assert!(!report.verdicts.is_empty());
            1
        };
        let rate = median((0..MEASUREMENTS as u64).map(|number| rate(judged, number)));
        let report = run(&schedule, Arm::Fenced, 0).unwrap();
        println!(
            "  {rate:>10.0}  schedules a second of {file}, {} events and {} commands each",
            report.events.len(),
            report.commands
        );
    }
}
