//! Runs cargo, and waits for its end whatever signals arrive.

use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use crate::error::{Error, FAILED};

/// Runs `command` to its end. Returns its exit code.
pub(crate) fn run(mut command: Command, signals: &Signals) -> Result<ExitCode, Error> {
    let mut child = command.spawn().map_err(Error::at("can't run", Path::new(command.get_program())))?;
    signals.pass_on_to(child.id());
    let status = child.wait().map_err(Error::at("can't wait for", Path::new(command.get_program())));
    signals.pass_on_to(0);
    Ok(code(status?))
}

fn code(status: ExitStatus) -> ExitCode {
    match status.code() {
        Some(code) => u8::try_from(code).unwrap_or(FAILED).into(),
        None => ended_by_signal(status),
    }
}

/// Returns the exit code that a shell gives to a process that was ended by a signal.
#[cfg(unix)]
fn ended_by_signal(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal().and_then(|signal| u8::try_from(signal).ok());
    signal.map_or(FAILED, |signal| signal.saturating_add(128)).into()
}

#[cfg(not(unix))]
fn ended_by_signal(_: ExitStatus) -> ExitCode {
    FAILED.into()
}

#[cfg(unix)]
pub(crate) use unix::Signals;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

    use rustix::process::{Pid, Signal, kill_process};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    use crate::error::Error;

    /// While this exists, a signal does not end the program, so that Cargo.lock is restored after cargo's
    /// end. A terminal sends Ctrl-C to cargo as well. SIGTERM is sent to one process: it is passed on.
    pub(crate) struct Signals {
        state: Arc<State>,
        handle: signal_hook::iterator::Handle,
    }

    #[derive(Default)]
    struct State {
        /// The process to which SIGTERM is passed on, or 0.
        child: AtomicU32,
        /// The last signal, or 0.
        received: AtomicI32,
    }

    impl Signals {
        /// Catches signals from now on.
        pub(crate) fn catch() -> Result<Self, Error> {
            let failed = |error: io::Error| Error::Message(format!("can't catch signals: {error}"));
            let mut signals =
                signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
            let handle = signals.handle();
            let state = Arc::new(State::default());
            let shared = Arc::clone(&state);
            #[expect(clippy::disallowed_methods, reason = "outside of all simulations")]
            std::thread::spawn(move || signals.forever().for_each(|signal| shared.receive(signal)));
            Ok(Self { state, handle })
        }

        /// Returns the signal that has arrived, if any.
        pub(crate) fn received(&self) -> Option<u8> {
            match self.state.received.load(Ordering::SeqCst) {
                0 => None,
                signal => u8::try_from(signal).ok(),
            }
        }

        /// Names the process to which SIGTERM is passed on; 0 for none.
        pub(super) fn pass_on_to(&self, child: u32) {
            self.state.child.store(child, Ordering::SeqCst);
            if self.state.received.load(Ordering::SeqCst) == SIGTERM {
                self.state.terminate_child();
            }
        }
    }

    impl State {
        fn receive(&self, signal: i32) {
            self.received.store(signal, Ordering::SeqCst);
            if signal == SIGTERM {
                self.terminate_child();
            }
        }

        fn terminate_child(&self) {
            let child = i32::try_from(self.child.load(Ordering::SeqCst)).ok().and_then(Pid::from_raw);
            if let Some(child) = child {
                // An error means that it has ended.
                let _ = kill_process(child, Signal::TERM);
            }
        }
    }

    impl Drop for Signals {
        fn drop(&mut self) {
            self.handle.close();
        }
    }
}

#[cfg(not(unix))]
pub(crate) use other::Signals;

#[cfg(not(unix))]
mod other {
    use crate::error::Error;

    /// Signals of other systems end the program; the next call restores Cargo.lock then.
    pub(crate) struct Signals;

    impl Signals {
        pub(crate) fn catch() -> Result<Self, Error> {
            Ok(Self)
        }

        pub(crate) fn received(&self) -> Option<u8> {
            None
        }

        pub(super) fn pass_on_to(&self, _: u32) {}
    }
}
