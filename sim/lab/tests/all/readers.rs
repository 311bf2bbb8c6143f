//! Locks for readers and a writer: readers are inside together and never beside a writer, a writer is served
//! however many readers come, and the locks are acquitted on drawn schedules.

use std::collections::BTreeSet;

use history::Name;
use lab::museum::{Museum, Mutant};
use lab::{Arm, Lab, Options, System, Worker, run, schedule};
use sim::explore::{Portfolio, explore};
use sim::{Draw, Kind, Report, Schedule, Span, Subject};

use crate::support::share;

/// The systems whose locks can have readers.
const SYSTEMS: [System; 3] = [System::REDIS, System::ETCD, System::ZOOKEEPER];

fn millis(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn reader(name: &str, starts: u64, work: u64) -> Worker {
    Worker { shared: true, starts: millis(starts), work: millis(work), ..Worker::new(name) }
}

fn writer(name: &str, starts: u64) -> Worker {
    Worker { starts: millis(starts), work: millis(200), ..Worker::new(name) }
}

fn with(system: System, workers: Vec<Worker>) -> Schedule<Options> {
    let mut schedule = schedule("Readers and a writer", system, Span::from_secs(2), workers);
    schedule.options.readers = true;
    schedule
}

/// Returns the names of the workers in the order in which they entered and left.
fn moves(report: &Report) -> Vec<String> {
    let name = |event: &history::Event| match &event.kind {
        Kind::SectionEntered { .. } => Some(format!("+{}", event.process)),
        Kind::SectionLeft { .. } => Some(format!("-{}", event.process)),
        _ => None,
    };
    report.events.iter().filter_map(name).collect()
}

/// Returns the tokens in the order of the grants, with their processes.
fn grants(report: &Report) -> Vec<(&Name, u64)> {
    let grant = |event: &'_ history::Event| match event.kind {
        Kind::LeaseAcquired { token, .. } => Some(token),
        _ => None,
    };
    report.events.iter().filter_map(|event| Some((&event.process, grant(event)?))).collect()
}

#[test]
fn readers_are_inside_together_and_the_writer_alone() {
    for system in SYSTEMS {
        let workers = vec![reader("p", 0, 600), reader("q", 40, 500), writer("w", 80), reader("r", 500, 100)];
        let report = run(&with(system, workers), Arm::Unfenced, 1).unwrap();
        assert_eq!(report.kinds(), [].into(), "{system}:\n{}", report.trace());
        let moves = moves(&report);
        let order = ["+p", "+q", "-q", "-p", "+w", "-w", "+r", "-r"];
        assert_eq!(moves, order, "{system}:\n{}", report.trace());
        // The writer's token is above those of the readers before it, and below that of the one after it.
        let tokens: Vec<u64> = grants(&report).iter().map(|(_, token)| *token).collect();
        assert!(tokens.is_sorted_by(|one, next| one < next), "{system}: {tokens:?}");
    }
}

#[test]
fn the_servers_tell_of_each_reader() {
    for system in SYSTEMS {
        let workers = vec![reader("p", 0, 600), reader("q", 40, 500), writer("w", 80)];
        let report = run(&with(system, workers), Arm::Unfenced, 1).unwrap();
        let count =
            |wanted: fn(&Kind) -> bool| report.events.iter().filter(|event| wanted(&event.kind)).count();
        let grants = count(|kind| matches!(kind, Kind::KeyGranted { token: Some(_), .. }));
        let ends = count(|kind| matches!(kind, Kind::KeyDeleted { .. }));
        let shared = count(|kind| matches!(kind, Kind::LeaseShared { .. }));
        assert_eq!((grants, ends, shared), (3, 3, 2), "{system}:\n{}", report.trace());
    }
}

#[test]
fn the_readers_behind_a_writer_that_gives_up_go_in() {
    for system in SYSTEMS {
        let mut writer = writer("w", 50);
        writer.deadline = millis(600);
        let workers = vec![reader("p", 0, 3000), writer, reader("q", 200, 100), reader("r", 250, 100)];
        let report = run(&with(system, workers), Arm::Unfenced, 1).unwrap();
        assert_eq!(report.kinds(), [].into(), "{system}:\n{}", report.trace());
        let moves = moves(&report);
        assert_eq!((moves.len(), moves.last().map(String::as_str)), (6, Some("-p")), "{system}: {moves:?}");
        let inside = |kind: &Kind| matches!(kind, Kind::SectionEntered { .. });
        let times =
            report.events.iter().filter(|event| inside(&event.kind)).map(|event| event.at.0 / 1_000_000);
        let times: Vec<u64> = times.collect();
        // They don't wait for the time for which a writer bars readers on Redis, which is 2.5 s here.
        assert!(times[1..].iter().all(|at| (600..2600).contains(at)), "{system}: {times:?}");
    }
}

