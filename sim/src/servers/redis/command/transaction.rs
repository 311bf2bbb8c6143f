//! MULTI, EXEC and WATCH. Source: `multi.c` of Redis 7.0.

use super::{Command, Run, ServerCommand};
use crate::servers::redis::core::{Client, Core};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::{ArgBuffer, Args};

/// Commands that wait for EXEC.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    commands: Vec<(&'static Command, ArgBuffer)>,
    /// A command was refused, so EXEC will refuse all.
    is_aborted: bool,
}

impl Transaction {
    /// Queues a command, or returns `None` if it is carried out at once.
    pub(crate) fn queue(&mut self, command: &'static Command, args: Args<'_>) -> Option<Reply> {
        use ServerCommand::{Discard, Exec, Multi, Psync, Quit, Reset, Watch};
        match command.run {
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

/// Refuses a command: marks the transaction that it belongs to, and returns the reply.
pub(crate) fn refuse(core: &mut Core, client: &mut Client, args: Args<'_>, refusal: Reply) -> Reply {
    if let (true, Reply::Error(error)) = (args.at(0).eq_ignore_ascii_case(b"exec"), &refusal) {
        client.transaction = None;
        core.watches.remove(client.id);
        let error = error.strip_prefix(b"ERR ").unwrap_or(error);
        return Reply::error_text([b"EXECABORT Transaction discarded because of: ", error].concat());
    }
    if let Some(transaction) = &mut client.transaction {
        transaction.is_aborted = true;
    }
    refusal
}

pub(super) fn multi(client: &mut Client) -> Reply {
    if client.transaction.is_some() {
        return Reply::error("ERR MULTI calls can not be nested");
    }
    client.transaction = Some(Transaction::default());
    Reply::OK
}

pub(super) fn discard(core: &mut Core, client: &mut Client) -> Reply {
    if client.transaction.take().is_none() {
        return Reply::error("ERR DISCARD without MULTI");
    }
    core.watches.remove(client.id);
    Reply::OK
}

/// EXEC: carries out all queued commands, or none.
pub(super) fn exec(core: &mut Core, client: &mut Client) -> Reply {
    let Some(transaction) = client.transaction.take() else {
        return Reply::error("ERR EXEC without MULTI");
    };
    let is_touched = core.watched_key_changed(client.id);
    core.watches.remove(client.id);
    if transaction.is_aborted {
        return Reply::error("EXECABORT Transaction discarded because of previous errors.");
    }
    if is_touched {
        return Reply::NilArray;
    }
    client.is_in_exec = true;
    let mut replies: Vec<Reply> = Vec::with_capacity(transaction.commands.len());
    for (command, args) in &transaction.commands {
        let protocol = client.protocol;
        let reply = core.carry_out(command, client, args.args());
        if client.protocol != protocol {
            // It was HELLO: earlier replies are sent in the protocol of before.
            replies.iter_mut().for_each(|reply| *reply = reply.encoded(protocol));
        }
        replies.push(reply);
    }
    client.is_in_exec = false;
    Reply::Array(replies)
}

pub(super) fn watch(core: &mut Core, client: &Client, args: Args<'_>) -> Reply {
    if client.transaction.is_some() {
        return Reply::error("ERR WATCH inside MULTI is not allowed");
    }
    for key in args.skip(1).iter() {
        // An expired key is removed before it is watched.
        core.state.lookup(key);
        core.watches.add(client.id, key);
    }
    Reply::OK
}
