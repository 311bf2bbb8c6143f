//! Reading the server's answers.

use std::sync::Arc;
use std::time::Duration;

use redis::{ServerError, ServerErrorKind, Value};

use super::connection::Connection;
use crate::error::BackendError;
use crate::runtime::Instant;
use crate::token::FencingToken;

/// Errors after which the same request may succeed: the server is starting, failing over, busy or full. It executed
/// nothing. By their first word.
const PASSING: [&str; 9] =
    ["LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "OOM", "MISCONF", "NOREPLICAS"];

/// An answer, by which connection it came, and the clock before the request was sent.
pub(super) struct Reply {
    pub(super) by: Arc<Connection>,
    pub(super) at: Instant,
    pub(super) value: Value,
}

/// What the script `acquire.lua` said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Grant {
    /// Granted now.
    New { token: FencingToken },
    /// Granted before, to the same owner; the lease lives for `left` more.
    Known { token: FencingToken, left: Duration },
    /// Another's; it lives for `left` more, or for ever. Where several servers vote, the answer says whose.
    Held { left: Option<Duration>, by: Option<Box<str>> },
}

impl Reply {
    /// Whether the server is a replica now: the next connection may lead to its new primary.
    pub(super) fn is_read_only(&self) -> bool {
        matches!(&self.value, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::ReadOnly))
    }

    /// The answer to `acquire.lua`, `acquire_by_time.lua` and `vote.lua`.
    pub(super) fn grant(&self) -> Result<Grant, BackendError> {
        read_grant(&self.value)
    }

    /// The answer to `renew.lua`, `release.lua` and `raise.lua`: whether it was done.
    pub(super) fn owned(&self) -> Result<bool, BackendError> {
        match &self.value {
            Value::Int(number) => Ok(*number == 1),
            other => Err(refused(other)),
        }
    }
}

fn read_grant(value: &Value) -> Result<Grant, BackendError> {
    let items = match value {
        Value::Int(fence) => return Ok(Grant::New { token: token(*fence)? }),
        Value::Array(items) => items,
        other => return Err(refused(other)),
    };
    match items.as_slice() {
        [Value::Int(1), Value::Int(fence), Value::Int(left)] => {
            Ok(Grant::Known { token: token(*fence)?, left: millis(*left).unwrap_or_default() })
        }
        [Value::Int(0), Value::Int(left)] => Ok(Grant::Held { left: millis(*left), by: None }),
        [Value::Int(0), Value::Int(left), Value::BulkString(owner)] => {
            Ok(Grant::Held { left: millis(*left), by: Some(String::from_utf8_lossy(owner).into()) })
        }
        // A table in Lua ends at its first nil.
        [Value::Int(1)] => Err(lost_counter()),
        _ => Err(refused(value)),
    }
}

fn token(fence: i64) -> Result<FencingToken, BackendError> {
    u64::try_from(fence).ok().and_then(FencingToken::new).ok_or_else(lost_counter)
}

fn millis(number: i64) -> Option<Duration> {
    u64::try_from(number).ok().map(Duration::from_millis)
}

/// A lock without its counter: evicted, deleted or overwritten. Its tokens would begin again below those in use.
fn lost_counter() -> BackendError {
    let message = "the fencing counter of the lock is gone or below 1: set it above the resource's highest token, and \
                   keep keys named lock:* from eviction";
    BackendError::Refused { message: message.into(), passing: false }
}

fn refused(value: &Value) -> BackendError {
    match value {
        Value::ServerError(error) => {
            BackendError::Refused { message: text(error), passing: is_passing(error) }
        }
        other => {
            let message = format!("an answer that the scripts don't give: {other:?}");
            BackendError::Refused { message, passing: false }
        }
    }
}

fn text(error: &ServerError) -> String {
    format!("{} {}", error.code(), error.details().unwrap_or_default())
}

pub(super) fn is_passing(error: &ServerError) -> bool {
    PASSING.contains(&error.code())
        || error.details().is_some_and(|text| text.contains("max number of clients"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(numbers: &[i64]) -> Result<Grant, BackendError> {
        read_grant(&Value::Array(numbers.iter().copied().map(Value::Int).collect()))
    }

    #[test]
    fn each_answer_of_the_acquire_script_is_read() {
        let token = FencingToken::new(7).unwrap();
        let left = Duration::from_millis(40);
        assert_eq!(read_grant(&Value::Int(7)), Ok(Grant::New { token }));
        assert_eq!(read(&[1, 7, 40]), Ok(Grant::Known { token, left }));
        assert_eq!(read(&[1, 7, -1]), Ok(Grant::Known { token, left: Duration::ZERO }));
        assert_eq!(read(&[0, 40]), Ok(Grant::Held { left: Some(left), by: None }));
        assert_eq!(read(&[0, -1]), Ok(Grant::Held { left: None, by: None }));
        let vote = Value::Array(vec![Value::Int(0), Value::Int(40), Value::BulkString(b"b:7f".into())]);
        assert_eq!(read_grant(&vote), Ok(Grant::Held { left: Some(left), by: Some("b:7f".into()) }));
    }

    #[test]
    fn a_lease_whose_counter_is_gone_is_no_grant() {
        let answers = [Value::Int(0), Value::Int(-5)].map(|value| read_grant(&value));
        for answer in answers.into_iter().chain([read(&[1]), read(&[1, 0, 40]), read(&[1, -5, 40])]) {
            let error = answer.unwrap_err();
            assert!(!error.is_passing());
            assert!(error.to_string().contains("fencing counter"), "{error}");
        }
    }

    #[test]
    fn what_no_script_says_is_refused() {
        for value in [Value::Nil, Value::Okay, Value::Array(vec![])] {
            assert!(!read_grant(&value).unwrap_err().is_passing());
        }
        assert!(read(&[1, 7]).is_err());
        assert!(read(&[2, 7]).is_err());
    }
}
