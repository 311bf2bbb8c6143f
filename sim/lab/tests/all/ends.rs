//! The ends of commands: a signal gives the report so far, and a run that has checked nothing is no success.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lab::compare::compare;
use lab::museum::{Museum, Mutant};
use lab::{Arm, System, small};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sim::explore::exhaust::{Needed, Scope, faults_needed_watched};
use sim::explore::fleet::{Origin, Summary, merge};
use sim::explore::{Portfolio, exhaust, hunts};

/// The looks of a test for what a command prints or writes, and the real time between two.
const LOOKS: u32 = 6_000;
const LOOK: Duration = Duration::from_millis(20);

/// Returns an empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ends").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
    command.args(arguments).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// A command that runs. Its output goes to files, so that no full pipe holds it up.
struct Running {
    child: Child,
    folder: PathBuf,
}

impl Running {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let folder = folder(name);
        let stdout = File::create(folder.join("stdout")).unwrap();
        Self::start_into(folder, arguments, stdout.into())
    }

    /// Starts a command whose standard output goes to `stdout`, and its errors to the folder.
    fn start_into(folder: PathBuf, arguments: &[&str], stdout: Stdio) -> Self {
        let mut command = command(arguments);
        command.stdin(Stdio::null()).stdout(stdout).stderr(File::create(folder.join("stderr")).unwrap());
        Self { child: command.spawn().unwrap(), folder }
    }

    fn stdout(&self) -> String {
        text(&self.folder.join("stdout"))
    }

    fn stderr(&self) -> String {
        text(&self.folder.join("stderr"))
    }

    /// Waits until `is_there` returns true.
    fn wait_for(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        for _ in 0..LOOKS {
            if is_there(self) {
                return;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended before {what}:\n{}{}", self.stdout(), self.stderr());
            std::thread::park_timeout(LOOK);
        }
        panic!("not seen: {what}\n{}{}", self.stdout(), self.stderr());
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; returns the exit code and the standard output.
    fn end(self) -> (Option<i32>, String) {
        self.end_with(|_| ())
    }

    /// As [`end`](Self::end); calls `nudge` before each wait.
    fn end_with(mut self, nudge: impl Fn(&Self)) -> (Option<i32>, String) {
        for _ in 0..LOOKS {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), self.stdout());
            }
            nudge(&self);
            std::thread::park_timeout(LOOK);
        }
        panic!("it does not end:\n{}{}", self.stdout(), self.stderr());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a search, waits for its first line of progress, and sends it `signal`. Returns its exit code and
/// its report.
fn interrupted(name: &str, arguments: &[&str], signal: Signal) -> (Option<i32>, String) {
    let mut search = Running::start(name, arguments);
    search.wait_for("progress", |search| search.stderr().contains('\n'));
    search.signal(signal);
    search.end()
}

/// Returns the names of the files in the folder with this extension.
fn files(folder: &Path, extension: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.filter(|path| path.extension().is_some_and(|of| of == extension));
    named.map(|path| path.display().to_string()).collect()
}

#[test]
fn an_exploration_that_gets_a_signal_reports_what_it_has_found() {
    for (name, signal) in [("explore-int", Signal::INT), ("explore-term", Signal::TERM)] {
        let out = folder(&format!("{name}-out"));
        let found = out.to_str().unwrap();
        let search = ["explore", "--system", "redis", "--mutant", "blind-del", "--failures", "1000000"];
        let arguments = [&search[..], &["--minutes", "10", "--threads", "1", "--out", found]].concat();
        let mut search = Running::start(name, &arguments);
        search.wait_for("a violation", |_| !files(&out, "toml").is_empty());
        search.signal(signal);
        let (code, report) = search.end();
        assert_eq!(code, Some(130), "{report}");
        assert!(report.contains("random schedules with fencing on"), "{report}");
        assert!(report.contains("\nviolation: "), "{report}");
        assert!(report.contains("\ninterrupted after "), "{report}");
        let kept = files(&out, "toml");
        assert!(!kept.is_empty() && kept.iter().all(|file| !text(Path::new(file)).is_empty()));
        let summary = Summary::read(&out).unwrap();
        assert!(summary.schedules > 0 && summary.violations > 0 && summary.ended.is_none(), "{summary:?}");
        let problems = merge(std::slice::from_ref(&out)).unwrap().problems;
        assert!(problems.iter().any(|problem| problem.contains("was interrupted")), "{problems:?}");
    }
}

