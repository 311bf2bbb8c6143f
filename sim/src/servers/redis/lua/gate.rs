//! The way into a script and, by `redis.call`, out of it again, on Lua's own C interface.
//!
//! A short script makes two calls and takes four texts. By mlua's functions, values and references that cost six times
//! what Lua itself does; everything that happens once an interpreter, or when a script fails, stays with mlua.
//!
//! What keeps this sound:
//!
//! 1. *Lua throws by `longjmp`, past Rust's destructors.* A function here either never calls what may throw, or owns
//!    nothing that needs dropping: it is marked *may throw*, and holds numbers and pointers only. What a throw must not
//!    lose lies in [`Running`] or in the [`Job`], which their owners drop.
//! 2. *What may throw runs under a protected call.* [`Gate::run`] only pushes a function that is there already and a
//!    pointer, which neither allocate nor throw, and calls [`run_script`] protected. [`call`] is called by Lua.
//! 3. *No panic crosses Lua.* [`Running::answer`] catches and keeps it; [`PooledEngine`](super::PooledEngine) resumes it
//!    once the script has ended, whatever the script made of the error it got instead.
//! 4. *One thread at a time.* Whoever runs a script borrows the engine, and with it the interpreter, mutably.
#![allow(unsafe_code, reason = "Lua's C interface; the rules above")]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use mlua::ffi::{self, lua_State};
use mlua::{Function, LightUserData, Lua, RegistryKey, Table, Value};

use super::{Running, convert, lock};
use crate::servers::redis::number::{format_f64, push_i64};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;

/// Tables inside tables that a reply may have; a table that holds itself ends here.
const DEPTH_MAX: i32 = 1000;
/// Tables inside tables for which a C function has stack without asking for more: one slot each, and two.
const SHALLOW: i32 = 4;

/// Runs the scripts of one interpreter.
#[derive(Debug)]
pub(super) struct Gate {
    state: *mut lua_State,
    /// [`run_script`] and what it needs.
    run: RegistryKey,
    /// Where a script's failure is put: a slot that exists, so that putting it there can't fail.
    failure: RegistryKey,
}

// SAFETY: the state belongs to the `Lua` beside it in the engine, which may be sent, and is used by the engine's borrower
// only.
unsafe impl Send for Gate {}
// SAFETY: nothing can be done with a shared gate; `run` takes it mutably.
unsafe impl Sync for Gate {}

/// How a script ended.
pub(super) enum Outcome {
    /// It returned a value.
    Returned(Reply),
    /// It failed; `failure.lua` is in the registry.
    Failed,
}

/// What [`run_script`] is told, and tells.
struct Job<'a> {
    function: i32,
    failure: i32,
    keys: usize,
    args: Args<'a>,
    outcome: Outcome,
}

/// The upvalues of [`run_script`].
mod slot {
    pub(super) const BUILTINS: i32 = 1;
    pub(super) const KEYS: i32 = 2;
    pub(super) const ARGV: i32 = 3;
    pub(super) const EXPLAIN: i32 = 4;
    pub(super) const ERR: i32 = 5;
    pub(super) const OK: i32 = 6;
    pub(super) const DOUBLE: i32 = 7;
}

