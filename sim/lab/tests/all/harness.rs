//! `sim::check`, a search in a user's `cargo test`: the failures that it finds, keeps and prints.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sim::faults::Faults;
use sim::{Process, Sim, VerdictKind};

/// A folder of one test, deleted at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("sim-regressions-{}-{number}", std::process::id())))
    }

    fn files(&self) -> Vec<String> {
        let Ok(files) = std::fs::read_dir(&self.0) else { return Vec::new() };
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Adds two processes whose critical sections overlap only after a pause.
pub(super) fn shaky(sim: &mut Sim) {
    sim.check("one at a time", sim::no(VerdictKind::Overlap));
    for (name, starts) in [("a", 0), ("b", 500)] {
        sim.process(name, move |process: Process| async move {
            process.sleep(Duration::from_millis(starts)).await;
            let section = process.section("key");
            process.point("inside");
            process.sleep(Duration::from_millis(100)).await;
            drop(section);
        });
    }
}

#[test]
fn a_failing_schedule_is_kept_and_replayed_first() {
    let folder = Folder::new();
    let search = || sim::check("shaky", shaky).allow_unmatched("key").keep_in(&folder.0).schedules(200);
    let first = search().find().unwrap().expect("a pause breaks it");
    assert!(first.problems[0].starts_with("one at a time: overlap"), "{first}");
    assert!(first.replay.contains("SEED="), "{first}");
    assert_eq!(folder.files(), ["shaky.toml"]);
    let again = search().find().unwrap().expect("the kept schedule is replayed");
    assert!(again.replay.contains("it is kept in"), "{again}");
    assert_eq!((again.schedule, again.trace), (first.schedule, first.trace));
    assert_eq!(folder.files(), ["shaky.toml"], "nothing is kept twice");
}

#[test]
fn a_search_can_be_limited_to_kinds_of_faults() {
    let folder = Folder::new();
    let search = |verbs: &[&str]| {
        let search = sim::check("shaky", shaky).allow_unmatched("key").keep_in(&folder.0).schedules(200);
        search.faults(Faults::default().only(verbs)).find().unwrap()
    };
    assert!(search(&["cut", "step"]).is_none(), "nothing but a pause breaks it");
    assert!(search(&["pause"]).unwrap().schedule.contains("pause = "));
}

#[test]
fn a_panic_is_a_failure_with_its_place_and_trace() {
    let folder = Folder::new();
    let panics = |sim: &mut Sim| {
        sim.process("a", |process: Process| async move {
            process.point("before it");
            process.sleep(Duration::from_millis(300)).await;
            assert!(
                process.wall() < Duration::from_secs(1_767_225_601),
                "the clock says {:?}",
                process.wall()
            );
        });
    };
    let search = sim::check("panics", panics).keep_in(&folder.0).schedules(500);
    let failure = search.find().unwrap().expect("a clock that is set breaks it");
    let problem = &failure.problems[0];
    assert!(problem.contains("process `a` panicked at") && problem.contains("harness.rs:"), "{problem}");
    assert!(problem.contains("the clock says"), "{problem}");
    assert!(failure.trace.contains("before it"), "{failure}");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test expects the error for this call")]
fn an_error_for_tokio_s_timer_names_the_replacement() {
    let mut sim = Sim::new(1);
    sim.process("a", |_| async { tokio::time::sleep(Duration::from_millis(1)).await });
    let error = sim.run().unwrap_err().to_string();
    assert!(error.contains("process `a` asked tokio itself") && error.contains("harness.rs:"), "{error}");
    assert!(error.contains("Process::sleep"), "{error}");
}

#[test]
fn two_runs_of_one_schedule_are_compared() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let folder = Folder::new();
    // Keeps state across runs, which code under test must not do.
    let forgetful = |sim: &mut Sim| {
        sim.process("a", |process: Process| async move {
            process.point(&format!("run {}", RUNS.fetch_add(1, Ordering::Relaxed)));
        });
    };
    let search = sim::check("forgetful", forgetful).keep_in(&folder.0).schedules(3);
    assert!(search.find().unwrap().is_none());
    let search = sim::check("forgetful", forgetful).keep_in(&folder.0).schedules(3).check_determinism();
    let failure = search.find().unwrap().expect("two runs differ");
    assert!(failure.problems[0].contains("a second run of the same schedule differs: event 1"), "{failure}");
}

/// The variable of the environment that makes the test below the program that searches.
const CHILD: &str = "DLOCK_SIM_TEST_LAST_SEED";

#[test]
fn a_seed_that_leaves_no_seed_is_an_error() {
    if std::env::var_os(CHILD).is_some() {
        let problem = sim::check("shaky", shaky).allow_unmatched("key").find().unwrap_err();
        assert_eq!(problem, format!("shaky: SEED={} leaves no seed: give a smaller one", u64::MAX));
        return;
    }
    let name = "harness::a_seed_that_leaves_no_seed_is_an_error";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.env_remove("DLOCK_SIM_SEED").env("SEED", u64::MAX.to_string()).env(CHILD, "1");
    let output = child.args(["--exact", name]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_folder_of_kept_schedules_that_cannot_be_read_is_an_error() {
    let folder = Folder::new();
    // Not even the superuser can read a link to itself.
    symlink(&folder.0, &folder.0).unwrap();
    let search = sim::check("shaky", shaky).allow_unmatched("key").keep_in(&folder.0).schedules(1);
    let problem = search.find().unwrap_err();
    let expected = format!("shaky: can't read the kept schedules in {}: ", folder.0.display());
    assert!(problem.starts_with(&expected), "{problem}");
}

#[test]
fn a_name_that_is_a_kept_file_of_another_search_is_refused() {
    let folder = Folder::new();
    let find =
        |name: &str| sim::check(name, shaky).allow_unmatched("key").keep_in(&folder.0).schedules(1).find();
    let problem = find("shaky-2").unwrap_err();
    assert!(problem.contains("`shaky`") && problem.contains("shaky_2"), "{problem}");
    for name in ["shaky-1", "shaky-two", "shaky_2", "2"] {
        assert!(find(name).is_ok(), "{name}");
    }
}

#[test]
fn an_error_in_a_kept_file_has_its_line() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let text = "about = \"x\"\n\n[[fault]]\nwhen = { at = \"1s\" }\nwhat = { pause = \"nobody\" }\n";
    std::fs::write(folder.0.join("shaky.toml"), text).unwrap();
    let problem = sim::check("shaky", shaky).keep_in(&folder.0).find().unwrap_err();
    assert!(problem.contains("shaky.toml:5: unknown process `nobody`"), "{problem}");
}
