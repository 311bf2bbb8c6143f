//! What the tests share: the corpus, and the seeds that the environment asks for.
#![allow(dead_code, reason = "each test uses its part")]

use std::path::Path;

use sim::schedule::Schedule;

/// The schedules in `seeds/`, by name.
pub fn corpus() -> Vec<(String, Schedule)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../seeds"));
    sim::corpus::load(folder).unwrap_or_else(|error| panic!("{error}"))
}

/// The seeds to run: the one in `SEED`, or as many as `SEEDS` says, or `count`.
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    match number("SEED") {
        Some(seed) => seed..seed + number("SEEDS").unwrap_or(1),
        None => 0..number("SEEDS").unwrap_or(count),
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse().unwrap_or_else(|_| {
            panic!("{variable}={text} is no whole number: give one, such as {variable}=42")
        }),
    )
}

/// The line that runs this test again with one seed.
pub fn replay_line(test: &str, seed: u64) -> String {
    format!("replay it: SEED={seed} cargo test -p sim --test {test}")
}
