//! The requests that the lock recipe needs.

use super::jute::{Reader, WireError, Writer};

/// What a request asks for, as a number in its header.
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

/// What kind of node to create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateMode {
    /// The node ends with the session.
    pub ephemeral: bool,
    /// The server appends ten digits to the path, counted by the parent.
    pub sequential: bool,
}

/// One request, without its xid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Creates a node; everybody may do everything with it.
    Create {
        /// Where.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// Its kind.
        mode: CreateMode,
        /// Whether the reply shall hold its stat.
        with_stat: bool,
    },
    /// Deletes a node.
    Delete {
        /// Which.
        path: String,
        /// Only in this version of its data; -1 for any.
        version: i32,
    },
    /// Asks for a node's stat.
    Exists {
        /// Which.
        path: String,
        /// Whether to tell when it comes, goes or changes.
        watch: bool,
    },
    /// Asks for a node's data.
    Data {
        /// Which.
        path: String,
        /// Whether to tell when it changes or goes.
        watch: bool,
    },
    /// Sets a node's data.
    SetData {
        /// Which.
        path: String,
        /// To what.
        data: Vec<u8>,
        /// Only in this version of its data; -1 for any.
        version: i32,
    },
    /// Asks for the names of a node's children.
    Children {
        /// Which.
        path: String,
        /// Whether to tell when a child comes or goes, or the node itself goes.
        watch: bool,
        /// Whether the reply shall hold its stat.
        with_stat: bool,
    },
    /// Has the server catch up with the leader first.
    Sync {
        /// Of no effect, but part of the protocol.
        path: String,
    },
    /// Keeps the session alive.
    Ping,
    /// Sets watches again after a reconnect; those that would have fired meanwhile fire at once.
    SetWatches {
        /// The latest transaction that the client has heard of.
        seen: i64,
        /// Paths whose data is watched.
        data: Vec<String>,
        /// Paths that did not exist and are watched.
        exist: Vec<String>,
        /// Paths whose children are watched.
        child: Vec<String>,
    },
    /// Ends the session.
    Close,
}

impl CreateMode {
    /// Stays until deleted.
    pub const PERSISTENT: Self = Self { ephemeral: false, sequential: false };
    /// Ends with the session, and is numbered.
    pub const EPHEMERAL_SEQUENTIAL: Self = Self { ephemeral: true, sequential: true };

    /// The flags of the wire.
    pub const fn flags(self) -> i32 {
        self.ephemeral as i32 | (self.sequential as i32) << 1
    }

    /// The mode that a create with these flags asks for, or `None` for nodes with a TTL and flags that mean
    /// nothing.
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
    /// The operation numbered `number`, if it is one of these.
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

    /// Its name in ZooKeeper's own `ZooDefs`, for traces.
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
    /// The request's operation.
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

    /// The node that it is about; the root if it is about none.
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

    /// The whole frame.
    pub fn encode(&self, xid: i32) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.int(xid).int(self.op() as i32);
        match self {
            Self::Create { path, data, mode, .. } => {
                writer.text(path).buffer(data);
                open_to_all(&mut writer);
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

    /// Reads what follows the header of a request for `op`.
    ///
    /// # Errors
    ///
    /// [`WireError`] if it is no such request, [`WireError::Unknown`] for a create whose flags mean no
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
    // Access lists are read and not kept: nobody logs in here.
    for _ in 0..reader.length()? {
        reader.int()?;
        reader.buffer()?;
        reader.buffer()?;
    }
    let number = reader.int()?;
    let mode = CreateMode::from_flags(number).ok_or(WireError::Unknown { number })?;
    Ok(Request::Create { path, data, mode, with_stat })
}

/// The access list `world:anyone` with all five rights.
fn open_to_all(writer: &mut Writer) {
    writer.int(1).int(31).text("world").text("anyone");
}
