//! `tokio::signal::unix`.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

pub use real_tokio::signal::unix::SignalKind;
use sim_host::Signals;

use crate::host;

/// The signals that no program can handle, as in `signal_hook_registry::FORBIDDEN`: SIGKILL, SIGSTOP, SIGILL,
/// SIGFPE and SIGSEGV.
const FORBIDDEN: [i32; 5] = [9, 19, 4, 8, 11];

/// The largest number of a signal on Linux (`SIGRTMAX`).
const LARGEST: i32 = 64;

/// The signals of one kind.
#[must_use = "streams do nothing unless polled"]
pub struct Signal {
    kind: SignalKind,
    signals: Box<dyn Signals>,
}

/// Listens for signals of this kind, which no longer end the process.
///
/// # Errors
///
/// If no program can handle the signal.
///
/// # Panics
///
/// Outside of a simulated process.
#[track_caller]
pub fn signal(kind: SignalKind) -> io::Result<Signal> {
    let number = kind.as_raw_value();
    if number <= 0 || FORBIDDEN.contains(&number) {
        return Err(io::Error::other(format!("Refusing to register signal {number}")));
    }
    if number > LARGEST {
        return Err(io::Error::other("signal too large"));
    }
    Ok(Signal { kind, signals: host::process().signals(number) })
}

impl Signal {
    /// Waits for the next signal. Several that arrive meanwhile count as one.
    pub async fn recv(&mut self) -> Option<()> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Ready when a signal has arrived since the last one.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        host::poll(cx.waker(), |waker| self.signals.receive(waker)).map(Result::ok)
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("kind", &self.kind).finish_non_exhaustive()
    }
}
