//! The requests used by locks.

use super::jute::{Reader, WireError, Writer};

/// The operation of a request, a number in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is the operation of the request that bears its name")]
pub enum Op {
    Create = 1,
    Delete = 2,
    Exists = 3,
    Data = 4,
    SetData = 5,
    Children = 8,
    Sync = 9,
    Ping = 11,
    ChildrenStat = 12,
    CreateStat = 15,
    SetWatches = 101,
    Close = -11,
}

/// The kind of a new node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateMode {
    /// The node is deleted when the session ends.
    pub ephemeral: bool,
    /// The server appends ten digits to the path, counted by the parent.
    pub sequential: bool,
}

/// The access list of a new node, with all rights for those that it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Everybody: `world:anyone`.
    #[default]
    Everybody,
    /// The logins of the connection that creates it: `auth:`.
    Creator,
}

/// One request, without its xid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Creates a node.
    Create {
        /// Its path.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// Its kind.
        mode: CreateMode,
        /// Its access list.
        access: Access,
        /// True if the reply must contain its stat.
        with_stat: bool,
    },
    /// Deletes a node.
    Delete {
        /// Its path.
        path: String,
        /// The version that its data must have; -1 for any.
        version: i32,
    },
    /// Reads a node's stat.
    Exists {
        /// Its path.
        path: String,
        /// True to watch for its creation, deletion and change.
        watch: bool,
    },
    /// Reads a node's data.
    Data {
        /// Its path.
        path: String,
        /// True to watch for its change and deletion.
        watch: bool,
    },
    /// Sets a node's data.
    SetData {
        /// Its path.
        path: String,
        /// The new data.
        data: Vec<u8>,
        /// The version that its data must have; -1 for any.
        version: i32,
    },
    /// Reads the names of a node's children.
    Children {
        /// Its path.
        path: String,
        /// True to watch for changes of the children and the node's deletion.
        watch: bool,
        /// True if the reply must contain its stat.
        with_stat: bool,
    },
    /// Makes the server catch up with the leader.
    Sync {
        /// Without effect, but part of the protocol.
        path: String,
    },
    /// Keeps the session alive.
    Ping,
    /// Sets watches again after a reconnect; those whose node has changed fire at once.
    SetWatches {
        /// The latest transaction that the client has seen.
        seen: i64,
        /// Paths whose data is watched.
        data: Vec<String>,
        /// Watched paths that did not exist.
        exist: Vec<String>,
        /// Paths whose children are watched.
        child: Vec<String>,
    },
    /// Ends the session.
    Close,
}

impl CreateMode {
    /// A node that stays until it is deleted.
    pub const PERSISTENT: Self = Self { ephemeral: false, sequential: false };
    /// A numbered node that is deleted when the session ends.
    pub const EPHEMERAL_SEQUENTIAL: Self = Self { ephemeral: true, sequential: true };

    /// Returns the flags of the wire format.
    pub const fn flags(self) -> i32 {
        self.ephemeral as i32 | (self.sequential as i32) << 1
    }

    /// Returns the mode of a create with these flags; `None` for nodes with a TTL and for meaningless flags.
    ///
    /// 4 means a container, which only createContainer makes: create makes a persistent node of it.
    pub const fn from_flags(flags: i32) -> Option<Self> {
        match flags {
            0..=4 => Some(Self { ephemeral: flags & 1 != 0, sequential: flags & 2 != 0 }),
            _ => None,
        }
    }
}

impl Op {
    /// Returns the operation with this number, if it is one of these.
    pub const fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            1 => Self::Create,
            2 => Self::Delete,
            3 => Self::Exists,
            4 => Self::Data,
            5 => Self::SetData,
            8 => Self::Children,
            9 => Self::Sync,
            11 => Self::Ping,
            12 => Self::ChildrenStat,
            15 => Self::CreateStat,
            101 => Self::SetWatches,
            -11 => Self::Close,
            _ => return None,
        })
    }

    /// Returns its name in ZooKeeper's `ZooDefs`, for traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Exists => "exists",
            Self::Data => "getData",
            Self::SetData => "setData",
            Self::Children => "getChildren",
            Self::Sync => "sync",
            Self::Ping => "ping",
            Self::ChildrenStat => "getChildren2",
            Self::CreateStat => "create2",
            Self::SetWatches => "setWatches",
            Self::Close => "closeSession",
        }
    }
}

