//! Reads who holds a key on etcd: the first key of its queue.

use dlock_runtime::{Instant, Runtime};
use etcd_client::{GetOptions, SortOrder, SortTarget};

use super::connector::Connector;
use crate::backend::Holder;
use crate::error::BackendError;
use crate::key::LockKey;
use crate::token::{FencingToken, owner_prefix};

/// Reads the first key of the queue by create revision, which is the token of its owner. The read is
/// linearizable: a member without a leader does not answer it.
pub(super) async fn of<R: Runtime>(
    connector: &Connector<R>,
    key: &LockKey,
    deadline: Instant,
) -> Result<Option<Holder>, BackendError> {
    let connection = connector.connection(deadline).await?;
    let first =
        GetOptions::new().with_prefix().with_limit(1).with_sort(SortTarget::Create, SortOrder::Ascend);
    let get = async { connection.kv().get(key.etcd_queue(), Some(first)).await };
    let found = connector.call(&connection, deadline, get).await?;
    Ok(found.kvs().first().and_then(|first| {
        let token = FencingToken::new(first.create_revision().unsigned_abs())?;
        let owner = String::from_utf8_lossy(first.value());
        Some(Holder { token, name: owner_prefix(&owner).to_owned() })
    }))
}
