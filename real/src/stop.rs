//! Ctrl-C and SIGTERM: a request to stop, which ends every wait of a command.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a command on live processes waits in real time"
)]

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The exit code after a signal: 128 plus the number of SIGINT, as shells report it. SIGTERM gives the same.
pub const EXIT_CODE: u8 = 130;

/// The longest time between two looks of a thread that blocks.
const LOOK: Duration = Duration::from_millis(10);

/// A request to stop, made at most once. Clones share it. The default is made by nobody.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Returns the request that the first Ctrl-C or SIGTERM makes. A second one ends the process at once,
    /// with [`EXIT_CODE`].
    ///
    /// A thread of its own waits for the signals, so that they arrive while all others are busy.
    ///
    /// # Errors
    ///
    /// If the thread can't be started, or the system refuses the handlers.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::default();
        let executor = Builder::new_current_thread().enable_io().build()?;
        let signals = {
            let _entered = executor.enter();
            [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]
        };
        let asked = stop.clone();
        let obey = move || executor.block_on(asked.obey(signals));
        thread::Builder::new().name("signals".to_owned()).spawn(obey)?;
        Ok(stop)
    }

    async fn obey(self, mut signals: [Signal; 2]) {
        next(&mut signals).await;
        self.ask();
        next(&mut signals).await;
        std::process::exit(EXIT_CODE.into());
    }

    /// Makes the request.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }

    /// Returns whether it was made.
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Completes once it is made.
    pub async fn asked(&self) {
        // The sender lives as long as `self`, so that this can't fail.
        let _ = self.0.subscribe().wait_for(|asked| *asked).await;
    }

    /// Runs `future` to its end. Drops it and returns `None` if the request is made before.
    pub async fn or<F: Future>(&self, future: F) -> Option<F::Output> {
        match select(pin!(future), pin!(self.asked())).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }

    /// Blocks this thread for `time`, or until the request is made; returns whether it was.
    pub fn block(&self, time: Duration) -> bool {
        let begun = Instant::now();
        while !self.is_asked() {
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return false;
            }
            thread::sleep(left.min(LOOK));
        }
        true
    }
}

async fn next([one, other]: &mut [Signal; 2]) {
    select(pin!(one.recv()), pin!(other.recv())).await;
}
