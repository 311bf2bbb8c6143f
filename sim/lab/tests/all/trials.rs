//! `docs/trials.md` names each library on trial, in the version that `trials/Cargo.toml` pins.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// Members without a library of their own: the worlds, a service of several libraries, and a comparison.
const OTHERS: [&str; 3] = ["booking", "common", "speed"];

#[test]
fn the_page_names_each_library_in_its_version() {
    let folder = root().join("trials");
    let pinned = pinned(&table(&folder.join("Cargo.toml")));
    let named = named(&fs::read_to_string(root().join("docs/trials.md")).unwrap());
    assert!(named.len() >= 9, "the tables of docs/trials.md have lost their rows: {named:?}");
    let unpinned: Vec<_> = named.difference(&pinned).collect();
    assert!(
        unpinned.is_empty(),
        "docs/trials.md has libraries that trials/Cargo.toml does not pin: {unpinned:?}"
    );
    let members = table(&folder.join("Cargo.toml"))["workspace"]["members"].clone();
    for member in members.as_array().unwrap().iter().filter_map(Value::as_str) {
        if OTHERS.contains(&member) {
            continue;
        }
        let used = table(&folder.join(member).join("Cargo.toml"))["dev-dependencies"].clone();
        let is_used =
            |library: &&String| library.split_once(' ').is_some_and(|(name, _)| used.get(name).is_some());
        assert!(
            named.iter().any(|library| is_used(&library)),
            "docs/trials.md lacks a row for trials/{member}"
        );
    }
}

/// `tools/speed` writes the results.
#[test]
fn the_page_has_the_measured_speeds() {
    let results = fs::read_to_string(root().join("trials/speed/results.txt")).unwrap();
    let page = fs::read_to_string(root().join("docs/trials.md")).unwrap();
    assert!(page.contains(&format!("```\n{results}```")), "docs/trials.md has other figures than {results}");
    let figure = |name: &str| {
        let mut lines = results.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(_, of)| *of == name).unwrap().0.parse::<f64>().unwrap()
    };
    let ratio = figure("ours") / figure("turmoil");
    assert!((ratio - figure("times turmoil")).abs() < 0.06, "{ratio} is another ratio than in {results}");
}

/// Returns the libraries of which one version is pinned, as `NAME VERSION`.
fn pinned(workspace: &Table) -> BTreeSet<String> {
    let dependencies = workspace["workspace"]["dependencies"].as_table().unwrap();
    let version = |value: &Value| {
        let text = value.as_str().or_else(|| value.get("version")?.as_str())?;
        text.strip_prefix('=').map(str::to_owned)
    };
    dependencies.iter().filter_map(|(name, value)| Some(format!("{name} {}", version(value)?))).collect()
}

/// Returns the first cells of the page's rows, but those of heads.
fn named(page: &str) -> BTreeSet<String> {
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    cells.filter(|cell| *cell != "library").map(str::to_owned).collect()
}

fn table(file: &Path) -> Table {
    fs::read_to_string(file).unwrap().parse().unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
