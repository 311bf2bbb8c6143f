//! The functions that Rust provides to scripts.

use std::fmt;
use std::sync::{Arc, Mutex};

use mlua::{HookTriggers, Lua, LuaString, MultiValue, Table, Value, VmState};

use super::room;
use super::{Running, gate, libraries, lock};
use crate::servers::redis::command::{self, Lookup, Run};
use crate::servers::redis::monitor;
use crate::servers::redis::random::Rand48;
use crate::servers::redis::reply::{Protocol, Reply};

/// The limit of a script in thousands of instructions, about a tenth of a second. Redis lets a script run on
/// and answers BUSY to other clients; a simulation would hang. A fuzzer runs a million scripts, many of which
/// reach the limit, and one instruction may work on all memory.
pub(super) const BUDGET_THOUSANDS: u32 = if cfg!(fuzzing) { 20 } else { 20_000 };

/// An error reply, thrown into a script. All other errors are messages of Lua.
#[derive(Debug)]
struct ThrownReply(Vec<u8>);

/// Creates the table `host` of `sandbox.lua`.
///
/// The functions are in the script's environment without a wrapper in Lua: a tail call to a wrapper would
/// replace the script's frame, and errors would lose their line.
pub(super) fn host(lua: &Lua, running: &Arc<Mutex<Running>>) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    host.raw_set("pcall", gate::host_function(lua, running, gate::call, false)?)?;
    host.raw_set("call", gate::host_function(lua, running, gate::call, true)?)?;
    host.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    host.raw_set("log", lua.create_function(log)?)?;
    let draws = running.clone();
    let random = move |lua: &Lua, range| random(lua, lock(&draws).state.random.next_u31(), range);
    host.raw_set("random", lua.create_function(random)?)?;
    let seeds = running.clone();
    let seed = move |_: &Lua, seed: f64| {
        lock(&seeds).state.random = Rand48::seeded(seed as i32);
        Ok(())
    };
    host.raw_set("randomseed", lua.create_function(seed)?)?;
    let stops = running.clone();
    let is_stopped = move |_: &Lua, ()| Ok(lock(&stops).budget == 0);
    host.raw_set("acl_check_cmd", gate::host_function(lua, running, gate::check, true)?)?;
    host.raw_set("is_stopped", lua.create_function(is_stopped)?)?;
    let numbers = running.clone();
    let script_number = move |_: &Lua, ()| Ok(lock(&numbers).number);
    host.raw_set("script_number", lua.create_function(script_number)?)?;
    let speaks = running.clone();
    let set_resp = move |_: &Lua, version: u32| {
        lock(&speaks).protocol = if version == 3 { Protocol::Resp3 } else { Protocol::Resp2 };
        Ok(())
    };
    host.raw_set("set_resp", lua.create_function(set_resp)?)?;
    host.raw_set("caller_line", lua.create_function(|lua, ()| Ok(caller_line(lua)))?)?;
    host.raw_set("error_text", lua.create_function(error_text)?)?;
    let runs = running.clone();
    let create = move |lua: &Lua, contents: Table| libraries::create(lua, &runs, &contents);
    host.raw_set("libraries", lua.create_function(create)?)?;
    Ok(host)
}

/// Stops the next script if it never ends. The instructions are counted anew, whatever earlier scripts of the
/// interpreter have executed: a script is stopped after the same one in every run.
pub(super) fn limit_instructions(lua: &Lua, running: &Arc<Mutex<Running>>) -> mlua::Result<()> {
    let running = running.clone();
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(1000), move |_, _| {
        let mut running = lock(&running);
        running.budget = running.budget.saturating_sub(1);
        if running.budget == 0 {
            return Err(mlua::Error::runtime("the script ran for too long and was stopped"));
        }
        Ok(VmState::Continue)
    })
}

impl Running {
    /// Runs the command in `arguments` and returns its reply.
    pub(super) fn execute(&mut self) -> Reply {
        if !self.room.take(room::ITEM_BYTES) {
            return Reply::error(room::EXCEEDED);
        }
        let args = self.arguments.args();
        let command = match command::look_up(args, self.state.version) {
            Lookup::Found(command) => command,
            Lookup::WrongArity(_) => {
                return Reply::error("ERR Wrong number of args calling Redis command from script");
            }
            unknown @ (Lookup::Unknown | Lookup::UnknownSubcommand(_)) => {
                let subcommand = matches!(unknown, Lookup::UnknownSubcommand(_));
                self.state.record.refuse(args, subcommand);
                return Reply::error("ERR Unknown Redis command called from script");
            }
        };
        let Run::Keys(run) = command.run else {
            return Reply::error("ERR This Redis command is not allowed from script");
        };
        // For such a script a message is a write (CMD_MAY_REPLICATE).
        if (command.writes || command.name == "publish") && self.is_read_only {
            return Reply::error("ERR Write commands are not allowed from read-only scripts.");
        }
        if command.writes && self.state.is_replica {
            return Reply::error(command::READ_ONLY);
        }
        let before = self.state.record.effects.len();
        let reply = self.state.execute(command.name, !command.writes, run, args);
        if self.state.channels.has_monitors() {
            let now_micros = self.state.now_micros;
            let line = monitor::line(now_micros, self.state.selected(), "lua", args);
            self.state.channels.show(&line, None, now_micros);
        }
        self.room.store(self.state.record.effects.get(before..).unwrap_or_default());
        self.room.take(std::mem::take(&mut self.state.copied_bytes));
        reply
    }