#[test]
fn an_exhaustive_search_that_gets_a_signal_keeps_its_progress() {
    for (name, signal) in [("exhaust-int", Signal::INT), ("exhaust-term", Signal::TERM)] {
        let progress = folder(&format!("{name}-out")).join("progress.json");
        let search = ["exhaust", "--subject", "redis", "--faults", "2", "--threads", "1", "--resume"];
        let results = progress.with_file_name("results.json");
        let files = [progress.to_str().unwrap(), "--record", results.to_str().unwrap()];
        let (code, report) = interrupted(name, &[&search[..], &files].concat(), signal);
        assert_eq!(code, Some(130), "{report}");
        assert!(!results.exists(), "a part of a search is recorded");
        let report = report.replace("\n  ", " ");
        assert!(report.contains("first faults with all that follows them are remaining"), "{report}");
        assert!(report.ends_with("interrupted: the same command goes on\n"), "{report}");
        // The first line names the search, the second has what is done.
        let saved: Value = serde_json::from_str(text(&progress).lines().nth(1).unwrap()).unwrap();
        assert!(!saved.as_object().unwrap().is_empty(), "{saved}");
    }
}

#[test]
fn a_search_for_the_needed_faults_that_gets_a_signal_says_what_it_knows() {
    let arguments = ["exhaust", "--subject", "redis", "--faults", "2", "--threads", "1", "--needed"];
    for (name, signal) in [("needed-int", Signal::INT), ("needed-term", Signal::TERM)] {
        let (code, report) = interrupted(name, &arguments, signal);
        assert_eq!(code, Some(130), "{report}");
        assert!(report.starts_with("faults needed: more than "), "{report}");
        assert!(report.ends_with("\ninterrupted\n"), "{report}");
    }
}

#[test]
fn a_comparison_that_gets_a_signal_writes_the_rows_it_has() {
    for (name, signal) in [("compare-int", Signal::INT), ("compare-term", Signal::TERM)] {
        let page = folder(&format!("{name}-out")).join("comparison.md");
        let arguments = ["compare", "--threads", "1", "--out", page.to_str().unwrap()];
        let (code, report) = interrupted(name, &arguments, signal);
        assert_eq!(code, Some(130), "{report}");
        assert!(report.contains("\nredis\n pause "), "{report}");
        assert!(report.contains("Interrupted after "), "{report}");
        let page = text(&page);
        assert!(page.contains("| redis | pause | ") && page.contains("Interrupted after "), "{page}");
    }
}

#[test]
fn a_museum_that_gets_a_signal_ends_within_its_hunts() {
    for (name, signal) in [("museum-int", Signal::INT), ("museum-term", Signal::TERM)] {
        let out = folder(&format!("{name}-out"));
        let hunts = ["museum", "--mutant", "blind-del", "--hunts", "1000000", "--out", out.to_str().unwrap()];
        let mut museum = Running::start(name, &hunts);
        museum.wait_for("its table", |museum| museum.stdout().contains('\n'));
        museum.signal(signal);
        let (code, report) = museum.end();
        assert_eq!(code, Some(130), "{report}");
        assert!(report.contains("\nblind-del ") && report.contains("\ninterrupted\n"), "{report}");
    }
}

#[test]
fn a_second_signal_ends_a_search_at_once() {
    // A full pipe that nobody reads: after the first signal the search can't print its report, and waits.
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    ioctl_fionbio(&writer, true).unwrap();
    let mut filler = 0;
    while let Ok(written) = writer.write(&[b'.'; 1024]) {
        filler += written;
    }
    ioctl_fionbio(&writer, false).unwrap();
    let arguments = ["compare", "--threads", "1", "--out", "/dev/null"];
    let mut search = Running::start_into(folder("twice"), &arguments, writer.into());
    search.wait_for("progress", |search| search.stderr().contains('\n'));
    search.signal(Signal::INT);
    // Two threads may take two signals at the same moment, and each see no other: so this one is sent again.
    let code = search.end_with(|search| search.signal(Signal::TERM)).0;
    assert_eq!(code, Some(130));
    let mut printed = Vec::new();
    reader.read_to_end(&mut printed).unwrap();
    assert_eq!(printed, vec![b'.'; filler], "it printed a report");
}

#[test]
fn progress_without_a_terminal_is_a_few_plain_lines() {
    let out = folder("plain-out");
    let (out, page) = (out.to_str().unwrap(), out.join("page.md"));
    let cases: [(&[&str], &str, &str); 3] = [
        (&["explore", "--seeds", "70", "--out", out], "/70 schedules, ", "70/70 schedules, 0 violations"),
        (
            &["compare", "--schedules", "1", "--out", page.to_str().unwrap()],
            "/31 schedules",
            "31/31 schedules",
        ),
        (&["exhaust", "--subject", "redis", "--faults", "1"], "/", " first faults, "),
    ];
    for (arguments, first, last) in cases {
        let output = command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let lines = String::from_utf8(output.stderr).unwrap();
        assert!(!lines.contains(['\u{1b}', '\r']), "{lines:?}");
        // Threads that end their first schedules at the same time are one line.
        let begun = lines.find(first).and_then(|end| lines[..end].parse::<usize>().ok());
        assert!(begun.is_some_and(|begun| (1..=8).contains(&begun)), "{lines}");
        let progress: Vec<&str> = lines.lines().filter(|line| !line.starts_with("written: ")).collect();
        assert!(progress.last().unwrap().contains(last), "{lines}");
        // One every ten seconds; these take less than a minute.
        assert!((2..=8).contains(&progress.len()), "{lines}");
    }
}

