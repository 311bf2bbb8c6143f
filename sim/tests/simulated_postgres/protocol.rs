//! The protocol: values in both formats, portals, errors within pipelines, and messages that are malformed.

use sim::clients::tokio_postgres::SimpleQueryMessage;
use sim::servers::postgres::PostgresHost;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{JOBS, code, connect, script};

#[test]
fn values_come_back_in_both_formats() {
    let (_, (binary, text)) = script(PostgresHost::new(), |control| async move {
        let client = connect(&control.process("a")).await;
        let sql = "SELECT $1::int, $2::bigint, $3::text, $4::bool, $5::float8, $6::bytea, $7::bigint[]";
        let (small, large, text, truth, float) = (7_i32, 1_i64 << 40, "größer", true, 1.5_f64);
        let (bytes, list) = (vec![0_u8, 255], vec![1_i64, 2]);
        let row =
            client.query_one(sql, &[&small, &large, &text, &truth, &float, &bytes, &list]).await.unwrap();
        let binary: (i32, i64, String, bool, f64, Vec<u8>, Vec<i64>) =
            (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4), row.get(5), row.get(6));
        assert_eq!(binary, (small, large, text.to_owned(), truth, float, bytes, list));
        let messages = client.simple_query("SELECT 7, 'a' AS b, NULL; SELECT 1 WHERE false").await.unwrap();
        let text: Vec<String> = messages
            .iter()
            .map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    format!("{:?} {:?} {:?}", row.get(0), row.get("b"), row.get(2))
                }
                SimpleQueryMessage::CommandComplete(count) => format!("complete {count}"),
                SimpleQueryMessage::RowDescription(columns) => format!("{} columns", columns.len()),
                other => format!("{other:?}"),
            })
            .collect();
        (row.len(), text)
    });
    assert_eq!(binary, 7);
    let row = "Some(\"7\") Some(\"a\") None";
    assert_eq!(text, ["3 columns", row, "complete 1", "1 columns", "complete 0"]);
}

#[test]
fn a_portal_returns_its_rows_in_parts() {
    let (report, parts) = script(PostgresHost::new().preset(JOBS), |control| async move {
        let mut client = connect(&control.process("a")).await;
        client.batch_execute("INSERT INTO jobs VALUES (1), (2), (3)").await.unwrap();
        let transaction = client.transaction().await.unwrap();
        let portal = transaction.bind("SELECT id FROM jobs ORDER BY id", &[]).await.unwrap();
        let mut parts = Vec::new();
        for _ in 0..3 {
            let rows = transaction.query_portal(&portal, 2).await.unwrap();
            parts.push(rows.iter().map(|row| row.get(0)).collect::<Vec<i64>>());
        }
        parts
    });
    assert_eq!(parts, [vec![1, 2], vec![3], vec![]]);
    assert_eq!(report.probes.of("portal_suspended").hit, 1);
}

#[test]
fn statements_of_one_text_share_a_transaction() {
    let (_, (error, jobs)) = script(PostgresHost::new().preset(JOBS), |control| async move {
        let client = connect(&control.process("a")).await;
        let text = "INSERT INTO jobs VALUES (1); INSERT INTO jobs VALUES (1); INSERT INTO jobs VALUES (2)";
        let error = client.batch_execute(text).await.unwrap_err();
        (code(&error), super::jobs(&client).await)
    });
    assert_eq!((error.as_str(), jobs), ("23505", vec![]));
}

#[test]
fn a_failed_transaction_refuses_all_but_its_end() {
    let (_, codes) = script(PostgresHost::new(), |control| async move {
        let client = connect(&control.process("a")).await;
        client.batch_execute("BEGIN").await.unwrap();
        let mut codes = Vec::new();
        for sql in ["SELECT 1 / 0", "SELECT 1", "ROLLBACK", "SELECT 1", "COPY jobs FROM STDIN"] {
            codes.push(client.batch_execute(sql).await.err().map(|error| code(&error)));
        }
        codes
    });
    let codes: Vec<_> = codes.iter().map(|code| code.as_deref().unwrap_or("ok")).collect();
    assert_eq!(codes, ["22012", "25P02", "ok", "ok", "0A000"]);
}

/// The first packet of a client.
pub(super) const STARTUP: &[u8] = b"\0\0\0\x12\0\x03\0\0user\0app\0\0";

