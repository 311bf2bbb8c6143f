//! Waits, their ends, and what is refused.

use sql::{Database, Now, Prepared, SessionId, SqlError, Step, TransactionStatus, Value};

const NOW: Now = Now { unix_micros: 1_800_000_000_000_000 };

fn prepared(database: &mut Database, session: SessionId, sql: &str) -> Prepared {
    database.prepare(session, sql, &[]).unwrap()
}

/// Runs one statement, and ends its implicit transaction.
fn run(database: &mut Database, session: SessionId, sql: &str) -> Step {
    let statement = prepared(database, session, sql);
    let step = database.run(session, &statement, &[], NOW);
    database.sync(session).unwrap();
    step
}

fn rows(step: Step) -> Vec<Vec<Value>> {
    match step {
        Step::Done { rows, .. } => rows,
        step => panic!("{step:?}"),
    }
}

/// Returns a database with a table of three rows, of which session `a` has locked the third.
fn locked() -> (Database, SessionId, SessionId) {
    let mut database = Database::new();
    let (a, b) = (database.connect(), database.connect());
    rows(run(&mut database, a, "CREATE TABLE t (id int PRIMARY KEY, n int)"));
    rows(run(&mut database, a, "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)"));
    rows(run(&mut database, a, "BEGIN"));
    rows(run(&mut database, a, "UPDATE t SET n = 1 WHERE id = 3"));
    (database, a, b)
}

#[test]
fn a_cancelled_statement_leaves_nothing() {
    let (mut database, a, b) = locked();
    assert_eq!(run(&mut database, b, "UPDATE t SET n = n + 5"), Step::Blocked { on: vec![a] });
    let error = SqlError::lock_timeout();
    assert_eq!(database.cancel(b, error.clone()), Step::Failed(error));
    assert_eq!(database.status(b), TransactionStatus::Idle);
    rows(run(&mut database, a, "COMMIT"));
    assert!(database.take_woken().is_empty());
    let sums = rows(run(&mut database, b, "SELECT sum(n) FROM t"));
    assert_eq!(sums, [[Value::Int(1)]]);
}

#[test]
fn a_session_that_ends_wakes_those_behind_it() {
    let (mut database, a, b) = locked();
    let update = prepared(&mut database, b, "UPDATE t SET n = n + 5 WHERE id = 3 RETURNING n");
    assert_eq!(database.run(b, &update, &[], NOW), Step::Blocked { on: vec![a] });
    database.disconnect(a);
    assert_eq!(database.take_woken(), [b]);
    assert_eq!(rows(database.run(b, &update, &[], NOW)), [[Value::Int(5)]]);
}

#[test]
fn a_sleep_ends_at_its_time() {
    let mut database = Database::new();
    let session = database.connect();
    let sleep = prepared(&mut database, session, "SELECT pg_sleep(1.5)");
    let until = Now { unix_micros: NOW.unix_micros + 1_500_000 };
    assert_eq!(database.run(session, &sleep, &[], NOW), Step::Sleeping { until });
    assert_eq!(database.run(session, &sleep, &[], NOW), Step::Sleeping { until });
    assert_eq!(rows(database.run(session, &sleep, &[], until)), [[Value::Void]]);
}

#[test]
fn a_statement_that_waits_takes_each_value_of_a_sequence_once() {
    let mut database = Database::new();
    let (a, b) = (database.connect(), database.connect());
    rows(run(&mut database, a, "CREATE TABLE t (id serial PRIMARY KEY, u int UNIQUE)"));
    rows(run(&mut database, a, "BEGIN"));
    rows(run(&mut database, a, "INSERT INTO t (u) VALUES (1)"));
    let insert = prepared(&mut database, b, "INSERT INTO t (u) VALUES (5), (1), (6) RETURNING id");
    assert_eq!(database.run(b, &insert, &[], NOW), Step::Blocked { on: vec![a] });
    assert_eq!(database.run(b, &insert, &[], NOW), Step::Blocked { on: vec![a] });
    rows(run(&mut database, a, "ROLLBACK"));
    assert_eq!(rows(database.run(b, &insert, &[], NOW)), [[Value::Int(2)], [Value::Int(3)], [Value::Int(4)]]);
}

#[test]
fn a_plan_whose_columns_have_changed_is_refused() {
    let mut database = Database::new();
    let session = database.connect();
    rows(run(&mut database, session, "CREATE TABLE t (id int)"));
    let all = prepared(&mut database, session, "SELECT * FROM t");
    let count = prepared(&mut database, session, "SELECT count(*) FROM t");
    rows(run(&mut database, session, "ALTER TABLE t ADD COLUMN n int"));
    let Step::Failed(error) = database.run(session, &all, &[], NOW) else { panic!("it ran") };
    assert_eq!(error.message, "cached plan must not change result type");
    rows(database.run(session, &count, &[], NOW));
}

