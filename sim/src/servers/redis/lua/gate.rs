//! Calls from Rust into a script and, by `redis.call`, back into Rust, on Lua's own C interface.
//!
//! A short script makes two calls and takes four strings. Through mlua's functions, values and references
//! this costs six times as much as Lua itself. mlua is used for work that happens once for each interpreter,
//! or when a script fails.
//!
//! These rules keep it sound:
//!
//! 1. *Lua throws by `longjmp`, past Rust's destructors.* A function here either calls nothing that may
//!    throw, or owns nothing that needs dropping: it is marked *may throw*, and holds numbers and pointers
//!    only. Values that a throw must not leak are in [`Running`] or in the [`Job`], which their owners drop.
//! 2. *Code that may throw runs under a protected call.* [`Gate::run`] only pushes existing functions and a
//!    pointer, which neither allocates nor throws, and calls [`run_script`] protected. Lua calls [`call`].
//! 3. *No panic crosses Lua.* [`Running::answer`] catches and keeps it; [`PooledEngine`](super::PooledEngine)
//!    resumes it once the script has ended, even if the script caught the error that it got instead.
//! 4. *One thread at a time.* Running a script borrows the engine, and with it the interpreter, mutably.
#![allow(unsafe_code, reason = "Lua's C interface; the rules above")]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use mlua::ffi::{self, lua_CFunction, lua_State};
use mlua::{Function, LightUserData, Lua, RegistryKey, Table, Value};

use super::result::{self, DEPTH_MAX, SHALLOW};
use super::room::{self, Room};
use super::stack::{self, call_slot, slot};
use super::{Running, lock};
use crate::servers::redis::number::{format_f64, push_i64};
use crate::servers::redis::reply::{Protocol, Reply};
use crate::servers::redis::request::Args;

/// Runs the scripts of one interpreter.
#[derive(Debug)]
pub(super) struct Gate {
    state: *mut lua_State,
    /// [`run_script`] with its upvalues.
    run: RegistryKey,
    /// The handler of a script's errors.
    explain: RegistryKey,
    /// The slot for a script's failure. It exists already, so that storing into it can't fail.
    failure: RegistryKey,
}

// SAFETY: the state belongs to the `Lua` beside it in the engine, which may be sent, and is used by the
// engine's borrower only.
unsafe impl Send for Gate {}

/// The outcome of a script.
enum Outcome {
    /// It returned a value.
    Returned(Reply),
    /// It failed: [`Gate::failure`] has the error.
    Failed,
}

/// The arguments and the result of [`run_script`].
struct Job<'a> {
    function: i32,
    keys: usize,
    args: Args<'a>,
    outcome: Outcome,
}

impl Gate {
    /// Creates the gate to scripts whose globals are in `builtins` and whose failures `explain` handles.
    pub(super) fn new(lua: &Lua, builtins: &Table, explain: &Function) -> mlua::Result<Self> {
        let (keys, argv) = (lua.create_table()?, lua.create_table()?);
        builtins.raw_set("KEYS", &keys)?;
        builtins.raw_set("ARGV", &argv)?;
        let upvalues = (builtins, "KEYS", "ARGV", "err", "ok", "double", keys, argv, "map", "set");
        let mut state = std::ptr::null_mut();
        // SAFETY: `exec_raw` pushes the ten upvalues and protects the call; the closure owns nothing.
        let run: Function = unsafe {
            lua.exec_raw(upvalues, |main| {
                state = main;
                ffi::lua_pushcclosure(main, run_script, slot::COUNT);
            })?
        };
        let run = lua.create_registry_value(run)?;
        let explain = lua.create_registry_value(explain)?;
        let failure = lua.create_registry_value(false)?;
        Ok(Self { state, run, explain, failure })
    }

