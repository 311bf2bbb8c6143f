//! Shrinking: what is left of a schedule that fails, and that it still fails in the same way.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use history::VerdictKind;
use lab::museum::{Museum, Mutant};
use lab::{Arm, Options, System};
use sim::explore::fleet::Capsules;
use sim::explore::{Broken, Cause, Causes, Portfolio, RUNS_MAX, Shrunk, explore, shrink};
use sim::faults::{Cut, Fault, Partition, Pause, Trigger};
use sim::{Draw, NoOptions, Process, Schedule, Sim, Span, Subject};

/// Mistakes that random schedules of Redis show within some dozens of seeds.
const MUTANTS: [Mutant; 6] = [
    Mutant::BlindDel,
    Mutant::SharedToken,
    Mutant::CounterDeleted,
    Mutant::ForgetsOnRestart,
    Mutant::RenewalLogged,
    Mutant::CheckThenWrite,
];

/// A schedule that a random search has found, before and after.
struct Found {
    mutant: Mutant,
    subject: Museum,
    drawn: Schedule<Options>,
    cause: Cause,
    shrunk: Shrunk<Options>,
}

/// Returns the findings of a random search for each of [`MUTANTS`], shrunk.
fn found() -> &'static [Found] {
    static FOUND: OnceLock<Vec<Found>> = OnceLock::new();
    FOUND.get_or_init(|| MUTANTS.into_iter().map(search).collect())
}

/// The first schedule with two faults at least that convicts the mutant of its mistake.
fn search(mutant: Mutant) -> Found {
    for seed in 0..1000 {
        for arm in [Arm::Fenced, Arm::Unfenced] {
            let subject = Museum::new(arm).with(mutant).drawing(System::REDIS);
            let drawn = subject.schedule(&mut Draw::new(seed)).unwrap();
            if drawn.faults.len() < 2 {
                continue;
            }
            let run = sim::sim::run(&subject, &drawn);
            let causes = Causes::of(&subject, &drawn, &run).violations;
            let Some(cause) = causes.into_iter().find(|cause| mutant.signs().contains(&cause.broken)) else {
                continue;
            };
            let shrunk = shrink(&subject, &drawn, &cause, RUNS_MAX);
            return Found { mutant, subject, drawn, cause, shrunk };
        }
    }
    panic!("no schedule shows {mutant}");
}

#[test]
fn at_most_three_faults_are_left_of_what_a_search_finds() {
    for Found { mutant, drawn, cause, shrunk, .. } in found() {
        let (before, left) = (drawn.faults.len(), shrunk.schedule.faults.len());
        println!("{mutant}: {cause}: {before} faults, {left} left, {} runs", shrunk.runs);
        println!("{}", shrunk.schedule.to_toml());
        assert!(left <= 3, "{mutant}: {}", shrunk.schedule.to_toml());
    }
    let left: usize = found().iter().map(|found| found.shrunk.schedule.faults.len()).sum();
    let drawn: usize = found().iter().map(|found| found.drawn.faults.len()).sum();
    assert!(left * 2 <= drawn, "{left} of {drawn} faults are left");
}

#[test]
fn shrinking_ends_within_300_runs() {
    assert_eq!(RUNS_MAX, 300);
    for Found { mutant, shrunk, .. } in found() {
        assert!(shrunk.runs <= RUNS_MAX && shrunk.is_smallest, "{mutant}: {} runs", shrunk.runs);
    }
}

#[test]
fn shrinking_keeps_the_cause() {
    for Found { mutant, subject, cause, shrunk, .. } in found() {
        let run = sim::sim::run(subject, &shrunk.schedule);
        let causes = Causes::of(subject, &shrunk.schedule, &run);
        assert!(causes.violations.contains(cause), "{mutant}: {cause}, not {causes:?}");
        assert!(cause.is_named_in(&shrunk.schedule.about), "{}", shrunk.schedule.about);
    }
}

