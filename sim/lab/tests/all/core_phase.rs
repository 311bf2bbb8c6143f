//! The core phase: all faults end, some processes stay broken for good, and the others must be served.

use std::time::Duration;

use history::{Rules, VerdictKind};
use lab::museum::{Museum, Mutant, run_with};
use lab::{Arm, Lab, Options, System, Worker, run, schedule, small};
use sim::explore::{Broken, Cause, Causes, RUNS_MAX, explain, shrink};
use sim::faults::{Crash, Cut, Fault, Pause, Rate, Trigger};
use sim::{CorePhase, Draw, Process, Report, Schedule, Sim, Span, Subject};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::share;

const SEEDS: u64 = 400;

/// A schedule of Redlock in which one worker starts in the core phase without one of three nodes.
fn without_a_node() -> Schedule<Options> {
    let worker = Worker {
        name: "a".into(),
        starts: Span::from_secs(2),
        deadline: Span::from_secs(40),
        ..Worker::default()
    };
    let mut schedule = schedule("a node is gone", System::REDLOCK, Span::from_secs(2), vec![worker]);
    schedule.options.redis.nodes = 3;
    schedule.core = Some(CorePhase { crashed: vec!["redis-3".into()], ..CorePhase::at(Span::from_secs(1)) });
    schedule
}

fn at(millis: u64) -> Trigger {
    Trigger::At(Span::from_millis(millis))
}

fn stuck(report: &Report) -> Vec<&str> {
    let stuck = report.verdicts.iter().filter(|verdict| verdict.kind == VerdictKind::Stuck);
    stuck.map(|verdict| verdict.detail.as_str()).collect()
}

#[test]
fn a_lock_that_needs_every_node_is_convicted_only_while_one_is_gone() {
    let gone = without_a_node();
    let convicted = run_with(&gone, Arm::Fenced, 0, Mutant::AllNodes).unwrap();
    // It gives up an owner token with each round, so that each limit that passes is another conviction.
    let details = stuck(&convicted);
    let all_name_the_core = details.iter().all(|detail| detail.ends_with("the core was not served"));
    assert!(!details.is_empty() && all_name_the_core, "{details:?}");
    assert_eq!(stuck(&run(&gone, Arm::Fenced, 0).unwrap()), [""; 0], "a majority is enough");
    let mut healed = gone;
    healed.core = Some(CorePhase::at(Span::from_secs(1)));
    healed.faults.push(Fault::new(at(100), Crash::of("redis-3")));
    let acquitted = run_with(&healed, Arm::Fenced, 0, Mutant::AllNodes).unwrap();
    assert_eq!(stuck(&acquitted), [""; 0], "everything heals");
}

#[test]
fn a_search_finds_the_lock_that_needs_every_node() {
    let subject = Museum::new(Arm::Fenced).with(Mutant::AllNodes).drawing(System::REDLOCK);
    let found = (0..SEEDS).find_map(|seed| {
        let drawn = subject.schedule(&mut Draw::new(seed)).unwrap();
        let causes = Causes::of(&subject, &drawn, &sim::sim::run(&subject, &drawn));
        let is_stuck = |broken: &Broken| *broken == Broken::Verdict(VerdictKind::Stuck);
        let cause = causes.violations.into_iter().find(|cause| is_stuck(&cause.broken))?;
        Some((drawn, cause))
    });
    let (drawn, cause) = found.expect("some core lacks a node");
    let smallest = shrink(&subject, &drawn, &cause, RUNS_MAX).schedule;
    let core = smallest.core.clone().expect("it needs the core phase");
    assert_eq!(core.outside().count(), 1, "{}", smallest.to_toml());
    assert_eq!(smallest.faults, [], "{}", smallest.to_toml());
    let explained = explain(&subject, &smallest, &cause).unwrap().core.unwrap();
    assert!(explained.ends_with("for good (needed)"), "{explained}");
}

/// Returns the subject with the lock that needs every node, and the cause with which a schedule fails for it.
fn needs_every_node(schedule: &Schedule<Options>) -> (Museum, Cause) {
    let subject = Museum::new(Arm::Fenced).with(Mutant::AllNodes);
    let causes = Causes::of(&subject, schedule, &sim::sim::run(&subject, schedule)).violations;
    let [cause] = &causes[..] else { panic!("{causes:?}") };
    (subject, cause.clone())
}

