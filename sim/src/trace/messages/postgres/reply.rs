//! The messages of a server.

use bytes::BytesMut;
use postgres_protocol::message::backend::{DataRowBody, ErrorFields, Message};
use tokio_postgres::fallible_iterator::FallibleIterator;

use super::super::Parts;
use super::super::words::{text, without_owners};
use super::Unit;

/// Splits a server's bytes into units. The first `plain` bytes answer requests for encryption.
pub(super) fn parts(bytes: &[u8], plain: usize) -> Parts {
    let (mut parts, mut unit) = (Parts::default(), Unit::default());
    for end in 1..=plain.min(bytes.len()) {
        parts.push(end, true, "no encryption".to_owned());
    }
    let mut input = BytesMut::from(bytes.get(parts.read..).unwrap_or_default());
    let mut end = parts.read;
    while let Ok(Some(message)) = Message::parse(&mut input) {
        end = bytes.len() - input.len();
        let is_last = matches!(
            message,
            Message::ReadyForQuery(_)
                | Message::AuthenticationSasl(_)
                | Message::AuthenticationSaslContinue(_)
        );
        // A notification between two units answers nothing.
        let is_reply = !(unit.0.is_empty() && matches!(message, Message::NotificationResponse(_)));
        if let Some(words) = words(&message) {
            unit.add(words);
        }
        if is_last || !is_reply {
            unit.finish(&mut parts, end, is_reply, "ready");
        }
    }
    unit.finish(&mut parts, end, true, "done");
    parts
}

/// Formats a message; `None` for those that have no words in a unit.
fn words(message: &Message) -> Option<String> {
    Some(match message {
        Message::AuthenticationSasl(_) => "asks for a password".to_owned(),
        Message::AuthenticationSaslContinue(_) => "challenge".to_owned(),
        Message::AuthenticationOk => "logged in".to_owned(),
        Message::BackendKeyData(key) => format!("process {}", key.process_id()),
        Message::ParseComplete => "parsed".to_owned(),
        Message::CloseComplete => "closed".to_owned(),
        Message::EmptyQueryResponse => "empty query".to_owned(),
        Message::PortalSuspended => "more rows are left".to_owned(),
        Message::RowDescription(columns) => match columns.fields().count().ok()? {
            1 => "1 column".to_owned(),
            count => format!("{count} columns"),
        },
        Message::DataRow(row) => format!("({})", values(row)?),
        Message::CommandComplete(done) => done.tag().ok()?.to_owned(),
        Message::ErrorResponse(error) => format!("(error) {}", report(error.fields())?),
        Message::NoticeResponse(notice) => format!("(notice) {}", report(notice.fields())?),
        Message::NotificationResponse(notification) => format!(
            "notification {} {}",
            text(notification.channel().ok()?.as_bytes()),
            text(notification.message().ok()?.as_bytes())
        ),
        Message::ReadyForQuery(ready) if ready.status() == b'T' => "in a transaction".to_owned(),
        Message::ReadyForQuery(ready) if ready.status() == b'E' => "in a failed transaction".to_owned(),
        _ => return None,
    })
}

fn values(row: &DataRowBody) -> Option<String> {
    let value = |range: Option<std::ops::Range<usize>>| match range {
        Some(range) => row.buffer().get(range).map_or_else(String::new, text),
        None => "NULL".to_owned(),
    };
    Some(row.ranges().map(|range| Ok(value(range))).collect::<Vec<_>>().ok()?.join(", "))
}

/// Formats the code and the message of an error.
fn report(mut fields: ErrorFields<'_>) -> Option<String> {
    let (mut code, mut message) = (String::new(), String::new());
    while let Some(field) = fields.next().ok()? {
        let value = String::from_utf8_lossy(field.value_bytes());
        match field.type_() {
            b'C' => code = value.into_owned(),
            b'M' => message = without_owners(&value).into_owned(),
            _ => {}
        }
    }
    Some(format!("{code} {message}"))
}
