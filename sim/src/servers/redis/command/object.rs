//! OBJECT. Source: `object.c` of Redis 7.0.

use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::Value;

const MICROS_PER_SECOND: i64 = 1_000_000;

const NO_FREQUENCY: &str = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
                            that when switching between policies at runtime LRU and LFU data will take some time \
                            to adjust.";

const HELP: [&str; 15] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
    "HELP",
    "    Prints this help.",
];

/// OBJECT. Redis counts the idle time from one whole second of its clock to another.
pub(super) fn object(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let asked = args.at(1).to_ascii_lowercase();
    if asked == b"help" {
        let lines = HELP.iter();
        return Ok(Reply::Array(lines.map(|line| Reply::status(line)).collect()));
    }
    let now_s = state.now_micros / MICROS_PER_SECOND;
    state.set_reading(false);
    let Some(entry) = state.peek(args.at(2)) else { return Ok(Reply::Nil) };
    match (asked.as_slice(), &entry.value) {
        (b"encoding", value) => Ok(Reply::bulk(value.encoding())),
        (b"freq", _) => Err(Reply::error(NO_FREQUENCY)),
        (b"refcount", Value::String(text)) => Ok(Reply::Integer(text.references())),
        (b"refcount", _) => Ok(Reply::Integer(1)),
        _ => Ok(Reply::Integer((now_s - entry.used_micros.get() / MICROS_PER_SECOND).max(0))),
    }
}