#[test]
fn the_lock_that_needs_every_node_has_no_other_mistake() {
    let subject = Museum::new(Arm::Fenced).with(Mutant::AllNodes).drawing(System::REDLOCK);
    for seed in 0..share(SEEDS) {
        let drawn = subject.schedule(&mut Draw::new(seed)).unwrap();
        for cause in Causes::of(&subject, &drawn, &sim::sim::run(&subject, &drawn)).violations {
            assert_eq!(cause.broken, Broken::Verdict(VerdictKind::Stuck), "seed {seed}");
        }
    }
}

#[test]
fn a_core_phase_shrinks_to_its_earliest_begin() {
    let mut schedule = without_a_node();
    schedule.core.as_mut().unwrap().at = Span::from_nanos(1_234_567_890);
    let (subject, cause) = needs_every_node(&schedule);
    let shrunk = shrink(&subject, &schedule, &cause, RUNS_MAX);
    assert!(shrunk.is_smallest);
    assert_eq!(shrunk.schedule.core.as_ref().unwrap().at, Span::from_millis(1));
    let again = shrink(&subject, &shrunk.schedule, &cause, RUNS_MAX).schedule;
    assert_eq!(again.to_toml(), shrunk.schedule.to_toml());
}

#[test]
fn a_core_phase_that_must_begin_late_shrinks_to_a_whole_step() {
    // The check fails if the server is gone after 2.5005 s, and not before.
    let asks_late = |sim: &mut Sim| {
        asks(3)(sim);
        sim.check("late", |evidence: &sim::sim::Evidence<'_>| {
            let gone = |event: &&history::Event| event.kind.name().as_str() == "process_crashed";
            let late = evidence.events.iter().filter(gone).any(|event| event.at.0 > 2_500_500_000);
            if late { Err("it was".to_owned()) } else { Ok(()) }
        });
    };
    let mut schedule = Schedule::new("late", sim::sim::NoOptions {});
    schedule.core =
        Some(CorePhase { crashed: vec!["one".into()], ..CorePhase::at(Span::from_nanos(4_123_456_789)) });
    let causes = Causes::of(&asks_late, &schedule, &sim::sim::run(&asks_late, &schedule)).violations;
    let cause = causes.into_iter().find(|cause| cause.to_string().contains("late")).unwrap();
    let shrunk = shrink(&asks_late, &schedule, &cause, RUNS_MAX).schedule;
    assert_eq!(shrunk.core.as_ref().unwrap().at, Span::from_millis(2501), "{}", shrunk.to_toml());
    assert_eq!(shrink(&asks_late, &shrunk, &cause, RUNS_MAX).schedule.to_toml(), shrunk.to_toml());
}

#[test]
fn the_sentence_says_which_processes_the_core_phase_leaves_broken() {
    let mut schedule = without_a_node();
    schedule.faults = vec![Fault::new(at(100), Pause::of("redis-1"))];
    let b = Worker { name: "b".into(), starts: Span::ZERO, ..schedule.options.workers[0].clone() };
    schedule.options.workers.push(b);
    schedule.core.as_mut().unwrap().cut.push("b".into());
    let (subject, cause) = needs_every_node(&schedule);
    let sentence = explain(&subject, &schedule, &cause).unwrap().sentence;
    let clauses = [
        "the core phase began at 1.000 with redis-3 crashed and b cut off for good, ",
        "a asked for orders:42 at 2.0",
        ", so the core was not served (a still waited for orders:42 after ",
        "): stuck.",
    ];
    assert!(!sentence.contains("pause of redis-1"), "it was over before a asked: {sentence}");
    let mut rest = sentence.as_str();
    for clause in clauses {
        let (_, after) = rest.split_once(clause).unwrap_or_else(|| panic!("{clause}: {sentence}"));
        rest = after;
    }
    assert_eq!((rest, sentence.contains("a fault struck"), sentence.contains("died")), ("", false, false));
}

