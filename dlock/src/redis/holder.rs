//! Reads who holds a key on one Redis.

use std::sync::LazyLock;

use dlock_runtime::{Instant, Runtime};
use redis::Value;

use super::Redis;
use super::reply;
use super::script::{Call, Script, StoredKey};
use super::shared;
use crate::error::BackendError;
use crate::key::LockKey;
use crate::token::FencingToken;

static HOLDER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("holder.lua")));

/// The holder of a key as the server stores it. Its whole owner token suffices to release the lock: it does
/// not leave the backend.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoredHolder {
    pub(crate) token: FencingToken,
    pub(crate) owner: Box<str>,
}

impl<R: Runtime> Redis<R> {
    /// Reads the holder of `key` with its token; `None` if there is none, or it has no token.
    pub(crate) async fn stored_holder(
        &self,
        key: &LockKey,
        deadline: Instant,
    ) -> Result<Option<StoredHolder>, BackendError> {
        let keys = [StoredKey::owner(key), StoredKey::fence(key)];
        let call = Call { script: &HOLDER, keys: &keys, args: &[] };
        let (_, value) = self.client.node.eval(call, deadline, |_| ()).await?;
        holder(&value)
    }
}

/// Reads the answer of `holder.lua`. A token from a shared counter is stored with the owner.
fn holder(value: &Value) -> Result<Option<StoredHolder>, BackendError> {
    let Value::Array(items) = value else { return Err(reply::refused(value)) };
    if let [Value::BulkString(stored), _] = items.as_slice()
        && let Some((owner, token)) = std::str::from_utf8(stored).ok().and_then(shared::split)
    {
        return Ok(Some(StoredHolder { token: reply::token_in(token.as_bytes())?, owner: owner.into() }));
    }
    match items.as_slice() {
        [] | [Value::BulkString(_)] | [Value::BulkString(_), Value::Nil] => Ok(None),
        [Value::BulkString(owner), Value::BulkString(fence)] => {
            let owner = String::from_utf8_lossy(owner).into();
            Ok(Some(StoredHolder { token: reply::token_in(fence)?, owner }))
        }
        _ => Err(reply::refused(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn every_answer_of_the_script_is_read() {
        let held = holder(&Value::Array(vec![text("a:7f3c"), text("34")])).unwrap().unwrap();
        assert_eq!((held.token.as_u64(), &*held.owner), (34, "a:7f3c"));
        let shared = [Value::Nil, text("7")].map(|counter| vec![text("a:7f3c#34"), counter]);
        for items in shared {
            let held = holder(&Value::Array(items)).unwrap().unwrap();
            assert_eq!((held.token.as_u64(), &*held.owner), (34, "a:7f3c"));
        }
        for free in [vec![], vec![text("a:7f3c"), Value::Nil]] {
            assert!(holder(&Value::Array(free)).unwrap().is_none());
        }
    }

    #[test]
    fn an_answer_that_the_script_does_not_give_is_refused() {
        let bad = [vec![text("a"), text("0")], vec![Value::Int(1)], vec![text("a"), text("x"), text("y")]];
        for value in bad.map(Value::Array).into_iter().chain([Value::Nil, Value::Okay]) {
            assert!(holder(&value).is_err(), "{value:?}");
        }
    }
}
