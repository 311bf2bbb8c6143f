//! Logins, sessions that end, and messages between sessions.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use sim::clients::tokio_postgres::{AsyncMessage, Config, NoTls};
use sim::servers::postgres::PostgresHost;
use sim::{Process, Report};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::protocol::{STARTUP, kinds, says};
use super::{JOBS, code, connect, millis, script, try_connect};

#[test]
fn a_password_is_checked() {
    let (report, codes) = script(PostgresHost::new().password("secret"), |control| async move {
        let process = control.process("a");
        let mut codes = Vec::new();
        for password in ["secret", "wrong"] {
            let config = Config::new().user("app").password(password).clone();
            codes.push(try_connect(&process, &config).await.map(|_| ()).map_err(|error| code(&error)));
        }
        // Without a password the client gives up by itself.
        codes.push(
            try_connect(&process, Config::new().user("app")).await.map(|_| ()).map_err(|_| String::new()),
        );
        codes
    });
    assert_eq!(codes, [Ok(()), Err("28P01".to_owned()), Err(String::new())]);
    assert_eq!(report.probes.of("password_wrong").hit, 1);
}

#[test]
fn one_session_too_many_is_refused() {
    let (_, (second, third)) = script(PostgresHost::new().max_connections(1), |control| async move {
        let process = control.process("a");
        let first = connect(&process).await;
        let second = try_connect(&process, Config::new().user("app")).await.map(|_| ()).unwrap_err();
        drop(first);
        control.sleep(millis(100)).await;
        (code(&second), try_connect(&process, Config::new().user("app")).await.is_ok())
    });
    assert_eq!((second.as_str(), third), ("53300", true));
}

#[test]
fn a_server_that_is_not_there_is_an_error_of_the_client() {
    let (_, error) = script(PostgresHost::new(), |control| async move {
        let process = control.process("a");
        sim::clients::postgres(&process, "db:1", Config::new().user("app")).await.map(|_| ()).unwrap_err()
    });
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(source.as_deref(), Some("db:1 refused"));
}

#[test]
fn an_idle_transaction_ends_its_session() {
    let host = PostgresHost::new().preset(JOBS).preset("INSERT INTO jobs VALUES (1)");
    let host = host.setting("idle_in_transaction_session_timeout", "1s");
    let (report, (ended, waited)) = script(host, |control| async move {
        let (a, b) = (connect(&control.process("a")).await, connect(&control.process("b")).await);
        a.batch_execute("BEGIN; SELECT id FROM jobs FOR UPDATE").await.unwrap();
        let began = control.now();
        b.batch_execute("UPDATE jobs SET owner = 'b'").await.unwrap();
        (a.batch_execute("COMMIT").await.is_err(), (control.now() - began).as_millis())
    });
    assert!(ended && (990..1030).contains(&waited), "{ended} {waited}");
    assert_eq!(report.probes.of("idle_session_ended").hit, 1);
}