#[test]
fn a_core_without_a_server_excuses_no_overtaking() {
    assert!(!lab::excused(&without_a_node(), Arm::Fenced).contains(&VerdictKind::Unfair));
}

#[test]
fn every_fault_ends_when_the_core_phase_begins() {
    let mut schedule = without_a_node();
    schedule.faults = vec![
        Fault::new(at(100), Crash::of("redis-2")),
        Fault::new(at(100), Cut { lasts: Some(Span::from_secs(90)), ..Cut::between("a", "redis-1") }),
        Fault::new(at(100), Rate::of("redis-1", 2.0)),
        Fault::new(at(200), Pause::of("a")),
        Fault::new(at(300), Crash { restart_after: Some(Span::from_millis(100)), ..Crash::of("redis-3") }),
        Fault::new(Trigger::after("a", "granted"), Pause::of("a")),
    ];
    let report = run(&schedule, Arm::Fenced, 0).unwrap();
    let trace = report.trace();
    let healed = |what: &str| trace.lines().any(|line| line.contains("1.000") && line.contains(what));
    for what in ["redis-2", "over: cut", "clock runs true", "resumed"] {
        assert!(healed(what), "{what}: {trace}");
    }
    assert_eq!(report.struck, [true, true, true, true, true, false], "none strikes later");
    assert_eq!(report.summary().grants, 1, "{trace}");
    let last = trace.lines().rfind(|line| line.contains("redis-3")).unwrap();
    assert!(last.contains("1.000") && last.contains("killed"), "{last}");
}

#[test]
fn a_holder_outside_the_core_does_not_block_it() {
    for system in System::of_locks() {
        let worker = |name: &str, starts| Worker {
            name: name.into(),
            starts: Span::from_millis(starts),
            deadline: Span::from_secs(40),
            work: Span::from_millis(3000),
            renew: true,
            ..Worker::default()
        };
        let workers = vec![worker("a", 0), worker("b", 500)];
        let mut schedule = small(system);
        schedule.options.workers = workers;
        for core in [
            CorePhase { crashed: vec!["a".into()], ..CorePhase::at(Span::from_secs(1)) },
            CorePhase { cut: vec!["a".into()], ..CorePhase::at(Span::from_secs(1)) },
        ] {
            schedule.core = Some(core);
            let report = run(&schedule, Arm::Fenced, 0).unwrap();
            let by_b = report.summary().accepted.iter().filter(|write| write.worker.as_str() == "b").count();
            assert_eq!((by_b, stuck(&report).len()), (1, 0), "{system}: {}", report.trace());
        }
    }
}

#[test]
fn one_schedule_in_four_has_a_core_with_a_majority() {
    for (system, servers) in [(System::REDIS, false), (System::REDLOCK, true), (System::ETCD, true)] {
        let lab = Lab::new(Arm::Fenced).drawing(system);
        let schedules: Vec<_> = (0..SEEDS).map(|seed| lab.schedule(&mut Draw::new(seed)).unwrap()).collect();
        let cores: Vec<&CorePhase> = schedules.iter().filter_map(|schedule| schedule.core.as_ref()).collect();
        assert!((SEEDS / 5..SEEDS / 3).contains(&(cores.len() as u64)), "{system}: {}", cores.len());
        let outside =
            |prefix: &str| cores.iter().any(|core| core.outside().any(|name| name.starts_with(prefix)));
        assert_eq!(outside("redis-") || outside("etcd-"), servers, "{system}");
        assert!(
            cores.iter().any(|core| !core.crashed.is_empty())
                && cores.iter().any(|core| !core.cut.is_empty())
        );
        for schedule in &schedules {
            let read = sim::sim::parse(&lab, "drawn", &schedule.to_toml()).unwrap();
            assert_eq!(read, *schedule);
        }
    }
}

/// Asserts that a schedule of three nodes and the workers `a` and `b` is refused with this core.
#[track_caller]
fn refused(core: &str, expected: &str) {
    let workers = "[[worker]]\nname = \"a\"\n[[worker]]\nname = \"b\"\n";
    let fault = "[[fault]]\nwhen = { at = \"5s\" }\nwhat = { crash = \"redis-1\" }\n";
    let head = "system = \"redlock\"\nttl = \"2s\"\n[redis]\nnodes = 3\n";
    let text = format!("{head}{workers}{fault}[core]\n{core}");
    let error = lab::parse("x", &text).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, format!("x:{expected}"), "{core}");
}

