//! Two faults on one process; the second strikes while the first lasts.

use std::time::Duration;

use sim::faults::{Crash, Rate, Slew};
use sim::{Control, Process, Report, Shift, Sim, Span};

const MS: Duration = Duration::from_millis(1);

/// Measures the rate of the clock of `a` for 100 ms; returns thousandths of true time.
async fn rate(control: &Control) -> u128 {
    let (process, began) = (control.process("a"), control.now());
    let read = process.now();
    control.sleep(100 * MS).await;
    let (passed, truly) = (process.now().saturating_since(read), control.now() - began);
    (1000 * passed.as_nanos() + truly.as_nanos() / 2) / truly.as_nanos()
}

/// Returns the report, and the rate of the clock of `a` at each time in `at` (milliseconds).
fn rates(at: &[u64], strike: impl FnOnce(&Control) + Send) -> (Report, Vec<u128>) {
    Sim::new(1)
        .empty_process("a")
        .run_script(|control| async move {
            strike(&control);
            let mut rates = Vec::new();
            for at in at {
                control.sleep_until(Duration::from_millis(*at)).await;
                rates.push(rate(&control).await);
            }
            rates
        })
        .unwrap()
}

fn for_a_second(factor: f64) -> Rate {
    Rate { lasts: Some(Span::from_secs(1)), ..Rate::of("a", factor) }
}

#[test]
fn an_ending_rate_leaves_a_later_one_in_force() {
    let (report, rates) = rates(&[0, 600, 1200, 1600], |control| {
        control.strike(for_a_second(2.0));
        control.after(500 * MS, |control| _ = control.strike(for_a_second(3.0)));
    });
    assert_eq!(rates, [2000, 3000, 3000, 1000], "{}", report.trace());
    assert_eq!(report.trace().matches("clock runs true again").count(), 1, "{}", report.trace());
    assert!(report.trace().contains("clock goes on at 3"), "{}", report.trace());
}

#[test]
fn an_ending_rate_leaves_an_earlier_one_in_force() {
    let (report, rates) = rates(&[0, 600, 1600, 3100], |control| {
        control.strike(Rate { lasts: Some(Span::from_secs(3)), ..Rate::of("a", 2.0) });
        control.after(500 * MS, |control| _ = control.strike(for_a_second(3.0)));
    });
    assert_eq!(rates, [2000, 3000, 2000, 1000], "{}", report.trace());
}

#[test]
fn an_ending_slew_leaves_a_rate_in_force() {
    let (report, rates) = rates(&[0, 600], |control| {
        control.strike(for_a_second(2.0));
        let (by, over) = (Shift::from_nanos(1_000_000_000), Span::from_millis(500));
        control.strike(Slew { process: "a".to_owned(), by, over });
    });
    assert_eq!(rates, [3000, 2000], "{}", report.trace());
}

/// Crashes `a` at 0.1 s for one second, and again at 0.2 s. Returns the number of each life that begins in
/// the first 5 s, with its time in tenths of a second.
fn lives(restart_after: Option<Span>) -> Vec<(u32, u64)> {
    let (lives, seen) = std::sync::mpsc::channel();
    let mut sim = Sim::new(1);
    sim.process("a", move |process: Process| {
        let lives = lives.clone();
        async move {
            lives.send(process.life()).unwrap();
            std::future::pending::<()>().await;
        }
    });
    let (_, lives) = sim
        .run_script(|control| async move {
            for (at, restart_after) in [(100, Some(Span::from_secs(1))), (200, restart_after)] {
                control.sleep_until(at * MS).await;
                control.strike(Crash { restart_after, ..Crash::of("a") });
            }
            let mut lives = Vec::new();
            for at in 1..=50_u64 {
                control.sleep_until(Duration::from_millis(100 * at)).await;
                lives.extend(seen.try_iter().map(|life| (life, at)));
            }
            lives
        })
        .unwrap();
    lives
}

#[test]
fn a_crash_without_restart_cancels_an_earlier_restart() {
    assert_eq!(lives(None), [(0, 1)]);
}

#[test]
fn a_second_crash_replaces_the_restart_of_the_first() {
    assert_eq!(lives(Some(Span::from_secs(2))), [(0, 1), (1, 23)]);
}
