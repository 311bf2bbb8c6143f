//! Workspaces, and tokio from other sources than crates.io.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::support::{Fixture, USES_TOKIO, manifest, text, tokio, tokio_version};

fn workspace() -> Fixture {
    let fixture = Fixture::empty();
    fixture.write("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"with\", \"without\"]\n");
    fixture.write("with/Cargo.toml", &manifest("with", &tokio()));
    fixture.write("with/src/lib.rs", USES_TOKIO);
    fixture.write("without/Cargo.toml", &manifest("without", ""));
    fixture.write("without/src/lib.rs", "#[test]\nfn of_the_other_member() {}\n");
    fixture.resolve();
    fixture
}

#[test]
fn workspace_is_found_from_root_member_and_manifest_path() {
    let fixture = workspace();
    let before = fixture.files();
    let printed = fixture.succeeds("test");
    assert!(printed.contains("tokio_is_replaced ... ok"), "{printed}");
    assert!(printed.contains("of_the_other_member ... ok"), "{printed}");

    let member = fixture.sim("test").current_dir(fixture.path("with")).output().unwrap();
    assert!(member.status.success(), "{}", text(&member));
    assert!(text(&member).contains("tokio_is_replaced ... ok"), "{}", text(&member));
    assert!(!text(&member).contains("of_the_other_member"), "{}", text(&member));

    let elsewhere = fixture.sim("test --manifest-path ../with/Cargo.toml");
    let elsewhere = { elsewhere }.current_dir(fixture.path("without")).output().unwrap();
    assert!(text(&elsewhere).contains("tokio_is_replaced ... ok"), "{}", text(&elsewhere));
    assert_eq!(fixture.files(), before);
}

#[test]
fn patch_of_the_user_still_applies() {
    let fixture = Fixture::empty();
    let dependencies =
        format!("{}\nbytes = \"1\"\n[patch.crates-io]\nbytes = {{ path = \"bytes\" }}", tokio());
    fixture.write("Cargo.toml", &manifest("patched", &dependencies));
    fixture
        .write("src/lib.rs", &format!("{USES_TOKIO}\n#[test]\nfn bytes() {{ assert!(bytes::IS_MINE); }}\n"));
    fixture.write("bytes/Cargo.toml", "[package]\nname = \"bytes\"\nversion = \"1.99.0\"\n");
    fixture.write("bytes/src/lib.rs", "pub const IS_MINE: bool = true;");
    fixture.resolve();
    let before = fixture.files();
    let printed = fixture.succeeds("test");
    assert!(printed.contains("test result: ok. 2 passed"), "{printed}");
    assert!(!printed.contains("was not used"), "{printed}");
    assert_eq!(fixture.files(), before);
}

/// A git checkout of tokio inherits keys of its workspace, which the copy must not.
#[test]
fn tokio_from_a_git_repository_is_replaced() {
    let mut fixture = Fixture::empty().with_own_target();
    make_repository_files(&fixture);
    let url = fixture.clone_repository("empty");
    let features = "default-features = false, features = [\"rt\"]";
    let direct = format!("tokio = {{ git = \"{url}\", {features} }}");
    let patch = format!("{}\n[patch.crates-io]\ntokio = {{ git = \"{url}\" }}", tokio());
    fixture.write("src/lib.rs", USES_TOKIO);
    for (name, dependencies) in [("direct", direct), ("by_patch", patch)] {
        fixture.write("Cargo.toml", &manifest(name, &dependencies));
        fixture.resolve();
        let lock_file = fixture.lock_file();
        assert!(lock_file.contains(&url), "{lock_file}");
        let printed = fixture.succeeds("test");
        assert!(printed.contains("tokio_is_replaced ... ok"), "{name}: {printed}");
        assert_eq!(fixture.lock_file(), lock_file);
    }
}

