//! Pages in a real browser: no label is cut, nothing prints over anything else, and a page needs no network.
//!
//! Chromium opens the pages from disk: wide, on a phone, dark, and on paper. The checks are in
//! `history/picture/tests/browser`. Set `SCREENSHOTS` to a folder to keep a picture of each page in each
//! form.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use lab::Arm;
use lab::gallery::{Plan, gallery};
use lab::museum::{self, Museum};
use sim::explore::pictured;

/// The schedules whose pages are checked, each with both arms side by side. Between them they have all kinds
/// of servers, many lanes, and messages that are held, late and lost.
const PAIRS: [&str; 6] = [
    "delayed-write",
    "redlock-partition-majority",
    "etcd-gc-pause",
    "gc-pause-zookeeper",
    "failover-lost-lock",
    "clock-step-or-slew-step",
];

/// Further schedules, with `PAGES=all`, as nightly: the page of the first is by far the largest, and takes
/// minutes; those of the others have nothing that no other has.
const FURTHER: [&str; 4] = ["etcd-fifo", "gc-pause", "ambiguous-acquire", "redlock-clock-jump"];

/// The schedules whose pages are checked with one arm alone.
const SINGLE: [&str; 3] = ["gc-pause", "redlock-crash-restart", "lost-call"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Writes the page of a schedule with these arms.
fn write(folder: &Path, name: &str, arms: &[Arm]) {
    let file = root().join("seeds").join(format!("{name}.toml"));
    let (schedule, text) = (museum::load(&file).unwrap(), std::fs::read_to_string(&file).unwrap());
    let title = |arm: Arm| if arm == Arm::Fenced { "fencing on" } else { "fencing off" };
    let drawn = arms.iter().map(|arm| pictured(&Museum::new(*arm), &schedule, title(*arm)).unwrap());
    let page = picture::page(&drawn.collect::<Vec<_>>(), Some(&picture::Schedule::new(name, &text)));
    let form = if arms.len() > 1 { "pair" } else { "single" };
    std::fs::write(folder.join(format!("{name}-{form}.html")), page).unwrap();
}

/// Runs a program to its end, in the folder of the checks.
fn run(program: &str, package: &str, arguments: &[&str]) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root().join("history/picture/tests/browser"));
    let output = command.output().unwrap_or_else(|error| {
        panic!("{program}: {error}; it is not installed: run `apt-get install {package}`")
    });
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {}:\n{out}{err}", arguments.join(" "));
}

/// Installs the checks' packages, once.
fn install() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| run("npm", "npm nodejs", &["ci", "--no-audit", "--no-fund"]));
}

/// Returns an empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Checks all pages in the folder.
fn check(folder: &Path) {
    install();
    run("pdftotext", "poppler-utils", &["-v"]);
    run("node", "nodejs", &["check.mjs", folder.to_str().unwrap()]);
}

/// Checks the pages of every second schedule, from this one on.
fn check_pairs(first: usize) {
    let folder = folder(&format!("pages-of-two-{first}"));
    let is_all = std::env::var("PAGES").is_ok_and(|pages| pages == "all");
    let further = if is_all { &FURTHER[..] } else { &[] };
    let pairs = PAIRS.iter().chain(further).skip(first).step_by(2);
    pairs.for_each(|name| write(&folder, name, &[Arm::Unfenced, Arm::Fenced]));
    check(&folder);
}

// Two tests, so that two processors share what takes minutes.
#[test]
fn pages_of_two_runs_are_whole_in_a_browser() {
    check_pairs(0);
}

#[test]
fn further_pages_of_two_runs_are_whole_in_a_browser() {
    check_pairs(1);
}

#[test]
fn pages_of_one_run_are_whole_in_a_browser() {
    let folder = folder("pages-of-one");
    SINGLE.iter().for_each(|name| write(&folder, name, &[Arm::Unfenced]));
    let figure = std::fs::read_to_string(root().join("docs/figures/gc-pause.svg")).unwrap();
    std::fs::write(folder.join("figure.svg"), figure).unwrap();
    check(&folder);
}

#[test]
fn the_gallery_is_whole_in_a_browser() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gallery");
    let _ = std::fs::remove_dir_all(&out);
    let plan = Plan { seeds: &root().join("seeds"), out: &out, schedules: 2, threads: 2 };
    gallery(&plan, |_| {}, || {}).unwrap();
    install();
    run(
        "node",
        "nodejs",
        &["check.mjs", out.to_str().unwrap(), "index.html", "tour.html", "comparison.html"],
    );
}
