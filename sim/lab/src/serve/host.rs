//! This machine: its clocks, network and scheduler.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a live server for live clients: it has the machine's own clock, network and scheduler"
)]

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::{Either, select};
use sim::Span;
use sim::servers::host::Host;
use sim::world::disk::Disk;
use sim::world::lock;
use sim::world::machine::{Accept, Machine};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::sync::oneshot;

use super::metrics::{self, Counted, Counters};
use super::{Ports, ServeError};

/// This machine, with one port to listen on. Its disk is in memory, and ends with the process.
#[derive(Clone)]
pub(super) struct LocalMachine {
    name: &'static str,
    started: Instant,
    disk: Disk,
    /// A listener on the user's port. The port in the server's call of `listen` is ignored.
    listener: Arc<Mutex<Option<TcpListener>>>,
    counters: Arc<Counters>,
}

impl LocalMachine {
    fn new(name: &'static str, listener: TcpListener) -> Self {
        let listener = Arc::new(Mutex::new(Some(listener)));
        Self { name, started: Instant::now(), disk: Disk::new(), listener, counters: Arc::default() }
    }
}

impl dlock_runtime::Probed for LocalMachine {}

impl Machine for LocalMachine {
    type Stream = Counted;
    type Listener = LocalListener;

    fn name(&self) -> &str {
        self.name
    }

    fn monotonic_nanos(&self) -> u64 {
        Span(self.started.elapsed()).as_nanos()
    }

    fn wall_micros(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
    }

    async fn sleep_until(&self, nanos: u64) {
        tokio::time::sleep(Duration::from_nanos(nanos.saturating_sub(self.monotonic_nanos()))).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }

    fn is_running(&self) -> bool {
        true
    }

    fn reaches(&self, _: &str) -> bool {
        true
    }

    fn disk(&self) -> Disk {
        self.disk.clone()
    }

    fn listen(&self, _: u16) -> io::Result<LocalListener> {
        let listener = lock(&self.listener).take().ok_or(io::ErrorKind::AddrInUse)?;
        Ok(LocalListener { listener, counters: Arc::clone(&self.counters) })
    }

    async fn connect(&self, address: &str) -> io::Result<Counted> {
        Ok(Counted::new(TcpStream::connect(address).await?, &self.counters))
    }

    fn take_name(&self, _: &str) {}

    fn point(&self, _: &str) {}
}

/// A listener on a port of this machine.
pub(super) struct LocalListener {
    listener: TcpListener,
    counters: Arc<Counters>,
}

impl Accept for LocalListener {
    type Stream = Counted;

    async fn accept(&mut self) -> (Counted, String) {
        loop {
            // Accepting fails if a connection broke before, or if the machine has no free sockets.
            let Ok((stream, peer)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            // Without TCP_NODELAY, small replies wait for one another. A failure costs only time.
            let _ = stream.set_nodelay(true);
            return (Counted::new(stream, &self.counters), peer.to_string());
        }
    }
}

/// A simulated server that listens on a port of this machine, in a thread of its own. Dropping it ends the
/// server and its connections.
#[derive(Debug)]
pub struct Hosting {
    address: SocketAddr,
    metrics: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Hosting {
    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address that serves its `/metrics`.
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics
    }
}

impl Drop for Hosting {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread panics only if the server did, which its clients have noticed.
            let _ = thread.join();
        }
    }
}

/// A simulated server to serve: its name for people, and the function that makes it with its address.
pub(super) struct Served<F> {
    pub(super) name: &'static str,
    /// The name of its machine.
    pub(super) machine: &'static str,
    pub(super) make: F,
}

/// Serves on `127.0.0.1` until the process is stopped, and prints the address once it listens.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub(super) fn serve<H: Host<LocalMachine>>(
    ports: Ports,
    served: Served<impl FnOnce(SocketAddr) -> H>,
) -> Result<(), ServeError> {
    let (runtime, listener, address) = listen(ports.port)?;
    let machine = LocalMachine::new(served.machine, listener);
    if let Some(port) = ports.metrics {
        eprintln!("metrics on http://{}/metrics", serve_metrics(&runtime, port, &machine)?);
    }
    println!("simulated {} listens on {address}; Ctrl-C stops it", served.name);
    runtime.block_on(async move { (served.make)(address).start(machine).await });
    Ok(())
}

/// Serves on any free port of 127.0.0.1 until the returned value is dropped.
///
/// # Errors
///
/// [`ServeError`] if the server can't start.
pub(super) fn host<H: Host<LocalMachine>>(
    served: Served<impl FnOnce(SocketAddr) -> H>,
) -> Result<Hosting, ServeError> {
    let (runtime, listener, address) = listen(0)?;
    let machine = LocalMachine::new(served.machine, listener);
    let metrics = serve_metrics(&runtime, 0, &machine)?;
    let host = (served.make)(address);
    let (stop, stopped) = oneshot::channel();
    let serve = move || {
        runtime.block_on(async {
            // Dropping the sender stops the server.
            let (Either::Left(_) | Either::Right(_)) = select(host.start(machine), stopped).await;
        });
    };
    let thread = thread::Builder::new().name(format!("simulated {}", served.name)).spawn(serve)?;
    Ok(Hosting { address, metrics, stop: Some(stop), thread: Some(thread) })
}

fn listen(port: u16) -> Result<(Runtime, TcpListener, SocketAddr), ServeError> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let (listener, address) = bind(&runtime, port)?;
    Ok((runtime, listener, address))
}

/// Serves the metrics of `machine` on `127.0.0.1:port`, for as long as `runtime` runs; returns the address.
fn serve_metrics(runtime: &Runtime, port: u16, machine: &LocalMachine) -> Result<SocketAddr, ServeError> {
    let (listener, address) = bind(runtime, port)?;
    runtime.spawn(metrics::serve(listener, machine.name, Arc::clone(&machine.counters)));
    Ok(address)
}

fn bind(runtime: &Runtime, port: u16) -> Result<(TcpListener, SocketAddr), ServeError> {
    let error = |source| ServeError::Listen { port, source };
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", port))).map_err(error)?;
    let address = listener.local_addr().map_err(error)?;
    Ok((listener, address))
}
