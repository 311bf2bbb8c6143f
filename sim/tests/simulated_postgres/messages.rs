//! The messages of clients and server in traces.

use sim::servers::postgres::PostgresHost;

use super::{JOBS, connect, world};

/// Returns the messages of a session between `a` and the server, with `#` for the numbers of statements,
/// which the client counts in the whole program, and of the server's process.
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
    report
        .messages
        .iter()
        .map(|message| format!("{}: {}", message.from, unnumbered(&message.words)))
        .collect()
}

fn unnumbered(words: &str) -> String {
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let mut before = "";
    let mut shown = Vec::new();
    for word in words.split(' ') {
        let name = word.trim_end_matches(',');
        let rest = &word[name.len()..];
        shown.push(match name.strip_prefix('s') {
            Some(digits) if is_number(digits) => format!("s#{rest}"),
            _ if before == "process" => format!("#{rest}"),
            _ => word.to_owned(),
        });
        before = word;
    }
    shown.join(" ")
}

#[test]
fn a_session_reads_as_statements_and_their_answers() {
    let messages = messages();
    let expected = [
        "a: startup, user app",
        "db: logged in, process #",
        "a: Parse s# \"INSERT INTO jobs VALUES (1, $1)\", Describe s#",
        "db: parsed",
        "a: Bind s# (a), Execute",
        "db: INSERT 0 1",
        "a: Close s#",
        "a: Query \"BEGIN; SELECT owner FROM jobs\"",
        "db: closed",
        "db: BEGIN, 1 column, (a), SELECT 1, in a transaction",
        "a: Query \"INSERT INTO jobs VALUES (1)\"",
        "db: (error) 23505 duplicate key value violates unique constraint \"jobs_pkey\", in a failed \
         transaction",
    ];
    assert_eq!(messages, expected);
}
