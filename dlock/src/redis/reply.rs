//! Reads the answers of the scripts.

use std::time::Duration;

use redis::{ServerError, ServerErrorKind, Value};

use crate::error::BackendError;
use crate::token::FencingToken;

/// Errors after which the same request may succeed: the server is starting, failing over, busy or full. It
/// executed nothing. By their first word.
const PASSING: [&str; 9] =
    ["LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "OOM", "MISCONF", "NOREPLICAS"];

/// The answer of `acquire.lua`, `acquire_by_time.lua` and Redlock's `vote.lua`; with `()` as its token, that
/// of a request without one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Grant<T = FencingToken> {
    /// Granted now.
    New { token: T },
    /// Granted before, to the same owner; the lease lives for `left` more.
    Known { token: T, left: Duration },
    /// Taken by another owner, for `left` more or forever. `vote.lua` also returns that owner.
    Taken { left: Option<Duration>, by: Option<Box<str>> },
}

/// The answer of `acquire_in_turn.lua`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The claim has the lease, beside those of a semaphore with these tokens.
    Granted(Grant, Vec<FencingToken>),
    /// It waits at `position`; if it is the first, for a lease with `left`.
    Placed { position: u64, left: Option<Duration> },
    /// It may not wait: `waiting` others do.
    Full { waiting: u32 },
}

/// Returns whether the server is a replica now: the next connection may lead to its new primary.
pub(super) fn is_read_only(value: &Value) -> bool {
    has_kind(value, ServerErrorKind::ReadOnly)
}

/// Returns whether the server does not know the digest of a script.
pub(super) fn is_unknown_script(value: &Value) -> bool {
    has_kind(value, ServerErrorKind::NoScript)
}

/// Reads the answer of a PING: a user who may not send it is logged in all the same.
pub(super) fn greeting(value: &Value) -> Result<(), BackendError> {
    match value {
        Value::ServerError(error) if error.code() != "NOPERM" => Err(refused(value)),
        _ => Ok(()),
    }
}

/// Returns whether the server does not know the options of a command.
pub(super) fn is_syntax_error(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if error.details() == Some("syntax error"))
}

/// Returns whether the user may not send the text of a script.
pub(super) fn forbids_text(value: &Value) -> bool {
    let is_forbidden = |details: &str| details.contains("'eval' command");
    matches!(value, Value::ServerError(error)
        if error.code() == "NOPERM" && error.details().is_some_and(is_forbidden))
}

fn has_kind(value: &Value, kind: ServerErrorKind) -> bool {
    matches!(value, Value::ServerError(error) if error.kind() == Some(kind))
}

/// Reads the answer of a script that changes a lease only for its owner; returns true if it did.
pub(super) fn is_done(value: &Value) -> Result<bool, BackendError> {
    match value {
        Value::Int(number) => Ok(*number == 1),
        other => Err(refused(other)),
    }
}

/// Reads the answer of a script that grants.
pub(super) fn grant(value: &Value) -> Result<Grant, BackendError> {
    let items = match value {
        Value::Int(fence) => return Ok(Grant::New { token: token(*fence)? }),
        Value::BulkString(fence) => return Ok(Grant::New { token: token_in(fence)? }),
        Value::Array(items) => items,
        other => return Err(refused(other)),
    };
    match items.as_slice() {
        [Value::Int(1), Value::Int(fence), Value::Int(left)] => {
            Ok(Grant::Known { token: token(*fence)?, left: millis(*left).unwrap_or_default() })
        }
        [Value::Int(1), Value::BulkString(fence), Value::Int(left)] => {
            Ok(Grant::Known { token: token_in(fence)?, left: millis(*left).unwrap_or_default() })
        }
        [Value::Int(0), Value::Int(left)] => Ok(Grant::Taken { left: millis(*left), by: None }),
        [Value::Int(0), Value::Int(left), Value::BulkString(owner)] => {
            Ok(Grant::Taken { left: millis(*left), by: Some(String::from_utf8_lossy(owner).into()) })
        }
        [Value::Int(1), Value::Nil, Value::Int(_)] => Err(lost_counter()),
        _ => Err(refused(value)),
    }
}

/// Reads the answer of [`unfenced::request`](super::unfenced::request).
pub(super) fn unfenced(value: &Value) -> Result<Grant<()>, BackendError> {
    if *value == Value::Okay {
        return Ok(Grant::New { token: () });
    }
    if let Value::Array(items) = value
        && let [Value::Int(1), Value::Int(left)] = items.as_slice()
    {
        return Ok(Grant::Known { token: (), left: millis(*left).unwrap_or_default() });
    }
    Ok(match grant(value)? {
        Grant::New { .. } => Grant::New { token: () },
        Grant::Known { left, .. } => Grant::Known { token: (), left },
        Grant::Taken { left, by } => Grant::Taken { left, by },
    })
}

