//! Calls by which the code of a process would leave the simulation: real sockets, files, threads, programs,
//! and sleeps that block. Each is refused, and ends the run with an error that names the user's line.
//!
//! `libc_calls` finds the calls. A call returns an error to the code, which may swallow it, so that the first
//! one is kept here as well: a run with a kept escape has no report.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "calls are found on Linux only"))]

use std::cell::{Cell, RefCell};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;
use std::sync::{Arc, Mutex};

use super::{current, lock};

/// Something outside the simulation that a call would reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outside {
    /// Sockets of the real machine.
    Network,
    /// The names of hosts in the real network.
    Lookup,
    /// Changes of real files.
    File,
    /// Real threads.
    Thread,
    /// Real programs.
    Program,
    /// Real time, in a sleep that blocks.
    Sleep,
    /// A part of another runtime's interface that is not simulated.
    Unsupported {
        /// The part to use instead.
        instead: &'static str,
    },
}

impl Outside {
    /// Returns what the call would have done.
    pub(crate) fn act(self) -> &'static str {
        match self {
            Self::Network => "use a socket of the real machine",
            Self::Lookup => "look a host up in the real network",
            Self::File => "change a real file",
            Self::Thread => "start a real thread",
            Self::Program => "start a real program",
            Self::Sleep => "block the simulation in a sleep",
            Self::Unsupported { .. } => "use what is not simulated",
        }
    }

    /// Returns what to use instead.
    pub(crate) fn instead(self) -> &'static str {
        match self {
            Self::Network => {
                "use Process::connect and Process::listen, or an async client on them (sim::clients)"
            }
            Self::Lookup => "use the names of processes: Process::connect(\"NAME:PORT\")",
            Self::File => "use Process::disk, or write the file after the run",
            Self::Thread => "use Process::spawn",
            Self::Program => "add it as a process of the world (Sim::process, Sim::service)",
            Self::Sleep => "use Process::sleep",
            Self::Unsupported { instead } => instead,
        }
    }
}

/// A call that would have left the simulation.
#[derive(Clone, Debug)]
pub(crate) struct Escape {
    /// The process whose code made the call, or `None` for code outside all processes.
    pub(crate) process: Option<String>,
    /// File and line of the user's code, if it is known.
    pub(crate) location: Option<String>,
    /// The function of libc.
    pub(crate) call: &'static str,
    pub(crate) outside: Outside,
}

/// The activity of a run's code, for the thread that waits for the run.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    first: Mutex<Option<Escape>>,
    sight: Mutex<Option<Sight>>,
    #[cfg(target_os = "linux")]
    thread: OnceLock<libc::pthread_t>,
}

/// The code that runs at some moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    /// The process, or `None` for code outside all processes.
    pub(crate) process: Option<String>,
    /// File and line of the user's code, if any is on the stack.
    pub(crate) location: Option<String>,
}

impl Watched {
    /// Returns the first escape, if there was one.
    pub(crate) fn first(&self) -> Option<Escape> {
        lock(&self.first).clone()
    }

    /// Returns what the thread last noted ([`note_sight`]).
    #[cfg(target_os = "linux")]
    pub(super) fn sight(&self) -> Option<Sight> {
        lock(&self.sight).clone()
    }

    /// Sets the thread of the run.
    #[cfg(target_os = "linux")]
    pub(super) fn set_thread(&self, thread: libc::pthread_t) {
        let _ = self.thread.set(thread);
    }

    #[cfg(target_os = "linux")]
    pub(super) fn thread(&self) -> Option<libc::pthread_t> {
        self.thread.get().copied()
    }
}

thread_local! {
    /// The run on this thread.
    static RUN: RefCell<Option<Arc<Watched>>> = const { RefCell::new(None) };
    static HAS_ESCAPED: Cell<bool> = const { Cell::new(false) };
    /// True in [`allow`].
    static IS_ALLOWED: Cell<bool> = const { Cell::new(false) };
}

/// Calls `outside`, which may leave the simulation from the code of a process: files are written, sockets
/// opened, hosts looked up, threads and programs started as in any program, and a sleep takes real time. Its
/// clocks are still those of the process.
///
/// It is for what does not change from run to run, such as a file that is prepared once. It can't wait in
/// simulated time. (Files may be read without it.)
///
/// # Example
///
/// ```
/// use sim::{Process, Sim};
///
/// let folder = std::env::temp_dir().join(format!("sim-allow-{}", std::process::id()));
/// let made = folder.clone();
/// Sim::new(7)
///     .process("a", move |_: Process| {
///         let made = made.clone();
///         async move { sim::allow(|| std::fs::create_dir(made)).unwrap() }
///     })
///     .run()?;
/// assert!(folder.exists());
/// # std::fs::remove_dir(folder).ok();
/// # Ok::<(), sim::RunError>(())
/// ```
pub fn allow<T>(outside: impl FnOnce() -> T) -> T {
    /// Restores what was allowed before.
    struct Allowed(bool);

    impl Drop for Allowed {
        fn drop(&mut self) {
            IS_ALLOWED.set(self.0);
        }
    }

    let _allowed = Allowed(IS_ALLOWED.replace(true));
    outside()
}

