//! The write-ahead log: crashes, power losses, and the commits that survive them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redb::StorageBackend;
use sim::clients::tokio_postgres::Config;
use sim::faults::{Crash, Fault, Trigger};
use sim::servers::postgres::PostgresHost;
use sim::{Process, Sim, Span};

use super::{JOBS, connect, jobs, millis, script, try_connect, world};

/// Kills the server when it has committed an insert of `statement`, before its answer. Returns whether the
/// client got an answer, and the jobs after the restart.
fn crash_at_commit(statement: &'static str) -> (bool, Vec<i64>) {
    let seen = Arc::new(Mutex::new((false, Vec::new())));
    let mut sim = Sim::new(7);
    sim.host("db", PostgresHost::new().preset(JOBS));
    let (restart_after, process) = (Some(Span::from_secs(1)), "db".to_owned());
    let crash = Crash { process, power_loss: true, restart_after };
    sim.fault(Fault::new(Trigger::after("db", "COMMIT"), crash));
    let result = Arc::clone(&seen);
    sim.process("a", move |process: Process| {
        let result = Arc::clone(&result);
        async move {
            let is_answered = connect(&process).await.batch_execute(statement).await.is_ok();
            process.sleep(Duration::from_secs(2)).await;
            *result.lock().unwrap() = (is_answered, jobs(&connect(&process).await).await);
        }
    });
    let report = sim.run().unwrap();
    assert_eq!(report.faults_struck(), 1);
    assert_eq!(report.probes.of("rows_restored").hit, 1);
    seen.lock().unwrap().clone()
}

#[test]
fn a_commit_whose_answer_a_crash_loses_is_there_after_the_restart() {
    assert_eq!(crash_at_commit("INSERT INTO jobs VALUES (1)"), (false, vec![1]));
    assert_eq!(crash_at_commit("BEGIN; INSERT INTO jobs VALUES (1); COMMIT"), (false, vec![1]));
}

/// Inserts a job with `setting`, and lets the server crash `after` that. Returns the jobs after its restart.
fn after_crash(setting: &'static str, after: Duration, power_loss: bool) -> Vec<i64> {
    let host = PostgresHost::new().preset(JOBS).setting("synchronous_commit", setting);
    let (_, jobs) = script(host, move |control| async move {
        let process = control.process("a");
        let client = connect(&process).await;
        client.batch_execute("INSERT INTO jobs VALUES (1)").await.unwrap();
        control.sleep(after).await;
        let crash = control.strike(Crash { power_loss, ..Crash::of("db") });
        control.sleep(millis(100)).await;
        crash.heal();
        control.sleep(millis(100)).await;
        jobs(&connect(&process).await).await
    });
    jobs
}

#[test]
fn only_asynchronous_commits_are_lost_and_only_for_600_ms() {
    for power_loss in [false, true] {
        assert_eq!(after_crash("on", Duration::ZERO, power_loss), [1]);
        assert!(after_crash("off", Duration::ZERO, power_loss).is_empty());
        assert_eq!(after_crash("off", millis(600), power_loss), [1]);
    }
}

#[test]
fn a_transaction_that_is_open_at_a_crash_is_gone() {
    let (_, jobs) = script(PostgresHost::new().preset(JOBS), |control| async move {
        let process = control.process("a");
        let client = connect(&process).await;
        client.batch_execute("BEGIN; INSERT INTO jobs VALUES (1)").await.unwrap();
        let crash = control.strike(Crash::of("db"));
        control.sleep(millis(100)).await;
        crash.heal();
        control.sleep(millis(100)).await;
        jobs(&connect(&process).await).await
    });
    assert!(jobs.is_empty());
}

#[test]
fn a_log_that_does_not_fit_ends_the_run() {
    let result = world(PostgresHost::new().preset(JOBS)).run_script(|control| async move {
        let client = connect(&control.process("a")).await;
        client.batch_execute("INSERT INTO jobs VALUES (1)").await.unwrap();
        let crash = control.strike(Crash::of("db"));
        // The first record creates the table: its length, a checksum of 8 bytes, and its contents.
        let file = control.process("db").disk().open();
        let contents = file.contents().unwrap();
        let length = u32::from_le_bytes(*contents.first_chunk().unwrap()) as usize;
        StorageBackend::set_len(&file, 0).unwrap();
        file.append(&contents[12 + length..]).unwrap();
        file.sync().unwrap();
        crash.heal();
        control.sleep(millis(100)).await;
    });
    let error = result.unwrap_err().to_string();
    assert!(error.contains("can't start from its log") && error.contains("does not fit"), "{error}");
}

#[test]
fn a_watch_sees_the_rows_that_commits_store() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let rows = Arc::clone(&seen);
    let host = PostgresHost::new().preset(JOBS).preset("INSERT INTO jobs VALUES (1)");
    let host = host.watch("jobs", move |row: &[Option<String>]| rows.lock().unwrap().push(row.to_vec()));
    script(host, |control| async move {
        let client = connect(&control.process("a")).await;
        client.batch_execute("BEGIN; INSERT INTO jobs VALUES (2); ROLLBACK").await.unwrap();
        client.batch_execute("BEGIN; INSERT INTO jobs VALUES (3, 'a'); COMMIT").await.unwrap();
        client.execute("INSERT INTO jobs VALUES ($1)", &[&4_i64]).await.unwrap();
        client.batch_execute("DELETE FROM jobs WHERE id = 3").await.unwrap();
    });
    let row = |id: &str, owner: Option<&str>| vec![Some(id.to_owned()), owner.map(str::to_owned)];
    assert_eq!(*seen.lock().unwrap(), [row("3", Some("a")), row("4", None)]);
}

/// Two workers count in a row, in a run with a crash of the server.
fn counted(seed: u64) -> u64 {
    let host = PostgresHost::new().preset(JOBS).preset("INSERT INTO jobs VALUES (0, '0')");
    let mut sim = Sim::new(seed);
    sim.host("db", host);
    for name in ["a", "b"] {
        sim.process(name, |process: Process| async move {
            for _ in 0..5 {
                // The server may be down.
                process.sleep(millis(100)).await;
                let Ok(client) = try_connect(&process, Config::new().user("app")).await else { continue };
                let next = "UPDATE jobs SET owner = (owner::int + 1)::text WHERE id = 0 RETURNING owner";
                if let Ok(row) = client.query_one(next, &[]).await {
                    process.point(row.get(0));
                }
            }
        });
    }
    let crash = Crash { restart_after: Some(Span::from_millis(1)), ..Crash::of("db") };
    sim.fault(Fault::new(Trigger::At(Span::from_millis(250)), crash));
    sim.run().unwrap().hash
}

#[test]
fn the_same_seed_gives_the_same_history() {
    assert_eq!(counted(7), counted(7));
    assert_ne!(counted(7), counted(8));
}
