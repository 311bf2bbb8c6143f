//! The long run, shortened: it has violations without fencing and none with it. Its judgement excuses only
//! verdicts that a fault explains.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use history::text::Names;
use history::{Effect, Event, Kind, Nanos, VerdictKind};
use picture::{Picture, Role, Run, SpanKind};
use real::chaos::{Configuration, Fault, FaultKind, Plan};
use real::judgement::{DATA_LOST, Judgement};
use real::primitive::Primitive;
use real::record::Record;
use real::recording::read;
use real::servers::Stage;
use real::systems::System;
use real::tokens::Tokens;
use resource::Fencing;
use serde_json::Value;

fn configuration(seed: u64) -> Configuration {
    Configuration {
        system: Some(System::Redis),
        fence: Fencing::On,
        seed,
        lasts: Duration::from_secs(600),
        every: Duration::from_secs(3),
        faults: vec![FaultKind::PauseWorker, FaultKind::CutLink, FaultKind::Failover, FaultKind::MoveLeader],
        workers: 4,
        keys: 1,
        primitive: Primitive::Mutex,
        record: Record::Resource,
        tokens: Tokens::Counter,
        ttl: Duration::from_secs(1),
        work: Duration::from_millis(50),
        raise: false,
    }
}

#[test]
fn a_plan_is_drawn_from_its_seed_alone() {
    let plan = Plan::draw(&configuration(7));
    assert_eq!(plan, Plan::draw(&configuration(7)));
    assert_ne!(plan, Plan::draw(&configuration(8)));
    assert!((150..=250).contains(&plan.faults.len()), "one in three seconds: {}", plan.faults.len());
    let kinds = |kind| plan.faults.iter().filter(|planned| planned.fault.kind() == kind).count();
    assert!(kinds(FaultKind::PauseWorker) > 30 && kinds(FaultKind::CutLink) > 30, "{plan}");
    assert!(kinds(FaultKind::Failover) > 30, "{plan}");
    assert_eq!(kinds(FaultKind::MoveLeader), 0, "a Redis has no leader to move");
    assert_eq!(kinds(FaultKind::KillWorker), 0, "not among the chosen kinds");
}

#[test]
fn a_victim_has_one_fault_at_a_time() {
    let plan = Plan::draw(&Configuration { every: Duration::from_millis(300), ..configuration(1) });
    let pauses =
        |worker| plan.faults.iter().filter(move |planned| planned.fault == Fault::PauseWorker { worker });
    for worker in 0..4 {
        let ends = pauses(worker).map(|planned| planned.at_ms + planned.lasts_ms);
        assert!(ends.zip(pauses(worker).skip(1)).all(|(end, next)| end < next.at_ms), "{plan}");
    }
    assert!(
        plan.faults.iter().all(|planned| planned.at_ms + planned.lasts_ms < 600_000),
        "all heal before the end"
    );
}

/// Runs `chaos` with paused workers and cut links, half of which outlast the TTL. Returns its report, and
/// true if the result was as expected.
fn short_run(fence: &str, folder: &Path) -> (Value, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args([
        "chaos",
        "--system",
        "redis",
        "--faults",
        "pause-worker,cut-link",
        "--workers",
        "2",
        "--seed",
        "102",
    ]);
    command.args(["--for", "15s", "--every", "700ms", "--work", "150ms", "--fence", fence, "--out"]);
    let output = command.arg(folder).output().unwrap();
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let folder = folder.join(format!("redis-{fence}-102"));
    let report = std::fs::read(folder.join("report.json")).expect(&printed);
    let report: Value = serde_json::from_slice(&report).unwrap();
    // The report agrees with a judgement of the history file.
    let history = read(&[folder.join("history.jsonl")]).unwrap();
    let judgement = Judgement::of(&history.events, false, None);
    assert_eq!(report["grants"], judgement.summary.grants, "{printed}");
    assert_eq!(report["events"], history.events.len(), "{printed}");
    let plan: Value = serde_json::from_slice(&std::fs::read(folder.join("plan.json")).unwrap()).unwrap();
    let applied = history.events.iter().filter(|event| matches!(event.kind, Kind::FaultApplied { .. }));
    assert_eq!(plan["faults"].as_array().unwrap().len(), applied.count(), "{printed}");
    drawn_as_what_they_are(&history.events);
    println!("{printed}");
    (report, output.status.success())
}

