//! TLS over the streams of any runtime, by rustls.
//!
//! [`Tls`] is a runtime whose connections are encrypted; its clock, scheduler and entropy are those of the
//! runtime below. The server's side is [`TlsAcceptor`]. Neither opens a socket or a file, except to read the
//! roots of the system, so that a simulated process runs both.
//!
//! Whether a certificate has expired is judged by `std::time`: the wall clock of the machine.

mod acceptor;
mod options;
mod reason;
mod stream;

use std::future::Future;
use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

pub use self::acceptor::{TlsAcceptor, TlsServerOptions};
pub use self::options::{Identity, TlsError, TlsOptions};
pub use self::stream::TlsStream;
use crate::{Instant, Probe, Runtime};

/// A runtime whose connections are all over TLS: it connects as `R` does, and then shakes hands.
///
/// # Example
///
/// ```
/// use dlock_runtime::tls::{Tls, TlsConnector, TlsOptions};
/// # fn secured<R: dlock_runtime::Runtime>(runtime: R, pem: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let mut options = TlsOptions::default();
/// options.roots = Some(pem.to_owned());
/// let runtime = Tls::new(runtime, TlsConnector::new(&options)?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Tls<R> {
    inner: R,
    connector: TlsConnector,
}

/// A checked [`TlsOptions`]: opens the client's side of TLS connections. Clones share it, and the sessions
/// that it resumes.
#[derive(Clone)]
pub struct TlsConnector {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

impl<R> Tls<R> {
    /// Adds TLS to the connections of `inner`.
    pub fn new(inner: R, connector: TlsConnector) -> Self {
        Self { inner, connector }
    }

    /// Returns the runtime below.
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

impl TlsConnector {
    /// Reads the certificates and the key of `options`.
    ///
    /// # Errors
    ///
    /// [`TlsError`] names the part of `options` that can't be used.
    pub fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let server_name = options.name()?;
        Ok(Self { config: Arc::new(options.config()?), server_name })
    }

    /// Offers an application protocol (ALPN), such as `h2`, which a server of HTTP/2 demands.
    #[must_use]
    pub fn with_protocol(self, protocol: &str) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Self { config: Arc::new(config), ..self }
    }

    /// Shakes hands on `stream`, which leads to `address`, written `host:port`. The certificate must be for
    /// the host, or for the name that the options give.
    ///
    /// # Errors
    ///
    /// If the server's certificate is refused, or the server refuses the client: the text says why. TLS 1.3
    /// servers refuse a client's certificate after the handshake only, at the first read.
    pub async fn connect<S>(&self, stream: S, address: &str) -> io::Result<TlsStream<S>>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        let name = match &self.server_name {
            Some(name) => name.clone(),
            None => options::server_name(host_of(address)).map_err(io::Error::other)?,
        };
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&self.config));
        let shaken = connector.connect(name, stream).await;
        shaken.map(|stream| TlsStream::client(stream)).map_err(reason::of_handshake)
    }
}

/// Returns the host of `host:port`, without the brackets of IPv6.
fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

impl<R: Runtime> Runtime for Tls<R> {
    type Stream = TlsStream<R::Stream>;

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send {
        self.inner.sleep_until(deadline)
    }

    async fn connect(&self, address: &str) -> io::Result<Self::Stream> {
        let stream = self.inner.connect(address).await?;
        self.connector.connect(stream, address).await
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.inner.spawn(task);
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.inner.fill_random(bytes);
    }

    #[inline(always)]
    fn probe(&self, probe: &'static Probe, line: u32, seen: impl FnOnce() -> u64) {
        self.inner.probe(probe, line, seen);
    }
}

impl std::fmt::Debug for TlsConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsConnector").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}
