//! Simulated servers over TLS: the handshake is a real one, of rustls, over the simulated network and by the
//! wall clocks of both machines.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use dlock_runtime::tls::{TlsAcceptor, TlsConnector, TlsError, TlsOptions, TlsServerOptions, TlsStream};
use dlock_runtime::{Probe, Probed};
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::host::{Acted, Action, ActionError, Host};
use crate::world::disk::Disk;
use crate::world::machine::{Accept, Machine, WorldMachine};

/// The requests of PostgreSQL's clients for encryption, in clear text: for TLS, and for GSSAPI.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
const GSS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30];

/// A simulated server all of whose ports speak TLS.
///
/// A client of PostgreSQL asks for TLS first, as `sslmode=require` makes it do. One that does not ask is
/// disconnected.
///
/// # Example
///
/// ```
/// use dlock::tls::{TlsError, TlsOptions, TlsServerOptions};
/// use sim::Sim;
/// use sim::servers::redis::RedisHost;
/// use sim::servers::tls::Secured;
///
/// fn build(sim: &mut Sim, server: TlsServerOptions, roots: String) -> Result<(), TlsError> {
///     let mut client = TlsOptions::default();
///     client.roots = Some(roots);
///     sim.host("redis", Secured::new(RedisHost::new(), server, client)?);
///     Ok(())
/// }
/// ```
pub struct Secured<H> {
    host: H,
    server: TlsServerOptions,
    client: TlsOptions,
}

/// A machine whose connections are all over TLS.
#[doc(hidden)]
#[derive(Clone)]
pub struct TlsMachine<M> {
    machine: M,
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

/// A listening port over TLS.
#[doc(hidden)]
pub struct TlsListener<L> {
    listener: L,
    acceptor: TlsAcceptor,
    /// Clients ask for TLS before the handshake.
    is_asked: bool,
}

/// A connection that shakes hands when it is first used: a client that stays silent holds up nobody else.
#[doc(hidden)]
pub enum Shaking<S> {
    /// The handshake has not ended.
    Begun(BoxFuture<'static, io::Result<TlsStream<S>>>),
    /// It is over.
    Done(Box<TlsStream<S>>),
    /// It has failed.
    Failed,
}

impl<H> Secured<H> {
    /// Runs `host` over TLS: it accepts as `server` says, and connects to its peers as `client` says.
    ///
    /// # Errors
    ///
    /// [`TlsError`] names the options that can't be used.
    pub fn new(host: H, server: TlsServerOptions, client: TlsOptions) -> Result<Self, TlsError> {
        TlsAcceptor::new(&server)?;
        TlsConnector::new(&client)?;
        Ok(Self { host, server, client })
    }
}

impl<H: Host<TlsMachine<WorldMachine>>> Host for Secured<H> {
    fn noun(&self) -> &'static str {
        self.host.noun()
    }

    fn greeting(&self) -> Option<&'static str> {
        Some("a handshake of TLS")
    }

    fn start(&self, machine: WorldMachine) -> BoxFuture<'static, ()> {
        // Made in the process: a key draws the secret of its signatures from the world's entropy.
        let made = TlsAcceptor::new(&self.server).and_then(|acceptor| {
            let connector = TlsConnector::new(&self.client)?;
            Ok(TlsMachine { machine, acceptor, connector })
        });
        match made {
            Ok(machine) => self.host.start(machine),
            // Both were checked before.
            Err(_) => Box::pin(std::future::ready(())),
        }
    }

    fn shut_down(&self) {
        self.host.shut_down();
    }

    fn died(&self) {
        self.host.died();
    }

    fn clock_set(&self) {
        self.host.clock_set();
    }

    fn actions(&self) -> &'static [Action] {
        self.host.actions()
    }

    fn offers(&self, action: &str) -> bool {
        self.host.offers(action)
    }

    fn act(&self, action: &str, argument: Option<&str>) -> Result<Acted, ActionError> {
        self.host.act(action, argument)
    }

    fn keeps_on_disk(&self) -> bool {
        self.host.keeps_on_disk()
    }

    fn executed(&self) -> u64 {
        self.host.executed()
    }

    fn close(&self) {
        self.host.close();
    }
}