/// Reads the answer of a script that grants beside others: the grant, and the tokens of the others in
/// ascending order.
pub(super) fn grant_beside(value: &Value) -> Result<(Grant, Vec<FencingToken>), BackendError> {
    let Value::Array(items) = value else { return grant(value).map(|grant| (grant, Vec::new())) };
    let (grant, others) = match items.as_slice() {
        [Value::Int(2), Value::BulkString(fence), others @ ..] => {
            (Grant::New { token: token_in(fence)? }, others)
        }
        [known @ Value::Int(1), fence, left, others @ ..] => {
            let parts = [known, fence, left].map(Clone::clone);
            (grant(&Value::Array(parts.into()))?, others)
        }
        _ => (grant(value)?, &[][..]),
    };
    let mut beside = others.iter().map(token_of).collect::<Result<Vec<_>, _>>()?;
    beside.sort_unstable();
    Ok((grant, beside))
}

/// Reads the answer of a script that grants in turn.
pub(super) fn turn(value: &Value) -> Result<Turn, BackendError> {
    let Value::Array(items) = value else { return Err(refused(value)) };
    match items.as_slice() {
        [Value::Int(0), Value::Int(left), Value::Int(place)] => {
            let position = u64::try_from(*place).map_err(|_| refused(value))?;
            Ok(Turn::Placed { position, left: millis(*left) })
        }
        [Value::Int(3), Value::Int(waiting)] => {
            Ok(Turn::Full { waiting: u32::try_from(*waiting).map_err(|_| refused(value))? })
        }
        [Value::Int(1 | 2), ..] => grant_beside(value).map(|(grant, beside)| Turn::Granted(grant, beside)),
        _ => Err(refused(value)),
    }
}

fn token_of(value: &Value) -> Result<FencingToken, BackendError> {
    match value {
        Value::BulkString(text) => token_in(text),
        _ => Err(lost_counter()),
    }
}

fn token(fence: i64) -> Result<FencingToken, BackendError> {
    u64::try_from(fence).ok().and_then(FencingToken::new).ok_or_else(lost_counter)
}

/// Reads a token that a script gives as the text of the counter.
pub(super) fn token_in(text: &[u8]) -> Result<FencingToken, BackendError> {
    let fence = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    token(fence.ok_or_else(lost_counter)?)
}

fn millis(number: i64) -> Option<Duration> {
    u64::try_from(number).ok().map(Duration::from_millis)
}

/// Returns the error for a lock whose counter was evicted, deleted or overwritten: its next tokens would be
/// below those in use.
pub(super) fn lost_counter() -> BackendError {
    let message = "the fencing counter of the lock is gone or below 1: set it above the resource's highest \
         token, and keep keys named lock:* from eviction";
    BackendError::Refused { message: message.into(), passing: false }
}

/// Returns the error for an answer that is none of a script.
pub(super) fn refused(value: &Value) -> BackendError {
    match value {
        // Otherwise the text would have been sent.
        value if is_unknown_script(value) => {
            let message = "the user may not send EVAL, and the server does not know the script: allow EVAL, or \
                 load the scripts (dlock::scripts) by SCRIPT LOAD after each start of the server";
            BackendError::Refused { message: message.into(), passing: false }
        }
        Value::ServerError(error) => {
            BackendError::Refused { message: text(error), passing: is_passing(error) }
        }
        other => {
            let message = format!("an answer that no script gives: {other:?}");
            BackendError::Refused { message, passing: false }
        }
    }
}

fn text(error: &ServerError) -> String {
    format!("{} {}", error.code(), error.details().unwrap_or_default())
}

