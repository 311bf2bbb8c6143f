//! Probes: what a run counts, what a search lists, and that they cost nothing outside the simulator.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dlock::{Instant, Runtime};
use lab::{Arm, Lab, Options, System, Waiting, Worker, run, schedule};
use sim::explore::{Portfolio, Tally};
use sim::probes::{ProbeKind, Probes, Seen, declared};
use sim::{Process, Report, Schedule, Sim, Span};

use crate::support::{Case, case, corpus};

/// The number of schedules of the short search, which ends when all probes are met.
const SEARCHED: u64 = 2_000;

/// The number of probes that the program has at least.
const PROBES_MIN: usize = 60;

/// Two workers on one Redis, each of which waits until the other's release wakes it.
fn two_workers() -> Schedule<Options> {
    let worker = |name| Worker { rounds: 3, ..Worker::new(name) };
    let workers = ["a", "b"].map(worker).to_vec();
    let mut schedule = schedule("two workers", System::REDIS, Span::from_secs(2), workers);
    schedule.options.redis.waiting = Waiting::Called;
    schedule
}

/// A process that evaluates one probe of each kind three times.
fn counts(sim: &mut Sim) {
    sim.process("a", |process: Process| async move {
        for number in [5, 3, 4] {
            process.sometimes("small", number < 5);
            process.always("positive", number > 0);
            process.closest("near", number);
            process.sleep(Duration::from_millis(1)).await;
        }
        process.reached("the end");
    });
}

fn breaks(sim: &mut Sim) {
    sim.process("a", |process: Process| async move {
        for number in 0..4 {
            process.sleep(Duration::from_secs(1)).await;
            process.always("below two", number < 2);
        }
    });
}

fn run_of(build: fn(&mut Sim)) -> Report {
    let mut sim = Sim::new(1);
    build(&mut sim);
    sim.run().unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sources of the folders `crates`, by their paths.
fn sources(crates: &[&str]) -> BTreeMap<String, String> {
    let mut folders: Vec<PathBuf> = crates.iter().map(|name| root().join(name).join("src")).collect();
    let mut sources = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let name = entry.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                sources.insert(name, std::fs::read_to_string(entry).unwrap());
            }
        }
    }
    sources
}

#[test]
fn a_run_counts_what_its_processes_evaluate() {
    let probes = run_of(counts).probes;
    let (small, near) = (probes.of("small"), probes.of("near"));
    assert_eq!((small.evaluated, small.hit), (3, 2));
    assert_eq!((near.hit, near.last, near.least), (3, Some(4), Some(3)));
    assert_eq!((probes.of("positive").hit, probes.of("the end").hit), (3, 1));
    let end = probes.iter().find(|seen| seen.name == "the end").unwrap();
    assert!(end.file.ends_with("tests/all/probes.rs") && end.kind == ProbeKind::Reached, "{end:?}");
}

#[test]
fn a_run_counts_the_probes_of_lock_and_server() {
    let report = run(&two_workers(), Arm::Fenced, 1).unwrap();
    let hit = |name: &str| report.probes.of(name).hit;
    assert!(hit("woken_by_release") > 0 && hit("validity_within_ttl") >= 6);
    assert!(hit("accepted_token_is_remembered") == 6 && hit("landed_before_expiry_ns") == 6);
    let least = report.probes.of("grant_validity_left_ns").least.unwrap();
    assert!((1_900_000_000..2_000_000_000).contains(&least), "{least}");
}

#[test]
fn an_evaluated_probe_has_the_line_of_its_use() {
    let report = run(&two_workers(), Arm::Fenced, 1).unwrap();
    let sources = sources(&["dlock", "resource", "sim", "dlock/zookeeper"]);
    let evaluated = report.probes.iter().filter(|seen| seen.count.evaluated > 0);
    for seen in evaluated {
        let line = sources[seen.file].lines().nth(seen.line as usize - 1).unwrap();
        assert!(line.contains("!("), "{seen}: {line}");
    }
}

