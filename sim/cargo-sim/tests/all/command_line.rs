//! Calls that do not run cargo.

use crate::support::Fixture;

#[test]
fn wrong_commands_are_errors_that_name_the_right_ones() {
    let fixture = Fixture::empty();
    for arguments in ["", "build", "--offline test"] {
        let printed = fixture.fails(arguments, 101);
        assert!(printed.contains("use `cargo sim test`"), "{arguments}: {printed}");
    }
    let printed = fixture.fails("build", 101);
    assert!(printed.contains("`build`"), "{printed}");
}

#[test]
fn folder_without_a_crate_is_cargos_error() {
    let printed = Fixture::empty().fails("test", 101);
    assert!(printed.contains("could not find `Cargo.toml`"), "{printed}");
}

#[test]
fn help_and_version_are_printed() {
    let fixture = Fixture::empty();
    assert!(fixture.succeeds("--help").contains("Usage: cargo sim test"));
    assert!(fixture.succeeds("test --help").contains("Usage: cargo sim test"));
    assert!(fixture.succeeds("--version").starts_with("cargo-sim "));
}
