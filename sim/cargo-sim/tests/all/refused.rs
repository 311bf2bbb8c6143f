//! A tokio that can't be replaced is an error that says why.

use crate::support::{Fixture, manifest, tokio};

/// Makes a crate whose tokio is an empty package of this version in a git repository.
fn with_version(version: &str) -> Fixture {
    let mut fixture = Fixture::empty();
    fixture.write(
        "repository/Cargo.toml",
        &format!("[package]\nname = \"tokio\"\nversion = \"{version}\"\n[features]\nrt = []\n"),
    );
    fixture.write("repository/src/lib.rs", "");
    let url = fixture.clone_repository("tokio");
    fixture.write("Cargo.toml", &manifest("versions", &format!("tokio = {{ git = \"{url}\" }}")));
    fixture.write("src/lib.rs", "");
    fixture.resolve();
    fixture
}

#[test]
fn version_out_of_range_is_named_with_the_range() {
    for (version, advice) in [("1.43.9", "cargo update tokio"), ("1.60.0", "newer `cargo sim`")] {
        let fixture = with_version(version);
        let before = fixture.files();
        let printed = fixture.fails("test", 101);
        for part in [version, "1.44.0", "1.60.0", advice] {
            assert!(printed.contains(part), "{part}: {printed}");
        }
        assert_eq!(fixture.files(), before);
    }
}

#[test]
fn tokio_from_a_folder_is_refused() {
    let fixture = Fixture::empty();
    let patch = format!("{}\n[patch.crates-io]\ntokio = {{ path = \"mine\" }}", tokio());
    let version = crate::support::tokio_version();
    let package = format!("[package]\nname = \"tokio\"\nversion = \"{version}\"\n[features]\nrt = []\n");
    fixture.write("mine/Cargo.toml", &package);
    fixture.write("mine/src/lib.rs", "");
    fixture.write("Cargo.toml", &manifest("by_path", &patch));
    fixture.write("src/lib.rs", "");
    fixture.resolve();
    let printed = fixture.fails("test", 101);
    let folder = fixture.path("mine");
    assert!(
        printed.contains(&*folder.to_string_lossy()) && printed.contains("Remove the `[patch]`"),
        "{printed}"
    );
}

/// A runtime starts outside of every world, and the crate has no simulator that would make one.
const STARTS_A_RUNTIME: &str = "\
#[test]
fn starts() {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {});
}
";

#[test]
fn a_crate_without_a_simulator_is_told_how_to_get_one() {
    let fixture = Fixture::new("alone", &tokio(), STARTS_A_RUNTIME);
    let printed = fixture.fails("test --lib", 101);
    assert!(printed.contains("Add `sim` (package `fencepost-sim`) to the dev-dependencies"), "{printed}");
}
