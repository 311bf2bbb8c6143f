//! A shell for the commands of a document.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a shell that runs commands of a document in a folder, as on a reader's machine: none of a test's
/// settings reach them.
///
/// Their builds stay in `target/outside`, where `tools/package` builds its programs too: the same
/// dependencies are compiled once for all. `GUIDE_TARGET_DIR=FOLDER` builds in an empty folder, to see how
/// long a reader waits.
pub(crate) fn shell(folder: &Path, commands: &str) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", commands]).current_dir(folder);
    for variable in ["RUSTFLAGS", "SEED", "SEEDS", "PROTOC", "CARGO_MANIFEST_DIR"] {
        shell.env_remove(variable);
    }
    let kept = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/outside");
    shell.env("CARGO_TARGET_DIR", std::env::var_os("GUIDE_TARGET_DIR").map_or_else(kept, PathBuf::from));
    // A third of the time of these builds; no command prints a stack.
    shell.env("CARGO_PROFILE_DEV_DEBUG", "0");
    shell
}
