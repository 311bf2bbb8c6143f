//! The messages of clients and server in traces.

use sim::servers::postgres::PostgresHost;

use super::{JOBS, connect, world};

/// Returns the messages of a session between `a` and the server.
fn messages() -> Vec<String> {
    let mut sim = world(PostgresHost::new().preset(JOBS));
    sim.record_messages();
    let (report, ()) = sim
        .run_script(|control| async move {
            let client = connect(&control.process("a")).await;
            client.execute("INSERT INTO jobs VALUES (1, $1)", &[&"a"]).await.unwrap();
            client.batch_execute("BEGIN; SELECT owner FROM jobs").await.unwrap();
            client.batch_execute("INSERT INTO jobs VALUES (1)").await.unwrap_err();
        })
        .unwrap();
    report.messages.iter().map(|message| format!("{}: {}", message.from, message.words)).collect()
}

#[test]
fn a_session_reads_as_statements_and_their_answers() {
    let messages = messages();
    let expected = [
        "a: startup, user app",
        "db: logged in, process 1",
        "a: Parse s0 \"INSERT INTO jobs VALUES (1, $1)\", Describe s0",
        "db: parsed",
        "a: Bind s0 (a), Execute",
        "db: INSERT 0 1",
        "a: Close s0",
        "db: closed",
        "a: Query \"BEGIN; SELECT owner FROM jobs\"",
        "db: BEGIN, 1 column, (a), SELECT 1, in a transaction",
        "a: Query \"INSERT INTO jobs VALUES (1)\"",
        "db: (error) 23505 duplicate key value violates unique constraint \"jobs_pkey\", in a failed transaction",
    ];
    assert_eq!(messages, expected);
}
