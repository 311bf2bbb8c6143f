//! The state that the members share (tree, sessions, connections), and the execution of requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dlock_zookeeper::wire::{
    CreateMode, EventKind, Op, Reply, ReplyHeader, Request, WatcherEvent, Writer, code,
};
use tokio::sync::Notify;

use super::member::Member;
use super::observe::{Change, Removal};
use super::session::{self, Session};
use super::tree::{Refusal, Stamp, Tree};

/// The shared state. There is one history of transactions, made by the leader.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) tick: Duration,
    /// The ticks for which a member goes on serving while it is out of touch.
    pub(crate) sync_limit: u32,
    pub(crate) tree: Tree,
    /// The latest transaction: the epoch in the upper half, a counter in the lower.
    pub(crate) zxid: i64,
    pub(crate) sessions: BTreeMap<i64, Session>,
    pub(crate) members: Vec<Member>,
    pub(crate) connections: BTreeMap<u64, Connected>,
    opened: u64,
    /// The changes since [`Core::take_record`] was last called.
    record: Vec<Change>,
}

/// A client's connection to a member.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) member: usize,
    pub(crate) session: i64,
    /// Bytes that wait to be sent: replies and events, in their order.
    pub(crate) output: Vec<u8>,
    /// The connection ends once the output is sent.
    pub(crate) is_closing: bool,
    /// Notified of changes of these fields.
    pub(crate) changed: Arc<Notify>,
}

/// The clocks, read by a member when a request arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// The member's own monotonic clock, in nanoseconds.
    pub(crate) own: u64,
    /// The leader's monotonic clock, in nanoseconds, by which sessions expire.
    pub(crate) leader: u64,
    /// The leader's wall clock: milliseconds since the Unix epoch.
    pub(crate) wall_millis: i64,
}

impl Core {
    pub(crate) fn new(members: usize, tick: Duration, sync_limit: u32) -> Self {
        Self {
            tick,
            sync_limit,
            tree: Tree::default(),
            zxid: 0,
            sessions: BTreeMap::new(),
            members: (0..members).map(|_| Member::default()).collect(),
            connections: BTreeMap::new(),
            opened: 0,
            record: Vec::new(),
        }
    }

    /// Adds a connection, which has no session yet.
    pub(crate) fn open(&mut self, member: usize) -> (u64, Arc<Notify>) {
        self.opened += 1;
        let changed = Arc::new(Notify::new());
        let connected = Connected {
            member,
            session: 0,
            output: Vec::new(),
            is_closing: false,
            changed: Arc::clone(&changed),
        };
        self.connections.insert(self.opened, connected);
        (self.opened, changed)
    }

    /// Removes a connection that has ended. Its session goes on.
    pub(crate) fn hang_up(&mut self, connection: u64) {
        if let Some(connected) = self.connections.remove(&connection) {
            self.members[connected.member].watches.forget(connection);
        }
    }

    /// Ends a connection once its output is sent.
    pub(crate) fn close(&mut self, connection: u64) {
        if let Some(connected) = self.connections.get_mut(&connection) {
            connected.is_closing = true;
            connected.changed.notify_one();
        }
    }

    pub(crate) fn send(&mut self, connection: u64, frame: &[u8]) {
        if let Some(connected) = self.connections.get_mut(&connection) {
            connected.output.extend_from_slice(frame);
            connected.changed.notify_one();
        }
    }

