//! A future with a deadline.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use real_tokio::time::Instant;

use super::error::Elapsed;
use super::sleep::{Sleep, after, sleep_until};

pin_project! {
    /// A future that fails if its deadline passes first.
    #[derive(Debug)]
    pub struct Timeout<T> {
        #[pin]
        value: T,
        #[pin]
        delay: Sleep,
    }
}

/// Waits for `future`, for `duration` at most.
#[track_caller]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    timeout_at(after(duration), future)
}

/// Waits for `future`, until `deadline` at most.
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout { value: future.into_future(), delay: sleep_until(deadline) }
}

impl<T> Timeout<T> {
    /// Returns the future.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// Returns the future.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Returns the future.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T: Future> Future for Timeout<T> {
    type Output = Result<T::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // A result that is ready wins over a deadline that has passed.
        if let Poll::Ready(value) = this.value.poll(cx) {
            return Poll::Ready(Ok(value));
        }
        this.delay.poll(cx).map(|()| Err(Elapsed(())))
    }
}
