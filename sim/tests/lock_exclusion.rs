//! Mutual exclusion where nothing excuses its loss: drawn schedules in which all holders renew, and no process pauses, no
//! clock is bent and no lock server forgets. The explorer must allow an overlap, since a pause explains one; here none does.

mod support;

use sim::explore::violation;
use sim::run::run;
use sim::schedule::{Arm, Verdict, draw};

#[test]
fn no_two_holders_work_at_once_where_no_fault_excuses_it() {
    let mut struck = 0;
    for seed in support::seeds(600) {
        let schedule = support::without_excuses(draw(seed));
        // The limit was drawn for shorter sections: what a renewed one needs beyond it is of no interest here.
        let report = run(&schedule, Arm::Fenced, seed).unwrap();
        struck += report.struck;
        let broken = violation(&schedule, &report).map(|violation| violation.broken).unwrap_or_default();
        assert!(
            !report.kinds().contains(&Verdict::Overlap) && broken.is_empty(),
            "seed {seed}: {:?}\n{}\n{}",
            report.kinds(),
            report.trace(),
            support::replay_line("lock_exclusion", seed)
        );
    }
    assert!(struck > 300 || std::env::var("SEED").is_ok(), "only {struck} faults struck: this showed little");
}
