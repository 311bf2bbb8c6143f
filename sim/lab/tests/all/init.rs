//! `tools/init`, which sets up a crate outside the checkout.
#![allow(clippy::disallowed_methods, reason = "it runs the script")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A workspace with the member `member`, deleted at the end of its test.
struct Workspace(PathBuf);

impl Workspace {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("sim-init-{}-{name}", std::process::id()));
        fs::create_dir_all(root.join("member/src")).unwrap();
        fs::write(root.join("Cargo.toml"), "[workspace]\nmembers = [\"member\"]\nresolver = \"3\"\n")
            .unwrap();
        let member = "[package]\nname = \"member\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
        fs::write(root.join("member/Cargo.toml"), member).unwrap();
        fs::write(root.join("member/src/lib.rs"), "").unwrap();
        Self(root)
    }

    /// Sets the member up.
    fn init(&self) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/init");
        Command::new(script).arg(self.0.join("member")).env_remove("RUSTFLAGS").output().unwrap()
    }

    fn config(&self) -> PathBuf {
        self.0.join(".cargo/config.toml")
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_member_is_set_up_at_the_root_of_its_workspace() {
    let workspace = Workspace::new("root");
    let output = workspace.init();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(printed.contains("is the root of the crate's workspace"), "{printed}");
    assert!(printed.contains("/sim\", package = \"fencepost-sim\" }"), "{printed}");
    assert!(!workspace.0.join("member/.cargo").exists(), "cargo reads no file there at the root");
    let table: toml::Table = fs::read_to_string(workspace.config()).unwrap().parse().unwrap();
    assert_eq!(table["env"]["PROTOC"]["value"].as_str(), Some(".cargo/protoc"));
    assert!(table["build"]["rustflags"].to_string().contains("madsim"));
    let of_this_checkout = (table["build"].get("rustc-workspace-wrapper"), table.get("profile"));
    assert_eq!(of_this_checkout, (None, None), "they name files and packages of the checkout");
    assert!(workspace.0.join(".cargo/protoc").exists());
    assert!(workspace.init().status.success(), "a complete file is kept");
}

#[test]
fn an_existing_config_is_kept_and_what_it_lacks_is_named() {
    let workspace = Workspace::new("lacks");
    fs::create_dir_all(workspace.0.join(".cargo")).unwrap();
    fs::write(workspace.config(), "# \"madsim\"\n[build]\njobs = 1\n").unwrap();
    let output = workspace.init();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{printed}");
    assert!(printed.contains("exists and lacks the flag `--cfg madsim`"), "{printed}");
    assert!(printed.contains("rustflags = [\"--cfg\", \"madsim\""), "it shows the lines: {printed}");
    assert!(fs::read_to_string(workspace.config()).unwrap().contains("jobs = 1"));
    assert!(!workspace.0.join(".cargo/protoc").exists(), "nothing is half done");
}