/// Runs a command that checks nothing: it must exit with 2 and say `why`.
fn is_refused(arguments: &[&str], why: &str) {
    let Output { status, stderr, stdout } = command(arguments).output().unwrap();
    let error = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{arguments:?}: {error}");
    assert!(error.contains(why), "{arguments:?}: {error}");
    assert_eq!(String::from_utf8(stdout).unwrap(), "", "{arguments:?}");
}

#[test]
fn a_search_of_nothing_is_an_error() {
    is_refused(&["explore", "--seeds", "0"], "--seeds and --failures must be at least 1");
    is_refused(
        &["explore", "--seeds", "10", "--shard", "2/2"],
        "--shard 2/2 has none of the seeds from 0 to 10",
    );
    is_refused(&["explore", "--seeds", "1", "--first", &u64::MAX.to_string()], "leaves no seed");
    is_refused(&["compare", "--schedules", "0"], "--schedules is 0");
    is_refused(&["museum", "--hunts", "0"], "must be at least 1");
    let search = sim::check("nothing", |_: &mut sim::Sim| {}).schedules(0);
    assert!(search.find().unwrap_err().contains("a search of 0 schedules checks nothing"));
}

#[test]
fn a_mistake_that_does_not_apply_to_the_system_is_an_error() {
    let explore = ["explore", "--seeds", "5", "--mutant", "two-step", "--system", "etcd"];
    is_refused(
        &explore,
        "--mutant two-step does not apply to --system etcd: give redis, or leave --system out",
    );
    let exhaust = ["exhaust", "--faults", "1", "--mutant", "two-step", "--subject", "etcd"];
    is_refused(&exhaust, "`two-step` does not apply to `etcd`");
    let museum = ["museum", "--hunts", "1", "--mutant", "two-step", "--system", "etcd"];
    is_refused(&museum, "--mutant two-step does not apply to --system etcd: give redis");
}

#[test]
fn a_page_of_results_that_are_not_there_is_an_error() {
    for command in ["exhaust-table", "museum"] {
        is_refused(&[command, "--check", "--results", "none.json"], "none.json: no such file");
    }
}

#[test]
fn a_merge_of_searches_without_a_schedule_is_no_success() {
    let folder = folder("no-schedule");
    let word = |word: &str| word.to_owned();
    let search = Origin {
        version: word("1"),
        behaviour: word("abc"),
        subject: word("redis"),
        strategy: word("uniform"),
        first: 0,
        shard: word("1/1"),
    };
    let summary = Summary { ended: Some(word("all seeds")), ..Summary::new(search, 1) };
    summary.save(&folder).unwrap();
    let merged = merge(std::slice::from_ref(&folder)).unwrap();
    assert!(!merged.is_clean() && merged.problems[0].ends_with("ran no schedule"), "{merged}");
}

/// Returns true from the 50th call on.
fn after_fifty() -> bool {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed) >= 50
}

#[test]
fn a_stopped_search_counts_what_it_has_run_below_a_first_fault() {
    // A hundred placements and more follow each first fault: none of these is done.
    let scope = Scope { stop: after_fifty, ..Scope::of(3) };
    let subject = Museum::new(Arm::Fenced);
    let found = exhaust(&subject, &small(System::REDIS), &scope, |_| true).unwrap();
    assert_eq!(found.runs, 51, "the run without a fault, and 50 placements");
    assert!(found.claim().contains("first faults with all that follows them are remaining"));
}

#[test]
fn a_stopped_search_claims_no_more_faults_than_it_has_tried() {
    let scope = Scope { stop: || true, ..Scope::of(3) };
    let subject = Museum::new(Arm::Fenced);
    let needed = faults_needed_watched(&subject, &small(System::REDIS), &scope, |_| true).unwrap();
    assert!(matches!(needed, Needed::MoreThan(0)), "{needed}");
}

#[test]
fn a_stopped_comparison_has_run_no_more_than_it_was_told() {
    let left = AtomicU64::new(3);
    let found = compare(0, 2, 1, || left.fetch_sub(1, Ordering::Relaxed) > 1).unwrap();
    assert_eq!(found.values().map(|cell| cell.schedules).sum::<u64>(), 3);
}

#[test]
fn a_hunt_that_was_stopped_is_left_out() {
    // The correct lock: no hunt finds anything.
    let correct = Museum::new(Arm::Fenced).drawing(System::REDIS);
    let (asked, all) = (AtomicU64::new(0), Portfolio::default());
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 7;
    let ended = hunts(&correct, &[], 0..100, 5, &all, 1, stop).unwrap();
    assert_eq!(ended.len(), 1, "the second hunt was stopped");
    assert_eq!(ended[0].schedules, 5);
    let mistaken = correct.with(Mutant::BlindDel);
    assert_eq!(hunts(&mistaken, &Mutant::BlindDel.signs(), 0..2, 2_000, &all, 1, || false).unwrap().len(), 2);
}
