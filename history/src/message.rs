//! A message between two processes of a run.

use crate::events::Nanos;

/// A message: a command or a reply, or the part of one that was sent when its connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The number of its connection, which counts from 0 in the order in which connections were opened.
    pub connection: usize,
    /// The process that sent it.
    pub from: String,
    /// The process that it was sent to.
    pub to: String,
    /// The true time at which its first byte was sent.
    pub sent: Nanos,
    /// Its fate.
    pub fate: Fate,
    /// True if it answers an earlier message of the same connection.
    pub is_reply: bool,
    /// Its content in words, such as `SET orders:42 …a3f1 NX PX 2000` or `OK`.
    pub words: String,
    /// Its bytes, as they were sent.
    pub bytes: Vec<u8>,
}

/// The fate of a message. Times are true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived. `held` is true if a cut link held it meanwhile.
    Arrived {
        /// The time of arrival.
        at: Nanos,
        /// True if a cut link held it.
        held: bool,
    },
    /// A cut link held it until the end of the run.
    Held,
    /// It was lost: its connection was reset, or a host lost power, or its receiver had gone.
    Lost {
        /// The time at which it was lost.
        at: Nanos,
    },
}
