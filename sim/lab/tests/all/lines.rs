//! No line of the repository is longer than 110 columns.
//!
//! rustfmt wraps Rust code (`max_width`), so only the comments of Rust files are checked. Not checked are:
//!
//! - rows of Markdown tables, which can't be broken;
//! - generated pages, recorded data and lock files;
//! - files whose text must not change: Lua scripts, which servers know by the digest of their text, and
//!   released steps of a database migration;
//! - the source of another project: `dlock/etcd-client`;
//! - folders that are not yet wrapped: [`UNWRAPPED`].

use std::path::Path;
use std::process::Command;

const COLUMNS: usize = 110;

/// The extensions of the files that are checked.
const CHECKED: [&str; 9] = ["rs", "md", "toml", "sh", "py", "mjs", "c", "yaml", "yml"];

/// Pages that a command writes from results.
const GENERATED: [&str; 5] =
    ["docs/chaos.md", "docs/comparison.md", "docs/experiments.md", "docs/peers.md", "docs/tokio.md"];

/// Schedules: each fault is one line of any length.
const UNWRAPPED: [&str; 2] = ["seeds/", "sim/lab/tests/all/accusations/"];

/// The folder of a crate with the schedules that its searches keep.
const KEPT: &str = "/sim-regressions/";

/// The source of another project, and what its build generates.
const FOREIGN: [&str; 3] =
    ["dlock/etcd-client/src/", "dlock/etcd-client/generated/", "sim/cargo-sim/send_wrapper/"];

#[test]
fn no_line_is_longer_than_110_columns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut long = Vec::new();
    // Links to folders of sources are no files.
    for file in tracked(root).into_iter().filter(|file| !root.join(file).is_dir()) {
        let text = std::fs::read_to_string(root.join(&file)).unwrap();
        for (number, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS && is_breakable(&file, line) {
                long.push(format!("{file}:{}: {columns} columns", number + 1));
            }
        }
    }
    assert!(long.is_empty(), "break these lines at {COLUMNS} columns:\n{}", long.join("\n"));
}

/// Returns the files to check, relative to `root`.
fn tracked(root: &Path) -> Vec<String> {
    let output = Command::new("git").arg("-C").arg(root).args(["ls-files", "-z"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = String::from_utf8(output.stdout).unwrap();
    files.split_terminator('\0').filter(|file| is_checked(file)).map(str::to_owned).collect()
}

fn is_checked(file: &str) -> bool {
    let ending = Path::new(file).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| CHECKED.contains(&ending))
        && !file.starts_with('.')
        && !GENERATED.contains(&file)
        && !FOREIGN.iter().any(|folder| file.starts_with(folder))
        && !UNWRAPPED.iter().any(|folder| file.starts_with(folder))
        && !file.contains(KEPT)
}

fn is_breakable(file: &str, line: &str) -> bool {
    let line = line.trim_start();
    let is_row = |text: &str| text.starts_with('|');
    if !file.ends_with(".rs") {
        return !is_row(line);
    }
    let comment = line.trim_start_matches(['/', '!']);
    comment.len() < line.len() && line.starts_with("//") && !is_row(comment.trim_start())
}
