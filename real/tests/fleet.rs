//! The Slurm array script of `tools/fleet`, on a Slurm cluster that is this machine. The cluster's programs
//! are the real ones; the simulator is replaced by a script that prints its arguments.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FLEET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/fleet");

/// Prints its arguments, and fails as shard 2 of 3.
const SIM: &str = r#"#!/bin/sh
echo "$@"
case "$*" in *"--shard 2/3"*) exit 1 ;; esac
"#;

/// Creates an empty folder with a program `sim`.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Fails only if there is no such folder.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let sim = folder.join("sim");
    fs::write(&sim, SIM).unwrap();
    fs::set_permissions(&sim, Permissions::from_mode(0o755)).unwrap();
    folder
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs the script as Slurm does for one task of an array, without Slurm.
fn task(folder: &Path, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(format!("{FLEET}/explore.slurm"));
    command.env("SLURM_SUBMIT_DIR", folder).envs(variables.iter().copied());
    let output = command.output().unwrap();
    (output.status.code(), text(&output))
}

const SECOND: [(&str, &str); 5] = [
    ("SLURM_ARRAY_JOB_ID", "7"),
    ("SLURM_ARRAY_TASK_ID", "2"),
    ("SLURM_ARRAY_TASK_MIN", "1"),
    ("SLURM_ARRAY_TASK_MAX", "4"),
    ("SLURM_ARRAY_TASK_COUNT", "4"),
];

#[test]
fn a_slurm_array_runs_each_shard_in_its_folder() {
    let folder = folder("slurm-array");
    let script = format!("{FLEET}/explore.slurm");
    let output = Command::new(format!("{FLEET}/one-machine"))
        .args(["sbatch", "--wait", "--array=1-3", "--cpus-per-task=1", "--output=%a.log", &script])
        .args(["--first", "7000", "--minutes", "1"])
        .current_dir(&folder)
        .env("SIM", "./sim")
        .env("OUT", "night")
        .output()
        .unwrap();
    let said = text(&output);
    for shard in 1..=3 {
        let log = folder.join(format!("{shard}.log"));
        let log =
            fs::read_to_string(&log).unwrap_or_else(|error| panic!("{}: {error}\n{said}", log.display()));
        let wanted = format!(
            "explore --shard {shard}/3 --canary --threads 1 --out night/shard-{shard} --first 7000 --minutes 1\n"
        );
        assert_eq!(log, wanted);
        assert!(folder.join(format!("night/shard-{shard}")).is_dir(), "no folder of shard {shard}");
    }
    // The others have run although one fails, and `sbatch --wait` passes the failure on.
    assert_eq!(output.status.code(), Some(1), "{said}");
}

#[test]
fn the_default_folder_and_program_are_those_of_the_submission() {
    let folder = folder("slurm-default");
    let (code, said) = task(&folder, &SECOND);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no program at target/release/sim"), "{said}");

    fs::create_dir_all(folder.join("target/release")).unwrap();
    fs::rename(folder.join("sim"), folder.join("target/release/sim")).unwrap();
    let (code, said) = task(&folder, &SECOND);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("--shard 2/4 --canary --threads 1 --out fleet/7/shard-2"), "{said}");
    assert!(folder.join("fleet/7/shard-2").is_dir());
}

#[test]
fn an_array_whose_shards_would_have_gaps_fails() {
    let folder = folder("slurm-gaps");
    let (code, said) = task(&folder, &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("submit it with sbatch --array=1-N"), "{said}");

    let mut variables = SECOND;
    // Task 2 of an array of 2 to 5.
    (variables[2].1, variables[3].1) = ("2", "5");
    let (code, said) = task(&folder, &variables);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("4 tasks, from 2 to 5: submit it with --array=1-4"), "{said}");
}

/// The targets of the links `](target)` of the page and the files in `tools/fleet` that it names.
fn named(page: &str) -> Vec<&str> {
    let links = page.split("](../").skip(1).filter_map(|rest| rest.split(')').next());
    let files =
        page.split_whitespace().filter(|word| word.starts_with("tools/fleet/") && !word.contains('*'));
    links.chain(files).collect()
}

#[test]
fn every_file_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/nightly.md")).unwrap();
    let named = named(&page);
    assert!(named.len() > 10, "{named:?}");
    for file in named {
        assert!(root.join(file).is_file(), "docs/nightly.md names {file}, which doesn't exist");
    }
}

#[test]
fn a_cluster_leaves_nothing_behind() {
    let output =
        Command::new(format!("{FLEET}/one-machine")).args(["printenv", "SLURM_CONF"]).output().unwrap();
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    let configuration = PathBuf::from(said.trim());
    assert!(configuration.is_absolute(), "{said}");
    assert!(!configuration.parent().unwrap().exists(), "{said}");
}
