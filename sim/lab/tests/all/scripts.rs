//! Scripts control a run step by step, from outside all processes.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use history::VerdictKind;
use sim::faults::{ClockStep, Crash, Cut, Fault, Pause, Promote, Reset, Trigger};
use sim::servers::host::Acted;
use sim::servers::redis::RedisHost;
use sim::{Control, Process, Report, RunError, Shift, Sim, Span};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MS: Duration = Duration::from_millis(1);

/// Returns a world of two empty processes; a segment between them takes 2 ms.
fn two() -> Sim {
    let mut sim = Sim::new(1);
    sim.latency(2 * MS, 2 * MS).empty_process("a").empty_process("b");
    sim
}

/// Answers one connection with one byte.
fn answer_one(process: &Process) {
    let mut listener = process.listen(7).unwrap();
    process.spawn(async move {
        let (mut stream, _) = listener.accept().await;
        let _ = stream.write_all(b"!").await;
    });
}

/// Connects `a` to `b`; returns the time until the answer.
async fn asked(control: &Control) -> Duration {
    let began = control.now();
    let mut stream = control.process("a").connect("b:7").await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'!');
    control.now() - began
}

fn lines_with(report: &Report, text: &str) -> usize {
    report.trace().lines().filter(|line| line.contains(text)).count()
}

#[test]
fn a_script_may_borrow_and_return_a_value() {
    let text = "borrowed".to_owned();
    let (report, output) = two()
        .run_script(|control| {
            let text = &text;
            async move {
                let count = Rc::new(Cell::new(0));
                control.sleep(250 * MS).await;
                count.set(count.get() + text.len());
                count.get()
            }
        })
        .unwrap();
    assert_eq!((output, report.simulated.as_millis()), (8, 250));
}

#[test]
fn a_script_strikes_and_heals_faults() {
    let (report, ()) = two()
        .run_script(|control| async move {
            answer_one(&control.process("b"));
            let cut = control.strike(Cut::between("a", "b"));
            control.after(100 * MS, move |control| {
                assert!(cut.heal());
                assert!(!cut.heal(), "the cut is already healed");
                assert_eq!(control.now().as_millis(), 100);
            });
            assert_eq!(asked(&control).await.as_millis(), 104);
        })
        .unwrap();
    assert_eq!((lines_with(&report, "cut a ↔ b"), lines_with(&report, "over: cut a ↔ b")), (2, 1));
}

#[test]
fn the_last_of_equal_faults_is_healed() {
    let (report, ()) = two()
        .run_script(|control| async move {
            control.strike(Pause { lasts: Some(Span::from_secs(1)), ..Pause::of("a") });
            control.strike(Pause::of("a"));
            control.heal(Pause::of("a"));
            assert!(!control.is_running("a"), "the first pause goes on");
            control.sleep_until(1001 * MS).await;
            assert!(control.is_running("a"));
        })
        .unwrap();
    assert_eq!(lines_with(&report, "resumed"), 2, "{}", report.trace());
}

#[test]
fn a_healed_crash_starts_the_next_life() {
    let mut sim = Sim::new(1);
    sim.process("a", |process: Process| async move {
        process.point(&format!("life {}", process.life()));
        std::future::pending::<()>().await;
    });
    let (report, ()) = sim
        .run_script(|control| async move {
            control.sleep(MS).await;
            let first = control.process("a");
            let crash = control.strike(Crash::of("a"));
            assert!(!control.is_running("a"));
            control.sleep(MS).await;
            assert!(crash.heal() && control.is_running("a"));
            control.sleep(MS).await;
            for process in [first, control.process("a")] {
                process.clone().spawn(async move { process.point("spawned by a script") });
            }
            control.sleep(MS).await;
        })
        .unwrap();
    let counts = ["life 0", "life 1", "spawned by a script"].map(|text| lines_with(&report, text));
    assert_eq!(counts, [1, 1, 1], "the first handle belongs to a life that is over: {}", report.trace());
}

#[test]
fn scripts_and_processes_draw_from_the_same_random_bytes() {
    let drawn = Arc::new(Mutex::new(Vec::new()));
    let by_itself = Arc::clone(&drawn);
    let mut sim = Sim::new(1);
    sim.process("a", move |process: Process| {
        by_itself.lock().unwrap().push(process.random());
        async {}
    });
    let drawing = Arc::clone(&drawn);
    sim.run_script(|control| async move {
        control.finished().await;
        drawing.lock().unwrap().extend([control.process("a").random(), control.process("a").random()]);
    })
    .unwrap();
    let mut drawn = drawn.lock().unwrap().clone();
    drawn.dedup();
    assert_eq!(drawn.len(), 3, "{drawn:?}");
}