/// Sends parts of messages at their times, in milliseconds, to a server that ends idle sessions after a
/// second. Returns the types of the answers, all answers, and the time at which the connection ended.
fn idle(setting: &'static str, parts: &'static [(u64, &'static [u8])]) -> (String, Vec<u8>, u128) {
    let (_, (answers, ended)) =
        script(PostgresHost::new().setting(setting, "1s"), move |control| async move {
            let mut stream = control.process("a").connect("db:5432").await.unwrap();
            let began = control.now();
            stream.write_all(STARTUP).await.unwrap();
            for (at, part) in parts {
                control.sleep_until(began + millis(*at)).await;
                stream.write_all(part).await.unwrap();
            }
            let mut answers = Vec::new();
            stream.read_to_end(&mut answers).await.unwrap();
            (answers, (control.now() - began).as_millis())
        });
    (kinds(&answers), answers, ended)
}

#[test]
fn a_part_of_a_message_does_not_end_the_idle_time() {
    let (kinds, answers, ended) = idle("idle_session_timeout", &[(600, b"Q\0\0"), (900, b"\0")]);
    assert!(kinds == "E" && says(&answers, "57P05") && (1000..1050).contains(&ended), "{kinds} {ended}");
}

#[test]
fn a_session_is_idle_only_once_the_server_is_ready() {
    // Parse and Flush; Sync 1.5 seconds later, and the end of the session.
    let parts: &[(u64, &[u8])] =
        &[(0, b"P\0\0\0\x10\0SELECT 1\0\0\0H\0\0\0\x04"), (1500, b"S\0\0\0\x04X\0\0\0\x04")];
    let (kinds, _, ended) = idle("idle_session_timeout", parts);
    assert!(kinds == "1Z" && ended >= 1500, "{kinds} {ended}");
}

/// Returns the refusals that the server noted as its own.
fn unknown(report: &Report) -> Vec<String> {
    report.served.iter().flat_map(|served| served.unknown.keys().cloned()).collect()
}

#[test]
fn refusals_of_a_login_are_noted_and_those_of_postgres_are_not() {
    let (report, refused) = script(PostgresHost::new(), |control| async move {
        let config = Config::new().user("app").options("-c timezone=Europe/Berlin").clone();
        code(&try_connect(&control.process("a"), &config).await.map(|_| ()).unwrap_err())
    });
    assert_eq!(refused, "0A000");
    let unknown_to_it = unknown(&report);
    assert!(unknown_to_it.len() == 1 && unknown_to_it[0].contains("Europe/Berlin"), "{unknown_to_it:?}");
    let (report, refused) = script(PostgresHost::new().preset(JOBS), |control| async move {
        let client = connect(&control.process("a")).await;
        let statement = client.prepare("SELECT * FROM jobs").await.unwrap();
        client.batch_execute("ALTER TABLE jobs ADD COLUMN size bigint").await.unwrap();
        code(&client.query(&statement, &[]).await.unwrap_err())
    });
    assert_eq!((refused.as_str(), unknown(&report)), ("0A000", vec![]));
}

#[test]
fn an_administrator_ends_the_sessions_of_a_client() {
    let (report, is_closed) = script(PostgresHost::new().preset(JOBS), |control| async move {
        let (a, b) = (connect(&control.process("a")).await, connect(&control.process("b")).await);
        a.batch_execute("BEGIN; LOCK TABLE jobs").await.unwrap();
        control.after(millis(100), |control| {
            control.act("db", "terminate", Some("a")).unwrap();
        });
        // The lock ends with the session.
        b.batch_execute("INSERT INTO jobs VALUES (1)").await.unwrap();
        control.sleep(millis(10)).await;
        a.is_closed()
    });
    assert!(is_closed);
    assert_eq!(report.probes.of("session_terminated").hit, 1);
}

#[test]
fn a_session_that_listens_gets_notifications_after_the_commit() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let (_, ()) = script(PostgresHost::new(), |control| async move {
        let (a, b) = (control.process("a"), connect(&control.process("b")).await);
        let client = listener(&a, sink).await;
        client.batch_execute("LISTEN jobs").await.unwrap();
        b.batch_execute("BEGIN; NOTIFY jobs, 'one'; ROLLBACK; NOTIFY jobs, 'two'").await.unwrap();
        control.sleep(millis(100)).await;
    });
    assert_eq!(*heard.lock().unwrap(), ["jobs two"]);
}

/// Connects, and keeps the notifications of the session.
async fn listener(process: &Process, heard: Arc<Mutex<Vec<String>>>) -> sim::clients::tokio_postgres::Client {
    let stream = process.connect("db:5432").await.unwrap();
    let (client, mut connection) = Config::new().user("app").connect_raw(stream, NoTls).await.unwrap();
    process.spawn(async move {
        let mut messages = futures_util::stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message {
                let words = format!("{} {}", notification.channel(), notification.payload());
                heard.lock().unwrap().push(words);
            }
        }
    });
    client
}
