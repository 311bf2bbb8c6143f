//! The signals of a simulated process.

use std::io;
use std::task::Waker;

/// The signals of one number since the listener was made. Signals that arrive before it is asked count as
/// one.
pub trait Signals: Send + Sync {
    /// Takes a signal. Fails with [`io::ErrorKind::WouldBlock`] if none has arrived.
    fn receive(&self, waker: Option<&Waker>) -> io::Result<()>;
}
