//! Commands that work on the connection, on scripts or on the whole server.

use super::{NOT_AN_INTEGER, ServerCommand, unknown_subcommand, wrong_arity};
use crate::servers::redis::core::{Client, Core};
use crate::servers::redis::glob;
use crate::servers::redis::info;
use crate::servers::redis::lua::{self, Digest};
use crate::servers::redis::number::parse_i64;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

pub(crate) fn run(command: ServerCommand, core: &mut Core, client: &mut Client, args: Args<'_>) -> Reply {
    match command {
        ServerCommand::Client => connection(core, client, args),
        ServerCommand::Command => catalogue(args),
        ServerCommand::Config => config(args),
        ServerCommand::Eval => eval(core, args),
        ServerCommand::EvalSha => eval_sha(core, args),
        ServerCommand::Hello => hello(client, args),
        ServerCommand::Info => Reply::bulk(info::text(core, args.skip(1))),
        ServerCommand::Quit => {
            client.is_closing = true;
            Reply::OK
        }
        ServerCommand::Reset => {
            client.name.clear();
            Reply::status("RESET")
        }
        ServerCommand::Script => script(core, args),
    }
}

fn eval(core: &mut Core, args: Args<'_>) -> Reply {
    let keys = match key_count(args) {
        Ok(keys) => keys,
        Err(error) => return error,
    };
    let name = lua::digest(args.at(1));
    if let Err(error) = core.learn_script(name, args.at(1)) {
        return error;
    }
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
    let subcommand = args.at(1).to_ascii_lowercase();
    match (subcommand.as_slice(), args.len()) {
        (b"load", 3) => {
            let name = lua::digest(args.at(2));
            match core.learn_script(name, args.at(2)) {
                Ok(()) => Reply::bulk(name),
                Err(error) => error,
            }
        }
        (b"exists", 3..) => {
            let known = |name| parse_digest(name).is_some_and(|name| core.scripts.contains_key(&name));
            Reply::Array(args.skip(2).iter().map(|name| Reply::Integer(known(name).into())).collect())
        }
        (b"flush", 2 | 3) => {
            let mode = args.skip(2).iter().next().unwrap_or(b"sync");
            if !mode.eq_ignore_ascii_case(b"sync") && !mode.eq_ignore_ascii_case(b"async") {
                return Reply::error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
            }
            core.scripts.clear();
            Reply::OK
        }
        (b"kill", 2) => Reply::error("NOTBUSY No scripts in execution right now."),
        (b"load" | b"exists" | b"flush" | b"kill", _) => wrong_subcommand_arity("script", &subcommand),
        _ => unknown_subcommand("script", args.at(1)),
    }
}

fn connection(core: &mut Core, client: &mut Client, args: Args<'_>) -> Reply {
    let subcommand = args.at(1).to_ascii_lowercase();
    match (subcommand.as_slice(), args.len()) {
        (b"id", 2) => Reply::count(usize::try_from(client.id).unwrap_or(usize::MAX)),
        (b"getname", 2) if client.name.is_empty() => Reply::Nil,
        (b"getname", 2) => Reply::bulk(&client.name),
        (b"setname", 3) => set_name(client, args.at(2)),
        (b"info", 2) => Reply::bulk(info::client_line(client)),
        (b"list", 2..) => Reply::bulk(info::client_line(client)),
        (b"no-evict", 3) => Reply::OK,
        (b"id" | b"getname" | b"setname" | b"info" | b"no-evict", _) => {
            wrong_subcommand_arity("client", &subcommand)
        }
        // SETINFO came with Redis 7.2: this server answers as 7.0, and clients are told to ignore the error.
        _ => {
            let _ = core;
            unknown_subcommand("client", args.at(1))
        }
    }
}

fn set_name(client: &mut Client, name: &[u8]) -> Reply {
    if name.iter().any(|byte| !(b'!'..=b'~').contains(byte)) {
        return Reply::error("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    client.name = name.to_vec();
    Reply::OK
}

/// HELLO speaks RESP2 only, as Redis did before version 6.
fn hello(client: &mut Client, args: Args<'_>) -> Reply {
    if args.len() > 1 {
        match parse_i64(args.at(1)) {
            Some(2) => {}
            Some(_) => return Reply::error("NOPROTO unsupported protocol version"),
            None => return Reply::error("ERR Protocol version is not an integer or out of range"),
        }
    }
    let mut rest = args.skip(2).iter();
    while let Some(option) = rest.next() {
        let name = rest.next().filter(|_| option.eq_ignore_ascii_case(b"setname"));
        let Some(name) = name else {
            let mut text = b"ERR Syntax error in HELLO option '".to_vec();
            text.extend_from_slice(option);
            text.push(b'\'');
            return Reply::error_text(text);
        };
        let reply = set_name(client, name);
        if reply.is_error() {
            return reply;
        }
    }
    let id = Reply::count(usize::try_from(client.id).unwrap_or(usize::MAX));
    let fields = [
        ("server", Reply::bulk("redis")),
        ("version", Reply::bulk(info::VERSION)),
        ("proto", Reply::Integer(2)),
        ("id", id),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk("master")),
        ("modules", Reply::Array(Vec::new())),
    ];
    Reply::Array(fields.into_iter().flat_map(|(name, value)| [Reply::bulk(name), value]).collect())
}

/// Clients ask for the catalogue to check and complete what people type; an empty one tells them nothing wrong.
fn catalogue(args: Args<'_>) -> Reply {
    match args.skip(1).iter().next().map(<[u8]>::to_ascii_lowercase).as_deref() {
        None | Some(b"docs" | b"info" | b"list") => Reply::Array(Vec::new()),
        Some(b"count") => Reply::count(super::COMMANDS.len()),
        Some(_) => unknown_subcommand("command", args.at(1)),
    }
}

/// There is nothing to configure; benchmarks and clients ask all the same.
fn config(args: Args<'_>) -> Reply {
    match (args.at(1).to_ascii_lowercase().as_slice(), args.len()) {
        (b"get", 3..) => {
            let known = [("save", ""), ("appendonly", "no"), ("databases", "1"), ("maxmemory", "0")];
            let asked =
                |name: &str| args.skip(2).iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
            let found = known.into_iter().filter(|(name, _)| asked(name));
            Reply::Array(found.flat_map(|(name, value)| [Reply::bulk(name), Reply::bulk(value)]).collect())
        }
        (b"resetstat", 2) => Reply::OK,
        (b"get" | b"resetstat", _) => wrong_subcommand_arity("config", args.at(1)),
        _ => unknown_subcommand("config", args.at(1)),
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

fn wrong_subcommand_arity(command: &str, subcommand: &[u8]) -> Reply {
    wrong_arity(&format!("{command}|{}", String::from_utf8_lossy(subcommand).to_ascii_lowercase()))
}
