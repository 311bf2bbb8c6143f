//! Compares the cost of contention for updates without a lock and for the same work under the lock.

use std::time::Duration;

use history::VerdictKind;
use lab::{Arm, Options, Point, System, Worker, WorkerMode, run, schedule};
use sim::faults::{Fault, Link, Pause, Reset, Trigger};
use sim::{Report, Schedule, Span};

/// The number of updates in each of the four schedules.
const UPDATES: u64 = 20;

fn report(name: &str) -> &'static Report {
    crate::support::case(name).run(Arm::Fenced)
}

fn attempts(report: &Report) -> f64 {
    report.summary().updates.attempts_per_update().unwrap()
}

/// Returns the true time at which the resource accepted the last write.
fn took(report: &Report) -> Duration {
    let last = report.events.iter().rfind(|event| event.process.as_str() == "resource").unwrap();
    Duration::from_nanos(last.at.0)
}

#[test]
fn failed_attempts_grow_with_contention() {
    let [low, high] = ["cas-low-contention", "cas-high-contention"].map(report);
    println!(
        "attempts an update: {:.2} at low contention, {:.2} at high; time: {:?} and {:?}",
        attempts(low),
        attempts(high),
        took(low),
        took(high)
    );
    for report in [low, high] {
        let updates = report.summary().updates;
        assert_eq!(updates.made, UPDATES);
        assert_eq!(
            updates.attempts,
            updates.made + updates.conflicts,
            "each attempt is an update or a conflict"
        );
        assert_eq!((updates.fenced, updates.given_up, report.commands), (0, 0, 0), "no lock server is asked");
    }
    assert!(attempts(low) < 1.1, "{}", attempts(low));
    assert!(attempts(high) > 1.5, "{}", attempts(high));
}

#[test]
fn the_lock_avoids_failed_attempts_but_sends_more_requests() {
    let [low, high] = ["cas-low-contention-locked", "cas-high-contention-locked"].map(report);
    println!("under the lock: {:?} at low contention, {:?} at high", took(low), took(high));
    for report in [low, high] {
        let summary = report.summary();
        assert_eq!((summary.accepted.len() as u64, summary.grants), (UPDATES, UPDATES));
        assert_eq!(summary.refused, []);
        assert!(report.commands > 2 * UPDATES, "an acquire and a release for each: {}", report.commands);
    }
    // At low contention the schedule determines both durations. At high contention the lock's polling costs
    // more than failed attempts.
    assert!(took(report("cas-high-contention")) < took(high));
}

/// Returns a row of the page's table.
fn row(contention: &str, method: &str, name: &str) -> String {
    let report = report(name);
    let made = UPDATES + report.summary().updates.conflicts;
    format!(
        "| {contention} | [{method}](../seeds/{name}.toml) | {UPDATES} | {made} | {} | {:.1} s |",
        report.commands,
        took(report).as_secs_f64()
    )
}

#[test]
fn the_page_shows_the_figures_of_the_runs() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = std::fs::read_to_string(root.join("docs/without-a-lock.md")).unwrap();
    for row in [
        row("low", "conditional writes", "cas-low-contention"),
        row("low", "lock", "cas-low-contention-locked"),
        row("high", "conditional writes", "cas-high-contention"),
        row("high", "lock", "cas-high-contention-locked"),
    ] {
        assert!(page.contains(&row), "the page lacks\n{row}");
    }
}

fn updaters(workers: impl IntoIterator<Item = Worker>) -> Schedule<Options> {
    let ttl = Span::from_secs(2);
    schedule("updates", System::REDIS, ttl, workers.into_iter().collect())
}

fn updater(name: &str) -> Worker {
    Worker { mode: WorkerMode::new("cas"), ..Worker::new(name) }
}

#[test]
fn a_pause_between_read_and_write_causes_no_verdict() {
    // The experiment of `gc-pause.toml`, without a lock.
    let late = Worker { starts: Span::from_millis(100), ..updater("b") };
    let mut schedule = updaters([updater("a"), late]);
    let what = Pause { process: "a".to_owned(), lasts: Some(Span::from_secs(5)) };
    schedule.faults.push(Fault::new(Trigger::after("a", Point::Worked), what));
    for arm in [Arm::Unfenced, Arm::Fenced] {
        let report = run(&schedule, arm, 0).unwrap();
        let updates = report.summary().updates;
        assert_eq!((updates.made, updates.conflicts), (2, 1), "{}", report.trace());
        assert_eq!(report.verdicts, [], "{}", report.trace());
    }
}

#[test]
fn an_update_whose_reply_is_lost_is_made_once() {
    let mut schedule = updaters([updater("a")]);
    let what = Reset { link: Link::new("a", "resource") };
    schedule.faults.push(Fault::new(Trigger::after("resource", Point::Accepted), what));
    let report = run(&schedule, Arm::Fenced, 0).unwrap();
    let updates = report.summary().updates;
    assert_eq!((updates.made, updates.conflicts, updates.given_up), (1, 0, 0), "{}", report.trace());
    assert!(report.trace().contains("200 again, a retry"), "{}", report.trace());
}

#[test]
fn an_update_gives_up_after_its_last_attempt() {
    let hasty = |name| Worker { attempts: Some(1), ..updater(name) };
    let report = run(&updaters(["a", "b", "c"].map(hasty)), Arm::Fenced, 0).unwrap();
    let updates = report.summary().updates;
    assert_eq!((updates.made, updates.given_up), (1, 2), "{}", report.trace());
}

#[test]
fn a_fenced_key_refuses_updates_without_a_token() {
    let later = Worker { starts: Span::from_secs(1), ..updater("b") };
    let schedule = updaters([Worker::new("a"), later]);
    let fenced = run(&schedule, Arm::Fenced, 0).unwrap();
    assert_eq!(fenced.summary().updates.fenced, 1, "{}", fenced.trace());
    assert_eq!(fenced.verdicts, []);
    let unfenced = run(&schedule, Arm::Unfenced, 0).unwrap();
    assert_eq!(unfenced.summary().updates.made, 1);
    assert!(
        unfenced.kinds().contains(&VerdictKind::StaleWrite),
        "a write without a token follows one with a token: {}",
        unfenced.trace()
    );
}
