//! The seat booking of the article on Redis locks and fencing tokens: the lock alone sells a seat twice; with
//! the fence the late buyer is refused, and refunded exactly once, whatever crashes. Mistaken refunds are
//! convicted.

#[path = "../../../../../resource/fence/examples/booking/mod.rs"]
mod booking;
mod checks;
mod world;

use resource::fence::Fencing;
use sim::faults::{Crash, Fault, Pause, Trigger};
use sim::{Report, Sim, Span};

use self::checks::passed;
use self::world::{Mistake, seats};
use crate::support::share;

/// The mistake that takes longest to find needs 1,000.
const SCHEDULES: u64 = 2_000;

/// Searches the schedules of a world; returns the problems of the first that fails.
fn problems(name: &str, fencing: Fencing, mistake: Mistake) -> Vec<String> {
    let is_correct = fencing == Fencing::On && mistake == Mistake::None;
    let schedules = if is_correct { share(SCHEDULES) } else { SCHEDULES };
    let folder = std::env::temp_dir().join(format!("sim-seats-{}-{name}", std::process::id()));
    let world = move |sim: &mut Sim| seats(sim, fencing, mistake);
    let found = sim::check(name, world).keep_in(&folder).schedules(schedules).find().unwrap();
    let _ = std::fs::remove_dir_all(folder);
    found.map_or_else(Vec::new, |failure| failure.problems)
}

fn assert_convicted(problems: &[String], check: &str) {
    assert!(problems.iter().any(|problem| problem.starts_with(check)), "{problems:?}");
}

#[test]
fn the_lock_alone_sells_the_seat_twice() {
    let problems = problems("lock_only", Fencing::Off, Mistake::None);
    assert_convicted(&problems, "one buyer for the seat: the seat was sold to a and to b");
}

#[test]
fn with_the_fence_late_buyers_are_refunded_once() {
    assert_eq!(problems("fenced", Fencing::On, Mistake::None), [""; 0]);
}

#[test]
fn a_refund_without_a_durable_record_is_convicted() {
    let problems = problems("from_memory", Fencing::On, Mistake::RefundFromMemory);
    assert_convicted(&problems, "late buyers are refunded once");
}

#[test]
fn a_refund_without_a_key_is_convicted() {
    let problems = problems("without_key", Fencing::On, Mistake::RefundWithoutKey);
    assert_convicted(&problems, "late buyers are refunded once");
}

#[test]
fn a_refund_after_a_lost_answer_is_convicted() {
    let problems = problems("on_silence", Fencing::On, Mistake::RefundOnSilence);
    assert_convicted(&problems, "late buyers are refunded once");
}

/// Runs the schedule of the article: `a` pauses after its payment until its lease is over and `b` has the
/// seat. Then `process` crashes at `step`, and restarts.
fn late_and_crashed(mistake: Mistake, process: &str, step: &str) -> Report {
    let mut sim = Sim::new(7);
    seats(&mut sim, Fencing::On, mistake);
    let pause = Pause { process: "a".to_owned(), lasts: Some(Span::from_secs(3)) };
    sim.fault(Fault::new(Trigger::after("a", "paid recorded"), pause));
    let crash = Crash { restart_after: Some(Span::from_millis(100)), ..Crash::of(process) };
    sim.fault(Fault::new(Trigger::after(process, step), crash));
    let report = sim.run().unwrap();
    assert_eq!(report.faults_struck(), 2, "{process}, {step}: {}", report.trace());
    report
}

/// Every step of the late buyer after its pause, and of the bank.
const STEPS: [(&str, &str); 6] = [
    ("a", "seat answered"),
    ("a", "refund due recorded"),
    ("a", "refund answered"),
    ("a", "refunded recorded"),
    ("bank", "charged a"),
    ("bank", "refunded a"),
];

#[test]
fn a_crash_at_any_step_leads_to_one_refund() {
    for (process, step) in STEPS {
        let report = late_and_crashed(Mistake::None, process, step);
        let trace = report.trace();
        assert_eq!(report.findings, [], "{process}, {step}: {trace}");
        let counts = ["charged a", "refunded a", "charged b", "refunded b"]
            .map(|point| passed(&report.events, "bank", point));
        assert_eq!(counts, [1, 1, 1, 0], "{process}, {step}: {trace}");
        assert_eq!(passed(&report.events, "b", "ended as booked"), 1, "{process}, {step}: {trace}");
        assert!(passed(&report.events, "a", "ended as refunded") > 0, "{process}, {step}: {trace}");
    }
}

#[test]
fn the_same_crashes_convict_the_mistaken_refunds() {
    for (mistake, process, step, refunds) in [
        (Mistake::RefundFromMemory, "a", "refund due recorded", 0),
        (Mistake::RefundWithoutKey, "a", "refund answered", 2),
        (Mistake::RefundWithoutKey, "bank", "refunded a", 2),
    ] {
        let report = late_and_crashed(mistake, process, step);
        let trace = report.trace();
        assert_eq!(passed(&report.events, "bank", "refunded a"), refunds, "{mistake:?}: {trace}");
        assert_eq!(report.findings.len(), 1, "{mistake:?}, {step}: {trace}");
    }
}
