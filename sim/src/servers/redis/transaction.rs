//! The commands between MULTI and EXEC.

use super::command::{Command, Run, ServerCommand};
use super::reply::Reply;
use super::request::{ArgBuffer, Args};
use super::version::Version;

/// The commands that MULTI queues for EXEC.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) commands: Vec<(&'static Command, ArgBuffer)>,
    /// A command was refused: EXEC will refuse all.
    pub(crate) is_aborted: bool,
}

impl Transaction {
    /// Queues a command, or returns `None` if it runs at once.
    pub(crate) fn queue(
        &mut self,
        command: &'static Command,
        args: Args<'_>,
        version: Version,
    ) -> Option<Reply> {
        use ServerCommand::{Discard, Exec, Multi, Psync, Quit, Reset, Watch};
        match command.run {
            Run::Server(Multi | Psync | Watch) if version == Version::Valkey9 => {
                self.is_aborted = true;
                let name = command.name;
                Some(Reply::error_text(format!("ERR Command '{name}' not allowed inside a transaction")))
            }
            Run::Server(Discard | Exec | Multi | Quit | Reset | Watch) => None,
            Run::Server(Psync) => {
                self.is_aborted = true;
                Some(Reply::error("ERR Command not allowed inside a transaction"))
            }
            _ => {
                let mut copy = ArgBuffer::default();
                args.iter().for_each(|arg| copy.push(arg));
                self.commands.push((command, copy));
                Some(Reply::status("QUEUED"))
            }
        }
    }
}
