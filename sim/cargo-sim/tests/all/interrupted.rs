//! Calls that end early, and calls at the same time.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::support::{Fixture, USES_TOKIO, pause, tokio};

/// A build script that waits for the file `go`, or until its folder is removed. It writes `building` first.
const WAITS: &str = "\
fn main() {
    println!(\"cargo:rerun-if-changed=go\");
    std::fs::write(\"building\", \"\").unwrap();
    while std::path::Path::new(\"build.rs\").exists() && !std::path::Path::new(\"go\").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
";

fn fixture(name: &str) -> Fixture {
    let fixture = Fixture::new(name, &tokio(), USES_TOKIO);
    fixture.write("build.rs", WAITS);
    fixture
}

/// Starts `cargo sim test` in a process group of its own, and waits until it builds. Cargo.lock is exchanged.
fn building(fixture: &Fixture, user: &str) -> Child {
    use std::os::unix::process::CommandExt;
    let _ = std::fs::remove_file(fixture.path("building"));
    let mut command = fixture.sim("test");
    let mut child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !fixture.path("building").exists() {
        if child.try_wait().unwrap().is_some() {
            panic!("{}", crate::support::text(&child.wait_with_output().unwrap()));
        }
        pause();
    }
    assert_ne!(fixture.lock_file(), user);
    child
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn next_call_restores_after_a_kill_and_says_so() {
    let fixture = fixture("killed");
    let user = fixture.lock_file();
    let mut child = building(&fixture, &user);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(fixture.lock_file(), user);
    fixture.write("go", "");
    let printed = fixture.succeeds("test");
    assert!(printed.contains("restored") && printed.contains("Cargo.lock"), "{printed}");
    assert!(printed.contains("tokio_is_replaced ... ok"), "{printed}");
    assert_eq!(fixture.lock_file(), user);
    assert!(!fixture.succeeds("test").contains("restored"));
}

/// Returns a fixture in which a call was killed when it was building, and the Cargo.lock as it was before.
fn killed(name: &str) -> (Fixture, String) {
    let fixture = fixture(name).with_own_target();
    let user = fixture.lock_file();
    let mut child = building(&fixture, &user);
    kill_process_group(pid(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    fixture.write("go", "");
    (fixture, user)
}

#[test]
fn another_target_folder_refuses_the_lock_file_of_a_killed_call() {
    let (fixture, user) = killed("moved");
    let left = fixture.lock_file();
    let printed = fixture.fails(&format!("test --target-dir {}", fixture.path("other").display()), 101);
    assert!(printed.contains("was killed") && printed.contains("version control"), "{printed}");
    let copy = printed.split(['(', ')']).find_map(|part| part.strip_prefix("TARGET/")).unwrap();
    assert_eq!(std::fs::read_to_string(fixture.path("target").join(copy)).unwrap(), user);
    assert_eq!(fixture.lock_file(), left);
}

#[test]
fn lock_file_of_a_killed_call_is_refused_after_cargo_clean() {
    let (fixture, _) = killed("cleaned");
    let left = fixture.lock_file();
    std::fs::rename(fixture.path("target"), fixture.path("removed")).unwrap();
    let printed = fixture.fails("test", 101);
    assert!(printed.contains("after a `cargo clean`, from version control"), "{printed}");
    assert_eq!(fixture.lock_file(), left);
}

/// A terminal sends Ctrl-C to cargo, too; SIGTERM arrives at `cargo sim` alone.
#[test]
fn signals_restore_the_lock_file() {
    let fixture = fixture("signalled");
    let user = fixture.lock_file();
    for (signal, is_for_all) in [(Signal::INT, true), (Signal::TERM, false)] {
        let mut child = building(&fixture, &user);
        if is_for_all {
            kill_process_group(pid(&child), signal).unwrap();
        } else {
            kill_process(pid(&child), signal).unwrap();
        }
        assert_eq!(child.wait().unwrap().code(), Some(128 + signal.as_raw()));
        assert_eq!(fixture.lock_file(), user);
    }
}

#[test]
fn second_call_waits_for_the_first() {
    let fixture = fixture("twice");
    let user = fixture.lock_file();
    let first = building(&fixture, &user);
    let mut second = fixture.sim("test").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut errors = std::io::BufReader::new(second.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut errors, &mut line).unwrap();
    assert!(line.contains("waiting for another `cargo sim`"), "{line}");
    fixture.write("go", "");
    std::io::Read::read_to_string(&mut errors, &mut line).unwrap();
    assert!(second.wait_with_output().unwrap().status.success(), "{line}");
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success(), "{}", crate::support::text(&first));
    assert_eq!(fixture.lock_file(), user);
}
