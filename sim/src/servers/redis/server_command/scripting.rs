//! EVAL, EVALSHA and SCRIPT.

use std::collections::btree_map::Entry;

use crate::servers::redis::command::NOT_AN_INTEGER;
use crate::servers::redis::core::Core;
use crate::servers::redis::json_options::JsonOptions;
use crate::servers::redis::lua::{Digest, PooledEngine, Script};
use crate::servers::redis::number::parse_i64;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::version::Version;

pub(crate) fn eval(core: &mut Core, args: Args<'_>) -> Reply {
    let keys = match key_count(args) {
        Ok(keys) => keys,
        Err(error) => return error,
    };
    let name = match learn_script(core, args.at(1)) {
        Ok(name) => name,
        Err(error) => return error,
    };
    run_script(core, &name, keys, args.skip(3)).unwrap_or_else(|| unknown_script(core))
}

pub(crate) fn eval_sha(core: &mut Core, args: Args<'_>) -> Reply {
    let Some(name) = parse_digest(args.at(1)) else { return unknown_script(core) };
    let keys = match key_count(args) {
        Ok(keys) => keys,
        Err(error) => return error,
    };
    run_script(core, &name, keys, args.skip(3)).unwrap_or_else(|| unknown_script(core))
}

pub(crate) fn script(core: &mut Core, args: Args<'_>) -> Reply {
    match args.at(1).to_ascii_lowercase().as_slice() {
        b"load" => learn_script(core, args.at(2)).map_or_else(|error| error, Reply::bulk),
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
            // Redis closes its interpreter.
            core.state.json = JsonOptions::default();
            Reply::OK
        }
        _ => Reply::error("NOTBUSY No scripts in execution right now."),
    }
}

/// Returns true if a script's first line has flags, without `no-writes`. Source: `evalGetCommandFlags` in
/// `eval.c` of Redis 7.0.
pub(crate) fn text_declares_writes(text: &[u8]) -> bool {
    text.starts_with(b"#!") && Script::parse(text).is_ok_and(|script| script.declares_writes())
}

/// As [`text_declares_writes`], of the script with this digest; an unknown one declares nothing.
pub(crate) fn known_declares_writes(core: &Core, digest: &[u8]) -> bool {
    let script = parse_digest(digest).and_then(|name| core.scripts.get(&name));
    script.is_some_and(Script::declares_writes)
}

fn unknown_script(core: &Core) -> Reply {
    Reply::error(match core.state.version {
        Version::Redis7 | Version::Redis84 => "NOSCRIPT No matching script. Please use EVAL.",
        Version::Valkey9 => "NOSCRIPT No matching script.",
    })
}

/// Runs a script. Returns `None` if the server does not know it.
fn run_script(core: &mut Core, name: &Digest, keys: usize, args: Args<'_>) -> Option<Reply> {
    let script = core.scripts.get(name)?;
    let mut engine = match engine() {
        Ok(engine) => engine,
        Err(error) => return Some(error),
    };
    // A database that the script selects is its own, and none of its commands waits.
    let database = core.state.selected();
    core.state.may_wait = false;
    let reply = engine.run(name, script, keys, args, &mut core.state);
    core.state.select(database);
    Some(reply)
}

/// Stores a script if it compiles. Returns its name.
fn learn_script(core: &mut Core, text: &[u8]) -> Result<Digest, Reply> {
    let mut engine = engine()?;
    let name = engine.digest(text);
    if let Entry::Vacant(unknown) = core.scripts.entry(name) {
        let script = Script::parse(text)?;
        engine.compile(&name, &script)?;
        unknown.insert(script);
    }
    Ok(name)
}

/// Takes an interpreter for one script.
fn engine() -> Result<PooledEngine, Reply> {
    PooledEngine::take().map_err(|error| Reply::error_text(format!("ERR no interpreter: {error}")))
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