impl Gate {
    /// A gate to the scripts whose globals are in `builtins` and whose failures `explain` handles.
    pub(super) fn new(lua: &Lua, builtins: &Table, explain: &Function) -> mlua::Result<Self> {
        let upvalues = (builtins, "KEYS", "ARGV", explain, "err", "ok", "double");
        let mut state = std::ptr::null_mut();
        // SAFETY: `exec_raw` pushes the seven upvalues and protects the call; the closure owns nothing.
        let run: Function = unsafe {
            lua.exec_raw(upvalues, |main| {
                state = main;
                ffi::lua_pushcclosure(main, run_script, slot::DOUBLE);
            })?
        };
        let run = lua.create_registry_value(run)?;
        let failure = lua.create_registry_value(false)?;
        Ok(Self { state, run, failure })
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
        let mut job = Job { function: function.id(), failure: self.failure.id(), keys, args, outcome };
        // SAFETY: no script is running, so this is the bottom of the main stack, which has room for two. The two pushes
        // don't allocate; all else is protected. `job` outlives the call.
        let is_host_failure = unsafe {
            let top = ffi::lua_gettop(self.state);
            ffi::lua_rawgeti_(self.state, ffi::LUA_REGISTRYINDEX, self.run.id());
            ffi::lua_pushlightuserdata(self.state, (&raw mut job).cast::<c_void>());
            let status = ffi::lua_pcall(self.state, 1, 0, 0);
            if status != ffi::LUA_OK {
                // Not the script: Lua itself, short of memory. What it says is a text or nothing.
                ffi::lua_rawseti_(self.state, ffi::LUA_REGISTRYINDEX, self.failure.id());
            }
            ffi::lua_settop(self.state, top);
            status != ffi::LUA_OK
        };
        match job.outcome {
            Outcome::Returned(reply) if !is_host_failure => Ok(Ok(reply)),
            _ => lua.registry_value(&self.failure).map(Err),
        }
    }
}

/// `redis.call`, which throws error replies, or `redis.pcall`, which returns them.
pub(super) fn call_function(
    lua: &Lua,
    running: &Arc<Mutex<Running>>,
    throws: bool,
) -> mlua::Result<Function> {
    let running = LightUserData(Arc::as_ptr(running).cast_mut().cast::<c_void>());
    // SAFETY: `exec_raw` pushes the upvalues and protects the call; the closure owns nothing. The engine keeps `running`
    // alive for as long as the interpreter.
    unsafe { lua.exec_raw((running, throws), |state| ffi::lua_pushcclosure(state, call, 2)) }
}

/// Lua's side of `redis.call`. *May throw*: the reply is left in [`Running`], only its address is held here.
unsafe extern "C-unwind" fn call(state: *mut lua_State) -> i32 {
    // SAFETY: the upvalues are those that `call_function` set. The reply stays where it is until the next call: what may
    // run while it is being pushed is Lua's collector, which calls no script. Rule 1 for the rest.
    unsafe {
        let running = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast::<Mutex<Running>>();
        let throws = ffi::lua_toboolean(state, ffi::lua_upvalueindex(2)) != 0;
        let reply = answer(state, running);
        push_reply(state, reply);
        if let Reply::Error(_) = &*reply {
            ffi::lua_pushlstring_(state, c"ignore_error_stats_update".as_ptr(), 25);
            ffi::lua_pushboolean(state, 1);
            ffi::lua_rawset(state, -3);
            if throws {
                ffi::lua_error(state);
            }
        }
        1
    }
}

/// Carries out the command on the stack. Never throws.
///
/// # Safety
///
/// `state` runs a function of Lua's, and `running` is alive.
unsafe fn answer(state: *mut lua_State, running: *const Mutex<Running>) -> *const Reply {
    // SAFETY: the caller's promise.
    let mut running = lock(unsafe { &*running });
    // SAFETY: the caller's promise.
    running.answer(|running| unsafe { running.call(state) });
    &raw const running.reply
}

impl Running {
    /// Leaves the reply that `work` makes, or an error if it panics; the panic goes on when the script has ended.
    fn answer(&mut self, work: impl FnOnce(&mut Self) -> Reply) {
        let reply = catch_unwind(AssertUnwindSafe(|| work(self)));
        self.reply = reply.unwrap_or_else(|panic| {
            self.panic.get_or_insert(panic);
            Reply::error("ERR the simulated server has panicked")
        });
    }

    /// The reply to the command whose words stand on the stack of `state`. Never throws: it asks for texts of texts and
    /// numbers of numbers only, so that Lua converts nothing.
    ///
    /// # Safety
    ///
    /// `state` runs a function of Lua's.
    unsafe fn call(&mut self, state: *mut lua_State) -> Reply {
        // SAFETY: the caller's promise; all indices are below the top.
        let count = unsafe { ffi::lua_gettop(state) };
        if count == 0 {
            return Reply::error("ERR Please specify at least one argument for this redis lib call");
        }
        self.arguments.clear();
        for index in 1..=count {
            // SAFETY: as above.
            match unsafe { ffi::lua_type(state, index) } {
                // SAFETY: as above; a text stays where it is while it is on the stack.
                ffi::LUA_TSTRING => self.arguments.push(unsafe { text(state, index) }),
                // SAFETY: as above.
                ffi::LUA_TNUMBER => self.push_number(unsafe { ffi::lua_tonumber(state, index) }),
                _ => return Reply::error("ERR Lua redis lib command arguments must be strings or integers"),
            }
        }
        self.execute()
    }

