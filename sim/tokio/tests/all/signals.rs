//! Signals to a process: one that listens may end by itself, any other ends at once.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sim::faults::{Fault, Signal, Terminate, Trigger};
use sim::{Report, Sim, Span};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

/// Runs a process `a` that gets a signal after one second, and another process for fifty seconds.
fn run<F: Future<Output = ()> + Send + 'static>(
    terminate: Terminate,
    main: impl Fn(u32) -> F + Send + Sync + 'static,
) -> Report {
    let lives = AtomicU32::new(0);
    let mut sim = Sim::new(7);
    sim.process("a", move |_| main(lives.fetch_add(1, Ordering::Relaxed)));
    sim.process("b", |_| sleep(Duration::from_secs(50)));
    sim.fault(Fault::new(Trigger::At(Span::from_secs(1)), terminate));
    sim.run().unwrap()
}

/// Returns the lines of the trace with these words.
fn lines<'t>(trace: &'t str, words: &str) -> Vec<&'t str> {
    trace.lines().filter(|line| line.contains(words)).collect()
}

#[test]
fn a_process_that_does_not_listen_ends_at_once() {
    let report = run(Terminate::of("a"), |_| async {
        // It listens for another signal.
        tokio::signal::ctrl_c().await.unwrap();
    });
    let trace = report.trace();
    let ended = lines(&trace, "ended by SIGTERM");
    assert!(ended.len() == 1 && ended[0].contains("1.000"), "{trace}");
}

#[test]
fn a_process_that_listens_ends_by_itself() {
    let report = run(Terminate::of("a"), |_| async {
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        terminate.recv().await;
        sleep(Duration::from_secs(2)).await;
        sim::point("saved");
    });
    let trace = report.trace();
    let ended = lines(&trace, "ended by itself");
    assert!(ended.len() == 1 && ended[0].contains("3.000"), "{trace}");
    assert_eq!(lines(&trace, "saved").len(), 1, "{trace}");
}

#[test]
fn a_process_that_takes_too_long_is_killed() {
    let report = run(Terminate { grace: Span::from_secs(5), ..Terminate::of("a") }, |_| async {
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        terminate.recv().await;
        sleep(Duration::from_secs(9)).await;
        sim::point("saved");
    });
    let trace = report.trace();
    let killed = lines(&trace, "killed after its grace period");
    assert!(killed.len() == 1 && killed[0].contains("6.000"), "{trace}");
    assert!(!trace.contains("saved"), "{trace}");
}

#[test]
fn the_default_grace_period_is_that_of_kubernetes() {
    let report = run(Terminate::of("a"), |_| async {
        let _terminate = signal(SignalKind::terminate()).unwrap();
        std::future::pending::<()>().await;
    });
    let trace = report.trace();
    let killed = lines(&trace, "killed after its grace period");
    assert!(killed.len() == 1 && killed[0].contains("31.000"), "{trace}");
}

#[test]
fn a_terminated_process_restarts_after_its_end() {
    let terminate = Terminate {
        signal: Signal::Interrupt,
        restart_after: Some(Span::from_secs(3)),
        ..Terminate::of("a")
    };
    let report = run(terminate, |life| async move {
        sim::point(&format!("life {life}"));
        if life == 0 {
            tokio::spawn(async {
                sleep(Duration::from_secs(2)).await;
                sim::point("a task after the end");
            });
            tokio::signal::ctrl_c().await.unwrap();
        }
    });
    let trace = report.trace();
    assert!(lines(&trace, "life 1").iter().any(|line| line.contains("4.000")), "{trace}");
    assert!(!trace.contains("a task after the end"), "{trace}");
}

#[test]
fn signals_that_arrive_together_count_as_one() {
    let mut sim = Sim::new(7);
    sim.process("a", |_| async {
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        sleep(Duration::from_secs(2)).await;
        terminate.recv().await;
        let second = tokio::time::timeout(Duration::from_secs(1), terminate.recv()).await;
        sim::point(&format!("second {}", second.is_ok()));
    });
    for at in [500, 600] {
        sim.fault(Fault::new(Trigger::At(Span::from_millis(at)), restarted("a")));
    }
    let trace = sim.run().unwrap().trace();
    assert!(trace.contains("second false"), "{trace}");
}

fn restarted(process: &str) -> Terminate {
    Terminate { restart_after: Some(Span::from_secs(90)), ..Terminate::of(process) }
}

#[test]
fn a_signal_that_no_program_handles_is_refused() {
    let report = run(Terminate::of("a"), |_| async {
        let error = signal(SignalKind::from_raw(9)).unwrap_err();
        sim::point(&format!("refused: {error}"));
    });
    assert!(report.trace().contains("refused: Refusing to register signal 9"));
}
