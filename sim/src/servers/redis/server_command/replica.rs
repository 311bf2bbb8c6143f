//! Commands on replication.

use crate::servers::redis::command::NOT_AN_INTEGER;
use crate::servers::redis::core::{Client, Core, Wait};
use crate::servers::redis::number::parse_i64;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;

pub(crate) fn psync(core: &mut Core, client: &mut Client) -> Reply {
    if core.state.is_replica {
        return Reply::error("NOMASTERLINK Can't SYNC while not connected with my master");
    }
    client.feed = Some(core.replication.add(client.id, &core.state));
    Reply::Silence
}

/// REPLICAOF: supports only the promotion, `REPLICAOF NO ONE`. Options of the server set the primary.
pub(crate) fn replica_of(core: &mut Core, args: Args<'_>) -> Reply {
    if args.at(1).eq_ignore_ascii_case(b"no") && args.at(2).eq_ignore_ascii_case(b"one") {
        core.state.is_replica = false;
        return Reply::OK;
    }
    Reply::error("ERR this server follows no address: only REPLICAOF NO ONE is supported")
}

pub(crate) fn role(core: &Core) -> Reply {
    let offset = core.replication.offset.cast_signed();
    if core.state.is_replica {
        let fields = [Reply::bulk("slave"), Reply::bulk(""), Reply::Integer(0), Reply::bulk("connected")];
        return Reply::Array(fields.into_iter().chain([Reply::Integer(offset)]).collect());
    }
    Reply::Array(vec![Reply::bulk("master"), Reply::Integer(offset), Reply::Array(Vec::new())])
}

/// WAIT: blocks until enough replicas have the client's writes.
pub(crate) fn wait(core: &Core, client: &mut Client, args: Args<'_>) -> Reply {
    if core.state.is_replica {
        return Reply::error(
            "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a \
             replica is configured to be writable (which is not the default) writes to replicas are just \
             local and are not propagated.",
        );
    }
    let Some(replicas) = parse_i64(args.at(1)) else { return Reply::error(NOT_AN_INTEGER) };
    let timeout_ms = match parse_i64(args.at(2)) {
        None => return Reply::error("ERR timeout is not an integer or out of range"),
        Some(..0) => return Reply::error("ERR timeout is negative"),
        Some(timeout_ms) => timeout_ms,
    };
    if client.is_in_exec {
        return Reply::count(core.replication.acknowledged(client.written_offset));
    }
    let deadline = core.state.now_micros.saturating_add(timeout_ms.saturating_mul(1000));
    client.wait = Some(Wait {
        replicas: usize::try_from(replicas).unwrap_or(0),
        offset: client.written_offset,
        deadline_micros: (timeout_ms > 0).then_some(deadline),
    });
    Reply::Silence
}
