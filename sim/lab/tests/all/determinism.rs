//! The same seed gives the same trace, byte for byte: run twice, in any order, on any number of threads.

use std::sync::Mutex;

use crate::support::guard::{assert_same, record, trace};
use lab::{Arm, draw, run};
use sim::Span;
use sim::sim::Rekey;

#[test]
fn a_seed_gives_one_trace_on_any_thread() {
    let seeds: Vec<u64> = crate::support::seeds(60).collect();
    let first: Vec<String> = seeds.iter().map(|seed| trace(*seed)).collect();
    let mut reversed: Vec<String> = seeds.iter().rev().map(|seed| trace(*seed)).collect();
    reversed.reverse();
    let together = Mutex::new(vec![String::new(); seeds.len()]);
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (seeds, together) = (&seeds, &together);
            scope.spawn(move || {
                for number in (half..seeds.len()).step_by(2) {
                    let trace = trace(seeds[number]);
                    together.lock().unwrap()[number] = trace;
                }
            });
        }
    });
    let together = together.into_inner().unwrap();
    for (number, seed) in seeds.iter().enumerate() {
        assert_same(*seed, &first[number], &reversed[number]);
        assert_same(*seed, &first[number], &together[number]);
    }
}

#[test]
fn a_rekeyed_run_is_the_same_until_then_and_differs_later() {
    for seed in 0..10 {
        let mut schedule = draw(seed);
        let plain = run(&schedule, Arm::Fenced, seed).unwrap();
        let at = plain.events[plain.events.len() / 2].at.0;
        schedule.rekey = vec![Rekey { at: Span::from_nanos(at), seed: 77 }];
        let read = lab::parse("rekeyed", &schedule.to_toml()).unwrap();
        assert_eq!(read, schedule);
        let rekeyed = run(&read, Arm::Fenced, seed).unwrap();
        let before = plain.events.iter().take_while(|event| event.at.0 < at).count();
        assert!(before > 0 && plain.events[..before] == rekeyed.events[..before], "seed {seed}");
        assert_ne!(plain.hash, rekeyed.hash, "seed {seed}");
    }
}

#[test]
fn two_seeds_give_two_traces() {
    // Hashes of empty traces would all be equal.
    let hashes: std::collections::BTreeSet<u64> =
        (0..20).map(|seed| run(&draw(seed), Arm::Fenced, seed).unwrap().hash).collect();
    assert_eq!(hashes.len(), 20);
}

/// Code that wakes waiters in an order drawn from a random source of the program (as `tokio::sync::watch`
/// does) differs only from the second run of one process on: in this schedule two renewals wait for one new
/// session.
#[test]
fn a_run_does_not_depend_on_those_before_it() {
    let kept = std::path::Path::new("../../seeds/museum/unordered-keys-zookeeper.toml");
    let schedule = lab::museum::load(kept).unwrap();
    let run = || record(&lab::museum::run(&schedule, Arm::Fenced, schedule.seed).unwrap());
    let first = run();
    assert_eq!(["process_crashed", "renew_failed"].map(|event| first.matches(event).count()), [1, 2]);
    for _ in 0..9 {
        assert_same(schedule.seed, &first, &run());
    }
}
