//! A step of a Redis server's wall clock: keys expire by it, and by nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use real::faults::WallClock;
use real::servers::{Persistence, Redis, Stage, ask};

fn says(redis: &Redis, command: &str) -> String {
    ask(redis.port(), &format!("{command}\r\n"), |answer| answer.ends_with("\r\n")).unwrap()
}

/// The remaining time to live, in milliseconds.
fn pttl(redis: &Redis, key: &str) -> i64 {
    says(redis, &format!("PTTL {key}")).trim().trim_start_matches(':').parse().unwrap()
}

#[test]
fn a_step_forward_ends_a_lease_and_back_prolongs_it() {
    let stage = Stage::new().unwrap();
    let clock = WallClock::new(&stage, "redis").unwrap();
    let mut redis = Redis::start_with(&stage, "redis", Persistence::None, &clock.environment()).unwrap();
    assert_eq!(says(&redis, "SET k v PX 3600000"), "+OK\r\n");
    clock.step(-1_800_000).unwrap();
    assert!(pttl(&redis, "k") > 3_600_000, "half an hour longer, less the test's own time");
    clock.step(1_800_000).unwrap();
    assert!((1..=3_600_000).contains(&pttl(&redis, "k")));
    clock.step(3_601_000).unwrap();
    assert_eq!(says(&redis, "GET k"), "$-1\r\n", "an hour later it is gone");
    // A restarted server has the same clock.
    let time = |redis: &Redis| says(redis, "EVAL \"return tonumber(redis.call('TIME')[1])\" 0");
    let before: i64 = time(&redis).trim().trim_start_matches(':').parse().unwrap();
    redis.restart().unwrap();
    let after: i64 = time(&redis).trim().trim_start_matches(':').parse().unwrap();
    assert!((before..before + 1800).contains(&after), "{before} {after}");
}

#[test]
fn each_server_has_a_clock_of_its_own() {
    let stage = Stage::new().unwrap();
    let clocks = ["one", "two"].map(|name| WallClock::new(&stage, name).unwrap());
    let start = |n: usize, name: &str| {
        Redis::start_with(&stage, name, Persistence::None, &clocks[n].environment()).unwrap()
    };
    let (one, two) = (start(0, "one"), start(1, "two"));
    says(&one, "SET k v PX 3600000");
    says(&two, "SET k v PX 3600000");
    clocks[0].step(7_200_000).unwrap();
    assert_eq!((says(&one, "EXISTS k").as_str(), says(&two, "EXISTS k").as_str()), (":0\r\n", ":1\r\n"));
}