#[test]
fn a_script_runs_server_actions_and_listens_to_points() {
    let mut sim = two();
    sim.host("redis", RedisHost::new());
    sim.fault(Fault::new(Trigger::after("redis", "get"), Pause::of("b")));
    let (report, ()) = sim
        .run_script(|control| async move {
            control.sleep(MS).await;
            let points = Arc::new(Mutex::new(Vec::new()));
            let passed = Arc::clone(&points);
            control
                .hear_points(move |process, point| passed.lock().unwrap().push(format!("{process} {point}")));
            let mut client = sim::clients::redis(&control.process("a"), "redis:6379").await.unwrap();
            let () = redis::cmd("SET").arg("k").arg("1").query_async(&mut client).await.unwrap();
            assert_eq!(control.act("redis", "evict", Some("k")), Ok(Acted::Done("evicts k".to_owned())));
            assert!(control.act("redis", "lead", None).is_err());
            let gone: Option<u8> = redis::cmd("GET").arg("k").query_async(&mut client).await.unwrap();
            assert_eq!(gone, None);
            assert_eq!(*points.lock().unwrap(), ["redis set", "redis get"]);
            assert!(!control.is_running("b"), "a fault aimed at the point has struck, too");
        })
        .unwrap();
    assert_eq!(report.struck, [true]);
}

#[test]
fn the_audit_covers_code_that_a_script_runs() {
    let (report, ()) = two()
        .run_script(|control| async move {
            for name in ["a", "b"] {
                let process = control.process(name);
                process.clone().spawn(async move {
                    let section = process.section("key");
                    process.sleep(10 * MS).await;
                    drop(section);
                });
            }
            control.sleep(20 * MS).await;
        })
        .unwrap();
    assert!(report.kinds().contains(&VerdictKind::Overlap), "{}", report.trace());
}

#[test]
fn a_script_steps_clocks_and_resets_connections() {
    two()
        .run_script(|control| async move {
            let (a, b) = (control.process("a"), control.process("b"));
            let (wall, now) = (a.wall(), a.now());
            control.strike(ClockStep::of("a", Shift::from_nanos(3_000_000_000)));
            assert!(a.wall() - wall >= Duration::from_secs(3));
            assert!(a.now().saturating_since(now) < MS, "its monotonic clock stays");
            let mut listener = b.listen(7).unwrap();
            let mut stream = a.connect("b:7").await.unwrap();
            let (_accepted, _) = listener.accept().await;
            control.strike(Reset::between("b", "a"));
            assert!(stream.read_u8().await.is_err());
        })
        .unwrap();
}

#[test]
fn an_endless_script_ends_at_the_limit() {
    let error = two().limit(Duration::from_secs(9)).run_script(|_| std::future::pending::<()>()).unwrap_err();
    assert!(matches!(error, RunError::Unfinished { .. }), "{error}");
    assert!(error.to_string().contains("had not ended after 9s of simulated time"), "{error}");
    assert!(error.trace().is_some());
}

/// Runs a script that panics; returns the run's error.
fn panicking(script: impl Fn(&Control) + Send) -> String {
    let error = two().run_script(|control| async move { script(&control) }).unwrap_err().to_string();
    assert!(error.contains("the script panicked at") && error.contains("scripts.rs:"), "{error}");
    error
}

#[test]
fn an_error_of_a_script_names_its_line() {
    let unknown = panicking(|control| _ = control.process("c"));
    assert!(unknown.contains("unknown process `c`: the world has a, b"), "{unknown}");
    let unknown = panicking(|control| _ = control.strike(Pause::of("c")));
    assert!(unknown.contains("unknown process `c` in `pause`"), "{unknown}");
    let refused = panicking(|control| _ = control.strike(Promote { replica: "a".to_owned() }));
    assert!(refused.contains("`promote` of `a`: it is no server"), "{refused}");
    let idle = panicking(|control| control.heal(Pause::of("a")));
    assert!(idle.contains("no fault is in force that is equal to Pause"), "{idle}");
    let server = panicking(|control| _ = control.act("a", "lead", None));
    assert!(server.contains("the process `a` is no server"), "{server}");
}
