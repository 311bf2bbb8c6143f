//! A process as code sees it that runs on another runtime's interface, such as tokio's: `sim_host::Process`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sim_host::{BoxFuture, BoxSleep};
use tokio::io::ReadBuf;

use super::escape::{self, Outside};
use super::guest_files::GuestFiles;
use super::process::ProcessId;
use super::runtime::SimSleep;
use super::signals::{self, Listening};
use super::stream::{Listener, SimStream};
use super::{World, blocking, current};

/// The ports that a process gets if it asks for any free one.
const FREE_PORTS: std::ops::Range<u16> = 20_000..30_000;

/// One life of a process.
#[derive(Clone)]
struct Guest {
    world: World,
    id: ProcessId,
    life: u32,
}

/// One end of a connection.
struct GuestStream {
    stream: SimStream,
    local: SocketAddr,
    peer: SocketAddr,
}

/// A listening socket.
struct GuestListener {
    guest: Guest,
    listener: Listener,
    local: SocketAddr,
}

/// Returns the process whose task is polled on this thread.
pub(crate) fn current() -> Option<Arc<dyn sim_host::Process>> {
    let (world, number) = current::process()?;
    let id = ProcessId(number);
    let life = world.process(id).life();
    world.process(id).activity().stop_whole();
    Some(Arc::new(Guest { world, id, life }))
}

impl Guest {
    fn lives(&self) -> bool {
        !self.world.is_over() && self.world.process(self.id).lives(self.life)
    }

    /// Fails if the process is dead.
    fn check(&self) -> io::Result<()> {
        let is_alive = self.lives();
        is_alive
            .then_some(())
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "the process is dead"))
    }

    /// Fails if the process is dead, or while it is paused.
    fn check_running(&self, waker: Option<&Waker>) -> io::Result<()> {
        self.check()?;
        done(self.world.process(self.id).poll_running(waker).map(Ok))
    }

    /// Returns its name. Fails if the address is another host's.
    fn own(&self, address: SocketAddr) -> io::Result<&str> {
        let name = self.world.process(self.id).name();
        if self.world.host_at(self.id, address.ip()).is_some_and(|host| host == name) {
            return Ok(name);
        }
        let problem = format!("{} is not an address of {name}", address.ip());
        Err(io::Error::new(io::ErrorKind::AddrNotAvailable, problem))
    }

    fn port(&self, address: SocketAddr) -> io::Result<u16> {
        if address.port() > 0 {
            return Ok(address.port());
        }
        let name = self.world.process(self.id).name();
        let network = self.world.network();
        let is_free = |port: &u16| !network.listeners.contains_key(&format!("{name}:{port}"));
        FREE_PORTS.clone().find(is_free).ok_or_else(|| io::ErrorKind::AddrInUse.into())
    }
}

impl sim_host::Process for Guest {
    fn name(&self) -> String {
        self.world.process(self.id).name().to_owned()
    }

    fn now(&self) -> u64 {
        self.world.process(self.id).monotonic(self.world.now())
    }

    fn sleep_until(&self, nanos: u64) -> BoxSleep {
        Box::pin(SimSleep::new(&self.world, self.id, nanos))
    }

    fn spawn(&self, task: BoxFuture<()>) {
        if self.lives() {
            self.world.spawn(self.id, task);
        }
    }

    fn blocking(&self, f: Box<dyn FnOnce() + Send>) -> BoxFuture<()> {
        Box::pin(blocking::call(f))
    }

    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) -> io::Result<()> {
        blocking::block_on(blocking::Caller::Rust, poll)
    }

    fn random(&self) -> u64 {
        let (world, life) = (&self.world, self.life);
        world.process(self.id).dice().draw(world, life, world.process(self.id).name())
    }

    fn look_up(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        let (guest, host) = (self.clone(), host.to_owned());
        Box::pin(async move {
            guest.check()?;
            Ok(vec![guest.world.look_up_for(guest.id, &host).await?])
        })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<io::Result<Arc<dyn sim_host::Stream>>> {
        let guest = self.clone();
        Box::pin(async move {
            guest.check()?;
            let (world, id) = (&guest.world, guest.id);
            let host = world.host_at(id, address.ip()).ok_or_else(|| {
                let problem = format!("the world has no host at {}", address.ip());
                io::Error::new(io::ErrorKind::HostUnreachable, problem)
            })?;
            let stream = world.connect(id, &format!("{host}:{}", address.port())).await?;
            let local = world.opener_of(id, stream.connection());
            let stream: Arc<dyn sim_host::Stream> = Arc::new(GuestStream { stream, local, peer: address });
            Ok(stream)
        })
    }

    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn sim_host::Listener>> {
        self.check()?;
        let name = self.own(address)?;
        let port = self.port(address)?;
        let listener = self.world.listen(self.id, &format!("{name}:{port}"))?;
        let local = SocketAddr::new(address.ip(), port);
        Ok(Box::new(GuestListener { guest: self.clone(), listener, local }))
    }

    fn bind_datagrams(&self, address: SocketAddr) -> io::Result<Box<dyn sim_host::Datagrams>> {
        self.check()?;
        self.own(address)?;
        Ok(Box::new(self.world.bind_datagrams(self.id, address)?))
    }

    fn files(&self) -> Arc<dyn sim_host::Files> {
        Arc::new(GuestFiles::new(&self.world, self.id, self.lives()))
    }

    fn signals(&self, number: i32) -> Box<dyn sim_host::Signals> {
        if !self.lives() {
            // Nobody sends a signal to the dead.
            return Box::new(Listening::default().listen(number));
        }
        let listener = self.world.process(self.id).listening().listen(number);
        if let Some(point) = signals::point(number) {
            tracing::info!(target: "worker", event = "point_passed", step = point);
        }
        Box::new(listener)
    }

    fn refuse(&self, what: &'static str, instead: &'static str) -> io::Error {
        escape::is_refused(Outside::Unsupported { instead }, what);
        io::Error::new(io::ErrorKind::Unsupported, format!("{what} is not simulated: {instead}"))
    }
}

impl sim_host::Stream for GuestStream {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn read(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buf = ReadBuf::new(bytes);
        done(self.stream.receive(waker, &mut buf))?;
        Ok(buf.filled().len())
    }

    fn peek(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buf = ReadBuf::new(bytes);
        done(self.stream.peek(waker, &mut buf))?;
        Ok(buf.filled().len())
    }

    fn write(&self, waker: Option<&Waker>, bytes: &[u8]) -> io::Result<usize> {
        done(self.stream.send(waker, bytes))
    }

    fn writable(&self, waker: Option<&Waker>) -> io::Result<()> {
        // A connection takes any number of bytes.
        done(self.stream.poll_alive(waker))
    }

    fn shut_down(&self, waker: Option<&Waker>) -> io::Result<()> {
        done(self.stream.shut_down(waker))
    }
}

impl sim_host::Listener for GuestListener {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn accept(&self, waker: Option<&Waker>) -> io::Result<Arc<dyn sim_host::Stream>> {
        self.guest.check_running(waker)?;
        let stream = done(self.listener.poll_accept(waker).map(Ok))?;
        let world = &self.guest.world;
        let peer = world.opener_of(stream.peer(), stream.connection());
        let ip =
            if self.local.ip().is_unspecified() { world.address_of(self.guest.id) } else { self.local.ip() };
        let local = SocketAddr::new(ip, self.local.port());
        Ok(Arc::new(GuestStream { stream, local, peer }))
    }
}

/// Returns the result of a call that may have to wait.
fn done<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
    match polled {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
