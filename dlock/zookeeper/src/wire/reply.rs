//! The bodies of replies.

use super::jute::{Reader, WireError, Writer};
use super::message::Stat;
use super::request::Op;

/// The body of a reply without an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// For delete, ping, setWatches and close.
    Nothing,
    /// For create and sync.
    Path(String),
    /// For create2.
    Created {
        /// The node's path, digits included.
        path: String,
        /// Its stat.
        stat: Stat,
    },
    /// For exists and setData.
    Stat(Stat),
    /// For getData.
    Data {
        /// The node's data.
        data: Vec<u8>,
        /// Its stat.
        stat: Stat,
    },
    /// For getChildren and getChildren2.
    Children {
        /// The children's names, in no particular order.
        names: Vec<String>,
        /// The parent's stat; `None` for getChildren.
        stat: Option<Stat>,
    },
}

impl Reply {
    /// Writes it after the header.
    pub fn write(&self, writer: &mut Writer) {
        match self {
            Self::Nothing => {}
            Self::Path(path) => {
                writer.text(path);
            }
            Self::Created { path, stat } => stat.write(writer.text(path)),
            Self::Stat(stat) => stat.write(writer),
            Self::Data { data, stat } => stat.write(writer.buffer(data)),
            Self::Children { names, stat } => {
                writer.texts(names.iter().map(String::as_str));
                if let Some(stat) = stat {
                    stat.write(writer);
                }
            }
        }
    }

    /// Reads the body of a reply to `op`.
    ///
    /// # Errors
    ///
    /// [`WireError`] if the bytes are no such reply.
    pub fn read(op: Op, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(match op {
            Op::Delete | Op::Ping | Op::SetWatches | Op::Close => Self::Nothing,
            Op::Create | Op::Sync => Self::Path(reader.text()?),
            Op::CreateStat => Self::Created { path: reader.text()?, stat: Stat::read(reader)? },
            Op::Exists | Op::SetData => Self::Stat(Stat::read(reader)?),
            Op::Data => Self::Data { data: reader.buffer()?.to_vec(), stat: Stat::read(reader)? },
            Op::Children => Self::Children { names: reader.texts()?, stat: None },
            Op::ChildrenStat => Self::Children { names: reader.texts()?, stat: Some(Stat::read(reader)?) },
        })
    }
}