#[test]
fn the_correct_lock_is_acquitted_on_what_is_left() {
    for Found { mutant, subject, shrunk, .. } in found() {
        let mut schedule = shrunk.schedule.clone();
        schedule.options.mutant = None;
        let arm: Arm = subject.arm().parse().unwrap();
        let correct = Museum::new(arm);
        let run = sim::sim::run(&correct, &schedule);
        let causes = Causes::of(&correct, &schedule, &run);
        assert_eq!(causes.violations.len(), 0, "{mutant}: {causes:?}\n{}", schedule.to_toml());
    }
}

#[test]
fn shrinking_twice_changes_nothing() {
    for Found { mutant, subject, cause, shrunk, .. } in found() {
        let again = shrink(subject, &shrunk.schedule, cause, RUNS_MAX);
        assert_eq!(again.schedule.to_toml(), shrunk.schedule.to_toml(), "{mutant}");
    }
}

#[test]
fn options_that_the_cause_does_not_need_are_gone() {
    for Found { mutant, shrunk, drawn, .. } in found() {
        let (options, before) = (&shrunk.schedule.options, &drawn.options);
        assert!(options.workers.len() <= 2, "{mutant}: {}", shrunk.schedule.to_toml());
        assert!(options.workers.len() < before.workers.len() || before.workers.len() <= 2, "{mutant}");
        assert!(shrunk.schedule.limit < drawn.limit, "{mutant}: cut after the violation");
    }
}

/// Two pairs of processes, each with a lock of its own that a pause of its first process breaks.
fn two_pairs(sim: &mut Sim) {
    sim.check("one at a time", sim::no(VerdictKind::Overlap));
    for (name, key, starts) in [("a", "left", 0), ("b", "left", 500), ("c", "right", 0), ("d", "right", 600)]
    {
        sim.key(key).process(name, move |process: Process| async move {
            process.sleep(Duration::from_millis(starts)).await;
            let section = process.section(key);
            process.point("inside");
            process.sleep(Duration::from_millis(100)).await;
            drop(section);
        });
    }
}

fn pause(process: &str, millis: u64) -> Fault {
    let lasts = Some(Span::from_millis(millis));
    Fault::new(Trigger::after(process, "inside"), Pause { lasts, ..Pause::of(process) })
}

/// Both locks break, and some faults break nothing.
fn both_broken(first: &str, second: &str) -> Schedule<NoOptions> {
    let mut schedule = Schedule::new("two mistakes", NoOptions {});
    let cut = Cut { lasts: Some(Span::from_secs(1)), ..Cut::between("a", "d") };
    let groups = vec![vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned(), "d".to_owned()]];
    let partition = Partition { groups, lasts: Some(Span::from_secs(2)) };
    schedule.faults = vec![
        Fault::new(Trigger::At(Span::from_millis(10)), cut),
        pause(first, 2345),
        Fault::new(Trigger::At(Span::from_millis(700)), partition),
        pause(second, 1234),
    ];
    schedule
}

fn only_cause<S: Subject>(subject: &S, schedule: &Schedule<S::Options>) -> Cause {
    let causes = Causes::of(subject, schedule, &sim::sim::run(subject, schedule));
    assert_eq!(causes.violations.len(), 1, "{causes:?}");
    causes.violations[0].clone()
}

#[test]
fn a_second_mistake_in_the_schedule_does_not_become_the_cause() {
    for (first, second) in [("a", "c"), ("c", "a")] {
        let schedule = both_broken(first, second);
        let cause = only_cause(&two_pairs, &schedule);
        assert_eq!(cause.key.as_deref(), Some("left"), "the first in time");
        let shrunk = shrink(&two_pairs, &schedule, &cause, RUNS_MAX).schedule;
        assert_eq!(only_cause(&two_pairs, &shrunk), cause);
        let targets: Vec<_> = shrunk.faults.iter().map(|fault| fault.what.processes()).collect();
        assert_eq!(targets, [["a"]], "{}", shrunk.to_toml());
    }
}

