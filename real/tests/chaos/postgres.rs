//! The long run with ticks and jobs on PostgreSQL: its plan strikes the database, and each task takes effect
//! once.

use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use real::chaos::{Configuration, FaultKind, Plan};
use real::judgement::Judgement;
use real::primitive::Primitive;
use real::record::Record;
use real::recording::read;
use real::servers::Stage;
use real::systems::System;
use real::tokens::Tokens;
use resource::Fencing;
use serde_json::Value;

/// Returns a run on Redis with all faults, whose record is the resource.
fn with_resource() -> Configuration {
    Configuration {
        system: Some(System::Redis),
        fence: Fencing::On,
        seed: 7,
        lasts: Duration::from_secs(600),
        every: Duration::from_secs(3),
        faults: FaultKind::value_variants().to_vec(),
        workers: 4,
        keys: 1,
        primitive: Primitive::Jobs,
        record: Record::Resource,
        tokens: Tokens::Counter,
        ttl: Duration::from_secs(1),
        work: Duration::from_millis(50),
        raise: false,
    }
}

#[test]
fn a_plan_strikes_the_postgres_that_keeps_the_record() {
    let with_resource = with_resource();
    let on_postgres = Configuration {
        system: None,
        record: Record::Postgres,
        primitive: Primitive::Jobs,
        ..with_resource.clone()
    };
    let kinds: Vec<_> = on_postgres.kinds().map(FaultKind::name).collect();
    assert_eq!(
        kinds,
        [
            "pause-worker",
            "kill-worker",
            "cut-link",
            "slow-link",
            "reset-link",
            "pause-postgres",
            "kill-postgres"
        ]
    );
    let plan = Plan::draw(&on_postgres);
    let count = |wanted| plan.faults.iter().filter(|planned| planned.fault.kind() == wanted).count();
    assert!(count(FaultKind::PausePostgres) > 5 && count(FaultKind::KillPostgres) > 5, "{plan}");
    assert!(plan.to_string().contains("PostgreSQL cut"), "{plan}");
    assert!(!plan.to_string().contains("server"), "{plan}");
    let command = on_postgres.command();
    assert!(command.starts_with("real chaos --fence on"), "{command}");
    assert!(command.ends_with("--primitive jobs --record postgres"), "{command}");
    // A run with the resource has the plan that it had before.
    assert!(with_resource.kinds().all(|kind| !kind.name().contains("postgres")));
}

/// Runs `chaos` with ticks or jobs on PostgreSQL, which is paused and killed; returns its report.
fn run_on_postgres(flags: &[&str], title: &str, folder: &str) -> Value {
    let stage = Stage::new().unwrap();
    let faults = "pause-worker,kill-worker,cut-link,reset-link,pause-postgres,kill-postgres";
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(["chaos", "--record", "postgres", "--for", "12s", "--every", "500ms", "--ttl", "500ms"]);
    command.args(["--work", "20ms", "--faults", faults]).args(flags);
    let output = command.arg("--out").arg(stage.directory()).output().unwrap();
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("no violation"), "{printed}");
    assert!(printed.contains(title), "{printed}");
    let folder = stage.directory().join(folder);
    let report: Value =
        serde_json::from_slice(&std::fs::read(folder.join("report.json")).expect(&printed)).unwrap();
    // `real audit` judges as the report does: the history has all that the report counts.
    let history = read(&[folder.join("history.jsonl")]).unwrap();
    let judgement = Judgement::of(&history.events, false, None);
    assert_eq!(report["writes_accepted"], judgement.summary.accepted.len(), "{printed}");
    report
}

#[test]
fn ticks_and_jobs_on_postgres_take_effect_once_under_faults() {
    for (flags, title, folder) in [
        (&["--primitive", "jobs"][..], "postgres, jobs, fencing on", "postgres-jobs-on-1"),
        (
            &["--primitive", "cron:100ms", "--system", "redis"],
            "redis, cron:100ms, record postgres, fencing on",
            "redis-cron-100ms-record-postgres-on-1",
        ),
        (
            &["--primitive", "cron:100ms", "--system", "etcd"],
            "etcd, cron:100ms, record postgres, fencing on",
            "etcd-cron-100ms-record-postgres-on-1",
        ),
    ] {
        let report = run_on_postgres(flags, title, folder);
        let faults = |kind: &str| report["faults"][kind].as_u64().unwrap_or(0);
        assert!(faults("pause-postgres") + faults("kill-postgres") > 0, "{report}");
        assert_eq!(report["commits_lost"], 0, "{report}");
        let (done, accepted) = (report["tasks_done"].as_u64(), report["writes_accepted"].as_u64());
        assert!(done > Some(0) && accepted >= done, "{report}");
    }
}