#[test]
fn a_core_phase_with_a_mistake_is_refused() {
    let names = "the schedule has a, b, redis-1, redis-2, redis-3, resource";
    let unknown = format!("14: unknown process `redis-4` in `core`: {names}");
    refused("at = \"9s\"\ncrashed = [\"redis-4\"]", &unknown);
    refused("at = \"9s\"\ncrash = []", "14: unknown field `crash`, expected one of `at`, `crashed`, `cut`");
    refused("at = \"90s\"", "13: `at` = 90s is when the run is over (`limit` = 1m)");
    refused("at = \"5s\"", "10: the core phase begins at 5s: no fault strikes then or later");
    let resource = "14: `resource` must be in the core: all writes go there";
    refused("at = \"9s\"\ncut = [\"resource\"]", resource);
    let twice = "15: `a` is outside the core twice: name it once";
    refused("at = \"9s\"\ncrashed = [\"a\"]\ncut = [\"a\"]", twice);
    let nobody = "12: no client is left in the core: somebody must be served";
    refused("at = \"9s\"\ncut = [\"a\", \"b\"]", nobody);
    let minority = "12: no majority of redis-1, redis-2, redis-3 is left in the core: nobody can be served";
    refused("at = \"9s\"\ncut = [\"redis-1\", \"redis-2\"]", minority);
}

/// Three servers that answer each connection, and a client that asks until `needed` of them have answered.
fn asks(needed: usize) -> impl Fn(&mut Sim) + Sync {
    move |sim: &mut Sim| {
        let names = ["one", "two", "three"];
        for name in names {
            sim.service(name, |process: Process| async move {
                let mut listener = process.listen(7).unwrap();
                loop {
                    let (mut stream, _) = listener.accept().await;
                    let _ = stream.write_all(b"!").await;
                }
            });
        }
        sim.quorum(names);
        sim.limit(Duration::from_secs(20))
            .rules(Rules { served_within: Some(Duration::from_secs(3)), ..Rules::default() });
        sim.check("served", |evidence: &sim::sim::Evidence<'_>| {
            let points =
                evidence.events.iter().filter(|event| format!("{:?}", event.kind).contains("served"));
            if points.count() > 0 { Ok(()) } else { Err("nobody was".to_owned()) }
        });
        sim.process("client", move |process: Process| async move {
            process.sleep(Duration::from_secs(5)).await;
            loop {
                let mut answered = 0;
                for name in names {
                    let ask = async {
                        let mut stream = process.connect(&format!("{name}:7")).await.ok()?;
                        stream.read_u8().await.ok()
                    };
                    let late = process.sleep(Duration::from_millis(200));
                    let (ask, late) = (std::pin::pin!(ask), std::pin::pin!(late));
                    let first = futures_util::future::select(ask, late).await;
                    answered +=
                        usize::from(matches!(first, futures_util::future::Either::Left((Some(_), _))));
                }
                if answered >= needed {
                    return process.point("served");
                }
            }
        });
    }
}

#[test]
fn a_world_of_ones_own_has_a_core_phase_if_it_names_a_quorum() {
    let broken = |needed| {
        let subject = asks(needed);
        let drawn = (0..100).map(|seed| subject.schedule(&mut Draw::new(seed)).unwrap());
        let phases = drawn.filter(|schedule| schedule.core.is_some());
        // Without the faults before it, only the phase can break anything.
        let runs: Vec<bool> = phases
            .map(|schedule| sim::sim::run(&subject, &Schedule { faults: Vec::new(), ..schedule }).unwrap())
            .map(|report| !report.findings.is_empty())
            .collect();
        assert!((15..35).contains(&runs.len()), "{}", runs.len());
        runs
    };
    assert!(broken(2).iter().all(|broken| !broken), "two of three are enough");
    assert!(broken(3).iter().all(|broken| *broken), "one of three is gone");
}
