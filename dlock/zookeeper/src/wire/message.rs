//! The login, the header of replies, and events.

use super::jute::{Reader, WireError, Writer};

/// The length of a session's password in bytes.
pub const PASSWORD_BYTES: usize = 16;

/// The reserved xids; requests count from 1.
pub mod xid {
    /// An event.
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
    /// The latest transaction seen by the client: a server that lags behind it must not serve.
    pub last_zxid_seen: i64,
    /// The session timeout requested, in milliseconds.
    pub timeout_millis: i32,
    /// The session to resume; 0 for a new one.
    pub session_id: i64,
    /// The session's password.
    pub password: [u8; PASSWORD_BYTES],
    /// True if a read-only server is acceptable; `None` from clients before 3.4, which leave out the field.
    pub read_only: Option<bool>,
}

/// Shows the server who the client is, on a connection that has a session. Access lists of nodes name such
/// logins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Login<'a> {
    /// The scheme: `digest` for a user and a password.
    pub scheme: &'a str,
    /// The proof: `user:password` for `digest`.
    pub proof: &'a [u8],
}

/// The operation of a [`Login`].
const LOGIN: i32 = 100;

/// The server's answer to a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The negotiated session timeout, in milliseconds; if 0 or less, the session is over.
    pub timeout_millis: i32,
    /// The session's number.
    pub session_id: i64,
    /// The session's password.
    pub password: [u8; PASSWORD_BYTES],
    /// True if the server is read-only; `None` if one end is older than 3.4.
    pub read_only: Option<bool>,
}

/// The header of every later message of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    /// The xid of the request, or one of [`xid`].
    pub xid: i32,
    /// The transaction of the request, or the latest that the server has seen.
    pub zxid: i64,
    /// One of [`super::code`].
    pub err: i32,
}

/// The metadata of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The transaction that created the node.
    pub czxid: i64,
    /// The transaction that last set its data.
    pub mzxid: i64,
    /// The time of its creation: milliseconds since the Unix epoch, on the leader's wall clock.
    pub ctime: i64,
    /// The time when its data was last set, in the same unit.
    pub mtime: i64,
    /// Counts the changes of its data.
    pub version: i32,
    /// Counts the creations and deletions of children.
    pub cversion: i32,
    /// Counts the changes of its access list.
    pub aversion: i32,
    /// The session that owns it; 0 if it is not ephemeral.
    pub ephemeral_owner: i64,
    /// The size of its data in bytes.
    pub data_length: i32,
    /// The number of its children.
    pub num_children: i32,
    /// The transaction that last created or deleted a child.
    pub pzxid: i64,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// The node was created.
    Created = 1,
    /// The node was deleted.
    Deleted = 2,
    /// The node's data was set.
    DataChanged = 3,
    /// A child was created or deleted.
    ChildrenChanged = 4,
}

/// An event: a watch fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatcherEvent {
    /// Its kind.
    pub kind: EventKind,
    /// The path of the node.
    pub path: String,
}

/// The state that servers write into every event: connected.
const SYNC_CONNECTED: i32 = 3;

impl ConnectRequest {
    /// Encodes the whole frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.int(0).long(self.last_zxid_seen).int(self.timeout_millis).long(self.session_id);
        writer.buffer(&self.password);
        last_field(self.read_only, &mut writer);
        writer.finish()
    }

    /// Reads a frame. A password of the wrong length reads as zeros, which is no password.
    ///
    /// # Errors
    ///
    /// [`WireError`] if the frame is invalid.
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

impl Login<'_> {
    /// Encodes the whole frame. The server answers with the xid [`xid::AUTH`].
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.int(xid::AUTH).int(LOGIN).int(0).text(self.scheme).buffer(self.proof);
        writer.finish()
    }
}

impl ConnectResponse {
    /// Encodes the whole frame.
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
    /// [`WireError`] if the frame is invalid.
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
    /// Writes it at the beginning of a frame.
    pub fn write(self, writer: &mut Writer) {
        writer.int(self.xid).long(self.zxid).int(self.err);
    }

    /// Reads it from the beginning of a frame.
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

    /// Reads its eleven fields.
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
    /// Encodes the whole frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        ReplyHeader { xid: xid::NOTIFICATION, zxid: -1, err: 0 }.write(&mut writer);
        writer.int(self.kind as i32).int(SYNC_CONNECTED).text(&self.path);
        writer.finish()
    }

    /// Reads the body after the header.
    ///
    /// # Errors
    ///
    /// [`WireError`] if the body is invalid.
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

/// Reads the password. A client without a session may send null, or an empty one.
fn password(bytes: &[u8]) -> Result<[u8; PASSWORD_BYTES], WireError> {
    match bytes {
        [] => Ok([0; PASSWORD_BYTES]),
        bytes => bytes.try_into().map_err(|_| WireError::Length { length: bytes.len() as i32 }),
    }
}
