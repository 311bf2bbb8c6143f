//! Code of a process that would leave the simulation, or that does not end: each is an error that names its
//! line.
#![allow(clippy::disallowed_methods, reason = "the tests are about calls that are banned")]
#![allow(clippy::missing_spin_loop, reason = "the tests are about loops without an end")]

use std::future::Future;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use sim::{Process, RunError, Sim};

/// A limit of real time within which a machine that is busy with other tests gets to the loop.
const REAL_LIMIT: Duration = Duration::from_secs(3);

/// Runs a process `a`; returns the error of the run, which must have one.
fn error<F: Future<Output = ()> + Send + 'static>(
    main: impl Fn(Process) -> F + Send + Sync + 'static,
) -> RunError {
    Sim::new(3).process("a", main).run().map(|report| report.trace()).expect_err("the run must fail")
}

/// Asserts that the error names process `a`, the `line` of this file, and `words`.
#[track_caller]
fn assert_names(error: &RunError, line: u32, words: &[&str]) {
    let text = error.to_string();
    let place = format!("{}:{line}", file!());
    for words in ["process `a`", &place].iter().chain(words) {
        assert!(text.contains(words), "no `{words}` in: {text}");
    }
}

#[test]
fn a_blocking_connection_does_not_reach_a_live_server() {
    let live = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = live.local_addr().unwrap();
    let line = line!() + 2;
    let error = error(move |_| async move {
        if let Ok(mut stream) = TcpStream::connect(address) {
            let _ = stream.write_all(b"INCR counter\r\n");
        }
    });
    assert_names(&error, line, &["socket", "Process::connect"]);
    live.set_nonblocking(true).unwrap();
    assert!(live.accept().is_err(), "the live server was reached");
}

#[test]
fn a_connection_that_was_opened_outside_is_not_used() {
    let live = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(live.local_addr().unwrap()).unwrap();
    let (mut peer, _) = live.accept().unwrap();
    let stream = Arc::new(Mutex::new(stream));
    let line = line!() + 4;
    let error = error(move |_| {
        let stream = Arc::clone(&stream);
        async move {
            let _ = stream.lock().unwrap().write_all(b"INCR counter\r\n");
        }
    });
    assert_names(&error, line, &["send", "Process::connect"]);
    peer.set_nonblocking(true).unwrap();
    assert_eq!(peer.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "the peer received bytes");
}

#[test]
fn a_datagram_socket_is_refused() {
    let line = line!() + 1;
    let error = error(|_| async { drop(UdpSocket::bind("127.0.0.1:0")) });
    assert_names(&error, line, &["socket", "Process::connect"]);
}

#[test]
fn a_host_is_not_looked_up() {
    let line = line!() + 1;
    let error = error(|_| async { drop("localhost:6379".to_socket_addrs()) });
    assert_names(&error, line, &["getaddrinfo", "names of processes"]);
}

#[test]
fn a_real_file_is_not_written() {
    let path = folder().join("written-by-a-process");
    let (target, line) = (path.clone(), line!() + 3);
    let error = error(move |_| {
        let target = target.clone();
        async move { drop(std::fs::write(target, b"leaked")) }
    });
    assert_names(&error, line, &["open", "Process::disk"]);
    assert!(!path.exists(), "{} was written", path.display());
}

