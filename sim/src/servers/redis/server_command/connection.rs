//! CLIENT, HELLO, QUIT and RESET: commands on the connection.

use super::info;
use crate::servers::redis::command::{SYNTAX_ERROR, shown};
use crate::servers::redis::core::{Client, Core};
use crate::servers::redis::number::parse_i64;
use crate::servers::redis::reply::{Protocol, Reply};
use crate::servers::redis::request::Args;

pub(crate) fn client(client: &mut Client, args: Args<'_>) -> Reply {
    match args.at(1).to_ascii_lowercase().as_slice() {
        b"id" => Reply::Integer(client.id.cast_signed()),
        b"getname" if client.name.is_empty() => Reply::Nil,
        b"getname" => Reply::bulk(&client.name),
        b"setname" => set_name(client, args.at(2)),
        b"no-evict" => match args.at(2).to_ascii_lowercase().as_slice() {
            b"on" | b"off" => Reply::OK,
            _ => Reply::error(SYNTAX_ERROR),
        },
        b"list" => list(client, args.skip(2)),
        _ => Reply::verbatim(info::client_line(client)),
    }
}

/// CLIENT LIST: lists the asking connection only.
fn list(client: &Client, asked: Args<'_>) -> Reply {
    const TYPES: [&[u8]; 5] = [b"normal", b"master", b"replica", b"slave", b"pubsub"];
    let is_asked = |option: &[u8]| !asked.is_empty() && asked.at(0).eq_ignore_ascii_case(option);
    let is_listed = if asked.is_empty() {
        true
    } else if asked.len() == 2 && is_asked(b"type") {
        let name = asked.at(1);
        let Some(place) = TYPES.iter().position(|known| name.eq_ignore_ascii_case(known)) else {
            let name = shown(name, usize::MAX);
            return Reply::error_text([b"ERR Unknown client type '", name, b"'"].concat());
        };
        place == 0
    } else if asked.len() > 1 && is_asked(b"id") {
        let ids: Option<Vec<_>> = asked.skip(1).iter().map(parse_i64).collect();
        let Some(ids) = ids else { return Reply::error("ERR Invalid client ID") };
        ids.contains(&client.id.cast_signed())
    } else {
        return Reply::error(SYNTAX_ERROR);
    };
    Reply::verbatim(if is_listed { info::client_line(client) } else { String::new() })
}

fn set_name(client: &mut Client, name: &[u8]) -> Reply {
    if name.iter().any(|byte| !(b'!'..=b'~').contains(byte)) {
        return Reply::error("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    client.name = name.to_vec();
    Reply::OK
}

pub(crate) fn hello(core: &mut Core, client: &mut Client, args: Args<'_>) -> Reply {
    let mut protocol = client.protocol;
    if args.len() > 1 {
        protocol = match parse_i64(args.at(1)) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Reply::error("NOPROTO unsupported protocol version"),
            None => return Reply::error("ERR Protocol version is not an integer or out of range"),
        }
    }
    let mut options = args.skip(2).iter();
    while let Some(option) = options.next() {
        let name = options.next().filter(|_| option.eq_ignore_ascii_case(b"setname"));
        let Some(name) = name else {
            let option = shown(option, usize::MAX);
            return Reply::error_text([b"ERR Syntax error in HELLO option '", option, b"'"].concat());
        };
        let reply = set_name(client, name);
        if reply.is_error() {
            return reply;
        }
    }
    client.protocol = protocol;
    core.state.channels.speak(client.id, protocol);
    Reply::Map(vec![
        ("server", Reply::bulk(core.state.version.server())),
        ("version", Reply::bulk(core.state.version.number())),
        ("proto", Reply::Integer(if protocol == Protocol::Resp3 { 3 } else { 2 })),
        ("id", Reply::Integer(client.id.cast_signed())),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk(if core.state.is_replica { "replica" } else { "master" })),
        ("modules", Reply::Array(Vec::new())),
    ])
}

pub(crate) fn quit(client: &mut Client) -> Reply {
    client.is_closing = true;
    Reply::OK
}

pub(crate) fn reset(core: &mut Core, client: &mut Client) -> Reply {
    client.name.clear();
    core.state.select(0);
    client.transaction = None;
    client.protocol = Protocol::Resp2;
    core.watches.remove(client.id);
    core.state.channels.reset(client.id);
    Reply::status("RESET")
}
