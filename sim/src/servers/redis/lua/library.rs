//! What Rust provides to the sandbox.

use std::sync::{Arc, Mutex};

use mlua::{Function, HookTriggers, Lua, LuaString, MultiValue, Value, VmState};

use super::{Running, convert, lock};
use crate::servers::redis::command::{self, Run};
use crate::servers::redis::number::format_f64;
use crate::servers::redis::random::Rand48;
use crate::servers::redis::reply::Reply;

/// What a script may execute before it is stopped, in thousands of instructions: about a second. Redis lets a script
/// run on and answers BUSY to everyone else; a simulation would never end.
pub(super) const BUDGET_THOUSANDS: u32 = 100_000;

/// The arguments of `sandbox.lua`.
pub(super) fn functions(
    lua: &Lua,
    running: &Arc<Mutex<Running>>,
) -> mlua::Result<(Function, Function, Function, Function, Function)> {
    let (calls, draws, seeds) = (running.clone(), running.clone(), running.clone());
    Ok((
        lua.create_function(move |lua, args: MultiValue| {
            let reply = lock(&calls).call(&args);
            convert::call_result(lua, &reply)
        })?,
        lua.create_function(|lua, text: LuaString| lua.create_string(super::digest(&text.as_bytes())))?,
        lua.create_function(move |_, ()| Ok(lock(&draws).state.random.next_u31()))?,
        lua.create_function(move |_, seed: f64| {
            lock(&seeds).state.random = Rand48::seeded(seed as i32);
            Ok(())
        })?,
        lua.create_function(|lua, ()| Ok(caller_line(lua)))?,
    ))
}

/// Stops scripts that never end.
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
    fn call(&mut self, args: &MultiValue) -> Reply {
        if args.is_empty() {
            return Reply::error("ERR Please specify at least one argument for this redis lib call");
        }
        self.arguments.clear();
        for arg in args {
            match arg {
                Value::String(text) => self.arguments.push(&text.as_bytes()),
                Value::Integer(number) => self.arguments.push(number.to_string().as_bytes()),
                Value::Number(number) => self.arguments.push(format_f64(*number).as_bytes()),
                _ => return Reply::error("ERR Lua redis lib command arguments must be strings or integers"),
            }
        }
        self.execute()
    }

    fn execute(&mut self) -> Reply {
        let args = self.arguments.args();
        let Some(command) = command::find(args.at(0)) else {
            return Reply::error("ERR Unknown Redis command called from script");
        };
        if !command.takes(args.len()) {
            return Reply::error("ERR Wrong number of args calling Redis command from script");
        }
        let Run::Keys(run) = command.run else {
            return Reply::error("ERR This Redis command is not allowed from script");
        };
        if command.writes && self.is_read_only {
            return Reply::error("ERR Write commands are not allowed from read-only scripts.");
        }
        if command.writes && self.state.is_replica {
            return Reply::error(command::READ_ONLY);
        }
        self.state.execute(command.name, run, args)
    }
}

/// The line at which the innermost function of the script stands.
fn caller_line(lua: &Lua) -> Option<usize> {
    (1..200).find_map(|level| {
        lua.inspect_stack(level, |frame| {
            let is_script = frame.source().source.is_some_and(|source| source == "@user_script");
            frame.current_line().filter(|_| is_script)
        })?
    })
}