/// Checks that the picture has a bar for each pause in the lane of its worker, and one for each cut link.
fn drawn_as_what_they_are(events: &[Event]) {
    let drawn = Picture::of(&Run {
        title: "run",
        about: "",
        events,
        names: &Names::default(),
        findings: &[],
        messages: &[],
        roles: &BTreeMap::new(),
    });
    let struck = |wanted: fn(&Effect) -> bool| {
        let is_wanted = |kind: &Kind| matches!(kind, Kind::FaultApplied { effect, .. } if wanted(effect));
        events.iter().filter(|event| is_wanted(&event.kind)).count()
    };
    let bars = |kind| drawn.spans.iter().filter(move |span| span.kind == kind);
    let (pauses, links) = (struck(|effect| *effect == Effect::Pause), struck(is_link));
    assert!(pauses > 0 && links > 0, "{pauses} pauses, {links} links");
    assert_eq!((bars(SpanKind::Pause).count(), bars(SpanKind::Link).count()), (pauses, links));
    let role = |lane: usize| drawn.lanes[lane].role;
    assert!(bars(SpanKind::Pause).all(|span| role(span.lane) == Role::Worker));
    assert!(bars(SpanKind::Link).all(|span| role(span.lane) == Role::Links));
}

const fn is_link(effect: &Effect) -> bool {
    matches!(effect, Effect::Link { .. })
}

#[test]
fn writes_are_lost_only_without_fencing() {
    let stage = Stage::new().unwrap();
    let (off, as_expected) = short_run("off", stage.directory());
    assert!(as_expected, "{off}");
    assert!(off["verdicts"]["stale_write"]["all"].as_u64().unwrap() > 0, "{off}");
    assert_eq!(off["writes_refused"], 0, "{off}");
    let (on, as_expected) = short_run("on", stage.directory());
    assert!(as_expected, "{on}");
    let refused = on["writes_refused"].as_u64().unwrap() + on["claims_refused"].as_u64().unwrap();
    assert!(refused > 0, "{on}");
    let kinds = on["verdicts"].as_object().unwrap().keys();
    assert!(kinds.into_iter().all(|kind| kind == "overlap"), "{on}");
}

/// Runs `chaos` with fencing and a Redis that loses its data once, for longer than a holder holds on. Returns
/// its report, and true if the result was as expected.
fn run_that_loses_a_counter(raise: bool, folder: &Path) -> (Value, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(["chaos", "--system", "redis", "--faults", "lose-data", "--workers", "2", "--work", "20ms"]);
    command
        .args(["--seed", LOSS_SEED, "--for", "14s", "--every", "8s", "--fence", "on", "--out"])
        .arg(folder);
    // A variable of this command is none of its workers': their Redis has no password.
    command.env("DLOCK_PASSWORD", "unused");
    let output = command.args(raise.then_some("--raise")).output().unwrap();
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let report = std::fs::read(folder.join(format!("redis-on-{LOSS_SEED}/report.json"))).expect(&printed);
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["faults"]["lose-data"], 1, "{printed}");
    println!("{printed}");
    (report, output.status.success())
}

/// Its plan loses the data once, late, and for longer than the TTL.
const LOSS_SEED: &str = "6";

#[test]
fn writes_go_on_only_after_a_lost_counter_is_raised() {
    let without = Stage::new().unwrap();
    let (report, _) = run_that_loses_a_counter(false, without.directory());
    let since = &report["since_data_lost"];
    assert_eq!(since["accepted"], 0, "{report}");
    assert!(since["refused"].as_u64().unwrap() >= 2, "each worker was granted the lock again: {report}");

    let with = Stage::new().unwrap();
    let (report, as_expected) = run_that_loses_a_counter(true, with.directory());
    assert!(as_expected, "{report}");
    let since = |what: &str| report["since_data_lost"][what].as_u64().unwrap();
    assert!(since("accepted") >= 2, "{report}");
    // A counter that catches up by itself costs a hundred refusals.
    assert!(since("refused") <= 2, "only a grant of each worker from before the raise is refused: {report}");
    let kinds = report["verdicts"].as_object().unwrap().keys();
    assert!(kinds.into_iter().all(|kind| kind == "overlap" || kind == "token_regressed"), "{report}");
}

