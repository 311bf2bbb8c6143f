//! Reads who holds a key on ZooKeeper: the first entry of its queue.

use dlock_runtime::{Instant, Runtime};
use dlock_zookeeper::{Client, Error};
use futures_util::future::join;

use super::place::token_of;
use super::queue;
use crate::backend::Holder;
use crate::token::owner_prefix;

/// Reads the first entry of the queue: its data is the owner, and the transaction that created it the token.
/// It syncs first, so that nothing read is older than this call. An entry that is deleted between the two
/// reads is no holder any more: then it reads again.
pub(super) async fn of<R: Runtime>(
    client: &Client<R>,
    queue: &str,
    deadline: Instant,
) -> Result<Option<Holder>, Error> {
    loop {
        let (synced, children) = join(client.sync(queue, deadline), client.children(queue, deadline)).await;
        synced?;
        let names = match children {
            Err(Error::NoNode { .. }) => return Ok(None),
            children => children?.names,
        };
        let Some(first) = queue::first(&names) else { return Ok(None) };
        match client.data(&format!("{queue}/{first}"), deadline).await {
            Ok((owner, stat)) => {
                let name = owner_prefix(&String::from_utf8_lossy(&owner)).to_owned();
                return Ok(token_of(&stat).map(|token| Holder { token, name }));
            }
            Err(Error::NoNode { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}
