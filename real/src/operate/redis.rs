//! The lock on one Redis, or on each server of a Redlock.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use dlock::redis::shared_counter;
use dlock::{Runtime, timeout_at};
use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisConnectionInfo, RedisError, RedisResult, cmd};

use super::{
    Answer, Deleted, Deletion, Holder, OperateError, Owner, RedisLease, RedisServer, RedisState, TIMEOUT,
    Target, Wire,
};

/// The script of the library that ends a lease, if its owner still holds it.
static RELEASE: LazyLock<&str> =
    LazyLock::new(|| dlock::scripts().find(|(name, _)| *name == "release").map_or("", |(_, text)| text));

const RAISE: &str = include_str!("raise.lua");

const INSPECT: &str = include_str!("inspect.lua");

/// The connections to the servers, in their order. One that failed is opened again by the next call.
pub(super) struct Nodes(Vec<Node>);

struct Node {
    wire: Wire,
    server: String,
    connection: Option<MultiplexedConnection>,
}

impl Nodes {
    pub(super) fn new(wire: &Wire, target: &Target) -> Self {
        let node = |server: &String| Node { wire: wire.apart(), server: server.clone(), connection: None };
        Self(target.place.addresses.iter().map(node).collect())
    }

    /// Reads the lock from all servers.
    pub(super) async fn read(&mut self, target: &Target) -> Result<Vec<RedisServer>, OperateError> {
        let read = self.0.iter_mut().map(|node| async move {
            let answer = match node.call(target, async |mut link| read(&mut link, target).await).await {
                Ok(state) => Answer::Read(state),
                Err(reason) => Answer::Failed(reason),
            };
            RedisServer { server: node.server.clone(), answer }
        });
        let servers = join_all(read).await;
        match servers.iter().find(|server| matches!(server.answer, Answer::Read(_))) {
            Some(_) => Ok(servers),
            None => Err(unread(&servers)),
        }
    }

    /// Deletes the lease on each server that stored it.
    pub(super) async fn clear(&mut self, target: &Target, holder: &Holder) -> Vec<Deletion> {
        let with_lease = self.0.iter_mut().filter(|node| holder.servers.contains(&node.server));
        join_all(with_lease.map(|node| async move {
            let deleted = node.call(target, async |mut link| {
                let mut release = eval(*RELEASE, target.names.owner_key());
                release.arg(&holder.owner.0).arg(target.names.freed_channel());
                release.query_async::<bool>(&mut link).await
            });
            let outcome = match deleted.await {
                Ok(true) => Deleted::Done,
                Ok(false) => Deleted::Changed,
                Err(reason) => Deleted::Failed(reason),
            };
            Deletion { at: node.server.clone(), outcome }
        }))
        .await
    }

    /// Raises the counter on each server; returns true with the counter before if it was lower.
    pub(super) async fn raise(
        &mut self,
        target: &Target,
        to: u64,
    ) -> Vec<(String, Result<(bool, Option<u64>), String>)> {
        join_all(self.0.iter_mut().map(|node| async move {
            let raised = node.call(target, async |mut link| {
                eval(RAISE, target.names.fence_key()).arg(to).query_async(&mut link).await
            });
            let raised = raised.await;
            (node.server.clone(), raised)
        }))
        .await
    }
}

impl Node {
    /// Runs `call` on the connection, which is opened if it is not, for at most [`TIMEOUT`].
    async fn call<T>(
        &mut self,
        target: &Target,
        call: impl AsyncFnOnce(MultiplexedConnection) -> RedisResult<T>,
    ) -> Result<T, String> {
        let Self { wire, server, connection } = self;
        let known = connection.take();
        let step = async {
            let link = match known {
                Some(link) => link,
                None => connect(wire, target, server).await?,
            };
            let answer = call(link.clone()).await?;
            Ok::<_, RedisError>((link, answer))
        };
        match timeout_at(&*wire, wire.now() + TIMEOUT, step).await {
            Ok(Ok((link, answer))) => {
                *connection = Some(link);
                Ok(answer)
            }
            Ok(Err(error)) => Err(wire.explained(error)),
            Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
        }
    }
}

/// Returns the command that runs a script on one key, without its arguments.
fn eval(script: &str, key: &str) -> Cmd {
    let mut eval = cmd("EVAL");
    eval.arg(script).arg(1).arg(key);
    eval
}

async fn connect(wire: &Wire, target: &Target, server: &str) -> RedisResult<MultiplexedConnection> {
    let mut info = RedisConnectionInfo::default().set_db(i64::from(target.place.database));
    // A right that the user of the locks need not have.
    info = info.set_skip_set_lib_name();
    if let Some((user, password)) = &target.place.login {
        if !user.is_empty() {
            info = info.set_username(user);
        }
        info = info.set_password(password);
    }
    let stream = wire.connect(server).await?;
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let (link, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
    wire.spawn(driver);
    Ok(link)
}

/// Reads both keys at one moment, and then the number of listeners.
async fn read(link: &mut MultiplexedConnection, target: &Target) -> RedisResult<RedisState> {
    let (owner_key, fence_key) = (target.names.owner_key(), target.names.fence_key());
    let mut both = cmd("EVAL");
    both.arg(INSPECT).arg(3).arg(owner_key).arg(fence_key).arg(shared_counter(target.names.name()));
    let (owner, left, counter, counter_left): (Option<Vec<u8>>, i64, Option<String>, i64) =
        both.query_async(link).await?;
    let lease = owner.map(|owner| RedisLease {
        owner: Owner(String::from_utf8_lossy(&owner).into_owned()),
        left_ms: u64::try_from(left).ok(),
    });
    let number = |text: String| {
        let problem = (ErrorKind::UnexpectedReturnType, "the fencing counter is no number");
        text.parse::<u64>().map_err(|_| RedisError::from(problem))
    };
    let counter = counter.map(number).transpose()?;
    // A user may lack the right to ask.
    let listeners = cmd("PUBSUB").arg("NUMSUB").arg(target.names.freed_channel()).query_async(link).await;
    let listeners = listeners.ok().map(|(_, count): (String, u64)| count);
    Ok(RedisState { lease, counter, counter_left_ms: u64::try_from(counter_left).ok(), listeners })
}

/// Returns the owner of each lease, with the servers that store it; the one with most servers first.
pub(super) fn holders(servers: &[RedisServer]) -> Vec<Holder> {
    let mut by_owner = BTreeMap::<&str, Holder>::new();
    for RedisServer { server, answer } in servers {
        let Answer::Read(RedisState { lease: Some(lease), .. }) = answer else { continue };
        let new = || Holder {
            owner: lease.owner.clone(),
            servers: Vec::new(),
            claim: None,
            left_ms: lease.left_ms,
        };
        let holder = by_owner.entry(&lease.owner.0).or_insert_with(new);
        holder.servers.push(server.clone());
        // A lease that never ends is the longest.
        holder.left_ms = holder.left_ms.and_then(|left| lease.left_ms.map(|other| left.max(other)));
    }
    let mut holders: Vec<_> = by_owner.into_values().collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.servers.len()));
    holders
}

fn unread(servers: &[RedisServer]) -> OperateError {
    let failed = servers.iter().find_map(|server| match &server.answer {
        Answer::Failed(reason) => Some((server.server.clone(), reason.clone())),
        Answer::Read(_) => None,
    });
    let (server, reason) = failed.unwrap_or_default();
    OperateError::Unread { server, reason }
}