#[test]
fn a_dead_writer_that_waited_bars_readers_for_a_while() {
    let text = "about = \"x\"\nsystem = \"redis\"\nttl = \"2s\"\nreaders = true\n\
                [[worker]]\nname = \"p\"\nshared = true\nwork = \"5s\"\nrenew = true\n\
                [[worker]]\nname = \"w\"\nstarts = \"50ms\"\n\
                [[worker]]\nname = \"q\"\nstarts = \"300ms\"\nshared = true\n\
                [[fault]]\nwhen = { at = \"100ms\" }\nwhat = { crash = \"w\" }\n";
    let report = run(&lab::parse("x.toml", text).unwrap(), Arm::Unfenced, 1).unwrap();
    assert_eq!(report.kinds(), [].into(), "{}", report.trace());
    assert_eq!(moves(&report), ["+p", "+q", "-q", "-p"], "{}", report.trace());
}

#[test]
fn a_reader_that_nobody_releases_expires_at_its_server() {
    let mut schedule = with(System::REDIS, vec![reader("p", 0, 10)]);
    schedule.options.workers[0].release = lab::ReleaseMode::None;
    let report = run(&schedule, Arm::Unfenced, 1).unwrap();
    let is_expired = |event: &history::Event| matches!(event.kind, Kind::KeyExpired { owner: Some(_), .. });
    let at = report.events.iter().find(|event| is_expired(event)).map(|event| event.at.0 / 1_000_000);
    let at = at.unwrap_or_else(|| panic!("it expires:\n{}", report.trace()));
    assert!((2000..2400).contains(&at), "at {at} ms:\n{}", report.trace());
}

/// The twins of these mistakes are the library's locks.
#[test]
fn locks_with_readers_are_acquitted_on_drawn_schedules() {
    for (mutant, system) in
        [(Mutant::EternalReaders, System::REDIS), (Mutant::ReaderBehindReader, System::ETCD)]
    {
        let museum = Museum::new(Arm::Fenced).with(mutant).twin().drawing(system);
        let found =
            explore(&[museum], 0..share(200), &Portfolio::default(), 1, |tally| tally.violations == 0)
                .unwrap();
        assert_eq!(found.tally.violations, 0, "{system}: {:?}", found.violations);
    }
}

/// Returns the drawn schedules of the laboratory itself that have readers, on `system`.
fn drawn(system: System, seeds: std::ops::Range<u64>) -> impl Iterator<Item = Schedule<Options>> {
    let drawn = move |seed| Lab::new(Arm::Fenced).drawing(system).schedule(&mut Draw::new(seed)).unwrap();
    seeds.map(drawn).filter(|schedule| schedule.options.readers)
}

#[test]
fn searches_draw_readers_and_writers() {
    for system in SYSTEMS {
        let mut kinds = BTreeSet::new();
        for schedule in drawn(system, 0..100) {
            kinds.extend(schedule.options.workers.iter().map(|worker| worker.shared));
        }
        assert_eq!(kinds, [false, true].into(), "{system}");
    }
}

#[test]
fn readers_that_no_lock_has_are_refused() {
    let parsed = |system: &str, more: &str, worker: &str| {
        let text = format!(
            "about = \"x\"\nsystem = \"{system}\"\nttl = \"2s\"\n{more}\n[[worker]]\nname = \"a\"\n{worker}\n"
        );
        lab::parse("x.toml", &text).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(parsed("redis", "readers = true", "shared = true"), Ok(()));
    assert_eq!(parsed("zookeeper", "readers = true", ""), Ok(()));
    for (system, more, worker, why) in [
        ("redis", "", "shared = true", "`shared` of `a` needs the schedule's `readers = true`"),
        ("redis", "readers = true\npermits = 2", "", "a semaphore has no readers"),
        ("redlock", "readers = true\nredis = { nodes = 3 }", "", "`redlock` has no locks with readers"),
        (
            "etcd",
            "readers = true\netcd = { recipe = \"service\" }",
            "",
            "recipe = \"service\" has no readers",
        ),
        ("redis", "readers = true", "release = \"get-del\"", "deletes the key of a mutex"),
        ("redis", "readers = true", "shared = true\nmode = \"several\"", "locked for writing together"),
        ("redis", "readers = true", "shared = true\nmode = \"read\"", "`shared` does not apply"),
    ] {
        let error = parsed(system, more, worker).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