#[test]
fn the_shortest_pause_that_breaks_is_found() {
    let schedule = both_broken("a", "c");
    let shrunk = shrink(&two_pairs, &schedule, &only_cause(&two_pairs, &schedule), RUNS_MAX).schedule;
    let lasts = shrunk.faults[0].what.downcast_ref::<Pause>().unwrap().lasts.unwrap();
    // The other process comes after half a second.
    assert!([500, 501].map(Span::from_millis).contains(&lasts), "{}", shrunk.to_toml());
    let shorter = pause("a", lasts.as_nanos() / 1_000_000 - 1).what;
    let shorter = Fault { what: shorter, ..shrunk.faults[0].clone() };
    let shorter = Schedule { faults: vec![shorter], ..shrunk };
    assert!(sim::sim::run(&two_pairs, &shorter).unwrap().findings.is_empty());
}

#[test]
fn a_time_snaps_to_the_point_before_it() {
    let mut schedule = both_broken("a", "c");
    schedule.faults.truncate(2);
    schedule.faults[1].when = Trigger::At(Span::from_millis(50));
    let shrunk = shrink(&two_pairs, &schedule, &only_cause(&two_pairs, &schedule), RUNS_MAX).schedule;
    assert_eq!(shrunk.faults.len(), 1);
    assert_eq!(shrunk.faults[0].when, Trigger::after("a", "inside"), "{}", shrunk.to_toml());
}

#[test]
fn a_schedule_file_of_a_closure_shrinks() {
    let found =
        explore(&[two_pairs], 0..300, &Portfolio::default(), 1, |tally| tally.violations < 3).unwrap();
    assert!(found.violations.len() >= 3);
    for violation in found.violations {
        let text = violation.schedule.to_toml();
        let read = sim::sim::parse(&two_pairs, "violation.toml", &text).unwrap();
        let shrunk = shrink(&two_pairs, &read, &violation.cause, RUNS_MAX);
        assert_eq!(shrunk.schedule.faults.len(), 1, "{}", shrunk.schedule.to_toml());
        let again = sim::sim::parse(&two_pairs, "shrunk.toml", &shrunk.schedule.to_toml()).unwrap();
        let run = sim::sim::run(&two_pairs, &again).unwrap();
        assert_eq!(again.mismatches("run", &run), Some(Vec::new()), "it demands what it gives");
    }
}

#[test]
fn a_panic_is_a_cause_that_shrinks() {
    let panics = |sim: &mut Sim| {
        sim.process("a", |process: Process| async move {
            let began = process.now();
            process.sleep(Duration::from_millis(300)).await;
            let slept = process.now().saturating_since(began);
            assert!(slept < Duration::from_millis(400), "it slept too long");
        });
    };
    let mut schedule = Schedule::new("a panic", NoOptions {});
    let pause = Pause { lasts: Some(Span::from_secs(3)), ..Pause::of("a") };
    schedule.faults = vec![Fault::new(Trigger::At(Span::from_millis(20)), pause)];
    let cause = only_cause(&panics, &schedule);
    assert!(matches!(&cause.broken, Broken::Panic(at) if at.contains("shrink.rs:")), "{cause}");
    let shrunk = shrink(&panics, &schedule, &cause, RUNS_MAX).schedule;
    assert_eq!(only_cause(&panics, &shrunk), cause);
    let lasts = shrunk.faults[0].what.downcast_ref::<Pause>().unwrap().lasts.unwrap();
    assert!(lasts < Span::from_millis(420), "{}", shrunk.to_toml());
}

#[test]
fn processes_that_do_the_same_are_interchangeable_in_a_cause() {
    let swapped = |sim: &mut Sim| {
        sim.check("one at a time", sim::no(VerdictKind::Overlap));
        for (name, starts) in [("b", 0), ("a", 500)] {
            sim.key("left").process(name, move |process: Process| async move {
                process.sleep(Duration::from_millis(starts)).await;
                let section = process.section("left");
                process.point("inside");
                process.sleep(Duration::from_millis(100)).await;
                drop(section);
            });
        }
    };
    let mut schedule = both_broken("a", "c");
    schedule.faults = vec![pause("a", 2000)];
    let cause = only_cause(&two_pairs, &schedule);
    schedule.faults = vec![pause("b", 2000)];
    assert_eq!(only_cause(&swapped, &schedule), cause);
    let line = "check `one at a time` on left, client 1 and client 2, at section_entered";
    assert_eq!(cause.to_string(), line);
    let json = serde_json::to_string(&cause).unwrap();
    assert_eq!(serde_json::from_str::<Cause>(&json).unwrap(), cause, "{json}");
}

