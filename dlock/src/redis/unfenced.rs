//! Leases without a fencing token: a `SET` with `NX` and `GET` instead of a script, and no counter.
//!
//! Source: the lock of one instance in Redis' documentation of `SET` ("Patterns"). `GET` makes it safe to ask
//! again after a lost answer: the value that was there is either this owner or another one. Redis has `NX`
//! with `GET` from version 7 on; older servers grant by the script, whose token is then not used.

use redis::{RedisError, Value, cmd};

use super::connection::Connection;
use super::operation::Operation;
use super::reply;
use super::script::{Arg, StoredKey};
use crate::backend::Claim;

/// Requests the lease of `claim`. The answer is `OK` for a grant, and otherwise `{1, left}` if this owner has
/// the lease already, or `{0, left}` if another one has it: `left` as PTTL returns it, which a second request
/// asks for. From an older server it is that of `acquire.lua`.
pub(super) async fn request(claim: &Claim, connection: &Connection) -> Result<Value, RedisError> {
    if !connection.commands().may_set_nx_get() {
        return Operation::Acquire.one(claim, connection).await;
    }
    let (key, owner) = (StoredKey::owner(&claim.key), claim.owner.as_str());
    let mut set = cmd("SET");
    set.arg(key).arg(owner).arg("NX").arg("PX").arg(Arg::Millis(claim.ttl)).arg("GET");
    match connection.send(&set).await? {
        Value::Nil => Ok(Value::Okay),
        Value::BulkString(found) => {
            let is_own = Value::Int(i64::from(found == owner.as_bytes()));
            let left = connection.send(cmd("PTTL").arg(key)).await?;
            Ok(if matches!(left, Value::Int(_)) { Value::Array(vec![is_own, left]) } else { left })
        }
        refused if reply::is_syntax_error(&refused) => {
            connection.commands().note_no_set_nx_get();
            Operation::Acquire.one(claim, connection).await
        }
        other => Ok(other),
    }
}
