//! Runs every target on its kept inputs, without libFuzzer.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use targets::{ALL, Target, memory};

/// The rounds in which a target's least memory is measured, twice.
const ROUNDS: usize = 8;

#[test]
fn every_target_passes_its_kept_inputs_and_keeps_no_memory() {
    for (name, target) in ALL {
        let inputs = inputs(name);
        assert!(!inputs.is_empty(), "corpus/{name} is empty");
        let broken: Vec<&Path> =
            inputs.iter().filter(|input| !passes(target, input)).map(|(path, _)| &**path).collect();
        assert!(broken.is_empty(), "{name} fails (see above) on {broken:?}");
        // The first rounds fill caches and thread-local state. Lua collects its garbage once in some rounds.
        let mut live = Vec::new();
        for _ in 0..2 + 2 * ROUNDS {
            inputs.iter().for_each(|(_, input)| targets::run(target, input));
            live.push(memory::live());
        }
        let least = |rounds: &[usize]| rounds.iter().copied().min().unwrap_or_default();
        // libtest allocates a little on another thread.
        let grown = least(&live[2 + ROUNDS..]).saturating_sub(least(&live[2..2 + ROUNDS]));
        assert!(grown < 64 * 1024, "{name} leaves memory behind, round by round: {live:?} bytes");
    }
}

#[test]
fn every_target_has_its_file_and_every_file_its_target() {
    let names = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> =
            entries.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let known = ALL.map(|(name, _)| name.to_owned());
    assert_eq!(names("fuzz_targets"), known);
    assert_eq!(names("corpus"), known);
    assert_eq!(names("dictionaries"), known);
    let nightly = fs::read_to_string(root().join("../.github/workflows/nightly.yml")).unwrap();
    let list = known.iter().map(|name| format!("          - {name}\n")).collect::<String>();
    assert!(
        nightly.contains(&format!("        target:\n{list}    steps:")),
        "nightly.yml lists other targets"
    );
}

/// Returns true if the target passes an input. If not, its panic is printed.
fn passes(target: Target, (_, input): &(PathBuf, Vec<u8>)) -> bool {
    std::panic::catch_unwind(|| targets::run(target, input)).is_ok()
}

/// Returns the kept inputs of a target, without those that reach the limits of Lua scripts: without
/// `cfg(fuzzing)` the limits are wide, and such an input takes seconds and hundreds of megabytes. The tests
/// of the simulated Redis are for these.
fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(root().join("corpus").join(target)).unwrap();
    let reaches_limit = |path: &Path| path.file_name().unwrap().to_string_lossy().starts_with("limit-");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| !reaches_limit(path)).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
