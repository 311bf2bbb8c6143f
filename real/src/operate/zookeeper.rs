//! The queue of a lock in a ZooKeeper ensemble.

use std::collections::BTreeMap;
use std::time::Duration;

use dlock::{Instant, Runtime};
use dlock_zookeeper::path::entry_number;
use dlock_zookeeper::{Client, ClientOptions, Error, Stat};
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Claim, Deleted, Owner, Path, Queue, Session, TIMEOUT, Target, Wire};

/// The timeout of the tool's own session, of which it keeps nothing.
const SESSION: Duration = Duration::from_secs(10);

/// The most bytes of an answer to a command of four letters.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

pub(super) struct Ensemble {
    client: Client<Wire>,
    wire: Wire,
}

impl Ensemble {
    pub(super) fn new(wire: Wire, target: &Target) -> Self {
        let mut options = ClientOptions::new(target.place.addresses.clone(), SESSION);
        options.login.clone_from(&target.place.login);
        Self { client: Client::new(wire.clone(), options), wire }
    }

    /// Reads the queue, as the leader has it when the call begins, and then the connections of its sessions.
    pub(super) async fn read(&self, target: &Target, deadline: Instant) -> Result<Queue, String> {
        let queue = target.names.zookeeper_queue(&target.place.root);
        self.client.sync(&queue, deadline).await.map_err(told)?;
        let names = match self.client.children(&queue, deadline).await {
            Ok(children) => children.names,
            Err(Error::NoNode { .. }) => Vec::new(),
            Err(error) => return Err(told(error)),
        };
        let (mut claims, mut strangers) = (Vec::new(), Vec::new());
        for name in names {
            let Some(number) = entry_number(&name) else {
                strangers.push(name);
                continue;
            };
            let path = format!("{queue}/{name}");
            match self.client.data(&path, deadline).await {
                Ok((data, stat)) => claims.push((number, claim(path, &data, &stat, number))),
                // It ended since the names were read.
                Err(Error::NoNode { .. }) => {}
                Err(error) => return Err(told(error)),
            }
        }
        // A count without its sign: see `entry_number`. A queue has no entries more than 2^31 apart.
        let first = claims.first().map_or(0, |(number, _)| *number);
        claims.sort_by_key(|(number, _)| number.wrapping_sub(first).cast_signed());
        let mut claims: Vec<_> = claims.into_iter().map(|(_, claim)| claim).collect();
        let connections = connections(&self.wire, &target.place.addresses).await;
        claims.iter_mut().filter_map(|claim| claim.session.as_mut()).for_each(|session| {
            if let Some(connections) = &connections {
                note(session, connections.get(&session.id));
            }
        });
        let revision = last_transaction(&self.wire, &target.place.addresses).await;
        Ok(Queue { revision, claims, strangers })
    }

    /// Deletes the node of a claim, if its data has the same version. No other node ever gets its name.
    pub(super) async fn delete(&self, claim: &Claim, deadline: Instant) -> Result<Deleted, String> {
        let version = i32::try_from(claim.version).ok();
        match self.client.delete(&claim.path.0, version, deadline).await {
            Ok(()) => Ok(Deleted::Done),
            Err(Error::NoNode { .. } | Error::BadVersion { .. }) => Ok(Deleted::Changed),
            Err(error) => Err(told(error)),
        }
    }

    /// Ends the tool's session. If that fails, it ends by itself.
    pub(super) async fn close(self) {
        let _ = self.client.close(self.wire.now() + TIMEOUT).await;
    }
}

fn claim(path: String, data: &[u8], stat: &Stat, number: u32) -> Claim {
    let session = |id: i64| Session { id: format!("{id:x}"), ..Session::default() };
    Claim {
        name: path.clone(),
        owner: Owner(String::from_utf8_lossy(data).into_owned()),
        token: u64::try_from(stat.czxid).unwrap_or_default(),
        session: Some(stat.ephemeral_owner).filter(|id| *id != 0).map(session),
        is_used_up: number >= i32::MAX.cast_unsigned(),
        version: i64::from(stat.version),
        path: Path(path),
    }
}

/// A connection, as a server describes it.
#[derive(Debug, PartialEq, Eq)]
struct Connection {
    client: String,
    received: Option<u64>,
    ttl_ms: Option<u64>,
}

fn note(session: &mut Session, connection: Option<&Connection>) {
    session.is_gone = Some(connection.is_none());
    if let Some(connection) = connection {
        session.client = Some(connection.client.clone());
        session.received = connection.received;
        session.ttl_ms = connection.ttl_ms;
    }
}

/// Returns the connections of all servers, by the number of their session; `None` if a server does not tell.
async fn connections(wire: &Wire, servers: &[String]) -> Option<BTreeMap<String, Connection>> {
    let answers = join_all(servers.iter().map(|server| command(wire, server, "cons"))).await;
    let mut all = BTreeMap::new();
    for answer in answers {
        // A server that may not tell answers that the command is not in its whitelist.
        let answer = answer.filter(|answer| !answer.contains("whitelist"))?;
        all.extend(answer.lines().filter_map(connection));
    }
    Some(all)
}

/// Returns the last transaction that a server has seen: the highest of all.
async fn last_transaction(wire: &Wire, servers: &[String]) -> Option<u64> {
    let answers = join_all(servers.iter().map(|server| command(wire, server, "srvr"))).await;
    let zxid = |answer: String| {
        let line = answer.lines().find_map(|line| line.strip_prefix("Zxid: 0x").map(str::to_owned))?;
        u64::from_str_radix(line.trim(), 16).ok()
    };
    answers.into_iter().flatten().filter_map(zxid).max()
}

/// Reads a line of `cons`: ` /127.0.0.1:51234[1](queued=0,recved=9,sent=9,sid=0x1…,to=2000,…)`.
fn connection(line: &str) -> Option<(String, Connection)> {
    let (client, fields) = line.trim().strip_prefix('/')?.split_once('[')?;
    let fields = fields.split_once('(')?.1.trim_end_matches(')');
    let field = |name: &str| {
        let mut pairs = fields.split(',').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let id = field("sid")?.strip_prefix("0x")?.to_owned();
    let number = |name| field(name).and_then(|text| text.parse().ok());
    let connection =
        Connection { client: client.to_owned(), received: number("recved"), ttl_ms: number("to") };
    Some((id, connection))
}

/// Returns the answer of a server to a command of four letters, if it gives one.
async fn command(wire: &Wire, server: &str, word: &str) -> Option<String> {
    let ask = async {
        let mut stream = wire.connect(server).await.ok()?;
        stream.write_all(word.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await.ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    };
    dlock::timeout_at(wire, wire.now() + TIMEOUT / 5, ask).await.ok().flatten()
}

fn told(error: Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cons_names_session_and_client() {
        let line =
            " /127.0.0.1:51234[1](queued=0,recved=9,sent=10,sid=0x10000a5b3c40001,lop=PING,est=17,to=2000)";
        let expected =
            Connection { client: "127.0.0.1:51234".to_owned(), received: Some(9), ttl_ms: Some(2000) };
        assert_eq!(connection(line), Some(("10000a5b3c40001".to_owned(), expected)));
        assert_eq!(connection(" /127.0.0.1:51236[0](queued=0,recved=1,sent=0)"), None);
        assert_eq!(connection(""), None);
    }
}
