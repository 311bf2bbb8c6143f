//! Prepared statements and portals: what ends them.

use sim::servers::postgres::PostgresHost;

use super::protocol::{answers, message, says};
use super::{JOBS, code, connect, script};

/// Begins a transaction, runs `before`, binds a portal, takes two of its three rows, and runs `after`.
/// Returns how many rows the portal has left, or the code of its error.
fn left(before: &'static str, after: &'static str) -> Result<usize, String> {
    let host = PostgresHost::new().preset(JOBS).preset("INSERT INTO jobs VALUES (1), (2), (3)");
    let (_, left) = script(host, move |control| async move {
        let mut client = connect(&control.process("a")).await;
        let transaction = client.transaction().await.unwrap();
        transaction.batch_execute(before).await.unwrap();
        let portal = transaction.bind("SELECT id FROM jobs ORDER BY id", &[]).await.unwrap();
        assert_eq!(transaction.query_portal(&portal, 2).await.unwrap().len(), 2);
        // It may fail.
        let _ = transaction.batch_execute(after).await;
        let rows = transaction.query_portal(&portal, 2).await;
        rows.map(|rows| rows.len()).map_err(|error| code(&error))
    });
    left
}

#[test]
fn a_portal_does_not_run_in_a_failed_transaction() {
    assert_eq!(left("SELECT 1", "SELECT 1 / 0"), Err("25P02".to_owned()));
    assert_eq!(left("SELECT 1", "SAVEPOINT a; SELECT 1 / 0"), Err("25P02".to_owned()));
    // One from before the savepoint outlives it.
    assert_eq!(left("SELECT 1", "SAVEPOINT a; ROLLBACK TO a"), Ok(1));
}

#[test]
fn a_portal_ends_with_its_transaction() {
    for after in ["COMMIT AND CHAIN", "ROLLBACK AND CHAIN", "COMMIT; BEGIN", "COMMIT; BEGIN; SAVEPOINT a"] {
        assert_eq!(left("SELECT 1", after), Err("34000".to_owned()), "{after}");
    }
}

#[test]
fn a_portal_ends_with_its_savepoint() {
    let gone = Err("34000".to_owned());
    assert_eq!(left("SAVEPOINT a", "ROLLBACK TO a"), gone);
    assert_eq!(left("SAVEPOINT A; SAVEPOINT \"B\"", "ROLLBACK WORK TO SAVEPOINT a"), gone);
    // A savepoint that is released is a part of the one around it.
    assert_eq!(left("SAVEPOINT a; SAVEPOINT b", "RELEASE b; ROLLBACK TO a"), gone);
    assert_eq!(left("SAVEPOINT a; SAVEPOINT b", "RELEASE a; SAVEPOINT a; ROLLBACK TO a"), Ok(1));
}

#[test]
fn a_portal_of_a_pipeline_ends_with_its_commit() {
    // Binds the portal `p` to BEGIN's transaction, commits and begins within the pipeline, and runs it.
    let parse = |name: &str, sql: &str| message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes());
    let bind = |portal: &str, name: &str| message(b'B', format!("{portal}\0{name}\0\0\0\0\0\0\0").as_bytes());
    let execute = |portal: &str| message(b'E', format!("{portal}\0\0\0\0\0").as_bytes());
    let messages = [
        message(b'Q', b"BEGIN\0"),
        [parse("c", "COMMIT"), parse("b", "BEGIN"), parse("s", "SELECT 1"), bind("p", "s")].concat(),
        [bind("", "c"), execute(""), bind("", "b"), execute(""), execute("p")].concat(),
        message(b'S', b""),
    ];
    let (kinds, answers) = answers(messages.concat());
    assert_eq!(kinds, "CZ11122C2CEZ");
    assert!(says(&answers, "34000") && says(&answers, "portal \"p\" does not exist"));
}

#[test]
fn deallocate_and_discard_drop_prepared_statements() {
    let (_, codes) = script(PostgresHost::new(), |control| async move {
        let client = connect(&control.process("a")).await;
        let mut codes = Vec::new();
        for drop_all in ["DEALLOCATE ALL", "DISCARD ALL"] {
            let statement = client.prepare("SELECT 1").await.unwrap();
            client.query(&statement, &[]).await.unwrap();
            client.batch_execute(drop_all).await.unwrap();
            codes.push(code(&client.query(&statement, &[]).await.unwrap_err()));
        }
        codes.push(code(&client.batch_execute("DEALLOCATE nosuch").await.unwrap_err()));
        codes
    });
    assert_eq!(codes, ["26000", "26000", "26000"]);
}

#[test]
fn the_name_of_a_dropped_statement_is_free() {
    let parse = message(b'P', b"s1\0SELECT 1\0\0\0");
    let sync = message(b'S', b"");
    for drop_it in [&b"DEALLOCATE S1\0"[..], b"DEALLOCATE PREPARE \"s1\"\0", b"DEALLOCATE ALL\0"] {
        let bytes = [&parse, &sync, &message(b'Q', drop_it), &parse, &sync].map(Vec::as_slice).concat();
        assert_eq!(answers(bytes).0, "1ZCZ1Z");
    }
    let bytes = [&parse, &sync, &message(b'Q', b"DEALLOCATE \"S1\"\0"), &sync].map(Vec::as_slice).concat();
    let (kinds, answers) = answers(bytes);
    assert!(kinds == "1ZEZZ" && says(&answers, "prepared statement \"S1\" does not exist"), "{kinds}");
}
