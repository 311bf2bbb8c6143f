//! MULTI, DISCARD, WATCH, and the checks of EXEC. Source: `multi.c` of Redis 7.0.

use crate::servers::redis::core::{Client, Core};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::transaction::Transaction;

/// Refuses a command, which aborts its transaction. Returns the reply.
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

pub(crate) fn multi(client: &mut Client) -> Reply {
    if client.transaction.is_some() {
        return Reply::error("ERR MULTI calls can not be nested");
    }
    client.transaction = Some(Transaction::default());
    Reply::OK
}

pub(crate) fn discard(core: &mut Core, client: &mut Client) -> Reply {
    if client.transaction.take().is_none() {
        return Reply::error("ERR DISCARD without MULTI");
    }
    core.watches.remove(client.id);
    Reply::OK
}

/// Ends the transaction for EXEC. Returns its commands, or the reply if none of them may run.
pub(crate) fn begin_exec(core: &mut Core, client: &mut Client) -> Result<Transaction, Reply> {
    let Some(transaction) = client.transaction.take() else {
        return Err(Reply::error("ERR EXEC without MULTI"));
    };
    let has_changed = core.watches.have_changed(client.id, &core.state);
    core.watches.remove(client.id);
    if transaction.is_aborted {
        return Err(Reply::error("EXECABORT Transaction discarded because of previous errors."));
    }
    if has_changed {
        return Err(Reply::NilArray);
    }
    Ok(transaction)
}

pub(crate) fn watch(core: &mut Core, client: &Client, args: Args<'_>) -> Reply {
    if client.transaction.is_some() {
        return Reply::error("ERR WATCH inside MULTI is not allowed");
    }
    for key in args.skip(1).iter() {
        core.watches.add(client.id, &core.state, key);
    }
    Reply::OK
}

pub(crate) fn unwatch(core: &mut Core, client: &Client) -> Reply {
    core.watches.remove(client.id);
    Reply::OK
}
