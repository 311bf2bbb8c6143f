//! Worlds that are built in code: processes, services, faults, points and names.

use std::time::Duration;

use sim::faults::{Crash, Fault, Pause, Trigger};
use sim::{Process, Sim, Span};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Returns the points that processes named, in the order of the trace.
fn points(trace: &str) -> Vec<&str> {
    trace.lines().filter_map(|line| line.split_once("· ").map(|(_, point)| point)).collect()
}

/// Adds a service that answers each connection with one byte, and a client that connects twice.
fn echo(sim: &mut Sim) -> &mut Sim {
    sim.service("server", |process: Process| async move {
        let mut listener = process.listen(7).unwrap();
        loop {
            let (mut stream, client) = listener.accept().await;
            process.point(&format!("serves {client}"));
            let _ = stream.write_all(b"!").await;
        }
    })
    .process("client", |process: Process| async move {
        for _ in 0..2 {
            let answer = match process.connect("server:7").await {
                Ok(mut stream) => stream.read_u8().await.is_ok(),
                Err(_) => false,
            };
            process.point(if answer { "answered" } else { "refused" });
            process.sleep(Duration::from_secs(1)).await;
        }
    })
}

#[test]
fn processes_talk_and_the_run_ends_with_the_last_client() {
    let report = echo(&mut Sim::new(1)).run().unwrap();
    assert_eq!(points(&report.trace()), ["serves client", "answered", "serves client", "answered"]);
    assert!(report.simulated < Duration::from_secs(3), "{:?}", report.simulated);
}

#[test]
fn the_seed_determines_the_run() {
    let hash = |seed| echo(&mut Sim::new(seed)).run().unwrap().hash;
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn a_process_may_use_the_stack_of_a_main_thread() {
    let mut sim = Sim::new(1);
    sim.process("a", |process: Process| async move {
        let mut bytes = [0; 3 << 20];
        std::hint::black_box::<&mut [u8]>(&mut bytes);
        process.point("used");
    });
    assert_eq!(points(&sim.run().unwrap().trace()), ["used"]);
}

#[test]
fn a_fault_strikes_at_a_point_named_in_code() {
    let mut sim = Sim::new(1);
    let pause = Pause { process: "client".into(), lasts: Some(Span::from_secs(5)) };
    echo(&mut sim).fault(Fault::new(Trigger::after("client", "answered"), pause));
    let report = sim.run().unwrap();
    assert_eq!(report.struck, [true]);
    assert!(report.simulated > Duration::from_secs(5), "{:?}", report.simulated);
}

#[test]
fn a_fault_strikes_at_the_nth_message_without_any_code() {
    let mut sim = Sim::new(1);
    let crash = Crash { process: "server".into(), power_loss: false, restart_after: None };
    let when = Trigger::After {
        process: "client".into(),
        point: "receives from server".into(),
        nth: 1,
        plus: Span::ZERO,
    };
    echo(&mut sim).fault(Fault::new(when, crash));
    let report = sim.run().unwrap();
    assert_eq!(report.struck, [true]);
    assert_eq!(points(&report.trace()), ["serves client", "answered", "refused"]);
}

#[test]
fn a_process_keeps_its_disk_across_a_crash() {
    let mut sim = Sim::new(1);
    sim.process("a", |process: Process| async move {
        let file = process.disk().open();
        process.point(&format!("life {}, {} bytes", process.life(), file.contents().unwrap().len()));
        file.append(b"+").unwrap();
        process.sleep(Duration::from_secs(1)).await;
    });
    let crash = Crash { process: "a".into(), power_loss: false, restart_after: Some(Span::from_millis(10)) };
    sim.fault(Fault::new(Trigger::At(Span::from_millis(500)), crash));
    assert_eq!(points(&sim.run().unwrap().trace()), ["life 0, 0 bytes", "life 1, 1 bytes"]);
}

#[test]
fn ambiguous_names_are_refused() {
    let refused = |build: fn(&mut Sim) -> &mut Sim| {
        let mut sim = Sim::new(1);
        build(&mut sim).run().unwrap_err().to_string()
    };
    let twice = refused(|sim| sim.process("a", |_| async {}).process("a", |_| async {}));
    assert!(twice.contains("two processes are called `a`"), "{twice}");
    let network = refused(|sim| sim.process("network", |_| async {}));
    assert!(network.contains("`network` is the simulator's own name"), "{network}");
    let alias = refused(|sim| sim.process("a", |_| async {}).alias("a", "a"));
    assert!(alias.contains("`a` is an alias as well"), "{alias}");
    let lost = refused(|sim| sim.process("a", |_| async {}).alias("b", "c"));
    assert!(lost.contains("the alias `b` names `c`, which is no process"), "{lost}");
}
