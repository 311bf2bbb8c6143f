//! The gate for scripts of the simulated Redis: what it compiles, what a script can do and reach, and the
//! reading of its result.
//!
//! Input: the script, a zero byte, and arguments with zero bytes between them; the first is the key.

use std::time::Duration;

use sim::servers::redis::RedisHost;

use crate::machine::Local;
use crate::resp::{check_replies, command, text};
use crate::server::Server;

/// Describes the globals of a script. A script that changes them for the next one changes the answer.
const GLOBALS: &str = "local names = {} \
    local function list(prefix, values) for name in pairs(values) do \
    names[#names + 1] = prefix .. tostring(name) .. ':' .. type(values[name]) end end \
    list('', _G) for _, name in ipairs({'string', 'math', 'table', 'coroutine', 'redis'}) do \
    list(name .. '.', _G[name]) end table.sort(names) \
    names[#names + 1] = ('%d'):format(7) .. #KEYS .. #ARGV .. tostring(getmetatable('').__index == string) \
    names[#names + 1] = tostring(pcall(function() return undefined end)) \
    return table.concat(names, ' ')";

/// Asserts that the script gets one answer, which is a whole reply; that it leaves the globals as they were;
/// and that the server still serves.
pub fn run(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 0);
    let script = parts.next().unwrap_or_default();
    let args: Vec<&[u8]> = parts.take(8).collect();
    let keys: &[u8] = if args.is_empty() { b"0" } else { b"1" };

    let mut server = Server::start(&RedisHost::<Local>::new());
    let globals = server.ask(&command(&[b"EVAL", GLOBALS.as_bytes(), b"0"]));
    let words: Vec<&[u8]> = [&b"EVAL"[..], script, keys].into_iter().chain(args).collect();
    let answer = server.ask(&command(&words));
    server.wait(Duration::from_secs(1));
    assert!(!answer.is_empty(), "the script has no answer");
    check_replies(&answer);
    let later = server.ask(&command(&[b"EVAL", GLOBALS.as_bytes(), b"0"]));
    assert_eq!(text(&globals), text(&later), "the script has changed the globals of the next one");
    assert_eq!(server.ask(b"PING\r\n"), b"+PONG\r\n");
}
