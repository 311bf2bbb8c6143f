//! The toy lock server: correct until it restarts, which makes it forget its leases and tokens.

use history::VerdictKind;
use lab::{Arm, Options, Point, System, Worker, excused, run, schedule};
use sim::faults::{Crash, Fault, Trigger};
use sim::{Schedule, Span};

fn two_workers() -> Schedule<Options> {
    let worker = |name| Worker { rounds: 3, renew: true, work: Span::from_millis(700), ..Worker::new(name) };
    schedule("the toy", System::TOY, Span::from_secs(1), ["a", "b"].map(worker).to_vec())
}

#[test]
fn it_serves_one_holder_after_another() {
    for seed in 0..20 {
        let report = run(&two_workers(), Arm::Fenced, seed).unwrap();
        assert_eq!(report.summary().grants, 6, "{}", report.trace());
        assert_eq!(report.verdicts, [], "{}", report.trace());
    }
}

#[test]
fn a_token_granted_twice_after_a_restart_is_excused() {
    let mut schedule = two_workers();
    let restart_after = Some(Span::from_millis(100));
    let crash = Crash { process: "server-1".to_owned(), power_loss: false, restart_after };
    schedule.faults.push(Fault::new(Trigger::after("a", Point::Entered), crash));
    let report = run(&schedule, Arm::Fenced, 1).unwrap();
    assert!(report.kinds().contains(&VerdictKind::TokenRegressed), "{}", report.trace());
    assert!(report.kinds().is_subset(&excused(&schedule, Arm::Fenced)), "{:?}", report.verdicts);
}
