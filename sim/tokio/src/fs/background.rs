//! Work beside its caller, as on tokio's pool of threads for blocking calls.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use real_tokio::sync::oneshot;
use sim_host::{Files, Process};

use crate::host;

/// Work in the background. It goes on if this is dropped.
#[derive(Debug)]
pub(super) struct Work<T>(oneshot::Receiver<T>);

impl<T> Future for Work<T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let done = ready!(Pin::new(&mut self.0).poll(cx));
        // The sender is gone if the process is dead.
        Poll::Ready(done.map_err(|_| io::Error::other("background task failed")))
    }
}

/// The machine of the process, for work of several calls.
pub(super) struct Machine(Arc<dyn Process>);

impl Machine {
    /// Makes one call, after a turn in which other tasks may run.
    pub(super) async fn call<T>(&self, call: impl FnOnce(&dyn Files) -> io::Result<T>) -> io::Result<T> {
        let mut has_yielded = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        // A pause stops the process here.
        self.0.sleep_until(self.0.now()).await;
        call(&*self.0.files())
    }
}

/// Starts `work` in the process of the caller.
pub(super) fn start<T, F>(work: impl FnOnce(Machine) -> F) -> Work<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let process = host::process();
    let (sender, receiver) = oneshot::channel();
    let work = work(Machine(Arc::clone(&process)));
    process.spawn(Box::pin(async move {
        // The caller may have dropped its future.
        let _ = sender.send(work.await);
    }));
    Work(receiver)
}

/// Does `work` in the background.
pub(super) async fn run<T, F>(work: impl FnOnce(Machine) -> F) -> io::Result<T>
where
    T: Send + 'static,
    F: Future<Output = io::Result<T>> + Send + 'static,
{
    start(work).await?
}

/// Makes one call in the background.
pub(super) async fn call<T: Send + 'static>(
    call: impl FnOnce(&dyn Files) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    run(|machine| async move { machine.call(call).await }).await
}
