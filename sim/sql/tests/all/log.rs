//! The write-ahead log: what survives a crash.

use sql::{Database, Interval, Now, Record, SessionId, Step, Type, Value};

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

#[test]
fn a_rename_keeps_the_rows_written_beside_it() {
    let mut database = Database::new();
    let session = database.connect();
    run(&mut database, session, "CREATE TABLE t (id int); INSERT INTO t VALUES (1); CREATE TABLE o (id int)");
    run(&mut database, session, "INSERT INTO o VALUES (7)");
    let renamed = "BEGIN; INSERT INTO t VALUES (2); DELETE FROM t WHERE id = 1; ALTER TABLE t RENAME TO u;
        INSERT INTO u VALUES (3); ALTER TABLE u RENAME TO v; INSERT INTO v VALUES (4); COMMIT";
    run(&mut database, session, renamed);
    let swapped = "BEGIN; CREATE TABLE o2 (id int); INSERT INTO o2 SELECT id + 1 FROM o; DROP TABLE o;
        ALTER TABLE o2 RENAME TO o; COMMIT";
    run(&mut database, session, swapped);
    let queries = ["SELECT id FROM v ORDER BY id", "SELECT id FROM o"];
    let before: Vec<_> = queries.iter().map(|query| run(&mut database, session, query)).collect();
    assert_eq!(
        before,
        [vec![vec![Value::Int(2)], vec![Value::Int(3)], vec![Value::Int(4)]], vec![vec![Value::Int(8)]]]
    );
    let (mut again, session) = restarted(&database.take_log());
    let after: Vec<_> = queries.iter().map(|query| run(&mut again, session, query)).collect();
    assert_eq!(before, after);
}

/// Returns the identifiers that three inserts get after a crash.
fn ids_after_crash(database: &mut Database) -> Vec<Vec<Value>> {
    let (mut again, session) = restarted(&database.take_log());
    run(&mut again, session, "INSERT INTO t (n) VALUES (1), (2), (3) RETURNING id")
}

const FILLED: &str = "CREATE TABLE t (id serial PRIMARY KEY, n int);
    INSERT INTO t (n) SELECT * FROM generate_series(1, 100);";
const AGAIN: &str = "TRUNCATE t RESTART IDENTITY; INSERT INTO t (n) VALUES (1), (2)";

#[test]
fn a_sequence_set_back_survives_a_commit() {
    let mut database = Database::new();
    let session = database.connect();
    run(&mut database, session, FILLED);
    run(&mut database, session, &format!("BEGIN; {AGAIN}; COMMIT"));
    let ids = ids_after_crash(&mut database);
    assert!(ids.iter().all(|row| row[0] > Value::Int(2)), "{ids:?}");
}

#[test]
fn a_sequence_set_back_in_vain_repeats_nothing() {
    for end in ["; ROLLBACK", ""] {
        let mut database = Database::new();
        let session = database.connect();
        run(&mut database, session, FILLED);
        run(&mut database, session, &format!("BEGIN; {AGAIN}{end}"));
        let ids = ids_after_crash(&mut database);
        assert!(ids.iter().all(|row| row[0] > Value::Int(100)), "{end}: {ids:?}");
    }
}

#[test]
fn a_table_made_anew_in_vain_leaves_the_sequence_of_the_old_one() {
    let mut database = Database::new();
    let session = database.connect();
    run(&mut database, session, FILLED);
    let anew = "BEGIN; DROP TABLE t; CREATE TABLE t (id serial, n int); INSERT INTO t (n) VALUES (1)";
    run(&mut database, session, anew);
    let ids = ids_after_crash(&mut database);
    assert!(ids.iter().all(|row| row[0] > Value::Int(100)), "{ids:?}");
}

#[test]
fn extreme_values_are_read_back_as_they_are_printed() {
    let mut values = Vec::new();
    let mut push = |r#type: Type, value: Value| values.push((r#type, value));
    for days in [-2_451_545_i32, -730_200, -730_120, -1, 0, 2_921_939, 2_921_940, 2_145_031_948] {
        for days in [days, days.saturating_add(1), days.saturating_add(366)] {
            push(Type::Date, Value::Date(days.min(2_145_031_948)));
        }
    }
    push(Type::Date, Value::Date(i32::MIN));
    push(Type::Date, Value::Date(i32::MAX));
    let (first, last) = (-211_813_488_000_000_000, 9_223_371_331_199_999_999);
    let centuries = [-63_082_281_600_000_001, -1, 0, 252_455_616_000_000_000];
    for micros in centuries.into_iter().chain([i64::MIN, first, first + 1, last]) {
        push(Type::Timestamp, Value::Timestamp(micros));
        push(Type::Timestamptz, Value::Timestamptz(micros));
    }
    for (r#type, value) in &values {
        let text = value.text().unwrap();
        assert_eq!(&Value::parse(*r#type, &text).unwrap(), value, "{text}");
    }
    let (numbers, micros) = ([i32::MIN, -13, -1, 0, 1, 25, i32::MAX], [i64::MIN, -1, 0, 1, i64::MAX]);
    for (months, days) in numbers.iter().flat_map(|months| numbers.map(|days| (*months, days))) {
        for micros in micros {
            let interval = Interval { months, days, micros };
            let text = Value::Interval(interval).text().unwrap();
            let Ok(Value::Interval(read)) = Value::parse(Type::Interval, &text) else { panic!("{text}") };
            assert_eq!((read.months, read.days, read.micros), (months, days, micros), "{text}");
        }
    }
}

#[test]
fn distant_dates_survive() {
    let mut database = Database::new();
    let session = database.connect();
    run(&mut database, session, "CREATE TABLE t (at timestamptz, d date, i interval)");
    let row = "INSERT INTO t VALUES (now() + interval '9000 years', '0044-03-15 BC', '2147483647 days'),
        (now() - interval '3000 years', date '2000-01-01' + 5000000, '-2147483648 days')";
    run(&mut database, session, row);
    let before = run(&mut database, session, "SELECT * FROM t");
    let (mut again, session) = restarted(&database.take_log());
    assert_eq!(run(&mut again, session, "SELECT * FROM t"), before);
}