    /// Runs the script `function` with the `keys` first of `args` as KEYS and the others as ARGV.
    pub(super) fn run(
        &mut self,
        lua: &Lua,
        function: &RegistryKey,
        keys: usize,
        args: Args<'_>,
    ) -> mlua::Result<Result<Reply, Value>> {
        let outcome = Outcome::Failed;
        let mut job = Job { function: function.id(), keys, args, outcome };
        // SAFETY: no script is running, so this is the bottom of the main stack, which has room for three.
        // The pushes don't allocate; all else is protected. `job` outlives the call.
        let has_failed = unsafe {
            let top = ffi::lua_gettop(self.state);
            ffi::lua_rawgeti_(self.state, ffi::LUA_REGISTRYINDEX, self.explain.id());
            ffi::lua_rawgeti_(self.state, ffi::LUA_REGISTRYINDEX, self.run.id());
            ffi::lua_pushlightuserdata(self.state, (&raw mut job).cast::<c_void>());
            let has_failed = ffi::lua_pcall(self.state, 1, 0, top + 1) != ffi::LUA_OK;
            if has_failed {
                ffi::lua_rawseti_(self.state, ffi::LUA_REGISTRYINDEX, self.failure.id());
            }
            ffi::lua_settop(self.state, top);
            has_failed
        };
        match job.outcome {
            Outcome::Returned(reply) if !has_failed => Ok(Ok(reply)),
            _ => lua.registry_value(&self.failure).map(Err),
        }
    }
}

/// Creates `redis.call` and `redis.pcall` of [`call`], or `redis.acl_check_cmd` of [`check`]. It throws error
/// replies, or returns them.
pub(super) fn host_function(
    lua: &Lua,
    running: &Arc<Mutex<Running>>,
    function: lua_CFunction,
    throws: bool,
) -> mlua::Result<Function> {
    let running = LightUserData(Arc::as_ptr(running).cast_mut().cast::<c_void>());
    // SAFETY: `exec_raw` pushes the upvalues and protects the call; the closure owns nothing. The engine
    // keeps `running` alive for as long as the interpreter.
    unsafe {
        lua.exec_raw((running, throws, "ok", "OK"), |state| {
            ffi::lua_pushcclosure(state, function, call_slot::COUNT);
        })
    }
}

/// Lua's side of `redis.call`. *May throw*: the reply is left in [`Running`], only its address is held here.
pub(super) unsafe extern "C-unwind" fn call(state: *mut lua_State) -> i32 {
    // SAFETY: `host_function` set the upvalues.
    unsafe { push_answer(state, Running::execute) };
    1
}

/// Lua's side of `redis.acl_check_cmd`. *May throw*. mlua would look for the names of all functions on the
/// stack to explain the error, which the scripts of locks catch: it takes 270,000 instructions.
pub(super) unsafe extern "C-unwind" fn check(state: *mut lua_State) -> i32 {
    // SAFETY: `host_function` set the upvalues.
    unsafe {
        push_answer(state, Running::check);
        ffi::lua_pushboolean(state, 1);
    }
    1
}

/// Pushes the reply of `work` to the words on the stack. *May throw*, and does if the reply is an error and
/// the function throws them.
///
/// # Safety
///
/// `state` runs a function with the upvalues of [`call_slot`].
unsafe fn push_answer(state: *mut lua_State, work: fn(&mut Running) -> Reply) {
    // SAFETY: the caller's promise. The reply does not move until the next call: only Lua's collector may run
    // while it is being pushed, and that calls no script. Rule 1 for the rest.
    unsafe {
        let running =
            ffi::lua_touserdata(state, ffi::lua_upvalueindex(call_slot::RUNNING)).cast::<Mutex<Running>>();
        let (reply, protocol) = answer(state, running, work);
        stack::push_reply(state, reply, protocol);
        if let Reply::Error(_) = &*reply {
            stack::push_text(state, b"ignore_error_stats_update");
            ffi::lua_pushboolean(state, 1);
            ffi::lua_rawset(state, -3);
            if ffi::lua_toboolean(state, ffi::lua_upvalueindex(call_slot::THROWS)) != 0 {
                ffi::lua_error(state);
            }
        }
    }
}

/// Does the `work` with the words on the stack. Returns its reply, and the protocol in which the script wants
/// it. Never throws.
///
/// # Safety
///
/// `state` runs a function of Lua's, and `running` is alive.
unsafe fn answer(
    state: *mut lua_State,
    running: *const Mutex<Running>,
    work: fn(&mut Running) -> Reply,
) -> (*const Reply, Protocol) {
    // SAFETY: the caller's promise.
    let mut running = lock(unsafe { &*running });
    running.answer(|running| {
        // SAFETY: the caller's promise.
        let words = unsafe { running.read_words(state) };
        words.map_or_else(|refused| refused, |()| work(running))
    });
    (&raw const running.reply, running.protocol)
}