#[test]
fn a_failing_check_keeps_the_shrunk_schedule() {
    let folder = std::env::temp_dir().join(format!("sim-shrunk-{}", std::process::id()));
    let search = sim::check("two_pairs", two_pairs).keep_in(&folder).schedules(200);
    let failure = search.find().unwrap().expect("a pause breaks it");
    let kept = std::fs::read_to_string(folder.join("two_pairs.toml")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(kept, failure.schedule);
    assert_eq!(kept.matches("[[fault]]").count(), 1, "{kept}");
    assert!(failure.problems[0].starts_with("one at a time: overlap"), "{failure}");
    let printed = failure.to_string();
    assert!(printed.contains("shrunk in ") && printed.contains("SEED="), "{printed}");
    assert!(printed.contains("pause of ") && printed.contains(" of 100\n"), "{printed}");
}

#[test]
fn the_command_writes_the_smaller_schedule() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shrunk.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["shrink", "seeds/gc-pause.toml", "--verdict", "stale_write", "--out"])
        .arg(&out)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 of 1 faults left after "), "{text}");
    let shrunk = lab::load(&out).unwrap();
    let run = lab::run(&shrunk, Arm::Unfenced, shrunk.seed).unwrap();
    assert!(run.kinds().contains(&VerdictKind::StaleWrite));
    assert_eq!(shrunk.mismatches("unfenced", &run), Some(Vec::new()));
}

/// Shrinks `file` by the command and writes the result to `out`. Returns the cause that was kept.
fn cause_kept(file: &Path, out: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sim"))
        .arg("shrink")
        .args([file, Path::new("--out"), out])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    let head: Vec<&str> = text.lines().take_while(|line| !line.contains(" faults left")).collect();
    head.join("\n").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Schedules whose runs show several causes, in an order that shrinking changes.
const SEVERAL: [&str; 4] = [
    "seeds/museum/failed-release-zookeeper.toml",
    "seeds/museum/validity-unchecked-redis.toml",
    "seeds/redlock-replies-in-flight-unchecked.toml",
    "seeds/redlock-replies-in-flight-wall-clock.toml",
];

#[test]
fn a_second_shrink_keeps_the_cause_of_the_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let entries = std::fs::read_dir(root.join("seeds/museum")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let files = files.into_iter().step_by(6).chain(SEVERAL.map(|file| root.join(file)));
    for (number, file) in files.enumerate() {
        let (once, twice) = (out.join(format!("once-{number}.toml")), out.join("twice.toml"));
        let first = cause_kept(&file, &once);
        assert_eq!(cause_kept(&once, &twice), first, "{}", file.display());
        let about = lab::load(&file).map(|schedule| schedule.about).unwrap_or_default();
        if let Some((_, named)) = about.split_once("Found as ") {
            assert_eq!(format!("fencing on: {}", named.trim_end_matches('.')), first, "{}", file.display());
        }
    }
}

#[test]
fn explore_saves_the_shrunk_schedule_beside_the_drawn_one() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shrunk-violations");
    let _ = std::fs::remove_dir_all(&out);
    let output = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["explore", "--system", "redis", "--mutant", "counter-deleted", "--seeds", "8", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("shrunk from ") && text.contains("token_regressed"), "{text}");
    let capsules = Capsules::read(&out).unwrap();
    assert!(!capsules.is_empty(), "{text}");
    for capsule in capsules {
        assert!(capsule.schedule.len() < capsule.drawn.len(), "{}", capsule.schedule);
        let shrunk = lab::museum::load(&out.join(format!("{}.toml", capsule.name))).unwrap();
        assert_eq!(shrunk.to_toml(), capsule.schedule);
        let (arm, outcome) = shrunk.expect.iter().next().unwrap();
        let run = lab::museum::run(&shrunk, arm.parse().unwrap(), shrunk.seed).unwrap();
        assert_eq!(outcome.mismatches(&run), []);
    }
}
