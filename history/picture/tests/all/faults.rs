//! A fault's effect decides how it is drawn; its name and its source do not matter.

use picture::{Picture, Role, Shape, SpanKind};

use crate::{history, picture};

const A: &str = r#""owner_token_prefix":"a:1","fencing_token":1,"ttl_millis":2000,"valid_micros":1950000"#;

/// Returns the bars of a kind: the name of the lane, the two times in milliseconds, and the label.
fn bars(drawn: &Picture, kind: SpanKind) -> Vec<(&str, u64, u64, &str)> {
    let of_kind = drawn.spans.iter().filter(|span| span.kind == kind);
    let millis = |at: ::history::Nanos| at.0 / 1_000_000;
    of_kind
        .map(|span| {
            (drawn.lanes[span.lane].name.as_str(), millis(span.from.at), millis(span.to.at), &*span.label)
        })
        .collect()
}

#[test]
fn a_fault_of_a_user_is_drawn_and_heals() {
    let cut = r#""effect":{"link":{"how":"cut","links":[["a","b"],["b","a"]]}}"#;
    let applied = format!(r#""fault":0,"verb":"flap",{cut},"detail":"flaps a ↔ b""#);
    let healed = format!(r#""fault":0,"verb":"flap",{cut},"detail":"holds again""#);
    let drawn = picture(
        "run",
        &history(&[
            (0, "a", "lease_acquired", A),
            (10, "network", "fault_applied", &applied),
            (20, "network", "fault_healed", &healed),
            (30, "network", "fault_applied", &applied),
            (40, "network", "fault_healed", &healed),
        ])
        .events,
    );
    let expected = [("network", 10, 20, "flaps a ↔ b"), ("network", 30, 40, "flaps a ↔ b")];
    assert_eq!(bars(&drawn, SpanKind::Link), expected);
    assert_eq!(drawn.lanes.iter().find(|lane| lane.name == "network").unwrap().role, Role::Links);
    let facts: Vec<_> = drawn.marks.iter().flat_map(|mark| &mark.changes).collect();
    let links = facts.iter().filter(|change| change.fact == "fault 1 on links");
    let values: Vec<&str> = links.map(|change| change.after.as_str()).collect();
    assert_eq!(values, ["flaps a ↔ b", "none", "flaps a ↔ b", "none"]);
}

#[test]
fn a_fault_on_live_processes_is_drawn_in_their_lanes() {
    let down = r#""verb":"kill-worker","effect":"down","fault":1,"detail":"b killed""#;
    let drawn = picture(
        "run",
        &history(&[
            (0, "a", "lease_acquired", A),
            (1, "b", "lease_requested", r#""owner_token_prefix":"b:1""#),
            (
                5,
                "a",
                "fault_applied",
                r#""verb":"pause-worker","effect":"pause","fault":0,"detail":"a stopped by SIGSTOP""#,
            ),
            (6, "b", "fault_applied", down),
            (9, "a", "fault_healed", r#""verb":"pause-worker","effect":"pause","fault":0,"detail":"over""#),
            (12, "b", "fault_healed", down),
        ])
        .events,
    );
    assert_eq!(
        drawn.lanes.iter().map(|lane| (&*lane.name, lane.role)).collect::<Vec<_>>(),
        [("a", Role::Worker), ("b", Role::Worker)]
    );
    assert_eq!(bars(&drawn, SpanKind::Pause), [("a", 5, 9, "a stopped by SIGSTOP")]);
    assert_eq!(bars(&drawn, SpanKind::Down), [("b", 6, 12, "b killed")]);
    let shapes: Vec<Shape> = drawn.marks[2..].iter().map(|mark| mark.shape).collect();
    assert_eq!(shapes, [Shape::Down, Shape::Down, Shape::Up, Shape::Up]);
}

#[test]
fn a_clock_is_off_by_the_sum_of_its_steps() {
    let step = |nanos: i64| {
        format!(
            r#""verb":"step-clock","effect":{{"clock":{{"step_nanos":{nanos}}}}},"fault":0,"detail":"set""#
        )
    };
    let (ahead, back) = (step(11_000_000_000), step(-11_000_000_000));
    let drawn = picture(
        "run",
        &history(&[
            (0, "a", "lease_acquired", A),
            (10, "a", "fault_applied", &ahead),
            (20, "a", "fault_applied", &back),
        ])
        .events,
    );
    assert_eq!(bars(&drawn, SpanKind::Clock), [("a", 10, 20, "clock +11s")]);
}

#[test]
fn a_reset_is_over_at_once() {
    let reset =
        r#""verb":"reset","effect":{"link":{"how":"reset","links":[["a","b"]]}},"fault":0,"detail":"resets""#;
    let events = history(&[(0, "a", "lease_acquired", A), (10, "network", "fault_applied", reset)]);
    let drawn = picture("run", &events.events);
    assert_eq!(bars(&drawn, SpanKind::Link), []);
    assert!(drawn.marks[1].changes.is_empty(), "nothing stays");
}
