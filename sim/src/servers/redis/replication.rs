//! The primary's end of replication: its replicas and the effects that it sends them.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::output::{Backlog, REPLICA};
use super::reply::{Protocol, Reply};
use super::snapshot::snapshot;
use super::state::State;

/// The stream to one replica.
#[derive(Debug)]
pub(crate) struct Feed {
    /// The snapshot, with the line that announces it.
    pub(crate) start: Vec<u8>,
    /// The encoded effects after it that were not sent yet.
    pub(crate) effects: UnboundedReceiver<Arc<[u8]>>,
    /// The replica reads too slowly: the connection is to be closed.
    pub(crate) overrun: Arc<Notify>,
}

/// The primary's replicas and its position in the stream.
#[derive(Debug, Default)]
pub(crate) struct Replication {
    /// Names the history of the data, as `master_replid` does.
    pub(crate) id: String,
    /// Bytes of the stream so far. Effects are not counted while there is neither a file nor a replica to
    /// read them.
    pub(crate) offset: u64,
    links: Vec<Link>,
}

/// A replica that is connected.
#[derive(Debug)]
struct Link {
    client: u64,
    sender: UnboundedSender<Arc<[u8]>>,
    backlog: Backlog,
    overrun: Arc<Notify>,
    /// The offset up to which the replica has acknowledged the stream.
    acknowledged: u64,
}

impl Replication {
    /// Adds the replica behind `client`. Returns its feed: a snapshot, then all effects.
    pub(crate) fn add(&mut self, client: u64, state: &State) -> Feed {
        let Self { id, offset, links } = self;
        let mut start = Vec::new();
        Reply::Status(format!("FULLRESYNC {id} {offset}").into_bytes().into())
            .encode(&mut start, Protocol::Resp2);
        Reply::bulk(snapshot(state)).encode(&mut start, Protocol::Resp2);
        let (sender, effects) = unbounded_channel();
        let overrun = Arc::new(Notify::new());
        links.push(Link {
            client,
            sender,
            backlog: Backlog::default(),
            overrun: overrun.clone(),
            acknowledged: 0,
        });
        Feed { start, effects, overrun }
    }

    /// Sends an encoded unit of effects to all replicas. `now_micros` is the time on the wall clock.
    pub(crate) fn send(&mut self, unit: &[u8], now_micros: i64) {
        self.offset += unit.len() as u64;
        if !self.links.is_empty() {
            let unit: Arc<[u8]> = unit.into();
            self.links.retain_mut(|link| {
                if link.backlog.add(unit.len(), REPLICA, now_micros) {
                    link.overrun.notify_one();
                }
                link.sender.send(unit.clone()).is_ok()
            });
        }
    }

    /// Notes that bytes of the stream were sent to the replica behind `client`.
    pub(crate) fn sent(&mut self, client: u64, bytes: usize) {
        if let Some(link) = self.links.iter_mut().find(|link| link.client == client) {
            link.backlog.sent(bytes);
        }
    }

    pub(crate) fn acknowledge(&mut self, client: u64, offset: u64) {
        let link = self.links.iter_mut().find(|link| link.client == client);
        if let Some(link) = link {
            link.acknowledged = link.acknowledged.max(offset);
        }
    }

    pub(crate) fn remove(&mut self, client: u64) {
        self.links.retain(|link| link.client != client);
    }

    /// Returns the number of connected replicas.
    pub(crate) fn connected(&self) -> usize {
        self.links.len()
    }

    /// Returns the number of replicas that have acknowledged the stream up to `offset`.
    pub(crate) fn acknowledged(&self, offset: u64) -> usize {
        self.links.iter().filter(|link| link.acknowledged >= offset).count()
    }
}
