//! The thread of a run, and the limit of its real time.
//!
//! A thread can't be stopped. One that exceeds the limit is abandoned, and runs until the program ends.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use super::error::RunError;
use super::panic;
use crate::world::escape::{self, Sight, Watched};

/// The end of a run's thread, as another thread sees it.
struct End {
    seed: u64,
    limit: Duration,
    watched: Arc<Watched>,
    ended: Receiver<()>,
}

/// The run's own side of [`End`].
struct Watch {
    watched: Arc<Watched>,
    ended: Sender<()>,
}

/// Calls `run` on a fresh thread, and returns its result.
///
/// # Errors
///
/// [`RunError::Hung`] if it takes longer than `limit` in real time.
pub(super) fn call<T: Send + 'static>(
    seed: u64,
    limit: Duration,
    run: impl FnOnce(&Watched) -> T + Send + 'static,
) -> Result<T, RunError> {
    let (watch, end) = begin(seed, limit);
    let thread = named().spawn(move || watch.over(run))?;
    end.wait()?;
    Ok(thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)))
}

/// Calls `run` as [`call`] does, but lets it borrow from its caller. The caller can't continue without it, so
/// a run that exceeds the limit ends the program, with its error on stderr.
pub(super) fn call_borrowing<T: Send>(
    seed: u64,
    limit: Duration,
    run: impl FnOnce(&Watched) -> T + Send,
) -> Result<T, RunError> {
    std::thread::scope(|scope| {
        let (watch, end) = begin(seed, limit);
        let thread = named().spawn_scoped(scope, move || watch.over(run))?;
        if let Err(error) = end.wait() {
            let _ = writeln!(std::io::stderr(), "{error}");
            std::process::exit(101);
        }
        Ok(thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)))
    })
}

/// The stack of a run, in bytes: as large as that of a main thread on Linux. Futures that are compiled
/// without optimisation take more than the 2 MiB of other threads.
const STACK: usize = 8 << 20;

fn named() -> Builder {
    Builder::new().name("run".to_owned()).stack_size(STACK)
}

fn begin(seed: u64, limit: Duration) -> (Watch, End) {
    let (sender, ended) = channel();
    let watched = Arc::new(Watched::default());
    (Watch { watched: Arc::clone(&watched), ended: sender }, End { seed, limit, watched, ended })
}

impl Watch {
    /// Calls `run` on this thread.
    fn over<T>(self, run: impl FnOnce(&Watched) -> T) -> T {
        escape::watch(&self.watched);
        #[cfg(target_os = "linux")]
        crate::world::interrupt::begin(&self.watched);
        let result = run(&self.watched);
        // A panic drops it, too.
        drop(self.ended);
        result
    }
}

impl End {
    fn wait(&self) -> Result<(), RunError> {
        match self.ended.recv_timeout(self.limit) {
            Err(RecvTimeoutError::Timeout) => Err(self.hung()),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    fn hung(&self) -> RunError {
        let (seed, limit) = (self.seed, self.limit);
        // The code retries for ever after each refused call.
        if let Some(escape) = self.watched.first() {
            return panic::escaped(seed, String::new(), escape);
        }
        let sight = look(&self.watched).unwrap_or_default();
        let process = sight.process.map_or("code outside all processes".to_owned(), panic::of_process);
        RunError::Hung { seed, limit, process, location: panic::place(sight.location) }
    }
}

#[cfg(target_os = "linux")]
fn look(watched: &Watched) -> Option<Sight> {
    crate::world::interrupt::look(watched)
}

#[cfg(not(target_os = "linux"))]
fn look(_: &Watched) -> Option<Sight> {
    None
}
