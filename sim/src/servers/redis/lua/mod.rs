//! Runs scripts in a real Lua 5.1, as Redis does.
//!
//! Creating an interpreter takes a quarter of the time of a short run, so the program keeps a pool: a thread
//! takes an interpreter for its first script and returns it when the thread ends. All servers of a thread
//! share the interpreter, whose memory stays in the processor's cache. It keeps no data of a server except
//! compiled functions, by the digest of their text. The server itself stores the scripts that it knows.

mod convert;
mod gate;
mod libraries;
mod library;
mod result;
mod room;
mod stack;

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, RegistryKey, Table};

use self::gate::Gate;
use self::room::Room;
use super::reply::{Protocol, Reply};
use super::request::{ArgBuffer, Args};
use super::state::State;

/// The most compiled functions that one interpreter keeps; beyond that, texts are compiled again.
const FUNCTIONS_MAX: usize = 1024;
/// The most texts whose digests an interpreter remembers, and their longest length in bytes: every run begins
/// with the same few scripts.
const DIGESTS_MAX: usize = 64;
const DIGESTED_BYTES_MAX: usize = 16 * 1024;

/// The interpreters of threads that have ended.
static POOL: Mutex<Vec<Engine>> = Mutex::new(Vec::new());

thread_local! {
    /// The thread's own, between two scripts.
    static OWN: RefCell<Own> = const { RefCell::new(Own(None)) };
}

/// The lower-case hexadecimal SHA-1 of a script's text: the script's name.
pub(crate) type Digest = [u8; 40];

/// An interpreter that is borrowed from its thread.
#[derive(Debug)]
pub(crate) struct PooledEngine(Option<Box<Engine>>);

/// Returns a thread's interpreter to the pool when the thread ends.
struct Own(Option<Box<Engine>>);

#[derive(Debug)]
struct Engine {
    lua: Lua,
    environment: Table,
    gate: Gate,
    functions: BTreeMap<Digest, RegistryKey>,
    digests: BTreeMap<Box<[u8]>, Digest>,
    running: Arc<Mutex<Running>>,
}

/// The state of `redis.call`.
#[derive(Debug, Default)]
struct Running {
    /// The server's data while one of its scripts runs; empty otherwise.
    state: Box<State>,
    arguments: ArgBuffer,
    /// The reply to the script's last command, while Lua copies it.
    reply: Reply,
    /// The panic of a command, if one panicked.
    panic: Option<Box<dyn Any + Send>>,
    /// The number of the script, in the order in which this interpreter ran them.
    number: u64,
    /// Instructions that the script may still execute, in thousands.
    budget: u32,
    /// The memory that the script's commands may still take.
    room: Room,
    /// The script was declared as one that does not write.
    is_read_only: bool,
    /// The protocol in which the script wants replies: RESP2, unless it calls `redis.setresp`.
    protocol: Protocol,
}

/// A script: its text without the shebang line, and the flags of that line.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    text: Arc<[u8]>,
    has_shebang: bool,
    is_read_only: bool,
}

