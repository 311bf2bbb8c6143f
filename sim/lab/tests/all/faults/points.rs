//! Triggers count each pass of a point once, and find the point by its name.

use std::time::Duration;

use history::Kind;
use lab::{Arm, run};
use sim::faults::{Fault, Pause, Trigger};
use sim::servers::redis::RedisHost;
use sim::{Process, Schedule, Sim, Span};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// One worker with three rounds, which is paused in the second one.
fn schedule(point: &str) -> Schedule<lab::Options> {
    let text = format!(
        r#"
about = "a is paused in its second round"
system = "redis"
ttl = "2s"

[[worker]]
name = "a"
rounds = 3

[[fault]]
when = {{ process = "a", after = "{point}", nth = 2 }}
what = {{ pause = "a", for = "100ms" }}
"#
    );
    lab::parse("points", &text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_worker_passes_each_point_once_a_round() {
    let points =
        ["requested", "granted", "entered", "worked", "sent", "answered", "release-requested", "released"];
    for point in points {
        let report = run(&schedule(point), Arm::Fenced, 1).unwrap();
        let until_pause =
            report.events.iter().take_while(|event| !matches!(event.kind, Kind::FaultApplied { .. }));
        let requests = until_pause.filter(|event| matches!(event.kind, Kind::LeaseRequested { .. })).count();
        assert_eq!(requests, 2, "{point}: {}", report.trace());
    }
}

/// Runs a process that sends a PING to `redis`, with a fault at each of these points. Returns which have
/// struck.
fn struck(points: [(&str, &str); 2]) -> Vec<bool> {
    let mut sim = Sim::new(1);
    sim.host("redis", RedisHost::new()).host("REDIS", RedisHost::new());
    sim.process("a", |process: Process| async move {
        process.sleep(Duration::from_millis(1)).await;
        let mut stream = process.connect("redis:6379").await.unwrap();
        stream.write_all(b"PING\r\n").await.unwrap();
        stream.read_exact(&mut [0; 7]).await.unwrap();
    });
    for (process, point) in points {
        let pause = Pause { lasts: Some(Span::from_millis(1)), ..Pause::of("a") };
        sim.fault(Fault::new(Trigger::after(process, point), pause));
    }
    sim.run().unwrap().struck
}

#[test]
fn a_command_is_aimed_at_in_upper_and_lower_case() {
    assert_eq!(struck([("redis", "PING"), ("redis", "ping")]), [true, true]);
}

#[test]
fn a_network_point_names_its_peer_in_the_right_case() {
    assert_eq!(struck([("a", "sends to REDIS"), ("a", "sends to redis")]), [false, true]);
}