/// Returns true in [`allow`].
pub(super) fn is_allowed() -> bool {
    IS_ALLOWED.try_with(Cell::get).unwrap_or_default()
}

/// Keeps the escapes on this thread, which belongs to one run, in `watched` from now on.
pub(crate) fn watch(watched: &Arc<Watched>) {
    RUN.set(Some(Arc::clone(watched)));
}

/// Notes the code that runs on this thread, which was interrupted before the instruction at this address (0
/// if that is not known). It waits for no lock, since it may have interrupted that code.
#[cfg(target_os = "linux")]
pub(super) fn note_sight(interrupted: usize) {
    let run = RUN.try_with(|run| run.try_borrow().ok()?.clone()).ok().flatten();
    let sight = Sight { process: current::process_name(), location: user_place_at(Some(interrupted)) };
    if let Some(mut noted) = run.as_ref().and_then(|run| run.sight.try_lock().ok()) {
        *noted = Some(sight);
    }
}

/// Returns true if code on this thread has made a call that would leave the simulation.
pub(super) fn has_escaped() -> bool {
    HAS_ESCAPED.get()
}

/// Returns true if the call belongs to the code of a process, and must be refused. It is kept as an escape.
///
/// Code outside all processes may use files and the network. It may not start a thread, which madsim would
/// refuse without naming the line.
pub(super) fn is_refused(outside: Outside, call: &'static str) -> bool {
    let is_inside = match outside {
        Outside::Thread => current::is_simulated(),
        _ => current::is_in_process(),
    };
    is_inside && !is_allowed() && keep(outside, call)
}

/// Keeps the escape if it is the first one; returns false if this thread has no run.
fn keep(outside: Outside, call: &'static str) -> bool {
    let run = RUN.try_with(|run| run.try_borrow().ok()?.clone()).ok().flatten();
    let Some(run) = run else { return false };
    // Finding the line makes calls itself.
    if !HAS_ESCAPED.replace(true) {
        let process = current::process_name();
        let location = user_place();
        *lock(&run.first) = Some(Escape { process, location, call, outside });
    }
    true
}

/// Returns the file and line of the innermost call on the stack that is the user's own: not in the standard
/// library, in a crate from a registry, or in the simulator and the crates that it tests. `None` if there is
/// none, or if the program has no debug information.
pub(super) fn user_place() -> Option<String> {
    user_place_at(None)
}

/// As [`user_place`]. A backtrace takes each address for that after a call, and looks at the instruction
/// before it. That is the wrong one in code that a signal `interrupted` (0 if it is not known where): it may
/// be of another line or function, and need not have run before.
fn user_place_at(interrupted: Option<usize>) -> Option<String> {
    let mut place = None;
    backtrace::trace(|frame| {
        let mut see = |symbol: &backtrace::Symbol| {
            if place.is_none()
                && let Some((file, line)) = symbol.filename().zip(symbol.lineno())
                && is_of_user(file)
            {
                place = Some(format!("{}:{line}", in_workspace(file).display()));
            }
        };
        // `resolve` looks at the instruction before the address that it gets.
        let (before, itself) = (frame.ip(), frame.ip().wrapping_byte_add(1));
        match interrupted {
            None => backtrace::resolve(before, see),
            Some(address) => {
                let is_here = address == before.addr();
                let (first, second) = if is_here { (itself, before) } else { (before, itself) };
                backtrace::resolve(first, &mut see);
                backtrace::resolve(second, see);
            }
        }
        place.is_none()
    });
    place
}

/// Returns true for a source file that is neither the standard library's nor of a crate between the user and
/// the simulation.
fn is_of_user(file: &Path) -> bool {
    const FOREIGN: [&str; 7] = [
        "/rustc/",
        "/lib/rustlib/src/",
        "/registry/src/",
        "/git/checkouts/",
        // Written by `cargo sim`.
        "/sim/tokio-",
        "/sim/real-tokio-",
        "/sim/sim-host/",
    ];
    const OWN: [&str; 11] = [
        "sim",
        "sim/host",
        "sim/lab",
        "sim/tokio",
        "dlock",
        "dlock/etcd-client",
        "dlock/runtime",
        "dlock/zookeeper",
        "history",
        "resource",
        "resource/fence",
    ];
    let text = file.to_string_lossy();
    // Code that a build script wrote, such as a protocol, is in `target/*/build/CRATE-HASH/out`.
    let is_generated = text.contains("/build/") && text.contains("/out/");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let is_own =
        root.is_some_and(|root| OWN.iter().any(|name| file.starts_with(root.join(name).join("src"))));
    file.is_absolute() && !is_generated && !is_own && !FOREIGN.iter().any(|folder| text.contains(folder))
}

/// Returns the path as the compiler prints it: relative to the user's workspace.
fn in_workspace(file: &Path) -> &Path {
    let root = file.ancestors().find(|folder| folder.join("Cargo.lock").exists());
    root.and_then(|root| file.strip_prefix(root).ok()).unwrap_or(file)
}
