//! Commands that work on the connection, on scripts or on the whole server.

use super::{NOT_AN_INTEGER, SYNTAX_ERROR, ServerCommand, channels, replica, shown, transaction};
use crate::servers::redis::core::{Client, Core};
use crate::servers::redis::glob;
use crate::servers::redis::info;
use crate::servers::redis::lua::Digest;
use crate::servers::redis::number::parse_i64;
use crate::servers::redis::reply::{Protocol, Reply};
use crate::servers::redis::request::Args;

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

pub(crate) fn run(command: ServerCommand, core: &mut Core, client: &mut Client, args: Args<'_>) -> Reply {
    match command {
        ServerCommand::Client => connection(client, args),
        ServerCommand::Command => catalogue(args),
        ServerCommand::Config => config(core, args),
        ServerCommand::Discard => transaction::discard(core, client),
        ServerCommand::Eval => eval(core, args),
        ServerCommand::EvalSha => eval_sha(core, args),
        ServerCommand::Exec => transaction::exec(core, client),
        ServerCommand::Hello => hello(core, client, args),
        ServerCommand::Info => Reply::verbatim(info::text(core, args.skip(1))),
        ServerCommand::Multi => transaction::multi(client),
        ServerCommand::Psync => replica::psync(core, client),
        ServerCommand::Quit => {
            client.is_closing = true;
            Reply::OK
        }
        ServerCommand::ReplConf => Reply::OK,
        ServerCommand::ReplicaOf => replica::replica_of(core, args),
        ServerCommand::Reset => {
            client.name.clear();
            client.transaction = None;
            client.protocol = Protocol::Resp2;
            core.watches.remove(client.id);
            core.state.channels.remove(client.id);
            Reply::status("RESET")
        }
        ServerCommand::Role => replica::role(core),
        ServerCommand::Script => script(core, args),
        ServerCommand::Subscribe => channels::subscribe(core, client, args),
        ServerCommand::Unsubscribe => channels::unsubscribe(core, client, args),
        ServerCommand::Unwatch => {
            core.watches.remove(client.id);
            Reply::OK
        }
        ServerCommand::Wait => replica::wait(core, client, args),
        ServerCommand::Watch => transaction::watch(core, client, args),
    }
}

fn eval(core: &mut Core, args: Args<'_>) -> Reply {
    let keys = match key_count(args) {
        Ok(keys) => keys,
        Err(error) => return error,
    };
    let name = match core.learn_script(args.at(1)) {
        Ok(name) => name,
        Err(error) => return error,
    };
    core.run_script(&name, keys, args.skip(3)).unwrap_or(Reply::error(NO_SCRIPT))
}

fn eval_sha(core: &mut Core, args: Args<'_>) -> Reply {
    let Some(name) = parse_digest(args.at(1)) else { return Reply::error(NO_SCRIPT) };
    let keys = match key_count(args) {
        Ok(keys) => keys,
        Err(error) => return error,
    };
    core.run_script(&name, keys, args.skip(3)).unwrap_or(Reply::error(NO_SCRIPT))
}

fn script(core: &mut Core, args: Args<'_>) -> Reply {
    match args.at(1).to_ascii_lowercase().as_slice() {
        b"load" => core.learn_script(args.at(2)).map_or_else(|error| error, Reply::bulk),
        b"exists" => {
            let known = |name| parse_digest(name).is_some_and(|name| core.scripts.contains_key(&name));
            Reply::Array(args.skip(2).iter().map(|name| Reply::Integer(known(name).into())).collect())
        }
        b"flush" => {
            let mode = if args.len() > 2 { args.at(2) } else { b"sync" };
            let is_mode = mode.eq_ignore_ascii_case(b"sync") || mode.eq_ignore_ascii_case(b"async");
            if !is_mode || args.len() > 3 {
                return Reply::error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
            }
            core.scripts.clear();
            Reply::OK
        }
        _ => Reply::error("NOTBUSY No scripts in execution right now."),
    }
}

fn connection(client: &mut Client, args: Args<'_>) -> Reply {
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

fn hello(core: &mut Core, client: &mut Client, args: Args<'_>) -> Reply {
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
        ("server", Reply::bulk("redis")),
        ("version", Reply::bulk(info::VERSION)),
        ("proto", Reply::Integer(if protocol == Protocol::Resp3 { 3 } else { 2 })),
        ("id", Reply::Integer(client.id.cast_signed())),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk(if core.state.is_replica { "replica" } else { "master" })),
        ("modules", Reply::Array(Vec::new())),
    ])
}

/// COMMAND: clients use the catalogue to check and complete what people type. An empty one is not wrong.
fn catalogue(args: Args<'_>) -> Reply {
    if args.len() > 1 && args.at(1).eq_ignore_ascii_case(b"count") {
        return Reply::count(super::COMMANDS.len());
    }
    let is_docs = args.len() > 1 && args.at(1).eq_ignore_ascii_case(b"docs");
    if is_docs { Reply::Map(Vec::new()) } else { Reply::Array(Vec::new()) }
}

/// CONFIG: there are no settings, but benchmarks and clients ask for them.
fn config(core: &Core, args: Args<'_>) -> Reply {
    match args.at(1).to_ascii_lowercase().as_slice() {
        b"get" => {
            let known = [
                ("appendonly", if core.journal.is_enabled() { "yes" } else { "no" }),
                ("databases", "1"),
                ("maxmemory", "0"),
                ("save", ""),
            ];
            let asked =
                |name: &str| args.skip(2).iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
            let found = known.into_iter().filter(|(name, _)| asked(name));
            Reply::Map(found.map(|(name, value)| (name, Reply::bulk(value))).collect())
        }
        b"set" => {
            let option = shown(args.at(2), usize::MAX);
            let text = b"ERR Unknown option or number of arguments for CONFIG SET - '";
            Reply::error_text([text, option, b"'"].concat())
        }
        _ => Reply::OK,
    }
}

fn key_count(args: Args<'_>) -> Result<usize, Reply> {
    let count = parse_i64(args.at(2)).ok_or(Reply::error(NOT_AN_INTEGER))?;
    let count = usize::try_from(count).map_err(|_| Reply::error("ERR Number of keys can't be negative"))?;
    if count > args.len() - 3 {
        return Err(Reply::error("ERR Number of keys can't be greater than number of args"));
    }
    Ok(count)
}

fn parse_digest(text: &[u8]) -> Option<Digest> {
    let mut name = Digest::try_from(text).ok()?;
    name.make_ascii_lowercase();
    Some(name)
}