#[test]
fn the_unknown_is_refused_by_its_name() {
    let mut database = Database::new();
    let session = database.connect();
    rows(run(&mut database, session, "CREATE TABLE t (id int, j jsonb, tags text[])"));
    let statements = [
        "SELECT random()",
        "SELECT gen_random_uuid()",
        "SELECT id, row_number() OVER (ORDER BY id) FROM t",
        "WITH RECURSIVE r AS (SELECT 1) SELECT * FROM r",
        "SELECT * FROM t FULL JOIN t AS u ON t.id = u.id",
        "SELECT 'a' ~ 'b'",
        "SELECT * FROM pg_catalog.pg_type",
        "SELECT 1 EXCEPT SELECT 2",
        "SELECT id FROM t GROUP BY ROLLUP (id)",
        "SELECT tags || 'x' FROM t",
        "SELECT 'x'::char(3)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE x AS SELECT 1",
        "CREATE TEMP TABLE x (id int)",
        "CREATE INDEX ON t ((id + 1))",
        "CREATE TABLE x (id int UNIQUE DEFERRABLE)",
        "ALTER TABLE t DROP COLUMN id",
        "CREATE EXTENSION pgcrypto",
        "EXPLAIN SELECT 1",
        "DO $$ BEGIN PERFORM 1; END $$",
        "SET timezone = 'Europe/Berlin'",
        "SELECT now() AT TIME ZONE 'Europe/Berlin'",
        "DECLARE c CURSOR FOR SELECT 1",
    ];
    for sql in statements {
        let step = database.prepare(session, sql, &[]).map(|p| database.run(session, &p, &[], NOW));
        let error = match step {
            Ok(Step::Failed(error)) | Err(error) => error,
            Ok(step) => panic!("{sql}: {step:?}"),
        };
        assert_eq!(error.code, "0A000", "{sql}: {error}");
        assert!(error.message.starts_with("the simulated PostgreSQL does not know "), "{sql}: {error}");
        database.sync(session).unwrap();
    }
}

#[test]
fn a_new_name_is_seen_by_others_after_the_commit() {
    for (end, name) in [("ROLLBACK", "t"), ("COMMIT", "u")] {
        let (mut database, a, b) = locked();
        rows(run(&mut database, a, "COMMIT"));
        rows(run(&mut database, a, "BEGIN"));
        rows(run(&mut database, a, "ALTER TABLE t RENAME TO u"));
        rows(run(&mut database, a, "SELECT * FROM u"));
        assert_eq!(database.prepare(b, "SELECT * FROM u", &[]).unwrap_err().code, "42P01");
        let count = prepared(&mut database, b, "SELECT count(*) FROM t");
        assert_eq!(database.run(b, &count, &[], NOW), Step::Blocked { on: vec![a] });
        rows(run(&mut database, a, end));
        match database.run(b, &count, &[], NOW) {
            Step::Failed(error) => assert_eq!((error.code.as_str(), end), ("42P01", "COMMIT")),
            step => assert_eq!((rows(step), end), (vec![vec![Value::Int(3)]], "ROLLBACK")),
        }
        let count = format!("SELECT count(*) FROM {name}");
        assert_eq!(rows(run(&mut database, b, &count)), [[Value::Int(3)]]);
    }
}

#[test]
fn a_savepoint_takes_a_new_name_back() {
    let (mut database, a, b) = locked();
    for sql in ["ALTER TABLE t RENAME TO u", "SAVEPOINT s", "ALTER TABLE u RENAME TO v", "ROLLBACK TO s"] {
        rows(run(&mut database, a, sql));
    }
    rows(run(&mut database, a, "SELECT * FROM u"));
    let count = prepared(&mut database, b, "SELECT count(*) FROM t");
    assert_eq!(database.run(b, &count, &[], NOW), Step::Blocked { on: vec![a] });
    rows(run(&mut database, a, "COMMIT"));
    rows(run(&mut database, a, "SELECT * FROM u"));
}

#[test]
fn a_sequence_that_may_be_set_back_is_waited_for() {
    let mut database = Database::new();
    let (a, b) = (database.connect(), database.connect());
    rows(run(&mut database, a, "CREATE TABLE t (id serial)"));
    rows(run(&mut database, a, "INSERT INTO t DEFAULT VALUES"));
    rows(run(&mut database, a, "BEGIN"));
    rows(run(&mut database, a, "TRUNCATE t RESTART IDENTITY"));
    let next = prepared(&mut database, b, "SELECT nextval('t_id_seq')");
    assert_eq!(database.run(b, &next, &[], NOW), Step::Blocked { on: vec![a] });
    rows(run(&mut database, a, "ROLLBACK"));
    assert_eq!(rows(database.run(b, &next, &[], NOW)), [[Value::Int(2)]]);
}

#[test]
fn two_changes_of_the_catalog_that_wait_for_each_other_wake_nobody() {
    let mut database = Database::new();
    let (a, b) = (database.connect(), database.connect());
    for table in ["x", "y", "z"] {
        rows(run(&mut database, a, &format!("CREATE TABLE {table} (id int)")));
    }
    for (session, table) in [(a, "x"), (b, "y")] {
        rows(run(&mut database, session, "BEGIN"));
        rows(run(&mut database, session, &format!("LOCK TABLE {table} IN SHARE MODE")));
    }
    let of_a = prepared(&mut database, a, "TRUNCATE z, y");
    assert_eq!(database.run(a, &of_a, &[], NOW), Step::Blocked { on: vec![b] });
    let of_b = prepared(&mut database, b, "TRUNCATE z, x");
    assert_eq!(database.run(b, &of_b, &[], NOW), Step::Blocked { on: vec![a] });
    assert!(database.take_woken().is_empty());
    assert_eq!(database.deadlock(b), Some(vec![b, a]));
}
