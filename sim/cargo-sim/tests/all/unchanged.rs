//! A call changes nothing outside of the target folder, and a second one rebuilds nothing.

use std::fs;

use crate::support::{Fixture, USES_TOKIO, manifest, text, tokio};

const MAIN: &str = "\
fn main() {
    assert!(tokio::IS_SIMULATED);
    std::process::exit(std::env::args().nth(1).unwrap().parse().unwrap());
}
";

#[test]
fn second_call_rebuilds_nothing_and_no_file_changes() {
    let fixture = Fixture::new("plain", &tokio(), USES_TOKIO);
    let before = fixture.files();
    let time = fs::metadata(fixture.path("Cargo.lock")).unwrap().modified().unwrap();
    let printed = fixture.succeeds("test");
    assert!(printed.contains("test tokio_is_replaced ... ok"), "{printed}");
    assert_eq!(fixture.files(), before);

    for arguments in ["test", "test --locked", "test --frozen -v"] {
        let printed = fixture.succeeds(arguments);
        assert!(!printed.contains("Compiling") && !printed.contains("Dirty"), "{arguments}: {printed}");
        assert_eq!(fixture.files(), before);
    }
    assert_eq!(fs::metadata(fixture.path("Cargo.lock")).unwrap().modified().unwrap(), time);
}

/// Cargo finds the subcommand, and the exit code is that of the program.
#[test]
fn exit_code_is_that_of_the_program() {
    let fixture = Fixture::new("program", &tokio(), "");
    fixture.write("src/main.rs", MAIN);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_cargo-sim"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let mut command = fixture.command(env!("CARGO"));
    let output = command.args(["sim", "run", "--quiet", "7"]).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", text(&output));
}

#[test]
fn failing_build_and_failing_test_restore_the_lock_file() {
    let fixture = Fixture::new("failing", &tokio(), USES_TOKIO);
    fixture.write("tests/broken.rs", "this is no program");
    fixture.write("tests/failing.rs", "#[test] fn fails() { panic!() }");
    let before = fixture.files();
    let printed = fixture.fails("test --test broken", 101);
    assert!(printed.contains("broken.rs"), "{printed}");
    assert_eq!(fixture.files(), before);
    let printed = fixture.fails("test --test failing", 101);
    assert!(printed.contains("test fails ... FAILED"), "{printed}");
    assert_eq!(fixture.files(), before);
}

/// Cargo makes a missing Cargo.lock as always: the one without the replacement.
#[test]
fn missing_lock_file_is_made_without_the_replacement() {
    let fixture = Fixture::new("new", &tokio(), USES_TOKIO);
    let expected = fixture.lock_file();
    fs::remove_file(fixture.path("Cargo.lock")).unwrap();
    fixture.succeeds("test");
    assert_eq!(fixture.lock_file(), expected);
}

/// A lock file that the manifest contradicts is refused, as `cargo test --locked` refuses it.
#[test]
fn locked_refuses_a_stale_lock_file() {
    let fixture = Fixture::new("stale", &tokio(), USES_TOKIO);
    fixture.write("Cargo.toml", &manifest("stale", &format!("{}\nbytes = \"1\"", tokio())));
    let before = fixture.files();
    let printed = fixture.fails("test --locked", 101);
    assert!(printed.contains("--locked"), "{printed}");
    assert_eq!(fixture.files(), before);
}