/// Returns a message with its type and its length.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind][..], &length, body].concat()
}

/// Sends bytes as a client that logs in, and then leaves if the server does not. Returns the types of the
/// messages that come back.
pub(super) fn answers(bytes: impl Into<Vec<u8>>) -> (String, Vec<u8>) {
    exchange(bytes, true)
}

/// Sends bytes as a client that logs in. Returns the types of the messages that come back, up to the end of
/// the connection.
fn exchange(bytes: impl Into<Vec<u8>>, leaves: bool) -> (String, Vec<u8>) {
    let bytes = bytes.into();
    let (_, answers) = script(PostgresHost::new().preset(JOBS), move |control| async move {
        let mut stream = control.process("a").connect("db:5432").await.unwrap();
        stream.write_all(STARTUP).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        if leaves {
            stream.shutdown().await.unwrap();
        }
        let mut answers = Vec::new();
        stream.read_to_end(&mut answers).await.unwrap();
        answers
    });
    (kinds(&answers), answers)
}

/// Returns the types of the messages that come after the login.
pub(super) fn kinds(answers: &[u8]) -> String {
    let (mut kinds, mut rest) = (String::new(), answers);
    while let Some((kind, length)) =
        rest.split_first().and_then(|(kind, rest)| Some((kind, rest.first_chunk()?)))
    {
        kinds.push(char::from(*kind));
        rest = &rest[1 + u32::from_be_bytes(*length) as usize..];
    }
    kinds.trim_start_matches(['R', 'S', 'K']).strip_prefix('Z').unwrap().to_owned()
}

/// Returns true if the answers have this text.
pub(super) fn says(answers: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(answers).contains(text)
}

#[test]
fn an_error_skips_all_messages_up_to_sync() {
    // Execute of a portal that is not there; Bind and a query are skipped; Sync; a query.
    let bytes = b"E\0\0\0\x0ax\0\0\0\0\0B\0\0\0\x0c\0\0\0\0\0\0\0\0Q\0\0\0\x0dSELECT 1\0\
        S\0\0\0\x04Q\0\0\0\x0dSELECT 1\0";
    let (kinds, answers) = answers(bytes);
    assert_eq!(kinds, "EZTDCZ");
    assert!(says(&answers, "portal \"x\" does not exist"));
}

#[test]
fn malformed_messages_get_the_errors_of_postgres() {
    let (kinds, refused) = answers(b"!\0\0\0\x04");
    assert!(kinds == "E" && says(&refused, "SFATAL") && says(&refused, "invalid frontend message type 33"));
    // A length that is too large: the connection ends without a word.
    assert_eq!(exchange(b"S\0\x01\0\0", false).0, "");
    let (kinds, refused) = answers(b"Q\0\0\0\x06\xff\0");
    assert!(kinds == "EZ" && says(&refused, "22021"), "{kinds}");
    let (kinds, refused) = answers(b"F\0\0\0\x04");
    assert!(kinds == "EZ" && says(&refused, "0A000"), "{kinds}");
    // An empty query.
    assert_eq!(answers(b"Q\0\0\0\x05\0").0, "IZ");
}

#[test]
fn an_error_of_the_protocol_fails_the_transaction() {
    let bytes = b"Q\0\0\0\x0aBEGIN\0E\0\0\0\x0ax\0\0\0\0\0S\0\0\0\x04";
    let (kinds, answers) = answers(bytes);
    assert!(kinds == "CZEZ" && answers.ends_with(b"Z\0\0\0\x05E"), "{kinds}");
}

#[test]
fn the_login_reports_the_settings_of_postgres() {
    let (_, login) = answers(b"X\0\0\0\x04");
    let settings = ["server_version\x0015.", "client_encoding\0UTF8\0", "integer_datetimes\0on\0"];
    for setting in settings.into_iter().chain(["session_authorization\0app\0"]) {
        assert!(says(&login, setting), "{setting:?}");
    }
}

#[test]
fn encryption_is_declined() {
    let (_, answer) = script(PostgresHost::new(), |control| async move {
        let mut stream = control.process("a").connect("db:5432").await.unwrap();
        stream.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").await.unwrap();
        stream.read_u8().await.unwrap()
    });
    assert_eq!(answer, b'N');
}
