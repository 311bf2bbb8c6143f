//! The messages of a client.

use bytes::{Bytes, BytesMut};

use super::super::Parts;
use super::super::words::text;
use super::Unit;
use crate::servers::postgres::frontend::{Frame, Frontend, FrontendError, Opening, Phase, Target};

/// Splits a client's bytes into units. Also returns how often it has asked for encryption.
pub(super) fn parts(bytes: &[u8]) -> (Parts, usize) {
    let (mut parts, mut unit) = (Parts::default(), Unit::default());
    let mut input = BytesMut::from(bytes);
    let mut asked_for_encryption = 0;
    while let Ok(Some(opening)) = Opening::take(&mut input) {
        let is_last = !matches!(opening, Opening::Encryption);
        asked_for_encryption += usize::from(!is_last);
        unit.add(opened(opening));
        unit.finish(&mut parts, bytes.len() - input.len(), false, "");
        if is_last {
            break;
        }
    }
    while let Ok(Some(message)) = message(&mut input) {
        let end = bytes.len() - input.len();
        let is_last = matches!(
            message,
            Frontend::Query(_)
                | Frontend::Sync
                | Frontend::Flush
                | Frontend::Terminate
                | Frontend::Password(_)
        );
        if let Some(words) = words(message) {
            unit.add(words);
        }
        if is_last {
            unit.finish(&mut parts, end, false, "Sync");
        }
    }
    // Nothing is left of a connection with a first message that is not whole.
    let end = if parts.parts.is_empty() { 0 } else { bytes.len() - input.len() };
    unit.finish(&mut parts, end, false, "");
    (parts, asked_for_encryption)
}

fn message(input: &mut BytesMut) -> Result<Option<Frontend>, FrontendError> {
    let is_login = input.first() == Some(&b'p');
    let mut ahead = input.clone();
    let frame = Frame::take(&mut ahead, if is_login { Phase::Login } else { Phase::Session })?;
    let Some(frame) = frame else { return Ok(None) };
    let message = frame.read()?;
    // A message that can't be read stays in the input.
    *input = ahead;
    Ok(Some(message))
}

fn opened(opening: Opening) -> String {
    match opening {
        Opening::Encryption => "asks for encryption".to_owned(),
        Opening::Cancel { process, .. } => format!("cancel the statement of process {process}"),
        Opening::Startup { parameters, .. } => {
            let of_session = parameters.iter().filter(|(name, _)| name != "client_encoding");
            let parameters = of_session.map(|(name, value)| format!("{name} {}", text(value.as_bytes())));
            format!("startup, {}", parameters.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Formats a message; `None` for those that have no words in a unit.
fn words(message: Frontend) -> Option<String> {
    Some(match message {
        Frontend::Query(sql) => format!("Query {}", statement(&sql)),
        Frontend::Parse { statement: name, sql, .. } => {
            format!("Parse{} {}", named(&name), statement(&sql))
        }
        Frontend::Bind { portal, statement, values, .. } => {
            format!("Bind{}{} ({})", named(&statement), named(&portal), listed(&values))
        }
        Frontend::Execute { portal, limit: 0 } => format!("Execute{}", named(&portal)),
        Frontend::Execute { portal, limit } => format!("Execute{} up to {limit} rows", named(&portal)),
        Frontend::Describe(target) => format!("Describe{}", name(&target)),
        Frontend::Close(target) => format!("Close{}", name(&target)),
        Frontend::Flush => "Flush".to_owned(),
        Frontend::Terminate => "Terminate".to_owned(),
        Frontend::FunctionCall => "FunctionCall".to_owned(),
        Frontend::Copy => "COPY data".to_owned(),
        Frontend::Password(_) => "password".to_owned(),
        Frontend::Sync => return None,
    })
}

/// Formats SQL in quotes, on one line.
fn statement(sql: &str) -> String {
    format!("\"{}\"", sql.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn listed(values: &[Option<Bytes>]) -> String {
    let values = values.iter().map(|value| value.as_ref().map_or("NULL".to_owned(), |value| text(value)));
    values.collect::<Vec<_>>().join(", ")
}

fn name(target: &Target) -> String {
    let (Target::Statement(name) | Target::Portal(name)) = target;
    named(name)
}

/// Returns the name after a space; nothing for the one without a name.
fn named(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" {}", text(name.as_bytes())) }
}
