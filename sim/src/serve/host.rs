//! This machine: its clocks, its network, its scheduler.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a live server for live clients: it has the machine's own clock, network and scheduler"
)]

use std::future::Future;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::{Either, select};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::sync::oneshot;

use super::ServeError;

/// The real world, since the server started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    started: Instant,
}

impl Host {
    /// Nanoseconds since the server started.
    pub(super) fn monotonic_nanos(self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Microseconds since the Unix epoch.
    pub(super) fn wall_micros(self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
    }

    pub(super) async fn sleep(self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    pub(super) fn spawn(self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }
}

/// A simulated server that a host can serve.
pub(super) trait Hosted: Sized + 'static {
    /// What people are told that it is.
    const NAME: &'static str;

    /// How it can be set up.
    type Options: Send + 'static;

    /// Starts it, with what it does by itself in the background.
    fn start(host: Host, address: SocketAddr, options: Self::Options) -> Self;

    /// Serves one connection.
    fn serve(&self, stream: TcpStream, peer: String) -> impl Future<Output = ()> + Send + 'static;
}

/// A simulated server that listens on a port of this machine, in a thread of its own. Dropped, it is gone, and its
/// connections with it.
#[derive(Debug)]
pub struct Hosting {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Hosting {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Hosting {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It panics only with the server, which its clients have noticed.
            let _ = thread.join();
        }
    }
}

/// Serves an `S` on `127.0.0.1:port` until the process is stopped, and prints the address once it listens.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub(super) fn serve<S: Hosted>(port: u16, options: S::Options) -> Result<(), ServeError> {
    let (runtime, listener, address) = listen(port)?;
    println!("simulated {} listens on {address}; Ctrl-C stops it", S::NAME);
    runtime.block_on(accept::<S>(listener, address, options));
    Ok(())
}

/// Serves an `S` on any free port of 127.0.0.1 until the answer is dropped.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub(super) fn host<S: Hosted>(options: S::Options) -> Result<Hosting, ServeError> {
    let (runtime, listener, address) = listen(0)?;
    let (stop, stopped) = oneshot::channel();
    let serve = move || {
        runtime.block_on(async {
            let accept = std::pin::pin!(accept::<S>(listener, address, options));
            // Whoever holds the other end drops it: that is the order to stop.
            let (Either::Left(_) | Either::Right(_)) = select(accept, stopped).await;
        });
    };
    let thread = thread::Builder::new().name(format!("simulated {}", S::NAME)).spawn(serve)?;
    Ok(Hosting { address, stop: Some(stop), thread: Some(thread) })
}

fn listen(port: u16) -> Result<(Runtime, TcpListener, SocketAddr), ServeError> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let error = |source| ServeError::Listen { port, source };
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", port))).map_err(error)?;
    let address = listener.local_addr().map_err(error)?;
    Ok((runtime, listener, address))
}

/// Starts the server, and serves all who connect to it.
async fn accept<S: Hosted>(listener: TcpListener, address: SocketAddr, options: S::Options) {
    let host = Host { started: Instant::now() };
    let server = S::start(host, address, options);
    loop {
        // A connection that broke before it was accepted, or a passing shortage of sockets.
        let Ok((stream, peer)) = listener.accept().await else {
            host.sleep(Duration::from_millis(10)).await;
            continue;
        };
        // Without it, small replies wait for one another; a failure costs time only.
        let _ = stream.set_nodelay(true);
        host.spawn(server.serve(stream, peer.to_string()));
    }
}