impl Running {
    /// Stores the reply of `work`, or an error if it panics. The panic is resumed once the script has ended.
    fn answer(&mut self, work: impl FnOnce(&mut Self) -> Reply) {
        let reply = catch_unwind(AssertUnwindSafe(|| work(self)));
        self.reply = reply.unwrap_or_else(|panic| {
            self.panic.get_or_insert(panic);
            Reply::error("ERR the simulated server has panicked")
        });
    }

    /// Reads the words of a command from the stack of `state` into `arguments`. Never throws: it reads
    /// strings as strings and numbers as numbers, so that Lua converts nothing.
    ///
    /// # Safety
    ///
    /// `state` runs a function of Lua's.
    unsafe fn read_words(&mut self, state: *mut lua_State) -> Result<(), Reply> {
        // SAFETY: the caller's promise; all indices are below the top.
        let count = unsafe { ffi::lua_gettop(state) };
        if count == 0 {
            return Err(Reply::error("ERR Please specify at least one argument for this redis lib call"));
        }
        self.arguments.clear();
        for index in 1..=count {
            // SAFETY: as above.
            match unsafe { ffi::lua_type(state, index) } {
                ffi::LUA_TSTRING => {
                    // SAFETY: as above; a text stays where it is while it is on the stack.
                    let text = unsafe { stack::text(state, index) };
                    if !self.room.take(text.len()) {
                        return Err(Reply::error(room::EXCEEDED));
                    }
                    self.arguments.push(text);
                }
                // SAFETY: as above.
                ffi::LUA_TNUMBER => self.push_number(unsafe { ffi::lua_tonumber(state, index) }),
                _ => {
                    let refused = "ERR Lua redis lib command arguments must be strings or integers";
                    return Err(Reply::error(refused));
                }
            }
        }
        Ok(())
    }

    /// Adds a number as Redis writes it: whole numbers of up to 17 digits as integers, larger ones with an
    /// exponent.
    fn push_number(&mut self, number: f64) {
        let whole = number as i64;
        if (whole as f64).to_bits() == number.to_bits() && whole.unsigned_abs() < 100_000_000_000_000_000 {
            self.arguments.push_with(|out| push_i64(out, whole));
        } else {
            self.arguments.push(format_f64(number).as_bytes());
        }
    }
}

/// Sets KEYS and ARGV, runs the script of the [`Job`] on the stack, and takes its answer. *May throw*.
unsafe extern "C-unwind" fn run_script(state: *mut lua_State) -> i32 {
    // SAFETY: the only argument is the job that `Gate::run` pushed, and nothing else refers to it now. Stack:
    // the job, the function, BUILTINS and four more, within the twenty that Lua grants. Rule 1: the reply
    // goes into the job.
    unsafe {
        let job = ffi::lua_touserdata(state, 1).cast::<Job<'_>>();
        let (keys, args) = ((*job).keys, (*job).args);
        ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, (*job).function);
        stack::set_texts(state, slot::KEYS, slot::KEYS_TABLE, args.take(keys));
        stack::set_texts(state, slot::ARGV, slot::ARGV_TABLE, args.skip(keys));
        ffi::lua_call(state, 0, 1);
        let mut room = Room::default();
        let mut reply = result::reply_at(state, SHALLOW, false, &mut room);
        if reply.is_none() {
            // A nested table: reserve stack for its depth, and read the table again.
            ffi::luaL_checkstack_(state, DEPTH_MAX + ffi::LUA_MINSTACK, c"a nested reply".as_ptr());
            room = Room::default();
            reply = result::reply_at(state, DEPTH_MAX, true, &mut room);
        }
        if room.is_exceeded() {
            reply = Some(Reply::error(room::REPLY_EXCEEDED));
        }
        (*job).outcome = Outcome::Returned(reply.unwrap_or(Reply::Nil));
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_is_kept() {
        let mut running = Running::default();
        running.answer(|_| std::panic::resume_unwind(Box::new("first")));
        running.answer(|_| std::panic::resume_unwind(Box::new("second")));
        assert!(running.reply.is_error());
        let kept = running.panic.take().and_then(|panic| panic.downcast_ref::<&str>().copied());
        assert_eq!(kept, Some("first"));
        running.answer(|_| Reply::OK);
        assert_eq!(running.reply, Reply::OK);
    }
}
