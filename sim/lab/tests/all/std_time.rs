//! `std::time` inside a process reads the clocks of that process.
#![allow(clippy::disallowed_methods, reason = "the test is about the clocks that they read")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sim::faults::{ClockStep, Fault, Rate, Trigger};
use sim::{Process, Sim};

const SECOND: Duration = Duration::from_secs(1);

/// The time that passed on both clocks of a process while it slept for ten seconds of its monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Passed {
    monotonic: Duration,
    wall: Duration,
}

/// Runs a process `a` under `fault`; returns the time that passed by `std::time`.
fn passed(fault: Option<Fault>) -> Passed {
    let read = Arc::new(Mutex::new(None));
    let found = Arc::clone(&read);
    let mut sim = Sim::new(3);
    sim.process("a", move |process: Process| {
        let found = Arc::clone(&found);
        async move {
            let (monotonic, wall) = (Instant::now(), SystemTime::now());
            process.sleep(10 * SECOND).await;
            let passed =
                Passed { monotonic: whole(monotonic.elapsed()), wall: whole(wall.elapsed().unwrap()) };
            assert_eq!(SystemTime::now().duration_since(UNIX_EPOCH).unwrap(), process.wall());
            *found.lock().unwrap() = Some(passed);
        }
    });
    if let Some(fault) = fault {
        sim.fault(fault);
    }
    sim.run().unwrap();
    let passed = read.lock().unwrap().take();
    passed.unwrap()
}

/// Rounds down to milliseconds, since each poll of a task takes some nanoseconds.
fn whole(duration: Duration) -> Duration {
    Duration::from_millis(duration.as_millis() as u64)
}

#[test]
fn both_clocks_go_on_while_a_process_sleeps() {
    assert_eq!(passed(None), Passed { monotonic: 10 * SECOND, wall: 10 * SECOND });
}

#[test]
fn a_step_moves_only_the_wall_clock() {
    let step = ClockStep { process: "a".to_owned(), by: "+5s".parse().unwrap() };
    let fault = Fault::new(Trigger::At("2s".parse().unwrap()), step);
    assert_eq!(passed(Some(fault)), Passed { monotonic: 10 * SECOND, wall: 15 * SECOND });
}

/// True time passes twice as fast as the process's clocks.
#[test]
fn a_slow_clock_is_slow_in_std_time() {
    let rate = Rate { process: "a".to_owned(), factor: 0.5, lasts: None };
    let fault = Fault::new(Trigger::At("0s".parse().unwrap()), rate);
    assert_eq!(passed(Some(fault)), Passed { monotonic: 10 * SECOND, wall: 10 * SECOND });
}

#[test]
fn a_dropped_task_reads_the_clocks_of_its_process() {
    struct Reads(Process, Arc<Mutex<Vec<bool>>>);
    impl Drop for Reads {
        fn drop(&mut self) {
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            self.1.lock().unwrap().push(wall == self.0.wall());
        }
    }
    let read = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&read);
    let mut sim = Sim::new(3);
    sim.process("a", move |process: Process| {
        let found = Arc::clone(&found);
        async move {
            let _reads = Reads(process.clone(), found);
            process.sleep(10 * SECOND).await;
        }
    });
    let crash = sim::faults::Crash { process: "a".to_owned(), power_loss: false, restart_after: None };
    sim.fault(Fault::new(Trigger::At("1s".parse().unwrap()), crash));
    sim.run().unwrap();
    assert_eq!(*read.lock().unwrap(), [true]);
}