impl Request {
    /// Returns the request's operation.
    pub const fn op(&self) -> Op {
        match self {
            Self::Create { with_stat: false, .. } => Op::Create,
            Self::Create { with_stat: true, .. } => Op::CreateStat,
            Self::Delete { .. } => Op::Delete,
            Self::Exists { .. } => Op::Exists,
            Self::Data { .. } => Op::Data,
            Self::SetData { .. } => Op::SetData,
            Self::Children { with_stat: false, .. } => Op::Children,
            Self::Children { with_stat: true, .. } => Op::ChildrenStat,
            Self::Sync { .. } => Op::Sync,
            Self::Ping => Op::Ping,
            Self::SetWatches { .. } => Op::SetWatches,
            Self::Close => Op::Close,
        }
    }

    /// Returns the path of its node; the root if it has none.
    pub fn path(&self) -> &str {
        match self {
            Self::Create { path, .. }
            | Self::Delete { path, .. }
            | Self::Exists { path, .. }
            | Self::Data { path, .. }
            | Self::SetData { path, .. }
            | Self::Children { path, .. }
            | Self::Sync { path } => path,
            Self::Ping | Self::SetWatches { .. } | Self::Close => "/",
        }
    }

    /// Encodes the whole frame, with this xid.
    pub fn encode(&self, xid: i32) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.int(xid).int(self.op() as i32);
        match self {
            Self::Create { path, data, mode, access, .. } => {
                writer.text(path).buffer(data);
                write_access(*access, &mut writer);
                writer.int(mode.flags());
            }
            Self::Delete { path, version } => {
                writer.text(path).int(*version);
            }
            Self::Exists { path, watch }
            | Self::Data { path, watch }
            | Self::Children { path, watch, .. } => {
                writer.text(path).boolean(*watch);
            }
            Self::SetData { path, data, version } => {
                writer.text(path).buffer(data).int(*version);
            }
            Self::Sync { path } => {
                writer.text(path);
            }
            Self::SetWatches { seen, data, exist, child } => {
                writer.long(*seen);
                for paths in [data, exist, child] {
                    writer.texts(paths.iter().map(String::as_str));
                }
            }
            Self::Ping | Self::Close => {}
        }
        writer.finish()
    }

    /// Reads the body after the header of a request for `op`.
    ///
    /// # Errors
    ///
    /// [`WireError`] if the bytes are no such request, [`WireError::Unknown`] for a create whose flags are no
    /// [`CreateMode`].
    pub fn read(op: Op, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(match op {
            Op::Create | Op::CreateStat => read_create(op == Op::CreateStat, reader)?,
            Op::Delete => Self::Delete { path: reader.text()?, version: reader.int()? },
            Op::Exists => Self::Exists { path: reader.text()?, watch: reader.boolean()? },
            Op::Data => Self::Data { path: reader.text()?, watch: reader.boolean()? },
            Op::SetData => Self::SetData {
                path: reader.text()?,
                data: reader.buffer()?.to_vec(),
                version: reader.int()?,
            },
            Op::Children | Op::ChildrenStat => Self::Children {
                path: reader.text()?,
                watch: reader.boolean()?,
                with_stat: op == Op::ChildrenStat,
            },
            Op::Sync => Self::Sync { path: reader.text()? },
            Op::Ping => Self::Ping,
            Op::SetWatches => Self::SetWatches {
                seen: reader.long()?,
                data: reader.texts()?,
                exist: reader.texts()?,
                child: reader.texts()?,
            },
            Op::Close => Self::Close,
        })
    }
}

fn read_create(with_stat: bool, reader: &mut Reader<'_>) -> Result<Request, WireError> {
    let (path, data) = (reader.text()?, reader.buffer()?.to_vec());
    // Only the lists that `write_access` writes have a meaning here; others are read as the first of them.
    let mut access = Access::Everybody;
    for _ in 0..reader.length()? {
        reader.int()?;
        if reader.buffer()? == b"auth" {
            access = Access::Creator;
        }
        reader.buffer()?;
    }
    let number = reader.int()?;
    let mode = CreateMode::from_flags(number).ok_or(WireError::Unknown { number })?;
    Ok(Request::Create { path, data, mode, access, with_stat })
}

/// Writes an access list of one entry, with all five rights.
fn write_access(access: Access, writer: &mut Writer) {
    let (scheme, id) = match access {
        Access::Everybody => ("world", "anyone"),
        Access::Creator => ("auth", ""),
    };
    writer.int(1).int(31).text(scheme).text(id);
}