#[test]
fn every_kind_of_fault_strikes_and_heals() {
    let stage = Stage::new().unwrap();
    for system in ["redis", "redlock", "etcd", "zookeeper"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
        command.args(["chaos", "--system", system, "--for", "12s", "--every", "500ms", "--ttl", "500ms"]);
        let output = command.arg("--out").arg(stage.directory()).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
        assert!(printed.contains("no violation"), "{printed}");
    }
}

#[test]
fn workers_take_their_tokens_from_the_source_of_the_run() {
    let stage = Stage::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(["chaos", "--system", "redis", "--tokens", "server-time", "--faults", "pause-worker"]);
    command.args(["--workers", "2", "--for", "5s", "--every", "500ms", "--work", "20ms", "--out"]);
    let output = command.arg(stage.directory()).output().unwrap();
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("redis, tokens server-time, fencing on, seed 1"), "{printed}");
    let folder = stage.directory().join("redis-tokens-server-time-on-1");
    let report = std::fs::read(folder.join("report.json")).expect(&printed);
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["configuration"]["tokens"], "server-time", "{report}");
    assert!(report["command"].as_str().unwrap().ends_with(" --tokens server-time"), "{report}");
    let history = read(&[folder.join("history.jsonl")]).unwrap();
    let token = |event: &Event| match event.kind {
        Kind::LeaseAcquired { token, .. } => Some(token),
        _ => None,
    };
    let tokens: Vec<u64> = history.events.iter().filter_map(token).collect();
    // Microseconds since 1970: a counter does not get there.
    assert!(tokens.len() > 1 && tokens.iter().all(|token| *token > 1_600_000_000_000_000), "{tokens:?}");
}

#[test]
fn the_default_tokens_are_not_named() {
    let plain = configuration(1);
    assert!(serde_json::to_value(&plain).unwrap().get("tokens").is_none());
    assert!(!plain.command().contains("--tokens"));
}

fn event(at: u64, process: &str, kind: Kind) -> Event {
    Event { at: Nanos(at), process: process.into(), kind }
}

/// Returns a history: a grant of token 2, the event `between`, and a grant of token 1.
fn regress(between: Kind) -> Vec<Event> {
    let granted = |token| Kind::LeaseAcquired {
        resource_type: None,
        key: "k".into(),
        owner: "o".into(),
        token,
        ttl_millis: None,
        valid_micros: None,
    };
    let asked =
        || Kind::LeaseRequested { resource_type: None, key: "k".into(), owner: "o".into(), ttl_millis: None };
    vec![
        event(1, "a", asked()),
        event(2, "a", granted(2)),
        event(3, "redis-1", between),
        event(4, "b", asked()),
        event(5, "b", granted(1)),
    ]
}

#[test]
fn a_token_may_regress_only_after_a_servers_data_loss() {
    let stopped = |detail: &str| Kind::ServerStopped { detail: Some(detail.into()) };
    let promoted = Kind::ServerPromoted { detail: None };
    for (between, explained) in [(stopped(DATA_LOST), true), (promoted, true), (stopped("killed"), false)] {
        let judgement = Judgement::of(&regress(between.clone()), false, None);
        assert_eq!(judgement.verdicts.len(), 1, "{judgement}");
        assert_eq!(judgement.verdicts[0].kind, VerdictKind::TokenRegressed);
        assert_eq!(judgement.is_clean(false), explained, "{between:?}: {judgement}");
        assert!(!judgement.is_clean(true), "{judgement}");
        assert_eq!(judgement.to_string().contains("explained"), explained, "{judgement}");
    }
}

#[test]
fn data_loss_before_or_after_both_grants_explains_no_regress() {
    let stopped = || Kind::ServerStopped { detail: Some(DATA_LOST.into()) };
    let started = || Kind::ServerStarted { detail: None };
    // A loss after both grants, and one that is over before them.
    let mut late = regress(started());
    late.push(event(6, "redis-1", stopped()));
    assert!(!Judgement::of(&late, false, None).is_clean(false));
    let mut early = regress(started());
    early.insert(0, event(0, "redis-1", stopped()));
    early.insert(1, event(0, "redis-1", started()));
    assert!(!Judgement::of(&early, false, None).is_clean(false));
    // An acquire that began while the server lost its data may have been granted before the loss or after it.
    early.remove(1);
    assert!(Judgement::of(&early, false, None).is_clean(false));
}