#[test]
fn a_real_file_is_not_removed() {
    let path = folder().join("removed-by-a-process");
    std::fs::write(&path, b"kept").unwrap();
    let (target, line) = (path.clone(), line!() + 3);
    let error = error(move |_| {
        let target = target.clone();
        async move { drop(std::fs::remove_file(target)) }
    });
    assert_names(&error, line, &["unlink", "Process::disk"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
}

#[test]
fn a_file_may_be_read() {
    let mut sim = Sim::new(3);
    sim.process("a", |process: Process| async move {
        let manifest = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        assert!(manifest.unwrap().contains("[package]"));
        process.point("read");
    });
    assert!(sim.run().unwrap().trace().contains("read"));
}

#[test]
fn a_sleep_that_blocks_is_an_error() {
    let line = line!() + 2;
    let error = error(|process| async move {
        thread::sleep(Duration::from_secs(1));
        process.point("slept");
    });
    assert_names(&error, line, &["sleep", "Process::sleep"]);
}

#[test]
#[allow(unsafe_code, reason = "calls a function of libc, as an allocator does")]
fn a_sleep_of_no_time_is_allowed() {
    let mut sim = Sim::new(3);
    sim.process("a", |process: Process| async move {
        // SAFETY: it takes a number.
        unsafe { libc::sleep(0) };
        process.point("yielded");
    });
    assert!(sim.run().unwrap().trace().contains("yielded"));
}

#[test]
fn a_thread_is_not_started() {
    let line = line!() + 1;
    let error = error(|_| async { drop(thread::spawn(|| {})) });
    assert_names(&error, line, &["pthread_create", "Process::spawn"]);
}

#[test]
fn a_thread_that_can_fail_is_not_started() {
    let line = line!() + 1;
    let error = error(|_| async { drop(thread::Builder::new().spawn(|| {})) });
    assert_names(&error, line, &["pthread_create", "Process::spawn"]);
}

#[test]
fn a_program_is_not_started() {
    let path = folder().join("touched-by-a-program");
    let (target, line) = (path.clone(), line!() + 3);
    let error = error(move |_| {
        let target = target.clone();
        async move { drop(Command::new("touch").arg(target).status()) }
    });
    assert_names(&error, line, &["spawn", "Sim::process"]);
    assert!(!path.exists(), "the program ran");
}

#[test]
fn a_swallowed_escape_while_a_task_is_dropped_is_an_error() {
    struct Sleeps;
    impl Drop for Sleeps {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let error = error(|process| async move {
        let _sleeps = Sleeps;
        // The run ends first, and drops the task.
        process.sleep(Duration::from_secs(3600)).await;
    });
    assert_names(&error, line!() - 8, &["Process::sleep"]);
}

#[test]
fn a_task_beside_the_main_one_is_watched() {
    let line = line!() + 3;
    let error = error(|process| async move {
        process.spawn(async {
            thread::sleep(Duration::from_secs(1));
        });
        process.sleep(Duration::from_secs(1)).await;
    });
    assert_names(&error, line, &["Process::sleep"]);
}

#[test]
fn a_loop_that_only_yields_is_an_error() {
    let line = line!() + 3;
    let error = error(|_| async {
        loop {
            tokio::task::yield_now().await;
        }
    });
    assert_names(&error, line, &["busy loop", "Process::sleep"]);
}

#[test]
fn two_tasks_that_only_wake_each_other_are_an_error() {
    let error = error(|process| async move {
        let (ping, mut pinged) = tokio::sync::mpsc::channel::<()>(1);
        process.spawn(async move { while pinged.recv().await.is_some() {} });
        loop {
            let _ = ping.send(()).await;
        }
    });
    // Each of the two wakes the other one.
    let text = error.to_string();
    assert!(text.contains(&format!("process `a` is in a busy loop at {}:", file!())), "{text}");
}

#[test]
fn many_turns_with_sleeps_between_them_are_no_busy_loop() {
    let mut sim = Sim::new(3);
    sim.limit(Duration::from_secs(3600)).process("a", |process: Process| async move {
        for _ in 0..20 {
            for _ in 0..100_000 {
                tokio::task::yield_now().await;
            }
            process.sleep(Duration::from_secs(1)).await;
        }
        process.point("ended");
    });
    assert!(sim.run().unwrap().trace().contains("ended"));
}

#[test]
fn a_loop_that_never_awaits_is_an_error_after_the_real_limit() {
    static ENDED: AtomicBool = AtomicBool::new(false);
    let line = line!() + 1;
    let main = |_| async { while !ENDED.load(Ordering::Relaxed) {} };
    let error = Sim::new(3).real_limit(REAL_LIMIT).process("a", main).run().unwrap_err();
    ENDED.store(true, Ordering::Relaxed);
    assert_names(&error, line, &["seed 3", "3s of real time", "never awaits", "Sim::real_limit"]);
}

#[test]
fn a_blocking_client_that_tries_again_for_ever_is_an_escape() {
    static ENDED: AtomicBool = AtomicBool::new(false);
    let line = line!() + 2;
    let main = |_| async {
        while TcpStream::connect("127.0.0.1:6379").is_err() && !ENDED.load(Ordering::Relaxed) {}
    };
    // The first call is looked up in the debug information of this large program: seconds on a busy machine.
    let error = Sim::new(3).real_limit(Duration::from_secs(10)).process("a", main).run().unwrap_err();
    ENDED.store(true, Ordering::Relaxed);
    assert_names(&error, line, &["socket", "Process::connect"]);
}

#[test]
fn a_check_keeps_the_schedule_that_never_ends() {
    static ENDED: AtomicBool = AtomicBool::new(false);
    let kept = folder().join("never-ends");
    let _ = std::fs::remove_dir_all(&kept);
    let line = line!() + 4;
    let world = |sim: &mut Sim| {
        let is_hung = sim.seed() == 2;
        // On one line: the debug information of optimised code may give a loop the line below it.
        let main = move |_| async move { while is_hung && !ENDED.load(Ordering::Relaxed) {} };
        sim.real_limit(REAL_LIMIT).process("a", main);
    };
    let failure = sim::check("never_ends", world).schedules(3).keep_in(&kept).find().unwrap().unwrap();
    ENDED.store(true, Ordering::Relaxed);
    for words in ["seed 2", "process `a`", &format!("{}:{line}", file!())] {
        assert!(failure.problems[0].contains(words), "no `{words}` in: {}", failure.problems[0]);
    }
    assert!(failure.replay.contains("SEED=2 "), "{}", failure.replay);
    assert!(kept.join("never_ends.toml").exists());
}

#[test]
fn a_check_prints_the_line_that_leaves_the_simulation() {
    let kept = folder().join("leaves");
    let _ = std::fs::remove_dir_all(&kept);
    let line = line!() + 5;
    let world = |sim: &mut Sim| {
        let leaves = sim.seed() == 2;
        sim.process("a", move |_| async move {
            if leaves {
                drop(TcpStream::connect("127.0.0.1:6379"));
            }
        });
    };
    let failure = sim::check("leaves", world).schedules(3).keep_in(&kept).find().unwrap().unwrap();
    for words in ["seed 2", "process `a`", &format!("{}:{line}", file!()), "Process::connect"] {
        assert!(failure.problems[0].contains(words), "no `{words}` in: {}", failure.problems[0]);
    }
    assert!(failure.schedule.contains("call out of the simulation"), "{}", failure.schedule);
}

/// The variable of the environment that makes the test below the program that ends.
const CHILD: &str = "DLOCK_SIM_TEST_HUNG_SCRIPT";

#[test]
fn a_script_that_never_awaits_ends_its_program() {
    if std::env::var_os(CHILD).is_some() {
        let never = |_| async { while std::hint::black_box(true) {} };
        let _ = Sim::new(3).real_limit(REAL_LIMIT).run_script(never);
        return;
    }
    let name = "escapes::a_script_that_never_awaits_ends_its_program";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", name]).env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(101), "{text}");
    assert!(text.contains("seed 3: the run had not ended after 3s of real time"), "{text}");
    assert!(text.contains(file!()), "{text}");
}

/// Returns the folder for files of these tests.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}