#[test]
fn probes_that_no_run_reached_are_listed() {
    let probes = Probes::default();
    assert_eq!(probes.iter().count(), declared().count());
    let kept: BTreeSet<_> = probes.iter().filter(|seen| seen.kept.is_some()).map(|seen| seen.name).collect();
    let unmet: BTreeSet<_> = probes.unmet().iter().map(|seen| seen.name).collect();
    assert_eq!(unmet.len() + kept.len(), declared().count());
    assert!(unmet.is_disjoint(&kept) && unmet.contains("reply_lost_after_grant"), "{unmet:?}");
    let evaluated = run(&two_workers(), Arm::Fenced, 1).unwrap().probes;
    let missed = |name: &str| evaluated.unmet().iter().any(|seen| seen.name == name);
    assert!(missed("reply_lost_after_grant"), "evaluated or not, it was not hit");
    assert!(!missed("validity_within_ttl") && !missed("woken_by_release"));
}

#[test]
fn a_probe_that_a_search_may_miss_is_reached_by_its_schedule() {
    let nothing = Probes::default();
    let mut missed = Vec::new();
    for seen in nothing.iter() {
        let Some(kept) = seen.kept else { continue };
        if !case(kept).runs().any(|(_, report)| report.probes.of(seen.name).hit > 0) {
            missed.push(format!("seeds/{kept}.toml does not reach {}", seen.name));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn kept_schedules_and_a_short_search_meet_every_probe() {
    let mut kept = Probes::default();
    for (_, report) in corpus().iter().flat_map(Case::runs) {
        kept.add(&report.probes);
    }
    for (_, schedule) in lab::corpus::load(&root().join("seeds/museum")).unwrap() {
        kept.add(&lab::museum::run(&schedule, Arm::Fenced, schedule.seed).unwrap().probes);
    }
    // The laboratory uses a part of PostgreSQL's protocol: the tests of the simulated server use the rest.
    let is_of_lab = |seen: &Seen<'_>| !seen.file.contains("servers/postgres/");
    let missed = |searched: &Probes| -> Vec<_> {
        let mut probes = kept.clone();
        probes.add(searched);
        let unmet = probes.iter().filter(|seen| !seen.is_met() && is_of_lab(seen));
        unmet.map(|seen| seen.name.to_owned()).collect()
    };
    let go_on = |tally: &Tally| !missed(&tally.probes).is_empty();
    let found = sim::explore::explore(&Lab::arms(), 0..SEARCHED, &Portfolio::default(), 2, go_on).unwrap();
    let missed = missed(&found.tally.probes);
    assert!(missed.is_empty(), "keep a schedule that meets it, or remove the probe: {}", missed.join(", "));
}

#[test]
fn an_always_that_fails_is_a_finding_of_the_run() {
    let report = run_of(breaks);
    let [finding] = &report.findings[..] else { panic!("once: {:?}", report.findings) };
    assert_eq!(finding.check, "below two");
    assert!(finding.problem.starts_with("at 3.0"), "{}", finding.problem);
    assert_eq!((report.probes.of("below two").evaluated, report.probes.of("below two").hit), (4, 2));
    assert!(run_of(counts).findings.is_empty());
}

#[test]
fn a_search_reports_an_always_that_fails() {
    let folder = std::env::temp_dir().join(format!("sim-probes-{}", std::process::id()));
    let failure = sim::check("below_two", breaks).schedules(5).keep_in(&folder).find().unwrap().unwrap();
    let _ = std::fs::remove_dir_all(folder);
    assert!(failure.problems[0].starts_with("below two: at "), "{:?}", failure.problems);
    let found =
        sim::explore::explore(&[breaks as fn(&mut Sim)], 0..3, &Portfolio::default(), 1, |_| true).unwrap();
    assert!(found.tally.violations > 0);
    assert!(found.violations[0].findings[0].starts_with("below two: "));
}

#[test]
fn the_same_seed_gives_the_same_counts() {
    let seen = |seed| {
        let probes = lab::run(&two_workers(), Arm::Fenced, seed).unwrap().probes;
        probes.iter().map(|seen| format!("{seen} {:?}", seen.count)).collect::<Vec<_>>()
    };
    assert_eq!(seen(3), seen(3));
    assert_ne!(seen(3), seen(4), "the graded ones differ");
}

#[test]
fn a_search_sums_probes_alike_on_one_thread_and_on_two() {
    let sum = |threads| {
        let arms = Lab::arms().map(|lab| lab.drawing(System::REDIS));
        let found = sim::explore::explore(&arms, 0..12, &Portfolio::default(), threads, |_| true).unwrap();
        let probes = found.tally.probes;
        assert!(probes.of("validity_within_ttl").evaluated > 24);
        probes.iter().map(|seen| format!("{seen} {:?}", seen.count)).collect::<Vec<_>>()
    };
    assert_eq!(sum(1), sum(2));
}

#[test]
fn probes_are_no_part_of_the_trace() {
    fn sleeps(sim: &mut Sim) {
        sim.process("a", |process: Process| async move {
            for _ in 0..3 {
                process.sleep(Duration::from_millis(1)).await;
            }
        });
    }
    assert_eq!(run_of(counts).hash, run_of(sleeps).hash);
}

#[test]
fn every_probe_has_a_name_of_its_own_and_a_sentence() {
    let names: BTreeSet<_> = declared().map(|probe| probe.name).collect();
    assert_eq!(names.len(), declared().count(), "two probes share a name");
    assert!(names.len() >= PROBES_MIN, "{}", names.len());
    for probe in declared() {
        assert!(probe.about.trim().ends_with('.'), "{probe:?}");
    }
    let order = || declared().map(|probe| probe.name).collect::<Vec<_>>();
    assert_eq!(order(), order());
}

#[test]
fn every_probe_in_the_sources_is_listed_and_evaluated_in_its_file() {
    let sources = sources(&["dlock", "resource", "sim", "dlock/zookeeper"]);
    let files: BTreeSet<_> = declared().map(|probe| probe.file).collect();
    let declaring = sources.iter().filter(|(_, text)| text.lines().any(|line| line.starts_with("probes! {")));
    assert_eq!(declaring.map(|(file, _)| file.as_str()).collect::<BTreeSet<_>>(), files);
    for probe in declared() {
        // In its declaration, and where it is evaluated.
        let is_word =
            |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == probe.name);
        let lines = sources[probe.file].lines().filter(|line| is_word(line)).count();
        assert!(lines >= 2, "{} is never evaluated", probe.name);
    }
}

/// A runtime that takes the defaults of the seam, as a live one does.
#[derive(Clone)]
struct Live;

impl Runtime for Live {
    type Stream = tokio::io::Empty;

    fn now(&self) -> Instant {
        Instant::from_nanos(0)
    }

    async fn sleep_until(&self, _: Instant) {}

    async fn connect(&self, _: &str) -> std::io::Result<Self::Stream> {
        Ok(tokio::io::empty())
    }

    fn spawn(&self, _: impl Future<Output = ()> + Send + 'static) {}

    fn fill_random(&self, _: &mut [u8]) {}
}

#[test]
fn a_live_runtime_evaluates_no_condition() {
    let probe = declared().next().unwrap();
    Live.probe(probe, line!(), || panic!("evaluated"));
    // The seam adds no state to a runtime, and none to a service.
    assert_eq!(size_of::<Live>() + size_of::<()>(), 0);
    let live = sources(&["real"]);
    let overriding = live.iter().filter(|(_, text)| text.contains("fn probe(")).map(|(file, _)| file);
    assert_eq!(overriding.collect::<Vec<_>>(), [""; 0], "a live seam hears of no probe");
}

#[test]
fn explore_fails_on_demand_while_probes_are_unmet() {
    let explore = |more: &[&str]| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("probes");
        let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
        command.args(["explore", "--seeds", "3", "--out", out.to_str().unwrap()]).args(more);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = explore(&[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("probes: ") && text.contains("never hit:"), "{text}");
    let (code, text) = explore(&["--probes"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("unmet: "), "{text}");
}

#[test]
fn a_probe_prints_its_place_and_sentence() {
    let probes = Probes::default();
    let seen: Seen<'_> = probes.iter().find(|seen| seen.name == "reply_lost_after_grant").unwrap();
    let text = seen.to_string();
    assert!(text.starts_with("reached reply_lost_after_grant (dlock/src/redis/acquisition.rs:"), "{text}");
    assert!(text.ends_with("the reply was lost after the grant."), "{text}");
}
