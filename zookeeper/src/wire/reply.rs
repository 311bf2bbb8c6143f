//! What follows the header of a reply.

use super::jute::{Reader, WireError, Writer};
use super::message::Stat;
use super::request::Op;

/// The body of a reply without an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To delete, ping, setWatches and close.
    Nothing,
    /// To create and sync.
    Path(String),
    /// To create2.
    Created {
        /// The node's path, digits included.
        path: String,
        /// Its stat.
        stat: Stat,
    },
    /// To exists and setData.
    Stat(Stat),
    /// To getData.
    Data {
        /// The node's data.
        data: Vec<u8>,
        /// Its stat.
        stat: Stat,
    },
    /// To getChildren and getChildren2.
    Children {
        /// The children's names, in no order.
        names: Vec<String>,
        /// The parent's stat; getChildren does without.
        stat: Option<Stat>,
    },
}

impl Reply {
    /// Writes it behind the header.
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
    /// [`WireError`] if it is no such reply.
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