impl<M: Machine> Machine for TlsMachine<M> {
    type Stream = Shaking<M::Stream>;
    type Listener = TlsListener<M::Listener>;

    fn name(&self) -> &str {
        self.machine.name()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.machine.monotonic_nanos()
    }

    fn wall_micros(&self) -> u64 {
        self.machine.wall_micros()
    }

    fn sleep_until(&self, nanos: u64) -> impl Future<Output = ()> + Send {
        self.machine.sleep_until(nanos)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.machine.spawn(task);
    }

    fn is_running(&self) -> bool {
        self.machine.is_running()
    }

    fn reaches(&self, other: &str) -> bool {
        self.machine.reaches(other)
    }

    fn disk(&self) -> Disk {
        self.machine.disk()
    }

    fn listen(&self, port: u16) -> io::Result<Self::Listener> {
        let listener = self.machine.listen(port)?;
        Ok(TlsListener { listener, acceptor: self.acceptor.clone(), is_asked: is_asked(port) })
    }

    async fn connect(&self, address: &str) -> io::Result<Self::Stream> {
        let stream = self.machine.connect(address).await?;
        self.connector.connect(stream, address).await.map(|stream| Shaking::Done(Box::new(stream)))
    }

    fn take_name(&self, name: &str) {
        self.machine.take_name(name);
    }

    fn point(&self, name: &str) {
        self.machine.point(name);
    }

    fn refused_unknown(&self, command: &str) {
        self.machine.refused_unknown(command);
    }
}

impl<M: Probed> Probed for TlsMachine<M> {
    fn probe(&self, probe: &'static Probe, line: u32, seen: impl FnOnce() -> u64) {
        self.machine.probe(probe, line, seen);
    }
}

impl<L: Accept<Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static>> Accept for TlsListener<L> {
    type Stream = Shaking<L::Stream>;

    async fn accept(&mut self) -> (Self::Stream, String) {
        let (mut stream, client) = self.listener.accept().await;
        let (acceptor, is_asked) = (self.acceptor.clone(), self.is_asked);
        let handshake = async move {
            if is_asked {
                agree(&mut stream).await?;
            }
            acceptor.accept(stream).await
        };
        (Shaking::Begun(Box::pin(handshake)), client)
    }
}

/// Returns true if clients of the port ask for TLS before the handshake: PostgreSQL's do.
#[cfg(feature = "postgres")]
fn is_asked(port: u16) -> bool {
    port == super::postgres::PORT
}

#[cfg(not(feature = "postgres"))]
fn is_asked(_port: u16) -> bool {
    false
}

/// Reads a client's request for TLS, and agrees. A client may ask for encryption by GSSAPI first.
///
/// # Errors
///
/// If the client leaves, or does not ask.
async fn agree<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<()> {
    loop {
        let mut request = [0; 8];
        stream.read_exact(&mut request).await?;
        let is_tls = request == TLS_REQUEST;
        if !is_tls && request != GSS_REQUEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the client does not ask for TLS"));
        }
        stream.write_all(if is_tls { b"S" } else { b"N" }).await?;
        stream.flush().await?;
        if is_tls {
            return Ok(());
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Shaking<S> {
    /// Returns the connection once the handshake is over. Its error is returned once.
    fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<&mut TlsStream<S>>> {
        if let Self::Begun(handshake) = self {
            *self = match ready!(handshake.as_mut().poll(cx)) {
                Ok(stream) => Self::Done(Box::new(stream)),
                Err(error) => {
                    *self = Self::Failed;
                    return Poll::Ready(Err(error));
                }
            };
        }
        Poll::Ready(match self {
            Self::Done(stream) => Ok(stream),
            Self::Begun(_) | Self::Failed => Err(io::ErrorKind::NotConnected.into()),
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Shaking<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(ready!(self.poll_done(cx))?).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Shaking<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(ready!(self.poll_done(cx))?).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Done(stream) => Pin::new(&mut **stream).poll_flush(cx),
            Self::Begun(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Done(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
            Self::Begun(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }
}