    /// Lua has one kind of numbers. Whole ones of up to 17 digits have none behind the point; Redis writes larger ones with
    /// an exponent.
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
    // SAFETY: the only argument is the job that `Gate::run` pushed, and nobody else holds it now. Stack: the job, EXPLAIN,
    // the function, BUILTINS and three more, within the twenty that Lua grants. Rule 1: the reply goes into the job.
    unsafe {
        let job = ffi::lua_touserdata(state, 1).cast::<Job<'_>>();
        let (keys, args) = ((*job).keys, (*job).args);
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(slot::EXPLAIN));
        ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, (*job).function);
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(slot::BUILTINS));
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(slot::KEYS));
        push_texts(state, args.take(keys));
        ffi::lua_rawset(state, -3);
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(slot::ARGV));
        push_texts(state, args.skip(keys));
        ffi::lua_rawset(state, -3);
        ffi::lua_settop(state, 3);
        if ffi::lua_pcall(state, 0, 1, 2) != ffi::LUA_OK {
            ffi::lua_rawseti_(state, ffi::LUA_REGISTRYINDEX, (*job).failure);
            return 0;
        }
        let mut reply = reply_at(state, SHALLOW, false);
        if reply.is_none() {
            // A nested table: Lua is asked for the stack that its depth may take, and the table is read again.
            ffi::luaL_checkstack_(state, DEPTH_MAX + ffi::LUA_MINSTACK, c"a nested reply".as_ptr());
            reply = reply_at(state, DEPTH_MAX, true);
        }
        (*job).outcome = Outcome::Returned(reply.unwrap_or(Reply::Nil));
        0
    }
}

/// The reply that the value on top of the stack stands for; `levels` of tables may be in it. `None`, or an error in place
/// of the innermost table if it `is_cut`, if there are more. Never throws. Source: `script_lua.c` of Redis 7.0.
///
/// # Safety
///
/// `state` runs [`run_script`], with room on its stack for a slot a level and two more.
unsafe fn reply_at(state: *mut lua_State, levels: i32, is_cut: bool) -> Option<Reply> {
    // SAFETY: the caller's promise; each function is called for the type that it is for.
    unsafe {
        Some(match ffi::lua_type(state, -1) {
            ffi::LUA_TSTRING => Reply::bulk(text(state, -1)),
            ffi::LUA_TNUMBER => Reply::Integer(convert::truncate(ffi::lua_tonumber(state, -1))),
            ffi::LUA_TBOOLEAN if ffi::lua_toboolean(state, -1) != 0 => Reply::Integer(1),
            ffi::LUA_TTABLE if levels > 0 => return table_reply(state, levels, is_cut),
            ffi::LUA_TTABLE if is_cut => Reply::error("ERR reached lua stack limit"),
            ffi::LUA_TTABLE => return None,
            _ => Reply::Nil,
        })
    }
}

