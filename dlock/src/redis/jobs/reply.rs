//! Reads the answers of the queue's scripts.

use std::time::Duration;

use redis::Value;

use super::super::reply::{refused, token_in};
use crate::error::BackendError;
use crate::queue::{Claimed, DeadJob, QueuedJob};
use crate::token::Owner;

/// Reads the answer of `claim_job.lua` to the claim of `owner`.
pub(super) fn claimed(value: &Value, owner: Owner) -> Result<Claimed, BackendError> {
    let Value::Array(items) = value else { return Err(refused(value)) };
    match items.as_slice() {
        [Value::Int(0)] => Ok(Claimed::Empty),
        [Value::Int(0), Value::Int(left)] => {
            let left = Duration::from_millis(u64::try_from(*left).unwrap_or_default());
            Ok(Claimed::Wait { left })
        }
        [Value::Int(1), Value::BulkString(id), Value::BulkString(token), Value::Int(attempts), payload] => {
            let id = number(id).ok_or_else(|| refused(value))?;
            let (token, attempts) = (token_in(token)?, u64::try_from(*attempts).unwrap_or_default());
            let Value::BulkString(payload) = payload else { return Err(lost_payload(id)) };
            Ok(Claimed::Job(QueuedJob { id, token, owner, attempts, payload: payload.clone() }))
        }
        _ => Err(refused(value)),
    }
}

/// Reads the answer of `dead_jobs.lua`.
pub(super) fn dead(value: &Value) -> Result<Vec<DeadJob>, BackendError> {
    let Value::Array(items) = value else { return Err(refused(value)) };
    let job = |pair: &[Value]| match pair {
        [Value::BulkString(id), Value::BulkString(error)] => {
            let id = number(id).ok_or_else(|| refused(value))?;
            Ok(DeadJob { id, error: String::from_utf8_lossy(error).into_owned() })
        }
        _ => Err(refused(value)),
    };
    items.chunks(2).map(job).collect()
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn lost_payload(id: u64) -> BackendError {
    let message = format!("the queue has lost the payload of job {id}: keep keys named lock:* from eviction");
    BackendError::Refused { message, passing: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::FencingToken;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn owner() -> Owner {
        Owner::of("a:7f3c9e12")
    }

    #[test]
    fn every_answer_to_a_claim_is_read() {
        let read = |items: &[Value]| claimed(&Value::Array(items.to_vec()), owner());
        let job = [Value::Int(1), text("7"), text("34"), Value::Int(2), text("to: ada")];
        let token = FencingToken::new(34).unwrap();
        let expected = QueuedJob { id: 7, token, owner: owner(), attempts: 2, payload: b"to: ada".to_vec() };
        assert_eq!(read(&job), Ok(Claimed::Job(expected)));
        assert_eq!(read(&[Value::Int(0)]), Ok(Claimed::Empty));
        let left = Duration::from_millis(40);
        assert_eq!(read(&[Value::Int(0), Value::Int(40)]), Ok(Claimed::Wait { left }));
        let lost = read(&[Value::Int(1), text("7"), text("34"), Value::Int(2), Value::Nil]).unwrap_err();
        assert!(lost.to_string().contains("payload of job 7"), "{lost}");
    }

    #[test]
    fn an_answer_that_no_script_gives_is_refused() {
        let bad = [vec![Value::Int(1)], vec![], vec![Value::Int(2), Value::Int(40)]];
        for value in bad.map(Value::Array).into_iter().chain([Value::Nil, Value::Okay]) {
            assert!(claimed(&value, owner()).is_err(), "{value:?}");
        }
        assert!(dead(&Value::Array(vec![text("7")])).is_err());
        assert!(dead(&Value::Array(vec![text("x"), text("")])).is_err());
    }

    #[test]
    fn dead_jobs_are_read_with_their_errors() {
        let value = Value::Array(vec![text("7"), text("no such address"), text("3"), text("")]);
        let jobs = dead(&value).unwrap();
        let read: Vec<_> = jobs.iter().map(|job| (job.id, job.error.as_str())).collect();
        assert_eq!(read, [(7, "no such address"), (3, "")]);
    }
}
