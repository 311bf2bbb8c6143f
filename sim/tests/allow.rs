//! Code of a process that may leave the simulation.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests leave the simulation")]

use std::net::{TcpListener, ToSocketAddrs};
use std::time::Duration;

use sim::{Process, RunError, Sim};

fn run(main: impl Fn() + Send + Sync + 'static) -> Result<sim::Report, RunError> {
    let main = std::sync::Arc::new(main);
    let mut sim = Sim::new(7);
    sim.process("a", move |process: Process| {
        let main = main.clone();
        async move {
            main();
            process.point("done");
        }
    });
    sim.run()
}

/// Leaves the simulation in each way.
fn leave() {
    let file = std::env::temp_dir().join(format!("sim-allow-{}", std::process::id()));
    std::fs::write(&file, "written").unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "written");
    std::fs::remove_file(&file).unwrap();
    assert!(TcpListener::bind("127.0.0.1:0").is_ok());
    assert!("localhost:80".to_socket_addrs().is_ok());
    assert_eq!(std::thread::Builder::new().spawn(|| 7).unwrap().join().unwrap(), 7);
    assert!(std::process::Command::new("true").status().unwrap().success());
    std::thread::sleep(Duration::from_millis(1));
}

#[test]
fn code_that_is_allowed_to_leave_does() {
    let report = run(|| sim::allow(leave)).unwrap();
    assert!(report.trace().contains("done"));
}

#[test]
fn code_after_that_is_not() {
    let error = run(|| {
        sim::allow(|| ());
        drop(TcpListener::bind("127.0.0.1:0"));
    });
    assert!(matches!(error, Err(RunError::Escaped { .. })), "{error:?}");
}

#[test]
fn a_panic_ends_what_is_allowed() {
    let error = run(|| {
        let left = std::panic::catch_unwind(|| sim::allow(|| panic!("enough")));
        assert!(left.is_err());
        drop(TcpListener::bind("127.0.0.1:0"));
    });
    // The panic was caught, and is no error of the run.
    assert!(matches!(error, Err(RunError::Escaped { .. })), "{error:?}");
}
