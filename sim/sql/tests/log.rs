//! The write-ahead log: what survives a crash.

#![allow(clippy::unwrap_used, reason = "a test")]

use sql::{Database, Now, Record, SessionId, Step, Value};

const NOW: Now = Now { unix_micros: 1_800_000_000_000_000 };

/// Runs the statements of a simple query, and returns the rows of the last one.
fn run(database: &mut Database, session: SessionId, sql: &str) -> Vec<Vec<Value>> {
    let mut last = Vec::new();
    for parsed in Database::statements(sql).unwrap() {
        let prepared = database.prepare_parsed(session, &parsed, &[]).unwrap();
        match database.run(session, &prepared, &[], NOW) {
            Step::Done { rows, .. } => last = rows,
            step => panic!("{sql}: {step:?}"),
        }
    }
    database.sync(session).unwrap();
    last
}

/// Starts a database from records that went through bytes.
fn restarted(records: &[Record]) -> (Database, SessionId) {
    let records: Vec<_> =
        records.iter().map(|record| Record::from_bytes(&record.to_bytes()).unwrap()).collect();
    let mut database = Database::new();
    database.replay(&records).unwrap();
    let session = database.connect();
    assert!(database.take_log().is_empty(), "a replay writes no log");
    (database, session)
}

const TABLES: &str = "
    CREATE SCHEMA bank;
    CREATE TABLE bank.p (id int PRIMARY KEY, at timestamptz DEFAULT now(), j jsonb, b bytea, n numeric(5, 2));
    CREATE TABLE c (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, p int REFERENCES bank.p, t text[]);
    CREATE UNIQUE INDEX one ON c (p) WHERE p > 1;";

#[test]
fn commits_survive_and_open_transactions_do_not() {
    let mut database = Database::new();
    let (a, b) = (database.connect(), database.connect());
    run(&mut database, a, TABLES);
    run(
        &mut database,
        a,
        "INSERT INTO bank.p VALUES (1, now(), '{\"a\": [1.50]}', '\\x00ff', 1.5); INSERT INTO bank.p VALUES (2)",
    );
    run(&mut database, a, "INSERT INTO c (p, t) VALUES (1, '{a,NULL}'), (2, NULL)");
    run(&mut database, a, "UPDATE bank.p SET n = 7 WHERE id = 2; DELETE FROM c WHERE p = 1");
    run(&mut database, a, "ALTER TABLE c ADD COLUMN x int DEFAULT 5");
    run(&mut database, b, "BEGIN; INSERT INTO bank.p VALUES (3); UPDATE bank.p SET n = 0 WHERE id = 1");
    run(&mut database, a, "BEGIN; CREATE TABLE gone (id int); ROLLBACK");
    let queries = ["SELECT * FROM bank.p ORDER BY id", "SELECT * FROM c ORDER BY id"];
    let before: Vec<_> = queries.iter().map(|query| run(&mut database, a, query)).collect();
    let (mut again, session) = restarted(&database.take_log());
    let after: Vec<_> = queries.iter().map(|query| run(&mut again, session, query)).collect();
    assert_eq!(before, after);
    // The constraints work, and the same keys are free and taken.
    let failing = ["INSERT INTO bank.p VALUES (1)", "INSERT INTO c (p) VALUES (2)", "SELECT * FROM gone"];
    for sql in failing {
        let failed = again.prepare(session, sql, &[]).map(|p| again.run(session, &p, &[], NOW));
        assert!(!matches!(failed, Ok(Step::Done { .. })), "{sql}");
    }
    run(&mut again, session, "INSERT INTO bank.p VALUES (3)");
}

#[test]
fn sequences_skip_values_but_repeat_none() {
    let mut database = Database::new();
    let session = database.connect();
    run(&mut database, session, "CREATE SEQUENCE s; CREATE TABLE t (id serial, n int)");
    let mut highest = 0;
    for _ in 0..40 {
        let rows = run(&mut database, session, "SELECT nextval('s')");
        let [Value::Int(value)] = rows[0][..] else { panic!("{rows:?}") };
        highest = value;
    }
    run(&mut database, session, "INSERT INTO t (n) VALUES (1), (2)");
    let log = database.take_log();
    assert!(log.len() < 20, "a record takes 32 values ahead");
    let (mut again, session) = restarted(&log);
    let rows = run(&mut again, session, "SELECT nextval('s')");
    let [Value::Int(next)] = rows[0][..] else { panic!("{rows:?}") };
    assert!((highest + 1..=highest + 33).contains(&next), "{next} after {highest}");
    let rows = run(&mut again, session, "INSERT INTO t (n) VALUES (3) RETURNING id");
    assert!(matches!(rows[0][..], [Value::Int(id)] if id > 2), "{rows:?}");
}

#[test]
fn a_prefix_of_the_log_is_an_earlier_state() {
    let mut database = Database::new();
    let session = database.connect();
    run(&mut database, session, "CREATE TABLE t (id int PRIMARY KEY, n int)");
    let mut log = database.take_log();
    let mut states = Vec::new();
    for number in 0..10 {
        let write = format!(
            "INSERT INTO t VALUES ({number}, 0); UPDATE t SET n = n + 1; DELETE FROM t WHERE id = {number} - 3"
        );
        run(&mut database, session, &write);
        let rows = run(&mut database, session, "SELECT * FROM t ORDER BY id");
        log.extend(database.take_log());
        states.push((log.len(), rows));
    }
    for (len, rows) in states {
        let (mut again, session) = restarted(&log[..len]);
        assert_eq!(run(&mut again, session, "SELECT * FROM t ORDER BY id"), rows);
    }
}

#[test]
fn bytes_that_are_no_record_are_refused() {
    assert_eq!(Record::from_bytes(b"\x00half"), None);
    let mut database = Database::new();
    let session = database.connect();
    run(&mut database, session, "CREATE TABLE t (id int); INSERT INTO t VALUES (1)");
    let log = database.take_log();
    run(&mut database, session, "INSERT INTO t VALUES (2)");
    let later = database.take_log();
    let error = Database::new().replay(&later).unwrap_err();
    assert!(error.message.contains("there is no table public.t"), "{error}");
    assert!(!log.is_empty());
}
