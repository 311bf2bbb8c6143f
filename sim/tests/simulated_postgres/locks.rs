//! Transactions that meet: conflicts, locks, deadlocks and timeouts.

use std::sync::{Arc, Mutex};

use sim::servers::postgres::PostgresHost;
use sim::{Process, Sim};

use super::{JOBS, code, connect, jobs, millis, script};

#[test]
fn others_see_a_transaction_once_it_is_committed() {
    let (_, (before, after)) = script(PostgresHost::new().preset(JOBS), |control| async move {
        let (mut a, b) = (connect(&control.process("a")).await, connect(&control.process("b")).await);
        let transaction = a.transaction().await.unwrap();
        transaction.execute("INSERT INTO jobs VALUES ($1, $2)", &[&1_i64, &"a"]).await.unwrap();
        let before = jobs(&b).await;
        transaction.commit().await.unwrap();
        (before, jobs(&b).await)
    });
    assert_eq!((before, after), (vec![], vec![1]));
}

/// Inserts the same key twice; the first transaction ends as `end` says. Returns the second one's result.
fn conflict(end: &'static str) -> Result<u64, String> {
    let (_, result) = script(PostgresHost::new().preset(JOBS), move |control| async move {
        let (a, b) = (connect(&control.process("a")).await, connect(&control.process("b")).await);
        a.batch_execute("BEGIN; INSERT INTO jobs VALUES (1, 'a')").await.unwrap();
        let ended = control.now() + millis(300);
        control.after(millis(300), move |control| {
            control.spawn(async move { a.batch_execute(end).await.unwrap() });
        });
        let result = b.execute("INSERT INTO jobs VALUES (1, 'b')", &[]).await;
        assert!(control.now() >= ended, "the second insert did not wait");
        result.map_err(|error| code(&error))
    });
    result
}

#[test]
fn a_conflicting_insert_waits_for_the_first_transaction() {
    assert_eq!(conflict("COMMIT"), Err("23505".to_owned()));
    assert_eq!(conflict("ROLLBACK"), Ok(1));
}

#[test]
fn skip_locked_gives_two_workers_different_jobs() {
    let host = PostgresHost::new().preset(JOBS).preset("INSERT INTO jobs VALUES (1), (2)");
    let taken = Arc::new(Mutex::new(Vec::new()));
    let mut sim = Sim::new(7);
    sim.host("db", host);
    for name in ["a", "b"] {
        let taken = Arc::clone(&taken);
        sim.process(name, move |process: Process| {
            let taken = Arc::clone(&taken);
            async move {
                let mut client = connect(&process).await;
                let transaction = client.transaction().await.unwrap();
                let job = "SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
                let id: i64 = transaction.query_one(job, &[]).await.unwrap().get(0);
                taken.lock().unwrap().push(id);
                process.sleep(millis(500)).await;
                transaction.commit().await.unwrap();
            }
        });
    }
    sim.run().unwrap();
    let mut taken = taken.lock().unwrap().clone();
    taken.sort_unstable();
    assert_eq!(taken, [1, 2]);
}

#[test]
fn a_deadlock_fails_one_of_the_two_after_a_second() {
    let host = PostgresHost::new().preset(JOBS).preset("INSERT INTO jobs VALUES (1), (2)");
    let (report, (results, took)) = script(host, |control| async move {
        let (a, b) = (connect(&control.process("a")).await, connect(&control.process("b")).await);
        let lock = |id: i64| format!("UPDATE jobs SET owner = 'x' WHERE id = {id}");
        a.batch_execute(&format!("BEGIN; {}", lock(1))).await.unwrap();
        b.batch_execute(&format!("BEGIN; {}", lock(2))).await.unwrap();
        let began = control.now();
        let (of_a, of_b) = (lock(2), lock(1));
        let end = |client: sim::clients::tokio_postgres::Client, sql: String| async move {
            let result = client.batch_execute(&sql).await.map_err(|error| code(&error));
            // The lock of the one that failed is released with its transaction.
            client.batch_execute("COMMIT").await.unwrap();
            result
        };
        let results = futures_util::future::join(end(a, of_a), end(b, of_b)).await;
        (<[_; 2]>::from(results), control.now() - began)
    });
    let failed: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(failed, ["40P01"]);
    assert!((millis(1000)..millis(1100)).contains(&took), "{took:?}");
    assert_eq!(report.probes.of("deadlock_found").hit, 1);
}

/// Waits for a lock in a session with a setting. Returns the code of the error, and the time in milliseconds.
fn waits(setting: &'static str) -> (String, u128) {
    let host = PostgresHost::new().preset(JOBS).preset("INSERT INTO jobs VALUES (1)");
    let (_, waited) = script(host, move |control| async move {
        let (a, b) = (connect(&control.process("a")).await, connect(&control.process("b")).await);
        a.batch_execute("BEGIN; SELECT id FROM jobs WHERE id = 1 FOR UPDATE").await.unwrap();
        b.batch_execute(&format!("SET {setting}")).await.unwrap();
        let began = control.now();
        let error = b.batch_execute("UPDATE jobs SET owner = 'b' WHERE id = 1").await.unwrap_err();
        // The session goes on.
        b.batch_execute("SELECT 1").await.unwrap();
        (code(&error), (control.now() - began).as_millis())
    });
    waited
}

