//! A small world for the client: a clock that jumps when no task can run, and connections that fail as
//! planned.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dlock::{Instant, Runtime};
use resource::http::{App, serve_connection};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::runtime::{Builder, Handle};

/// The fault of a connection. Connections beyond the planned ones are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Good,
    /// It can't be opened.
    Refused,
    /// It fails as soon as it is open, before a request is sent.
    FailsAtOnce,
    /// Opening it takes for ever.
    Hangs,
    /// The service receives every request; its replies are lost.
    LosesReplies,
    /// The service receives the request, and the connection is reset before its reply.
    ResetsBeforeReply,
    /// The service answers one request and closes the connection at once.
    ClosesAfterReply,
}

/// A process of the world.
#[derive(Clone)]
pub(crate) struct World(Arc<Mutex<State>>);

struct State {
    app: App,
    now: Instant,
    sleepers: BTreeMap<(Instant, u64), Waker>,
    sleeps: u64,
    links: VecDeque<Link>,
    opened: usize,
    closed: usize,
    /// Set when the client's open connections have ended.
    ended: Arc<AtomicBool>,
}

/// Runs `test` in a world where `app` serves and the first connections are `links`.
pub(crate) fn run<F: Future<Output = ()>>(app: &App, links: &[Link], test: impl FnOnce(World) -> F) {
    let state = State {
        app: app.clone(),
        now: Instant::from_nanos(0),
        sleepers: BTreeMap::new(),
        sleeps: 0,
        links: links.iter().copied().collect(),
        opened: 0,
        closed: 0,
        ended: Arc::default(),
    };
    let world = World(Arc::new(Mutex::new(state)));
    let idle = world.clone();
    let executor = Builder::new_current_thread().on_thread_park(move || idle.jump()).build().unwrap();
    executor.block_on(test(world));
}

impl World {
    /// Returns the time `seconds` after the world began.
    pub(crate) fn at(seconds: u64) -> Instant {
        Instant::from_nanos(0) + Duration::from_secs(seconds)
    }

    /// Returns the number of connections opened so far.
    pub(crate) fn opened(&self) -> usize {
        self.state().opened
    }

    /// Returns the number of connections whose end the service has seen.
    pub(crate) fn closed(&self) -> usize {
        self.state().closed
    }

    /// Replaces the service: new connections lead to `app`.
    pub(crate) fn deploy(&self, app: &App) {
        self.state().app = app.clone();
    }

    /// Moves the clock, as a pause of the process does.
    pub(crate) fn pause(&self, time: Duration) {
        let mut state = self.state();
        state.now = state.now + time;
    }

    /// Ends the open connections, which the client has yet to notice.
    pub(crate) fn end_connections(&self) {
        let mut state = self.state();
        std::mem::take(&mut state.ended).store(true, Ordering::Relaxed);
    }

    /// Moves the clock to the next sleeper's deadline and wakes it, since no task can run before.
    fn jump(&self) {
        let mut state = self.state();
        if let Some(((deadline, _), waker)) = state.sleepers.pop_first() {
            state.now = state.now.max(deadline);
            drop(state);
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn serve(&self, app: &App, link: Link) -> Stream {
        let (near, far) = duplex(64 * 1024);
        let connection =
            serve_connection(Stream { inner: far, link, wrote: false, ended: Arc::default() }, app);
        let world = self.clone();
        self.spawn(async move {
            let _ = connection.await;
            world.state().closed += 1;
        });
        Stream { inner: near, link: Link::Good, wrote: false, ended: self.state().ended.clone() }
    }
}

impl Runtime for World {
    type Stream = Stream;

    fn now(&self) -> Instant {
        self.state().now
    }

    async fn sleep_until(&self, deadline: Instant) {
        let number = {
            let mut state = self.state();
            state.sleeps += 1;
            state.sleeps
        };
        let _guard = Sleeper { world: self, key: (deadline, number) };
        poll_fn(|cx| {
            let mut state = self.state();
            if state.now >= deadline {
                return Poll::Ready(());
            }
            state.sleepers.insert((deadline, number), cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    async fn connect(&self, _address: &str) -> io::Result<Stream> {
        let (app, link) = {
            let mut state = self.state();
            state.opened += 1;
            (state.app.clone(), state.links.pop_front().unwrap_or(Link::Good))
        };
        match link {
            Link::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
            Link::Hangs => std::future::pending().await,
            Link::FailsAtOnce => {
                let (near, _) = duplex(1);
                Ok(Stream { inner: near, link, wrote: false, ended: Arc::default() })
            }
            _ => Ok(self.serve(&app, link)),
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // It begins at once, as it may on another thread.
        let mut task = Box::pin(task);
        if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            Handle::current().spawn(task);
        }
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// Removes a dropped sleep from the sleepers.
struct Sleeper<'a> {
    world: &'a World,
    key: (Instant, u64),
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.world.state().sleepers.remove(&self.key);
    }
}

/// One end of a connection; the service's end fails as the link says.
pub(crate) struct Stream {
    inner: DuplexStream,
    link: Link,
    wrote: bool,
    ended: Arc<AtomicBool>,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.link == Link::FailsAtOnce {
            return Poll::Ready(Err(io::Error::other("the certificate is refused")));
        }
        if self.ended.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.wrote = true;
        match self.link {
            Link::LosesReplies => Poll::Ready(Ok(bytes.len())),
            Link::ResetsBeforeReply => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            _ => Pin::new(&mut self.inner).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.link == Link::ClosesAfterReply && self.wrote {
            return Pin::new(&mut self.inner).poll_shutdown(cx);
        }
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
