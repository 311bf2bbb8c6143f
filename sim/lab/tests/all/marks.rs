//! Marks in code that knows no process: they find it by themselves, and do nothing outside of a simulation.

use std::time::Duration;

use sim::faults::{Fault, Pause, Trigger};
use sim::{Process, Report, Sim, Span, VerdictKind};

const RARE: &str = "buggify marks.rs";

/// Code of a library: it has no process.
async fn transfer(sleep: impl Future<Output = ()>) {
    assert!(sim::is_simulated());
    let inside = sim::section_with_token("account:7", 3);
    sim::point("moving money");
    sleep.await;
    drop(inside);
}

/// Runs two processes that transfer at once, the second in a task of its own.
fn transfers(fault: Option<Fault>) -> Report {
    let mut sim = Sim::new(7);
    sim.key("account:7");
    for name in ["a", "b"] {
        sim.process(name, move |process: Process| async move {
            let sleeping = process.clone();
            let work = transfer(async move { sleeping.sleep(Duration::from_millis(100)).await });
            match name {
                "a" => work.await,
                _ => process.spawn(work),
            }
            process.sleep(Duration::from_millis(200)).await;
        });
    }
    if let Some(fault) = fault {
        sim.fault(fault);
    }
    sim.run().unwrap()
}

#[test]
fn sections_are_those_of_the_process_that_runs() {
    let report = transfers(None);
    assert_eq!(report.kinds().iter().filter(|kind| **kind == VerdictKind::Overlap).count(), 1);
    let trace = report.trace();
    for line in ["a        enters the section of account:7 token=3", "b        enters the section"] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_line =
            |known: &str| known.split_whitespace().collect::<Vec<_>>().join(" ").contains(&words.join(" "));
        assert!(trace.lines().any(is_line), "{line}\n{trace}");
    }
}

#[test]
fn a_fault_strikes_at_a_point() {
    let pause = Pause { process: "a".to_owned(), lasts: Some(Span::from_secs(1)) };
    let report = transfers(Some(Fault::new(Trigger::after("a", "moving money"), pause)));
    assert_eq!(report.struck, [true]);
}

/// A probe of each kind.
fn probes(is_kept: bool) {
    sim::always!("money is kept", is_kept);
    sim::sometimes!("the account is emptied", !is_kept);
    sim::reached!("the end");
    sim::closest!("time left", 7);
}

#[test]
fn probes_are_counted_and_a_false_always_is_a_finding() {
    let run = |is_kept| {
        let mut sim = Sim::new(7);
        sim.process("a", move |_: Process| async move { probes(is_kept) });
        sim.run().unwrap()
    };
    assert_eq!(run(true).findings, []);
    let findings = run(false).findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].check, "money is kept");
    assert!(findings[0].problem.contains("marks.rs:"), "{findings:?}");
}

#[test]
fn outside_of_a_process_marks_do_nothing() {
    let outside = || {
        drop(sim::section("account:7"));
        sim::point("nowhere");
        sim::always!("it is not evaluated", panic_if_evaluated());
        assert!(!sim::is_simulated() && !sim::buggify!(1.0));
    };
    outside();
    let mut sim = Sim::new(7);
    // Within the run, but in no process.
    sim.empty_process("a").check("outside", move |_: &sim::Evidence<'_>| {
        outside();
        Ok(())
    });
    assert_eq!(sim.run().unwrap().findings, []);
}

fn panic_if_evaluated() -> bool {
    panic!("a condition is evaluated outside of every process")
}

/// Returns the rare branches of 100 tries at two places in each of two processes.
fn rare(seed: u64, is_on: bool) -> Vec<String> {
    let mut sim = Sim::new(seed);
    sim.buggify(is_on);
    for name in ["a", "b"] {
        sim.process(name, |process: Process| async move {
            for _ in 0..100 {
                // Two places, on lines of their own.
                let _ = sim::buggify!();
                let _ = sim::buggify!(0.5);
                process.sleep(Duration::from_millis(1)).await;
            }
        });
    }
    let report = sim.run().unwrap();
    report.trace().lines().filter(|line| line.contains(RARE)).map(str::to_owned).collect()
}

#[test]
fn a_rare_branch_is_taken_in_some_runs_and_replays() {
    let runs: Vec<_> = (0..200).map(|seed| rare(seed, true)).collect();
    let active = runs.iter().filter(|lines| !lines.is_empty()).count();
    // Two places, each active in a quarter of the runs: 1 - 0.75² of 200 is 87.
    assert!((65..110).contains(&active), "{active}");
    for lines in runs.iter().filter(|lines| !lines.is_empty()) {
        let of =
            |name: &str| lines.iter().filter(|line| line.split_whitespace().nth(1) == Some(name)).count();
        // Both processes run the same program.
        assert!(of("a") > 5 && of("b") > 5, "{lines:?}");
    }
    for seed in 0..10 {
        assert_eq!(rare(seed, true), runs[usize::try_from(seed).unwrap()]);
        assert_eq!(rare(seed, false), Vec::<String>::new());
    }
}
