//! Runs the simulator as a program: the crates do not depend on each other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use history::VerdictKind;
use resource::Fencing;
use serde::Deserialize;

use crate::experiments::ExperimentError;
use crate::lab::LabError;

/// The repository from which this program was built.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The path of the program.
pub(super) struct Simulator(PathBuf);

/// The fields used of the output of `sim replay --json`.
#[derive(Deserialize)]
struct Replayed {
    verdicts: Vec<ReplayedVerdict>,
}

#[derive(Deserialize)]
struct ReplayedVerdict {
    kind: VerdictKind,
    fence: Fencing,
}

impl Simulator {
    /// Finds the program at `path`, or beside this program, where it is built if it is missing.
    pub(super) fn find(path: Option<&Path>) -> Result<Self, ExperimentError> {
        if let Some(path) = path {
            let there = path.is_file();
            return there
                .then(|| Self(path.to_owned()))
                .ok_or_else(|| missing(path, "there is no such file"));
        }
        let this = std::env::current_exe().map_err(|error| missing(Path::new("sim"), &error.to_string()))?;
        let beside = this.with_file_name("sim");
        if !beside.is_file() {
            build(&beside)?;
        }
        Ok(Self(beside))
    }

    /// Replays a schedule after writing it to `file`; returns the verdicts with fencing off, and with fencing
    /// on.
    pub(super) fn replay(
        &self,
        schedule: &str,
        file: &Path,
    ) -> Result<[BTreeSet<VerdictKind>; 2], ExperimentError> {
        let help = "set TMPDIR to a directory that this user can write to";
        let unwritten = |source| LabError::File { path: file.to_owned(), source, help };
        fs::write(file, schedule).map_err(unwritten)?;
        let output = Command::new(&self.0).arg("replay").arg(file).arg("--json").output();
        let output = output.map_err(|error| missing(&self.0, &error.to_string()))?;
        let replayed: Replayed = serde_json::from_slice(&output.stdout).map_err(|error| {
            let said = String::from_utf8_lossy(&output.stderr);
            ExperimentError::Failed(format!("the simulator gave no result ({error}): {}", said.trim()))
        })?;
        Ok(Fencing::BOTH.map(|fence| {
            let of = replayed.verdicts.iter().filter(|verdict| verdict.fence == fence);
            of.map(|verdict| verdict.kind).collect()
        }))
    }
}

/// Runs `cargo build --bin sim` with the profile of this program, into its folder.
fn build(beside: &Path) -> Result<(), ExperimentError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "-p", "fencepost-lab", "--bin", "sim"]).current_dir(WORKSPACE);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    if let Some(target) = beside.parent().and_then(Path::parent) {
        command.arg("--target-dir").arg(target);
    }
    let output = command.output().map_err(|error| missing(beside, &error.to_string()))?;
    if output.status.success() && beside.is_file() {
        return Ok(());
    }
    Err(missing(beside, String::from_utf8_lossy(&output.stderr).trim()))
}

fn missing(path: &Path, why: &str) -> ExperimentError {
    let path = path.display();
    ExperimentError::Failed(format!(
        "no simulator at {path}: {why}; run `cargo build --release --bin sim`, or give its path: --set \
         'sim=\"PATH\"'"
    ))
}