#[test]
fn timeouts_end_a_wait_for_a_lock() {
    let (code, took) = waits("lock_timeout = '200ms'");
    assert!(code == "55P03" && (200..230).contains(&took), "{code} {took}");
    let (code, took) = waits("statement_timeout = '3s'");
    assert!(code == "57014" && (3000..3030).contains(&took), "{code} {took}");
}

#[test]
fn a_waiter_that_another_holder_still_blocks_goes_on_waiting() {
    let (_, (error, took)) = script(PostgresHost::new().preset(JOBS), |control| async move {
        let (a, b) = (connect(&control.process("a")).await, connect(&control.process("b")).await);
        let other = connect(&control.process("a")).await;
        for holder in [&a, &other] {
            holder.batch_execute("BEGIN; LOCK TABLE jobs IN SHARE MODE").await.unwrap();
        }
        b.batch_execute("SET lock_timeout = '500ms'").await.unwrap();
        control.after(millis(300), move |control| {
            control.spawn(async move { a.batch_execute("COMMIT").await.unwrap() });
        });
        let began = control.now();
        let error = b.batch_execute("INSERT INTO jobs VALUES (1)").await.unwrap_err();
        let took = (control.now() - began).as_millis();
        other.batch_execute("COMMIT").await.unwrap();
        (code(&error), took)
    });
    assert!(error == "55P03" && (500..530).contains(&took), "{error} {took}");
}

#[test]
fn a_waiter_for_a_row_waits_anew_for_each_holder() {
    let host = PostgresHost::new().preset(JOBS).preset("INSERT INTO jobs VALUES (1)");
    let (_, (error, took)) = script(host, |control| async move {
        let (a, b) = (connect(&control.process("a")).await, connect(&control.process("b")).await);
        let next = connect(&control.process("a")).await;
        let lock = "BEGIN; SELECT id FROM jobs FOR UPDATE";
        a.batch_execute(lock).await.unwrap();
        b.batch_execute("SET lock_timeout = '500ms'").await.unwrap();
        // It waits in front of the other one, gets the lock, and keeps it.
        control.spawn(async move {
            next.batch_execute(lock).await.unwrap();
            std::future::pending::<()>().await;
        });
        control.sleep(millis(50)).await;
        control.after(millis(300), move |control| {
            control.spawn(async move { a.batch_execute("COMMIT").await.unwrap() });
        });
        let began = control.now();
        let error = b.batch_execute("UPDATE jobs SET owner = 'b'").await.unwrap_err();
        (code(&error), (control.now() - began).as_millis())
    });
    assert!(error == "55P03" && (800..840).contains(&took), "{error} {took}");
}

#[test]
fn a_cancel_request_ends_a_wait_for_a_lock() {
    let host = PostgresHost::new().preset(JOBS).preset("INSERT INTO jobs VALUES (1)");
    let (_, error) = script(host, |control| async move {
        let (a, b) = (connect(&control.process("a")).await, connect(&control.process("b")).await);
        a.batch_execute("BEGIN; SELECT id FROM jobs WHERE id = 1 FOR UPDATE").await.unwrap();
        let token = b.cancel_token();
        control.after(millis(100), move |control| {
            let process = control.process("b");
            control.spawn(async move {
                let stream = process.connect("db:5432").await.unwrap();
                token.cancel_query_raw(stream, sim::clients::tokio_postgres::NoTls).await.unwrap();
            });
        });
        b.batch_execute("UPDATE jobs SET owner = 'b' WHERE id = 1").await.unwrap_err()
    });
    assert_eq!(code(&error), "57014");
    assert!(error.to_string().contains("user request") || format!("{error:?}").contains("user request"));
}

#[test]
fn a_client_that_leaves_while_it_waits_changes_nothing_it_began() {
    let host = PostgresHost::new().preset(JOBS).preset("INSERT INTO jobs VALUES (1), (2)");
    let (_, owners) = script(host, |control| async move {
        let (a, b) = (connect(&control.process("a")).await, connect(&control.process("b")).await);
        a.batch_execute("BEGIN; SELECT id FROM jobs WHERE id = 1 FOR UPDATE").await.unwrap();
        let waiting = control.process("b");
        waiting.spawn(async move {
            let lock =
                "BEGIN; UPDATE jobs SET owner = 'b' WHERE id = 2; UPDATE jobs SET owner = 'b' WHERE id = 1";
            let _ = b.batch_execute(lock).await;
        });
        control.sleep(millis(100)).await;
        let crash = control.strike(sim::faults::Crash::of("b"));
        control.sleep(millis(100)).await;
        crash.heal();
        // The server does not know yet: the lock on the second row is held.
        let c = connect(&control.process("b")).await;
        c.batch_execute("SET lock_timeout = '100ms'").await.unwrap();
        let held = c.batch_execute("SELECT id FROM jobs WHERE id = 2 FOR UPDATE").await.unwrap_err();
        assert_eq!(code(&held), "55P03");
        a.batch_execute("COMMIT").await.unwrap();
        control.sleep(millis(100)).await;
        let rows =
            c.query("SELECT coalesce(owner, 'nobody') FROM jobs ORDER BY id FOR UPDATE", &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    });
    assert_eq!(owners, ["nobody", "nobody"]);
}