/// As [`reply_at`], of a table.
///
/// # Safety
///
/// As for [`reply_at`].
unsafe fn table_reply(state: *mut lua_State, levels: i32, is_cut: bool) -> Option<Reply> {
    // SAFETY: the caller's promise. Reading a table without its metatable calls nothing and allocates nothing.
    unsafe {
        let special = |key, kind, read: fn(*mut lua_State) -> Reply| {
            ffi::lua_pushvalue(state, ffi::lua_upvalueindex(key));
            ffi::lua_rawget_(state, -2);
            let reply = (ffi::lua_type(state, -1) == kind).then(|| read(state));
            ffi::lua_settop(state, -2);
            reply
        };
        let special = special(slot::ERR, ffi::LUA_TSTRING, |state| Reply::error_text(text(state, -1)))
            .or_else(|| {
                special(slot::OK, ffi::LUA_TSTRING, |state| Reply::Status(text(state, -1).to_vec().into()))
            })
            .or_else(|| {
                special(slot::DOUBLE, ffi::LUA_TNUMBER, |state| {
                    Reply::bulk(format_f64(ffi::lua_tonumber(state, -1)))
                })
            });
        if special.is_some() {
            return special;
        }
        let mut items = Vec::new();
        for index in 1.. {
            ffi::lua_rawgeti_(state, -1, index);
            let item = match ffi::lua_type(state, -1) {
                ffi::LUA_TNIL => None,
                _ => Some(reply_at(state, levels - 1, is_cut)),
            };
            ffi::lua_settop(state, -2);
            match item {
                Some(item) => items.push(item?),
                None => break,
            }
        }
        Some(Reply::Array(items))
    }
}

/// Pushes what `redis.call` returns for a reply. *May throw*.
///
/// # Safety
///
/// `state` runs a function of Lua's, and `reply` is alive and does not change.
unsafe fn push_reply(state: *mut lua_State, reply: *const Reply) {
    // SAFETY: the caller's promise, and rule 1: everything here is borrowed.
    unsafe {
        ffi::luaL_checkstack_(state, 4, c"a reply".as_ptr());
        match &*reply {
            Reply::Bulk(bytes) | Reply::Verbatim(bytes) => push_text(state, bytes),
            Reply::Integer(number) => ffi::lua_pushnumber(state, *number as f64),
            Reply::Nil | Reply::NilArray | Reply::Silence => ffi::lua_pushboolean(state, 0),
            Reply::Status(text) => push_field(state, b"ok", text),
            Reply::Error(text) => push_field(state, b"err", text),
            Reply::Array(items) => {
                ffi::lua_createtable(state, items.len() as i32, 0);
                for (at, item) in items.iter().enumerate() {
                    push_reply(state, item);
                    ffi::lua_rawseti_(state, -2, at as i32 + 1);
                }
            }
            // Scripts speak RESP2 with the server, whatever their callers speak.
            Reply::Map(fields) => {
                ffi::lua_createtable(state, 2 * fields.len() as i32, 0);
                for (at, (name, field)) in fields.iter().enumerate() {
                    push_text(state, name.as_bytes());
                    ffi::lua_rawseti_(state, -2, 2 * at as i32 + 1);
                    push_reply(state, field);
                    ffi::lua_rawseti_(state, -2, 2 * at as i32 + 2);
                }
            }
        }
    }
}

/// Pushes a table with one field. *May throw*.
unsafe fn push_field(state: *mut lua_State, name: &[u8], value: &[u8]) {
    // SAFETY: the caller has asked for the stack.
    unsafe {
        ffi::lua_createtable(state, 0, 1);
        push_text(state, name);
        push_text(state, value);
        ffi::lua_rawset(state, -3);
    }
}

/// Pushes an array of texts. *May throw*.
unsafe fn push_texts(state: *mut lua_State, texts: Args<'_>) {
    // SAFETY: the caller has asked for the stack.
    unsafe {
        ffi::lua_createtable(state, texts.len() as i32, 0);
        for (at, text) in texts.iter().enumerate() {
            push_text(state, text);
            ffi::lua_rawseti_(state, -2, at as i32 + 1);
        }
    }
}

/// Pushes a text. *May throw*.
unsafe fn push_text(state: *mut lua_State, text: &[u8]) {
    // SAFETY: the caller has asked for the stack; Lua copies the bytes.
    unsafe { ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len()) }
}

/// The bytes of the text at `index`. Never throws, since it is a text and no number.
///
/// # Safety
///
/// It is a text, and stays on the stack for as long as the bytes are used.
unsafe fn text<'a>(state: *mut lua_State, index: i32) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = ffi::lua_tolstring(state, index, &raw mut length);
        std::slice::from_raw_parts(bytes.cast(), length)
    }
}
