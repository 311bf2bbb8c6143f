//! Triggers count each pass of a point once.

use history::Kind;
use lab::{Arm, run};
use sim::Schedule;

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
