//! Values and statements that are too large or too deep, and settings of sessions.

use sql::{Database, Now, SessionId, Step, Type, Value};

const NOW: Now = Now { unix_micros: 1_800_000_000_000_000 };

/// Runs a simple query; returns the rows of its last statement, or the code of its first error.
fn run(database: &mut Database, session: SessionId, sql: &str) -> Result<Vec<Vec<Value>>, String> {
    let mut last = Vec::new();
    for parsed in Database::statements(sql).map_err(|error| error.code.clone())? {
        let prepared = database.prepare_parsed(session, &parsed, &[]).map_err(|error| error.code.clone())?;
        match database.run(session, &prepared, &[], NOW) {
            Step::Done { rows, .. } => last = rows,
            Step::Failed(error) => return Err(error.code.clone()),
            step => panic!("{sql}: {step:?}"),
        }
    }
    database.sync(session).map_err(|error| error.code.clone())?;
    Ok(last)
}

fn code(sql: &str) -> String {
    let mut database = Database::new();
    let session = database.connect();
    run(&mut database, session, sql).map(|rows| format!("{rows:?}")).unwrap_or_else(|code| code)
}

#[test]
fn json_that_is_too_deep_is_refused() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    for r#type in [Type::Json, Type::Jsonb] {
        assert_eq!(Value::parse(r#type, &"[".repeat(20_000)).unwrap_err().code, "54001");
        assert_eq!(Value::parse(r#type, &nested(20_000)).unwrap_err().code, "54001");
        let deep = nested(500);
        assert_eq!(Value::parse(r#type, &deep).unwrap().text().unwrap(), deep);
    }
    let brackets = format!("\"{}\"", "[\\\"".repeat(1000));
    Value::parse(Type::Jsonb, &brackets).unwrap();
    assert_eq!(code(&format!("SELECT jsonb_build_array('{}'::jsonb)", nested(500))), "54001");
    assert_eq!(code(&format!("SELECT jsonb_agg(x) FROM (VALUES ('{}'::jsonb)) v (x)", nested(500))), "54001");
}

#[test]
fn long_chains_run_and_too_long_ones_are_refused() {
    let chain = |term: &str, operator: &str, count: usize| vec![term; count].join(operator);
    let of = |chain: String| code(&format!("SELECT count(*) FROM (VALUES (2)) v (a) WHERE {chain}"));
    assert_eq!(of(format!("{} OR a = 2", chain("a = 1", " OR ", 900))), "[[Int(1)]]");
    assert_eq!(of(chain("a = 2", " AND ", 900)), "[[Int(1)]]");
    assert_eq!(of(format!("true = NOT ({})", chain("a = 1", " OR ", 900))), "[[Int(1)]]");
    assert_eq!(of(chain("a = 1", " OR ", 10_000)), "54001");
    assert_eq!(of(format!("NOT ({})", chain("a = 1", " OR ", 10_000))), "54001");
    assert_eq!(code(&format!("SELECT {}", chain("1", " + ", 200))), "[[Int(200)]]");
    assert_eq!(code(&format!("SELECT {}", chain("1", " + ", 10_000))), "54001");
    assert_eq!(code(&format!("SELECT 1{}", "::int".repeat(10_000))), "54001");
    assert_eq!(code(&chain("SELECT 1", " UNION ", 200)), "[[Int(1)]]");
    assert_eq!(code(&chain("SELECT 1", " UNION ", 10_000)), "54001");
    assert_eq!(code(&format!("SELECT {}1{}", "(".repeat(1000), ")".repeat(1000))), "54001");
    let rows = chain("(-1 + 2 - 3, 'a' || 'b')", ", ", 2000);
    assert_eq!(code(&format!("SELECT count(*) FROM (VALUES {rows}) v (a, b)")), "[[Int(2000)]]");
}

#[test]
fn what_is_out_of_range_is_an_error() {
    let cases = [
        ("SELECT '2024-01-01 00:00:00+99999999999999'::timestamptz", "22009"),
        ("SELECT '2024-01-01 00:00:00+16'::timestamptz", "22009"),
        ("SELECT '2024-01-01 00:00:00+x'::timestamptz", "22007"),
        ("SELECT interval '4294967295:00:00'", "22015"),
        ("SELECT interval '99999999999 days'", "22015"),
        ("SELECT date_trunc('year', '4714-11-24 BC'::timestamp)", "22008"),
        ("SELECT '5874897-12-31'::date::timestamptz", "22008"),
        ("SELECT '5874897-12-31'::date + 1000", "22008"),
        ("SELECT '5874899-12-31'::date", "22008"),
        ("SELECT 'infinity'::date - '2000-01-01'::date", "22008"),
        ("SELECT date_trunc('day', 'infinity'::timestamptz)", "[[Timestamptz(9223372036854775807)]]"),
        ("SELECT 'infinity'::date + 1", "[[Date(2147483647)]]"),
        ("SELECT extract(year FROM '5874897-12-31'::date)::int", "[[Int(5874897)]]"),
    ];
    for (sql, expected) in cases {
        assert_eq!(code(sql), expected, "{sql}");
    }
}

#[test]
fn parameters_out_of_range_are_errors() {
    let mut database = Database::new();
    let session = database.connect();
    let cast = database.prepare(session, "SELECT $1::date::timestamptz", &[Type::Date]).unwrap();
    let Step::Failed(error) = database.run(session, &cast, &[Value::Date(i32::MAX - 1)], NOW) else {
        panic!("it ran")
    };
    assert_eq!(error.message, "date out of range for timestamp");
    let truncated = "SELECT date_trunc('year', $1::timestamp)";
    let truncated = database.prepare(session, truncated, &[Type::Timestamp]).unwrap();
    let step = database.run(session, &truncated, &[Value::Timestamp(i64::MIN + 1)], NOW);
    assert!(matches!(step, Step::Failed(error) if error.code == "22008"));
}

#[test]
fn binary_values_are_checked() {
    assert_eq!(Value::date(i32::MAX - 1).unwrap_err().code, "22008");
    assert_eq!(Value::date(i32::MAX).unwrap(), Value::Date(i32::MAX));
    assert_eq!(Value::timestamp(i64::MIN + 1).unwrap_err().code, "22008");
    assert_eq!(Value::timestamptz(0).unwrap(), Value::Timestamptz(0));
}

#[test]
fn queries_of_many_tables_run_or_are_refused() {
    let query = |tables: usize| {
        let tables: Vec<_> = (0..tables).map(|number| format!("(VALUES ({number})) v{number} (n)")).collect();
        let last = tables.len() - 1;
        code(&format!("SELECT v{last}.n FROM {} WHERE v{last}.n = {last}", tables.join(", ")))
    };
    assert_eq!(query(63), "[[Int(62)]]");
    assert_eq!(query(65), "0A000");
}

#[test]
fn reset_goes_back_to_the_beginning_of_the_session() {
    let shown = |rows: Result<Vec<Vec<Value>>, String>| rows.unwrap()[0][0].text().unwrap();
    for reset in ["RESET lock_timeout", "SET lock_timeout TO DEFAULT", "RESET ALL", "DISCARD ALL"] {
        let mut database = Database::new();
        let session = database.connect();
        database.set(session, "lock_timeout", "5s").unwrap();
        run(&mut database, session, "SET lock_timeout = '7s'").unwrap();
        assert_eq!(shown(run(&mut database, session, "SHOW lock_timeout")), "7s");
        run(&mut database, session, reset).unwrap();
        assert_eq!(shown(run(&mut database, session, "SHOW lock_timeout")), "5s", "{reset}");
        run(&mut database, session, "BEGIN; SET LOCAL lock_timeout = '9s'; COMMIT").unwrap();
        assert_eq!(shown(run(&mut database, session, "SHOW lock_timeout")), "5s", "{reset}");
    }
}

#[test]
fn several_statements_are_a_block() {
    let table = "CREATE TABLE t (id int);";
    assert_eq!(code(&format!("{table} LOCK TABLE t; INSERT INTO t VALUES (1)")), "[]");
    assert_eq!(code(&format!("{table} SAVEPOINT s")), "25P01");
    assert_eq!(code("SELECT 1; DISCARD ALL"), "25001");
    let mut database = Database::new();
    let session = database.connect();
    run(&mut database, session, table).unwrap();
    assert_eq!(run(&mut database, session, "LOCK TABLE t"), Err("25P01".to_owned()));
    run(&mut database, session, "LOCK TABLE t; INSERT INTO t VALUES (1)").unwrap();
    let parsed = Database::statements("SET LOCAL lock_timeout = 1; SELECT 1").unwrap();
    let prepared = database.prepare_parsed(session, &parsed[0], &[]).unwrap();
    let step = database.run(session, &prepared, &[], NOW);
    assert!(matches!(step, Step::Done { notices, .. } if notices.is_empty()), "no warning");
    let level = run(
        &mut database,
        session,
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SHOW transaction_isolation",
    );
    assert_eq!(level, Ok(vec![vec![Value::Text("serializable".to_owned())]]));
}