/// Returns a history: a job is due, the event `between`, and a worker that asks then finds none left.
fn lose_a_job(between: Kind) -> Vec<Event> {
    let asked = Kind::WorkerStep { step: "asked".into(), key: Some("k".into()), owner: None };
    vec![
        event(1, "a", Kind::TaskDue { key: "k".into(), task: 7 }),
        event(3, "redis-1", between),
        event(4, "redis-1", Kind::ServerStarted { detail: None }),
        event(5, "b", asked),
        event(6, "b", Kind::TasksPassed { key: "k".into(), task: u64::MAX, outcome: Some("done".into()) }),
    ]
}

#[test]
fn a_job_may_be_lost_only_with_a_servers_data() {
    let stopped = |detail: &str| Kind::ServerStopped { detail: Some(detail.into()) };
    let promoted = Kind::ServerPromoted { detail: None };
    for (between, explained) in [(stopped(DATA_LOST), true), (promoted, true), (stopped("killed"), false)] {
        let judgement = Judgement::of(&lose_a_job(between.clone()), false, None);
        assert_eq!(judgement.verdicts.len(), 1, "{judgement}");
        assert_eq!(judgement.verdicts[0].kind, VerdictKind::TaskLost);
        assert_eq!(judgement.is_clean(false), explained, "{between:?}: {judgement}");
    }
    // The resource keeps the ticks of a cron: one that is lost by itself is explained by no lock server.
    let mut tick = lose_a_job(stopped(DATA_LOST));
    if let Some(Event { kind: Kind::TasksPassed { task, .. }, .. }) = tick.last_mut() {
        *task = 7;
    }
    let judgement = Judgement::of(&tick, false, None);
    assert_eq!(judgement.verdicts.len(), 1, "{judgement}");
    assert!(!judgement.is_clean(false), "{judgement}");
    // A loss that was over before the job was due explains nothing.
    let mut early = lose_a_job(Kind::ServerStarted { detail: None });
    early.insert(0, event(0, "redis-1", stopped(DATA_LOST)));
    early.insert(1, event(0, "redis-1", Kind::ServerStarted { detail: None }));
    assert!(!Judgement::of(&early, false, None).is_clean(false));
}

/// Returns a history of two calls of a single-flight: b waited for the lock, and computes what a has stored.
fn compute_again() -> Vec<Event> {
    let started = || Kind::FlightStarted { key: "k".into(), above: 0 };
    let computes = |token| Kind::ComputationStarted { key: "k".into(), token };
    let granted = |owner: &str, token| Kind::LeaseAcquired {
        resource_type: None,
        key: "k".into(),
        owner: owner.into(),
        token,
        ttl_millis: None,
        valid_micros: None,
    };
    let (key, owner) = ("k".into(), Some("a:1".into()));
    let accepted = Kind::WriteAccepted { key, owner, token: 1, seq: None, version: 1, body: None };
    vec![
        event(1, "a", started()),
        event(1, "b", started()),
        event(2, "a", granted("a:1", 1)),
        event(3, "a", computes(1)),
        event(4, "resource", accepted),
        event(5, "b", granted("b:2", 2)),
        event(6, "b", computes(2)),
    ]
}

#[test]
fn flights_are_judged_with_the_history_of_the_resource() {
    let of_flights = [VerdictKind::ComputedTwice, VerdictKind::UnstoredResult, VerdictKind::OldResult];
    let left_out = |judgement: &Judgement| {
        let kinds = judgement.not_judged.iter().map(|not_judged| not_judged.kind);
        kinds.filter(|kind| of_flights.contains(kind)).count()
    };
    let mut history = compute_again();
    let judgement = Judgement::of(&history, false, None);
    assert_eq!(judgement.verdicts.len(), 1, "{judgement}");
    assert_eq!(judgement.verdicts[0].kind, VerdictKind::ComputedTwice);
    assert!(!judgement.is_clean(false) && left_out(&judgement) == 0, "{judgement}");
    history.retain(|event| event.process.as_str() != "resource");
    let judgement = Judgement::of(&history, false, None);
    assert!(judgement.verdicts.is_empty() && left_out(&judgement) == 3, "{judgement}");
}