    pub(crate) fn take_record(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.record)
    }

    /// Runs a request for `op`, or refuses one that could not be read, and sends the reply. The member must
    /// be in touch if the operation needs the leader.
    pub(crate) fn execute(
        &mut self,
        connection: u64,
        xid: i32,
        op: Op,
        request: Result<Request, Refusal>,
        now: Now,
    ) {
        let Some(connected) = self.connections.get(&connection) else { return };
        let (member, id) = (connected.member, connected.session);
        let closes = op == Op::Close;
        let result = if is_write(op) {
            self.write(connection, id, request, now)
        } else {
            request.and_then(|request| self.read(member, connection, request))
        };
        let zxid = if closes { self.zxid } else { self.members[member].zxid(self.zxid) };
        let mut writer = Writer::default();
        let err = result.as_ref().err().copied().unwrap_or(code::OK);
        ReplyHeader { xid, zxid, err }.write(&mut writer);
        if let Ok(reply) = result {
            reply.write(&mut writer);
        }
        self.send(connection, &writer.finish());
        if closes || err == code::SESSION_EXPIRED {
            self.close(connection);
        }
    }

    /// Answers without a body.
    pub(crate) fn answer(&mut self, connection: u64, xid: i32, zxid: i64, err: i32) {
        let mut writer = Writer::default();
        ReplyHeader { xid, zxid, err }.write(&mut writer);
        self.send(connection, &writer.finish());
    }

    /// Answers without a body, and ends the connection.
    pub(crate) fn refuse(&mut self, connection: u64, xid: i32, zxid: i64, err: i32) {
        self.answer(connection, xid, zxid, err);
        self.close(connection);
    }

    fn read(&mut self, member: usize, connection: u64, request: Request) -> Result<Reply, Refusal> {
        let Member { behind, watches, .. } = &mut self.members[member];
        let tree = behind.as_ref().map_or(&self.tree, |behind| &behind.tree);
        Ok(match request {
            Request::Exists { path, .. } if path.contains('\0') => return Err(code::BAD_ARGUMENTS),
            Request::Exists { path, watch } => {
                // A node that is missing is watched too.
                if watch {
                    watches.watch_data(&path, connection);
                }
                Reply::Stat(tree.stat(&path)?)
            }
            Request::Data { path, watch } => {
                let (data, stat) = tree.data(&path)?;
                if watch {
                    watches.watch_data(&path, connection);
                }
                Reply::Data { data, stat }
            }
            Request::Children { path, watch, with_stat } => {
                let (names, stat) = tree.children(&path)?;
                if watch {
                    watches.watch_children(&path, connection);
                }
                Reply::Children { names, stat: with_stat.then_some(stat) }
            }
            Request::Sync { path } => Reply::Path(path),
            Request::SetWatches { seen, data, exist, child } => {
                self.set_watches(member, connection, seen, [data, exist, child]);
                Reply::Nothing
            }
            _ => Reply::Nothing,
        })
    }

    /// Sets watches again after a reconnect. Sends events at once for changes since the transaction `seen`.
    ///
    /// Source: `DataTree.setWatches`.
    fn set_watches(&mut self, member: usize, connection: u64, seen: i64, paths: [Vec<String>; 3]) {
        let Member { behind, watches, .. } = &mut self.members[member];
        let tree = behind.as_ref().map_or(&self.tree, |behind| &behind.tree);
        let [data, exist, child] = paths;
        let mut events = Vec::new();
        for path in data {
            match tree.stat(&path) {
                Err(_) => events.push(WatcherEvent { kind: EventKind::Deleted, path }),
                Ok(stat) if stat.mzxid > seen => {
                    events.push(WatcherEvent { kind: EventKind::DataChanged, path });
                }
                Ok(_) => watches.watch_data(&path, connection),
            }
        }
        for path in exist {
            match tree.stat(&path) {
                Ok(_) => events.push(WatcherEvent { kind: EventKind::Created, path }),
                Err(_) => watches.watch_data(&path, connection),
            }
        }
        for path in child {
            match tree.stat(&path) {
                Err(_) => events.push(WatcherEvent { kind: EventKind::Deleted, path }),
                Ok(stat) if stat.pzxid > seen => {
                    events.push(WatcherEvent { kind: EventKind::ChildrenChanged, path });
                }
                Ok(_) => watches.watch_children(&path, connection),
            }
        }
        events.iter().for_each(|event| self.send(connection, &event.encode()));
    }

    /// Makes one transaction. A refused one takes a number too, as in the real server.
    fn write(
        &mut self,
        connection: u64,
        id: i64,
        request: Result<Request, Refusal>,
        now: Now,
    ) -> Result<Reply, Refusal> {
        let stamp = self.next_stamp(now);
        let session = self.sessions.get(&id).ok_or(code::SESSION_EXPIRED)?;
        // `PrepRequestProcessor` lets any connection of a session close it, even one that it has left.
        if session.connection != connection && !matches!(request, Ok(Request::Close)) {
            return Err(code::SESSION_MOVED);
        }
        match request? {
            Request::Create { path, data, mode, with_stat, .. } => {
                self.create(id, &path, data, mode, with_stat, stamp)
            }
            Request::Delete { path, version } => {
                self.tree.delete(&path, version, stamp)?;
                self.apply(Change::Deleted { path, zxid: stamp.zxid, cause: Removal::Request });
                Ok(Reply::Nothing)
            }
            Request::SetData { path, data, version } => {
                let stat = self.tree.set_data(&path, data, version, stamp)?;
                self.apply(Change::DataSet { path, zxid: stamp.zxid });
                Ok(Reply::Stat(stat))
            }
            _ => {
                self.end_session(id, Removal::Closed, stamp);
                Ok(Reply::Nothing)
            }
        }
    }

    fn create(
        &mut self,
        id: i64,
        path: &str,
        data: Vec<u8>,
        mode: CreateMode,
        with_stat: bool,
        stamp: Stamp,
    ) -> Result<Reply, Refusal> {
        let owner = if mode.ephemeral { id } else { 0 };
        let timeout = self.sessions.get(&owner).map(|session| session.timeout);
        let path = self.tree.create(path, data.clone(), owner, mode.sequential, stamp)?;
        let stat = self.tree.stat(&path)?;
        self.apply(Change::Created { path: path.clone(), data, zxid: stamp.zxid, timeout });
        Ok(if with_stat { Reply::Created { path, stat } } else { Reply::Path(path) })
    }

    /// Begins a session for a connection and returns its number.
    pub(crate) fn begin_session(&mut self, connection: u64, timeout: Duration, now: Now) -> Option<i64> {
        self.next_stamp(now);
        let connected = self.connections.get_mut(&connection)?;
        let next = &mut self.members[connected.member].next_session;
        if *next == 0 {
            *next = session::first_id(connected.member, now.own);
        }
        while self.sessions.contains_key(next) {
            *next += 1;
        }
        let id = *next;
        *next += 1;
        connected.session = id;
        let expires_at = session::expiry(now.leader, timeout, self.tick);
        let member = connected.member;
        self.sessions.insert(id, Session { timeout, expires_at, connection, member });
        self.apply(Change::SessionOpened { id });
        Some(id)
    }

    /// Closes the other connections that `connection`'s member has for a session.
    ///
    /// Source: `ZooKeeperServer.processConnectRequest`.
    pub(crate) fn displace(&mut self, connection: u64, id: i64) {
        let Some(member) = self.connections.get(&connection).map(|connected| connected.member) else {
            return;
        };
        let theirs = |number: u64, other: &Connected| {
            id != 0 && number != connection && other.member == member && other.session == id
        };
        let former: Vec<u64> = self
            .connections
            .iter()
            .filter(|(number, other)| theirs(**number, other))
            .map(|(number, _)| *number)
            .collect();
        former.into_iter().for_each(|connection| self.close(connection));
    }

    /// Moves a session to another connection. Writes that still arrive on the old one are refused, except the
    /// close of the session. If the old one is at another member, that member learns of the move only when
    /// the client writes there.
    pub(crate) fn move_session(&mut self, connection: u64, id: i64, timeout: Duration, now: Now) {
        let Some(connected) = self.connections.get_mut(&connection) else { return };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        connected.session = id;
        session.timeout = timeout;
        (session.member, session.connection) = (connected.member, connection);
        self.touch(id, now);
    }

    /// Restarts the timeout of a session.
    pub(crate) fn touch(&mut self, id: i64, now: Now) {
        let tick = self.tick;
        if let Some(session) = self.sessions.get_mut(&id) {
            session.expires_at = session::expiry(now.leader, session.timeout, tick);
        }
    }

    /// Ends the sessions that have expired. Only the leader calls it.
    pub(crate) fn expire(&mut self, now: Now) {
        let due = |session: &Session| session.expires_at <= now.leader;
        let over: Vec<i64> =
            self.sessions.iter().filter(|(_, session)| due(session)).map(|(id, _)| *id).collect();
        for id in over {
            let stamp = self.next_stamp(now);
            self.end_session(id, Removal::Expired, stamp);
        }
    }

    fn end_session(&mut self, id: i64, cause: Removal, stamp: Stamp) {
        for path in self.tree.ephemerals(id) {
            if self.tree.delete(&path, -1, stamp).is_ok() {
                self.apply(Change::Deleted { path, zxid: stamp.zxid, cause });
            }
        }
        self.sessions.remove(&id);
        self.apply(Change::SessionClosed { id, expired: cause == Removal::Expired });
    }

    /// Shows a change to every member; a member out of touch learns of it later.
    fn apply(&mut self, change: Change) {
        for member in 0..self.members.len() {
            match &mut self.members[member].behind {
                Some(behind) => behind.missed.push(change.clone()),
                None => self.show(member, &change),
            }
        }
        self.record.push(change);
    }

    /// Sends the events of a change to the clients of a member.
    pub(crate) fn show(&mut self, member: usize, change: &Change) {
        for (connection, event) in self.members[member].watches.fire(change) {
            self.send(connection, &event.encode());
        }
        if let Change::SessionClosed { id, .. } = *change {
            let theirs = |connected: &Connected| connected.member == member && connected.session == id;
            let over: Vec<u64> =
                self.connections.iter().filter(|(_, c)| theirs(c)).map(|(number, _)| *number).collect();
            over.into_iter().for_each(|connection| self.close(connection));
        }
    }

    fn next_stamp(&mut self, now: Now) -> Stamp {
        self.zxid += 1;
        Stamp { zxid: self.zxid, millis: now.wall_millis }
    }
}

/// Returns true if an operation makes a transaction.
pub(crate) fn is_write(op: Op) -> bool {
    matches!(op, Op::Create | Op::CreateStat | Op::Delete | Op::SetData | Op::Close)
}

/// Returns true if an operation can't be answered without the leader.
pub(crate) fn needs_leader(op: Op) -> bool {
    is_write(op) || op == Op::Sync
}