/// Returns whether the same request may succeed later.
pub(super) fn is_passing(error: &ServerError) -> bool {
    PASSING.contains(&error.code())
        || error.details().is_some_and(|text| text.contains("max number of clients"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(numbers: &[i64]) -> Result<Grant, BackendError> {
        grant(&Value::Array(numbers.iter().copied().map(Value::Int).collect()))
    }

    #[test]
    fn every_answer_of_the_acquire_script_is_read() {
        let token = FencingToken::new(7).unwrap();
        let left = Duration::from_millis(40);
        assert_eq!(grant(&Value::Int(7)), Ok(Grant::New { token }));
        assert_eq!(read(&[1, 7, 40]), Ok(Grant::Known { token, left }));
        assert_eq!(read(&[1, 7, -1]), Ok(Grant::Known { token, left: Duration::ZERO }));
        assert_eq!(read(&[0, 40]), Ok(Grant::Taken { left: Some(left), by: None }));
        assert_eq!(read(&[0, -1]), Ok(Grant::Taken { left: None, by: None }));
        let beyond_doubles = FencingToken::new((1 << 53) + 1).unwrap();
        let text = Value::BulkString(b"9007199254740993".into());
        assert_eq!(grant(&text), Ok(Grant::New { token: beyond_doubles }));
        let known = Value::Array(vec![Value::Int(1), text, Value::Int(40)]);
        assert_eq!(grant(&known), Ok(Grant::Known { token: beyond_doubles, left }));
        let vote = Value::Array(vec![Value::Int(0), Value::Int(40), Value::BulkString(b"b:7f".into())]);
        assert_eq!(grant(&vote), Ok(Grant::Taken { left: Some(left), by: Some("b:7f".into()) }));
    }

    #[test]
    fn a_lease_whose_counter_is_gone_is_no_grant() {
        let answers = [Value::Int(0), Value::Int(-5)].map(|value| grant(&value));
        let gone = [Value::Nil, Value::BulkString(b"seven".into())]
            .map(|fence| grant(&Value::Array(vec![Value::Int(1), fence, Value::Int(40)])));
        for answer in answers.into_iter().chain(gone).chain([read(&[1, 0, 40]), read(&[1, -5, 40])]) {
            let error = answer.unwrap_err();
            assert!(!error.is_passing());
            assert!(error.to_string().contains("fencing counter"), "{error}");
        }
    }

    #[test]
    fn a_user_who_may_not_send_a_text_is_known_by_the_error() {
        let error = |line: &str| redis::parse_redis_value(line.as_bytes()).unwrap();
        for words in ["this user has", "User app has"] {
            let line = format!("-NOPERM {words} no permissions to run the 'eval' command\r\n");
            assert!(forbids_text(&error(&line)), "{line}");
        }
        for line in ["-NOPERM No permissions to access a key\r\n", "-ERR unknown command 'eval' command\r\n"]
        {
            assert!(!forbids_text(&error(line)), "{line}");
        }
        let unknown = refused(&error("-NOSCRIPT No matching script. Please use EVAL.\r\n"));
        assert!(unknown.to_string().contains("SCRIPT LOAD") && !unknown.is_passing(), "{unknown}");
    }

    #[test]
    fn an_answer_that_no_script_gives_is_refused() {
        for value in [Value::Nil, Value::Okay, Value::Array(vec![])] {
            assert!(!grant(&value).unwrap_err().is_passing());
        }
        assert!(read(&[1, 7]).is_err());
        assert!(read(&[2, 7]).is_err());
    }

    fn text(number: u64) -> Value {
        Value::BulkString(number.to_string().into())
    }

    fn tokens<const N: usize>(numbers: [u64; N]) -> Vec<FencingToken> {
        numbers.into_iter().filter_map(FencingToken::new).collect()
    }

    #[test]
    fn every_answer_of_a_script_with_others_is_read() {
        let (token, left) = (FencingToken::new(9).unwrap(), Duration::from_millis(40));
        let new = Value::Array(vec![Value::Int(2), text(9), text(8), text(3)]);
        assert_eq!(grant_beside(&new), Ok((Grant::New { token }, tokens([3, 8]))));
        let known = Value::Array(vec![Value::Int(1), text(9), Value::Int(40), text(12)]);
        assert_eq!(grant_beside(&known), Ok((Grant::Known { token, left }, tokens([12]))));
        let taken = Value::Array(vec![Value::Int(0), Value::Int(40)]);
        assert_eq!(grant_beside(&taken), Ok((Grant::Taken { left: Some(left), by: None }, vec![])));
    }

    #[test]
    fn every_answer_of_a_script_with_a_queue_is_read() {
        let numbers = |numbers: &[i64]| Value::Array(numbers.iter().copied().map(Value::Int).collect());
        let (token, left) = (FencingToken::new(9).unwrap(), Duration::from_millis(40));
        let new = Value::Array(vec![Value::Int(2), text(9)]);
        assert_eq!(turn(&new), Ok(Turn::Granted(Grant::New { token }, vec![])));
        let known = Value::Array(vec![Value::Int(1), text(9), Value::Int(40)]);
        assert_eq!(turn(&known), Ok(Turn::Granted(Grant::Known { token, left }, vec![])));
        assert_eq!(turn(&numbers(&[0, 40, 12])), Ok(Turn::Placed { position: 12, left: Some(left) }));
        assert_eq!(turn(&numbers(&[0, -1, 13])), Ok(Turn::Placed { position: 13, left: None }));
        assert_eq!(turn(&numbers(&[3, 5])), Ok(Turn::Full { waiting: 5 }));
        for other in [numbers(&[0, 40]), numbers(&[3]), numbers(&[0, 1, -1]), Value::Int(7), Value::Nil] {
            assert!(!turn(&other).unwrap_err().is_passing());
        }
    }

    #[test]
    fn an_answer_that_no_script_with_others_gives_is_refused() {
        let without_token = Value::Array(vec![Value::Int(1), Value::Nil, Value::Int(40)]);
        let bad_other = Value::Array(vec![Value::Int(2), text(9), Value::Nil]);
        for value in [Value::Nil, Value::Array(vec![Value::Int(2)]), without_token, bad_other] {
            assert!(!grant_beside(&value).unwrap_err().is_passing());
        }
    }
}