pub(crate) fn digest(text: &[u8]) -> Digest {
    let mut hex = [0; 40];
    let digest = sha1_smol::Sha1::from(text).digest().bytes();
    for (at, byte) in digest.iter().enumerate() {
        hex[2 * at] = b"0123456789abcdef"[usize::from(byte >> 4)];
        hex[2 * at + 1] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    hex
}

impl PooledEngine {
    /// Returns the thread's interpreter, one from the pool, or a new one.
    pub(crate) fn take() -> mlua::Result<Self> {
        let own = OWN.try_with(|own| own.borrow_mut().0.take()).ok().flatten();
        if own.is_some() {
            return Ok(Self(own));
        }
        let pooled = lock(&POOL).pop();
        Ok(Self(Some(Box::new(match pooled {
            Some(engine) => engine,
            None => Engine::new()?,
        }))))
    }

    /// Returns the digest of a script's text.
    pub(crate) fn digest(&mut self, text: &[u8]) -> Digest {
        let digests = &mut self.engine().digests;
        if let Some(digest) = digests.get(text) {
            return *digest;
        }
        let digest = digest(text);
        if text.len() <= DIGESTED_BYTES_MAX {
            if digests.len() >= DIGESTS_MAX {
                digests.clear();
            }
            digests.insert(text.into(), digest);
        }
        digest
    }

    /// Checks that the script compiles.
    pub(crate) fn compile(&mut self, name: &Digest, script: &Script) -> Result<(), Reply> {
        let Engine { lua, environment, functions, .. } = self.engine();
        let compiled = function(lua, environment, functions, name, script).map(|_| ());
        free_memory(lua, functions);
        compiled
    }

    /// Runs a script on `state` and returns its answer. `args` are the keys, `keys` of them, and the
    /// arguments.
    pub(crate) fn run(
        &mut self,
        name: &Digest,
        script: &Script,
        keys: usize,
        args: Args<'_>,
        state: &mut Box<State>,
    ) -> Reply {
        let Engine { lua, environment, gate, functions, running, .. } = self.engine();
        let function = match function(lua, environment, functions, name, script) {
            Ok(function) => function,
            Err(error) => return error,
        };
        if let Err(error) = library::limit_instructions(lua, running) {
            return convert::host_error(&error, name);
        }
        lock(running).begin(state, script.is_read_only);
        let outcome = gate.run(lua, function, keys, args);
        free_memory(lua, functions);
        if let Some(panic) = lock(running).end(state) {
            resume_unwind(panic);
        }
        match outcome {
            Ok(Ok(reply)) => reply,
            Ok(Err(failure)) => convert::failure(&failure, name),
            Err(error) => convert::host_error(&error, name),
        }
    }

    fn engine(&mut self) -> &mut Engine {
        // Only `drop` empties it.
        #[allow(clippy::expect_used, reason = "an interpreter is on loan until it is dropped")]
        self.0.as_mut().expect("the interpreter is on loan")
    }
}

impl Drop for PooledEngine {
    fn drop(&mut self) {
        // After a panic the interpreter may hold half a script.
        let Some(engine) = self.0.take().filter(|_| !std::thread::panicking()) else { return };
        let mut left = Own(Some(engine));
        // An interpreter that the thread already had goes to the pool. If the thread is ending, this one
        // does.
        let _ = OWN.try_with(|own| std::mem::swap(&mut *own.borrow_mut(), &mut left));
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(engine) = self.0.take() {
            lock(&POOL).push(*engine);
        }
    }
}

impl Engine {
    fn new() -> mlua::Result<Self> {
        let lua = Lua::new();
        let running = Arc::new(Mutex::new(Running::default()));
        lua.set_memory_limit(room::BYTES_MAX)?;
        #[cfg(fuzzing)]
        lua.load(include_str!("limit_patterns.lua")).exec()?;
        let host = library::host(&lua, &running)?;
        let sandbox = lua.load(include_str!("sandbox.lua")).set_name("@sandbox.lua").into_function()?;
        let (environment, builtins, explain): (Table, Table, Function) = sandbox.call(host)?;
        let gate = Gate::new(&lua, &builtins, &explain)?;
        Ok(Self { lua, environment, gate, functions: BTreeMap::new(), digests: BTreeMap::new(), running })
    }
}

/// Returns the compiled function of a script, from `functions` or compiled now.
fn function<'a>(
    lua: &Lua,
    environment: &Table,
    functions: &'a mut BTreeMap<Digest, RegistryKey>,
    name: &Digest,
    script: &Script,
) -> Result<&'a RegistryKey, Reply> {
    if functions.len() >= FUNCTIONS_MAX && !functions.contains_key(name) {
        functions.clear();
        lua.expire_registry_values();
    }
    match functions.entry(*name) {
        Entry::Occupied(entry) => Ok(entry.into_mut()),
        Entry::Vacant(entry) => {
            let chunk = lua.load(&*script.text).set_name("@user_script").set_mode(ChunkMode::Text);
            let function = chunk.set_environment(environment.clone()).into_function();
            let function = function.and_then(|function| lua.create_registry_value(function));
            Ok(entry.insert(function.map_err(|error| convert::compile_error(&error))?))
        }
    }
}

/// Frees memory if the interpreter keeps much of it, so that the next script has most of it: first what no
/// script refers to, then the compiled functions.
fn free_memory(lua: &Lua, functions: &mut BTreeMap<Digest, RegistryKey>) {
    let keeps_much = || lua.used_memory() > room::KEPT_BYTES_MAX;
    if keeps_much() {
        // A collection that fails leaves less for the next script.
        let _ = lua.gc_collect();
    }
    if keeps_much() {
        functions.clear();
        lua.expire_registry_values();
        let _ = lua.gc_collect();
    }
}

impl Running {
    fn begin(&mut self, state: &mut Box<State>, is_read_only: bool) {
        std::mem::swap(&mut self.state, state);
        self.state.copied_bytes = 0;
        self.number += 1;
        self.budget = library::BUDGET_THOUSANDS;
        self.room = Room::default();
        self.is_read_only = is_read_only;
        self.protocol = Protocol::Resp2;
    }

    /// Gives the state back. Returns the panic of a command, if one panicked.
    fn end(&mut self, state: &mut Box<State>) -> Option<Box<dyn Any + Send>> {
        std::mem::swap(&mut self.state, state);
        self.panic.take()
    }
}

impl Script {
    /// Reads a script's text. Its first line may be a shebang, `#!lua flags=no-writes`.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Reply> {
        let Some(shebang) = text.strip_prefix(b"#!") else {
            return Ok(Self { text: text.into(), has_shebang: false, is_read_only: false });
        };
        let Some(end) = shebang.iter().position(|byte| *byte == b'\n') else {
            return Err(Reply::error("ERR Invalid script shebang"));
        };
        let line = String::from_utf8_lossy(&shebang[..end]);
        let mut words = line.split_whitespace();
        match words.next() {
            Some("lua") => {}
            other => {
                let engine = other.unwrap_or_default();
                return Err(Reply::error_text(format!(
                    "ERR Unexpected engine in script shebang: #!{engine}"
                )));
            }
        }
        let mut is_read_only = false;
        for word in words {
            let Some(flags) = word.strip_prefix("flags=") else {
                return Err(Reply::error_text(format!("ERR Unknown lua shebang option: {word}")));
            };
            for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
                match flag {
                    "no-writes" => is_read_only = true,
                    "allow-oom" | "allow-stale" | "no-cluster" | "allow-cross-slot-keys" => {}
                    _ => {
                        let text = format!("ERR Unexpected flag in script shebang: {flag}");
                        return Err(Reply::error_text(text));
                    }
                }
            }
        }
        // The line feed stays, so that errors name the right line.
        Ok(Self { text: shebang[end..].into(), has_shebang: true, is_read_only })
    }

    /// Returns true if the shebang line allows it to write.
    pub(crate) fn declares_writes(&self) -> bool {
        self.has_shebang && !self.is_read_only
    }
}

/// Locks `mutex`, even if a thread panicked while it held it: the content is valid all the same.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
