//! Permits of a semaphore on one Redis: the scripts that acquire, renew and release one, and their answers.
//!
//! The owners of a key's permits are a sorted set, ordered by the end of their leases on the server's clock.
//! Each script removes those that are over, or ignores them, so a permit that nobody releases is free once
//! its TTL has passed. The tokens are a hash beside it. Both keys expire with the last lease.
//!
//! The sorted set of owners is that of Carlson, "Redis in Action", section 6.3 (2013), which orders by the
//! clocks of clients: there a client whose clock is ahead removes the permits of others. Here the script
//! reads the server's clock, and each permit has a fencing token.

use std::sync::LazyLock;

use redis::Value;

use super::options::TokenSource;
use super::reply::{self, Grant};
use super::script::{Arg, Call, Script, StoredKey};
use crate::backend::Claim;
use crate::error::BackendError;
use crate::token::FencingToken;

static ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire_permit.lua")));
static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("renew_permit.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("release_permit.lua")));

/// The keys and arguments of a script for one permit.
pub(super) struct Parts<'a> {
    script: &'static Script,
    keys: [StoredKey<'a>; 3],
    key_count: usize,
    args: [Arg<'a>; 4],
    arg_count: usize,
}

impl<'a> Parts<'a> {
    /// Requests a permit.
    pub(super) fn acquire(claim: &'a Claim, tokens: TokenSource) -> Self {
        let count = if tokens == TokenSource::ServerTime { 4 } else { 3 };
        let permits = Arg::Number(claim.permits.into());
        let args = [owner(claim), Arg::Millis(claim.ttl), permits, Arg::Text("time")];
        Self { script: &ACQUIRE, keys: keys(claim), key_count: 3, args, arg_count: count }
    }

    /// Renews a permit.
    pub(super) fn renew(claim: &'a Claim) -> Self {
        let args = [owner(claim), Arg::Millis(claim.ttl), Arg::Text(""), Arg::Text("")];
        Self { script: &RENEW, keys: keys(claim), key_count: 2, args, arg_count: 2 }
    }

    /// Releases a permit, and notifies the waiters if `is_announced`.
    pub(super) fn release(claim: &'a Claim, is_announced: bool) -> Self {
        let channel = Arg::Stored(StoredKey::freed(&claim.key));
        let args = [owner(claim), channel, Arg::Text(""), Arg::Text("")];
        let arg_count = if is_announced { 2 } else { 1 };
        Self { script: &RELEASE, keys: keys(claim), key_count: 2, args, arg_count }
    }

    pub(super) fn call(&self) -> Call<'_> {
        let Self { script, keys, key_count, args, arg_count } = self;
        Call { script, keys: &keys[..*key_count], args: &args[..*arg_count] }
    }
}

fn owner(claim: &Claim) -> Arg<'_> {
    Arg::Text(claim.owner.as_str())
}

fn keys(claim: &Claim) -> [StoredKey<'_>; 3] {
    let key = &claim.key;
    [StoredKey::permits(key), StoredKey::tokens(key), StoredKey::fence(key)]
}

/// Reads the answer of `acquire_permit.lua`: the grant, and the tokens of the other permits in ascending
/// order.
pub(super) fn grant(value: &Value) -> Result<(Grant, Vec<FencingToken>), BackendError> {
    let Value::Array(items) = value else { return reply::grant(value).map(|grant| (grant, Vec::new())) };
    let (grant, others) = match items.as_slice() {
        [Value::Int(2), Value::BulkString(fence), others @ ..] => {
            (Grant::New { token: reply::token_in(fence)? }, others)
        }
        [known @ Value::Int(1), fence, left, others @ ..] => {
            let parts = [known, fence, left].map(Clone::clone);
            (reply::grant(&Value::Array(parts.into()))?, others)
        }
        _ => (reply::grant(value)?, &[][..]),
    };
    let mut beside = others.iter().map(token).collect::<Result<Vec<_>, _>>()?;
    beside.sort_unstable();
    Ok((grant, beside))
}

fn token(value: &Value) -> Result<FencingToken, BackendError> {
    match value {
        Value::BulkString(text) => reply::token_in(text),
        _ => Err(reply::lost_counter()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn text(number: u64) -> Value {
        Value::BulkString(number.to_string().into())
    }

    fn tokens<const N: usize>(numbers: [u64; N]) -> Vec<FencingToken> {
        numbers.into_iter().filter_map(FencingToken::new).collect()
    }

    #[test]
    fn every_answer_of_the_script_is_read() {
        let (token, left) = (FencingToken::new(9).unwrap(), Duration::from_millis(40));
        let new = Value::Array(vec![Value::Int(2), text(9), text(8), text(3)]);
        assert_eq!(grant(&new), Ok((Grant::New { token }, tokens([3, 8]))));
        let known = Value::Array(vec![Value::Int(1), text(9), Value::Int(40), text(12)]);
        assert_eq!(grant(&known), Ok((Grant::Known { token, left }, tokens([12]))));
        let taken = Value::Array(vec![Value::Int(0), Value::Int(40)]);
        assert_eq!(grant(&taken), Ok((Grant::Taken { left: Some(left), by: None }, vec![])));
    }

    #[test]
    fn an_answer_that_the_script_does_not_give_is_refused() {
        let without_token = Value::Array(vec![Value::Int(1), Value::Nil, Value::Int(40)]);
        let bad_other = Value::Array(vec![Value::Int(2), text(9), Value::Nil]);
        for value in [Value::Nil, Value::Array(vec![Value::Int(2)]), without_token, bad_other] {
            assert!(!grant(&value).unwrap_err().is_passing());
        }
    }
}
