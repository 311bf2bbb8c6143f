//! The server's side of TLS.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncWrite};

use super::options::{Identity, TlsError, identity_error, own_roots, provider};
use super::{TlsStream, reason};

/// The options of a TLS server. Begin with [`TlsServerOptions::new`] and change what must differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsServerOptions {
    /// The certificate of the server.
    pub identity: Identity,
    /// The issuers whose clients may connect, as PEM. By default no certificate is asked for.
    pub client_roots: Option<String>,
    /// The application protocols (ALPN) to agree on, the preferred one first: `h2`, `http/1.1`. By default
    /// none.
    pub protocols: Vec<String>,
}

/// A checked [`TlsServerOptions`]: accepts TLS connections. Clones share it.
#[derive(Clone)]
pub struct TlsAcceptor(Arc<ServerConfig>);

impl TlsServerOptions {
    /// Returns the usual options of a server with this certificate.
    pub fn new(identity: Identity) -> Self {
        Self { identity, client_roots: None, protocols: Vec::new() }
    }
}

impl TlsAcceptor {
    /// Reads the certificates and the key of `options`.
    ///
    /// # Errors
    ///
    /// [`TlsError`] names the part of `options` that can't be used.
    pub fn new(options: &TlsServerOptions) -> Result<Self, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(identity_error)?;
        let builder = match &options.client_roots {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let roots = Arc::new(own_roots(pem)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
                let refused = |error: rustls::server::VerifierBuilderError| TlsError::Roots {
                    reason: error.to_string(),
                };
                builder.with_client_cert_verifier(verifier.map_err(refused)?)
            }
        };
        let (certificates, key) = options.identity.parts()?;
        let mut config = builder.with_single_cert(certificates, key).map_err(identity_error)?;
        config.alpn_protocols =
            options.protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(Self(Arc::new(config)))
    }

    /// Shakes hands with a client that has connected.
    ///
    /// # Errors
    ///
    /// If the client refuses this server's certificate, or shows none that is trusted: the text says why.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<TlsStream<S>> {
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::clone(&self.0));
        acceptor.accept(stream).await.map(TlsStream::server).map_err(reason::of_handshake)
    }
}

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsAcceptor").finish_non_exhaustive()
    }
}