/// Makes a workspace with tokio as a member, in the folder `repository`.
fn make_repository_files(fixture: &Fixture) {
    let tokio = folder_of_tokio(fixture);
    let to = fixture.path("repository/tokio");
    fs::create_dir_all(&to).unwrap();
    assert!(Command::new("cp").arg("-r").arg(tokio.join("src")).arg(&to).status().unwrap().success());
    let manifest = fs::read_to_string(tokio.join("Cargo.toml")).unwrap();
    let (manifest, _) = manifest.split_once("[lints").unwrap();
    let manifest = manifest.replace("readme = \"README.md\"", "").replace("[[", "[[package.metadata.");
    let edition = "edition = \"2021\"";
    assert!(manifest.contains(edition), "{manifest}");
    let manifest = manifest.replacen(edition, "edition.workspace = true", 1);
    fixture.write("repository/tokio/Cargo.toml", &format!("{manifest}\n[lints]\nworkspace = true\n"));
    fixture.write("repository/empty/Cargo.toml", &crate::support::manifest("empty", ""));
    fixture.write("repository/empty/src/lib.rs", "");
    fixture.write(
        "repository/Cargo.toml",
        "[workspace]\nmembers = [\"tokio\", \"empty\"]\n[workspace.package]\nedition = \"2021\"\n\
         [workspace.lints.rust]\nunexpected_cfgs = \"allow\"\n",
    );
}

/// Returns the folder in which cargo keeps the sources of tokio.
fn folder_of_tokio(fixture: &Fixture) -> std::path::PathBuf {
    let probe = Fixture::new("probe", &tokio(), "");
    let mut command = fixture.command(env!("CARGO"));
    let metadata = command.args(["metadata", "--format-version", "1", "--manifest-path"]);
    let metadata = metadata.arg(probe.path("Cargo.toml")).output().unwrap();
    let end = format!("/tokio-{}/Cargo.toml", tokio_version());
    let output = String::from_utf8(metadata.stdout).unwrap();
    let manifest = output.split('"').find(|text| text.ends_with(&end)).unwrap();
    Path::new(manifest).parent().unwrap().to_owned()
}

/// Without cargo's registry: its home is an empty folder.
#[test]
fn vendored_sources_suffice() {
    let fixture = Fixture::new("vendored", &tokio(), USES_TOKIO).with_own_target();
    let vendor = fixture.command(env!("CARGO")).args(["vendor", "--quiet"]).output().unwrap();
    assert!(vendor.status.success(), "{}", text(&vendor));
    fixture.write(
        ".cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"vendor\"\n[source.vendor]\ndirectory = \"vendor\"\n",
    );
    let before = fixture.files();
    let home = tempfile::TempDir::new().unwrap();
    let output = fixture.sim("test --offline").env("CARGO_HOME", home.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("tokio_is_replaced ... ok"), "{}", text(&output));
    assert_eq!(fixture.files(), before);
}

/// Two copies of the marks would know two simulators.
#[test]
fn replacement_uses_the_marks_of_the_users_graph() {
    let fixture = Fixture::empty();
    let marks = "sim_host = { package = \"fencepost-sim-host\", path = \"marks\" }";
    fixture.write("Cargo.toml", &manifest("marked", &format!("{}\n{marks}", tokio())));
    fixture.write("src/lib.rs", USES_TOKIO);
    let library =
        "[package]\nname = \"fencepost-sim-host\"\nversion = \"0.1.0\"\n[lib]\nname = \"sim_host\"\n";
    fixture.write("marks/Cargo.toml", library);
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/src");
    for file in fs::read_dir(host).unwrap().map(|file| file.unwrap().path()) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        fixture.write(&format!("marks/src/{name}"), &fs::read_to_string(file).unwrap());
    }
    fixture.write("marks/README.md", "");
    fixture.write("marks/Cargo.toml", &library.replace("[lib]", "edition = \"2024\"\n[lib]"));
    fixture.resolve();
    let printed = fixture.succeeds("test -v");
    assert!(printed.contains("tokio_is_replaced ... ok"), "{printed}");
    let marks: Vec<_> = printed.lines().filter(|line| line.contains(" fencepost-sim-host v")).collect();
    let folder = fixture.path("marks");
    assert!(!marks.is_empty(), "{printed}");
    assert!(marks.iter().all(|line| line.contains(&*folder.to_string_lossy())), "{marks:?}");
}
