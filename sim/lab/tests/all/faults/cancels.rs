//! A worker drops a call that is in progress: the renewal with its work, or the release.

use history::Kind;
use lab::{Arm, run};
use sim::Report;

/// Runs one worker for two rounds, with renewals under its work, and the fault `what` when it has passed the
/// point.
fn with_fault(point: &str, plus: &str, what: &str) -> Report {
    let text = format!(
        r#"
about  = "One worker drops a call"
system = "redis"
ttl    = "3s"

[[worker]]
name   = "a"
rounds = 2
work   = "2s"
renew  = true

[[fault]]
when = {{ process = "a", after = "{point}", plus = "{plus}" }}
what = {what}
"#
    );
    let report = run(&lab::parse("drops", &text).unwrap(), Arm::Fenced, 1).unwrap();
    assert_eq!(report.struck, [true], "{}", report.trace());
    assert!(report.kinds().is_empty(), "{}", report.trace());
    report
}

fn outcomes(report: &Report, of: fn(&Kind) -> Option<&str>) -> Vec<&str> {
    report.events.iter().filter_map(|event| of(&event.kind)).collect()
}

fn sections(report: &Report) -> Vec<&str> {
    outcomes(report, |kind| match kind {
        Kind::SectionLeft { outcome: Some(outcome), .. } => Some(outcome.as_str()),
        _ => None,
    })
}

fn count(report: &Report, is_meant: fn(&Kind) -> bool) -> usize {
    report.events.iter().filter(|event| is_meant(&event.kind)).count()
}

fn is_deletion(kind: &Kind) -> bool {
    matches!(kind, Kind::KeyDeleted { .. })
}

/// The first renewal is due after a second, and takes a round trip.
#[test]
fn a_dropped_renewal_ends_the_work_and_the_lease_is_released() {
    let report = with_fault("granted", "1000ms", r#"{ cancel = "a", call = "renew" }"#);
    assert_eq!(sections(&report), ["cancelled", "done"], "{}", report.trace());
    assert_eq!(count(&report, is_deletion), 2, "{}", report.trace());
}

#[test]
fn a_dropped_release_goes_on_in_the_background() {
    let report = with_fault("release-requested", "0s", r#"{ cancel = "a", call = "release" }"#);
    assert_eq!(sections(&report), ["done", "done"], "{}", report.trace());
    assert_eq!(count(&report, is_deletion), 2, "{}", report.trace());
}

#[test]
fn a_drop_of_one_call_spares_the_others() {
    let report = with_fault("requested", "0s", r#"{ cancel = "a", call = "release" }"#);
    assert_eq!(count(&report, |kind| matches!(kind, Kind::LeaseAcquired { .. })), 2, "{}", report.trace());
    assert_eq!(sections(&report), ["done", "done"], "{}", report.trace());
}
