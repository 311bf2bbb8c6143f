//! What opens a session, what every reply begins with, and what tells of a change.

use super::jute::{Reader, WireError, Writer};

/// The length of a session's password in bytes.
pub const PASSWORD_BYTES: usize = 16;

/// The xids with a meaning of their own; requests count from 1.
pub mod xid {
    /// A watch fired.
    pub const NOTIFICATION: i32 = -1;
    /// A ping and its answer.
    pub const PING: i32 = -2;
    /// A login.
    pub const AUTH: i32 = -4;
    /// Watches set again after a reconnect.
    pub const SET_WATCHES: i32 = -8;
}

/// The first message of a client on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The latest transaction that the client has heard of: a server that lags behind it must not serve.
    pub last_zxid_seen: i64,
    /// The session timeout that the client would like, in milliseconds.
    pub timeout_millis: i32,
    /// The session to go on with; 0 for a new one.
    pub session_id: i64,
    /// What proves that the session is the client's.
    pub password: [u8; PASSWORD_BYTES],
    /// Whether a server without a majority would do; `None` from clients before 3.4, which did not say.
    pub read_only: Option<bool>,
}

/// The server's answer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The session timeout that holds, in milliseconds; 0 or less: the session is over.
    pub timeout_millis: i32,
    /// The session's number.
    pub session_id: i64,
    /// What proves later that the session is the client's.
    pub password: [u8; PASSWORD_BYTES],
    /// Whether the server has no majority; `None` between ends one of which is older than 3.4.
    pub read_only: Option<bool>,
}

/// What every later message of a server begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    /// That of the request, or one of [`xid`].
    pub xid: i32,
    /// The transaction, or the latest that the server has seen.
    pub zxid: i64,
    /// One of [`super::code`].
    pub err: i32,
}

/// What ZooKeeper knows of a node besides its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The transaction that created the node.
    pub czxid: i64,
    /// The transaction that last set its data.
    pub mzxid: i64,
    /// When it was created: milliseconds since the Unix epoch, by the leader's wall clock.
    pub ctime: i64,
    /// When its data was last set, likewise.
    pub mtime: i64,
    /// How often its data was set.
    pub version: i32,
    /// How often a child came or went.
    pub cversion: i32,
    /// How often its access list was set.
    pub aversion: i32,
    /// The session that it ends with; 0 if it is no ephemeral node.
    pub ephemeral_owner: i64,
    /// The size of its data in bytes.
    pub data_length: i32,
    /// How many children it has.
    pub num_children: i32,
    /// The transaction by which a child last came or went.
    pub pzxid: i64,
}

/// What happened to a node that was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// It came to be.
    Created = 1,
    /// It is gone.
    Deleted = 2,
    /// Its data was set.
    DataChanged = 3,
    /// A child came or went.
    ChildrenChanged = 4,
}

/// A watch that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatcherEvent {
    /// What happened.
    pub kind: EventKind,
    /// To which node.
    pub path: String,
}

/// The state that servers write into an event: all is well.
const SYNC_CONNECTED: i32 = 3;

impl ConnectRequest {
    /// The whole frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.int(0).long(self.last_zxid_seen).int(self.timeout_millis).long(self.session_id);
        writer.buffer(&self.password);
        last_field(self.read_only, &mut writer);
        writer.finish()
    }

    /// Reads a frame. A password of another length than sessions have is read as zeros: it is none.
    ///
    /// # Errors
    ///
    /// [`WireError`] if it is none of these.
    pub fn decode(frame: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(frame);
        reader.int()?;
        Ok(Self {
            last_zxid_seen: reader.long()?,
            timeout_millis: reader.int()?,
            session_id: reader.long()?,
            password: password(reader.buffer()?).unwrap_or_default(),
            read_only: reader.boolean().ok(),
        })
    }
}

impl ConnectResponse {
    /// The whole frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.int(0).int(self.timeout_millis).long(self.session_id);
        writer.buffer(&self.password);
        last_field(self.read_only, &mut writer);
        writer.finish()
    }

    /// Reads a frame.
    ///
    /// # Errors
    ///
    /// [`WireError`] if it is none of these.
    pub fn decode(frame: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(frame);
        reader.int()?;
        Ok(Self {
            timeout_millis: reader.int()?,
            session_id: reader.long()?,
            password: password(reader.buffer()?)?,
            read_only: reader.boolean().ok(),
        })
    }
}

impl ReplyHeader {
    /// Begins a frame.
    pub fn write(self, writer: &mut Writer) {
        writer.int(self.xid).long(self.zxid).int(self.err);
    }

    /// Reads the beginning of a frame.
    ///
    /// # Errors
    ///
    /// [`WireError::Truncated`].
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self { xid: reader.int()?, zxid: reader.long()?, err: reader.int()? })
    }
}

impl Stat {
    /// Writes its eleven fields.
    pub fn write(&self, writer: &mut Writer) {
        writer.long(self.czxid).long(self.mzxid).long(self.ctime).long(self.mtime);
        writer.int(self.version).int(self.cversion).int(self.aversion);
        writer.long(self.ephemeral_owner).int(self.data_length).int(self.num_children).long(self.pzxid);
    }

    /// Reads them.
    ///
    /// # Errors
    ///
    /// [`WireError::Truncated`].
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self {
            czxid: reader.long()?,
            mzxid: reader.long()?,
            ctime: reader.long()?,
            mtime: reader.long()?,
            version: reader.int()?,
            cversion: reader.int()?,
            aversion: reader.int()?,
            ephemeral_owner: reader.long()?,
            data_length: reader.int()?,
            num_children: reader.int()?,
            pzxid: reader.long()?,
        })
    }
}

impl WatcherEvent {
    /// The whole frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        ReplyHeader { xid: xid::NOTIFICATION, zxid: -1, err: 0 }.write(&mut writer);
        writer.int(self.kind as i32).int(SYNC_CONNECTED).text(&self.path);
        writer.finish()
    }

    /// Reads what follows the header.
    ///
    /// # Errors
    ///
    /// [`WireError`] if it is no event.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let kind = match reader.int()? {
            1 => EventKind::Created,
            2 => EventKind::Deleted,
            3 => EventKind::DataChanged,
            4 => EventKind::ChildrenChanged,
            number => return Err(WireError::Unknown { number }),
        };
        reader.int()?;
        Ok(Self { kind, path: reader.text()? })
    }
}

fn last_field(read_only: Option<bool>, writer: &mut Writer) {
    if let Some(read_only) = read_only {
        writer.boolean(read_only);
    }
}

/// A client without a session may send no password, or an empty one.
fn password(bytes: &[u8]) -> Result<[u8; PASSWORD_BYTES], WireError> {
    match bytes {
        [] => Ok([0; PASSWORD_BYTES]),
        bytes => bytes.try_into().map_err(|_| WireError::Length { length: bytes.len() as i32 }),
    }
}
