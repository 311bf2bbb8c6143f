//! The state that all members share, behind one mutex.

use std::collections::BTreeMap;

use etcd_client::proto::PbResponseHeader;

use super::locks::{LockChange, LockView};
use super::store::State;
use super::watch::WatchStream;

/// The cluster id, the same for every simulated cluster.
const CLUSTER_ID: u64 = 0xcdf8_181e_3265_4e9a;

/// A first leader has been elected in term 2: term 1 is that of etcd's first configuration.
const FIRST_TERM: u64 = 2;

#[derive(Debug)]
pub(super) struct Core {
    pub(super) state: State,
    pub(super) locks: LockView,
    pub(super) leader: usize,
    pub(super) term: u64,
    pub(super) members: Vec<Member>,
    pub(super) streams: BTreeMap<u64, WatchStream>,
    stream_next: u64,
    lease_next: i64,
    /// Changes that observers have not received yet.
    pub(super) unreported: Vec<LockChange>,
}

/// The state of a member in the cluster.
#[derive(Debug)]
pub(super) struct Member {
    /// The last revision that reached it.
    pub(super) applied: i64,
    /// The last contact with a leader that has a majority, on its own clock, in nanoseconds.
    pub(super) leader_seen_at: u64,
    /// The last check for leases that have ended, on its own clock, in nanoseconds.
    pub(super) expired_at: u64,
    /// True if it served requests at the last heartbeat.
    pub(super) is_serving: bool,
    /// Cut off from all others by [`super::Cluster::isolate`].
    pub(super) is_isolated: bool,
    /// Requests that it has carried out, in all lives of its process.
    pub(super) executed: u64,
}

impl Core {
    /// Creates a cluster of `count` members.
    pub(super) fn new(count: usize) -> Self {
        let member = |_| Member {
            applied: 1,
            leader_seen_at: 0,
            expired_at: 0,
            is_serving: true,
            is_isolated: false,
            executed: 0,
        };
        Self {
            state: State::default(),
            locks: LockView::default(),
            leader: 0,
            term: FIRST_TERM,
            members: (0..count).map(member).collect(),
            streams: BTreeMap::new(),
            stream_next: 0,
            lease_next: 0,
            unreported: Vec::new(),
        }
    }

    /// Returns the header of a member's answers, at the revision that it has applied.
    pub(super) fn header(&self, member: usize) -> PbResponseHeader {
        PbResponseHeader {
            cluster_id: CLUSTER_ID,
            member_id: member_id(member),
            revision: self.members[member].applied,
            raft_term: self.term,
        }
    }

    pub(super) fn add_stream(&mut self, stream: WatchStream) -> u64 {
        self.stream_next += 1;
        self.streams.insert(self.stream_next, stream);
        self.stream_next
    }

    /// Returns a lease id that is not in use.
    pub(super) fn free_lease_id(&mut self) -> i64 {
        loop {
            self.lease_next += 1;
            let id = 0x7587_8f1c_0000_0000 | self.lease_next;
            if !self.state.lessor.contains(id) {
                return id;
            }
        }
    }
}

/// Returns the member's id in headers and lists.
pub(super) fn member_id(member: usize) -> u64 {
    0x8e9e_05c5_2164_694d + member as u64
}