    /// `redis.acl_check_cmd`: refuses unknown commands. There is no access control: all others are allowed.
    pub(super) fn check(&mut self) -> Reply {
        match command::look_up(self.arguments.args(), self.state.version) {
            Lookup::Found(_) | Lookup::WrongArity(_) => Reply::OK,
            Lookup::Unknown | Lookup::UnknownSubcommand(_) => {
                Reply::error("ERR Invalid command passed to redis.acl_check_cmd()")
            }
        }
    }
}

fn sha1hex(lua: &Lua, args: MultiValue) -> mlua::Result<LuaString> {
    if args.len() != 1 {
        return Err(thrown("ERR wrong number of arguments"));
    }
    let text = args.front().map(|text| lua.coerce_string(text.clone())).transpose()?.flatten();
    let digest = text.map_or_else(|| super::digest(b""), |text| super::digest(&text.as_bytes()));
    lua.create_string(digest)
}

/// Checks its arguments; there is no log to write to.
fn log(_: &Lua, args: MultiValue) -> mlua::Result<()> {
    if args.len() < 2 {
        return Err(thrown("ERR redis.log() requires two arguments or more."));
    }
    let level = match args.front() {
        Some(Value::Integer(level)) => Some(*level as f64),
        Some(Value::Number(level)) => Some(*level),
        _ => None,
    };
    match level {
        None => Err(thrown("ERR First argument must be a number (log level).")),
        Some(level) if !(0.0..4.0).contains(&level) => Err(thrown("ERR Invalid debug level.")),
        Some(_) => Ok(()),
    }
}

/// `math.random`: returns a number from 0 to 1, from 1 to the only limit, or between two limits.
fn random(lua: &Lua, drawn: u32, range: mlua::Variadic<f64>) -> mlua::Result<f64> {
    const RANGE: u32 = i32::MAX.cast_unsigned();
    let share = f64::from(drawn % RANGE) / f64::from(RANGE);
    let (low, high) = match range.as_slice() {
        [] => return Ok(share),
        [high] => (1.0, high.trunc()),
        [low, high] => (low.trunc(), high.trunc()),
        _ => return Err(positioned(lua, "wrong number of arguments")),
    };
    if low > high {
        let text = format!("bad argument #{} to 'random' (interval is empty)", range.len());
        return Err(positioned(lua, &text));
    }
    Ok((share * (high - low + 1.0)).floor() + low)
}

/// Returns the text of an error that Rust threw, and whether it is an error reply; no text for another value.
fn error_text(lua: &Lua, thrown: Value) -> mlua::Result<(Option<LuaString>, bool)> {
    let Value::Error(error) = &thrown else { return Ok((None, false)) };
    let mut error: &mlua::Error = error;
    loop {
        match error {
            mlua::Error::CallbackError { cause, .. } | mlua::Error::WithContext { cause, .. } => {
                error = cause
            }
            mlua::Error::RuntimeError(text) => return Ok((Some(lua.create_string(text)?), false)),
            other => {
                let reply = other.downcast_ref::<ThrownReply>();
                return match reply {
                    Some(ThrownReply(text)) => Ok((Some(lua.create_string(text)?), true)),
                    None => Ok((Some(lua.create_string(other.to_string())?), false)),
                };
            }
        }
    }
}

fn thrown(text: impl Into<Vec<u8>>) -> mlua::Error {
    mlua::Error::external(ThrownReply(text.into()))
}

/// Creates an error of Lua with the place that Lua would put before it.
fn positioned(lua: &Lua, text: &str) -> mlua::Error {
    mlua::Error::runtime(match caller_line(lua) {
        Some(line) => format!("user_script:{line}: {text}"),
        None => text.to_owned(),
    })
}

/// Returns the current line of the script's innermost function.
fn caller_line(lua: &Lua) -> Option<usize> {
    (0..200).find_map(|level| {
        lua.inspect_stack(level, |frame| {
            let is_script = frame.source().source.is_some_and(|source| source == "@user_script");
            frame.current_line().filter(|_| is_script)
        })?
    })
}

impl fmt::Display for ThrownReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl std::error::Error for ThrownReply {}
