//! futures-timer's interface on the clocks of a simulated process. The real one has a thread of its own,
//! which would wake the process by the real machine's clock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use sim_host::BoxSleep;

/// A future that completes after a time.
pub struct Delay {
    state: State,
}

enum State {
    /// The clock starts when the delay is made. Outside of every process there is none: the first poll tells.
    Outside,
    Set(BoxSleep),
    Elapsed,
}

impl Delay {
    /// Returns a delay that completes `dur` from now.
    pub fn new(dur: Duration) -> Self {
        Self { state: State::after(dur) }
    }

    /// Makes the delay complete `dur` from now.
    pub fn reset(&mut self, dur: Duration) {
        self.state = State::after(dur);
    }
}

impl State {
    fn after(duration: Duration) -> Self {
        let Some(process) = sim_host::process() else { return Self::Outside };
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self::Set(process.sleep_until(process.now().saturating_add(nanos)))
    }
}

impl Future for Delay {
    type Output = ();

    /// # Panics
    ///
    /// If the delay was made outside of every simulated process.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.state {
            State::Outside => panic!(
                "a timer was made outside of a simulated process: this program was built by `cargo sim`, and \
                 its timers work in the processes of a simulated world only"
            ),
            State::Set(sleep) => std::task::ready!(sleep.as_mut().poll(cx)),
            State::Elapsed => {}
        }
        self.state = State::Elapsed;
        Poll::Ready(())
    }
}

impl fmt::Debug for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delay").finish()
    }
}
