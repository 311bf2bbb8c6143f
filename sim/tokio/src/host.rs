//! The simulated process in which the caller runs.

use std::cell::Cell;
use std::future::Future;
use std::io;
#[cfg(feature = "net")]
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use send_wrapper::SendWrapper;
use sim_host::Process;
#[cfg(feature = "net")]
use sim_host::Stream;

/// Tells what to do outside of a simulated process.
const OUTSIDE: &str = "there is no reactor running: this program was built by `cargo sim`, and its tokio works \
    in the processes of a simulated world only. Call the code in a process (`Sim::process`), in `block_on` or \
    under `#[tokio::test]`, or build the program without `cargo sim`";

/// Tells what to do in a program without a simulator.
const NO_SIMULATOR: &str = "there is no reactor running: this program was built by `cargo sim`, and contains no \
    simulator in which its tokio could work. Add `sim` (package `fencepost-sim`) to the dev-dependencies, and \
    the line `use sim as _;` to each file of tests that does not use it otherwise; or build the program \
    without `cargo sim`";

/// Returns the process.
///
/// # Panics
///
/// Outside of every simulated process, as tokio does outside of a runtime.
#[track_caller]
pub(crate) fn process() -> Arc<dyn Process> {
    match sim_host::process() {
        Some(process) => process,
        None => outside(),
    }
}

/// Panics, since the caller is in no process.
#[track_caller]
pub(crate) fn outside() -> ! {
    let problem = if sim_host::has_simulator() { OUTSIDE } else { NO_SIMULATOR };
    panic!("{problem}")
}

/// Connects to `address` in the process of the caller. The future can be shared between threads, as tokio's
/// own.
#[cfg(feature = "net")]
#[track_caller]
pub(crate) fn connect(
    address: SocketAddr,
) -> impl Future<Output = io::Result<Arc<dyn Stream>>> + Send + Sync {
    SendWrapper::new(process().connect(address))
}

/// Refuses `what`, which is not simulated. The run ends with an error that names the caller's line.
pub(crate) fn refused(what: &'static str, instead: &'static str) -> io::Error {
    process().refuse(what, instead)
}

/// Calls `attempt` with the task's waker. Pending if it would have to wait.
pub(crate) fn poll<T>(
    waker: &Waker,
    attempt: impl FnOnce(Option<&Waker>) -> io::Result<T>,
) -> Poll<io::Result<T>> {
    match attempt(Some(waker)) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}

/// Calls `f`, which may block, in `process`. While it blocks, other tasks run.
pub(crate) fn blocking<R: 'static, F: FnOnce() -> R + 'static>(
    process: &Arc<dyn Process>,
    f: F,
) -> impl Future<Output = R> + use<R, F> {
    let result = Rc::new(Cell::new(None));
    let slot = Rc::clone(&result);
    let call = SendWrapper::new(move || slot.set(Some(f())));
    let process = Arc::clone(process);
    async move {
        process.blocking(Box::new(move || call.take()())).await;
        // It is only empty if `f` panicked, which unwinds through the await.
        #[allow(clippy::expect_used, reason = "the call has ended")]
        result.take().expect("the call has a result")
    }
}
