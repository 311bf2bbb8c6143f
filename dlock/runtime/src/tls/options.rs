//! The options of a TLS client, checked before anything is sent.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

/// The options of a TLS client. Begin with [`TlsOptions::default`], which trusts the roots of the system and
/// shows no certificate, and change what must differ.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsOptions {
    /// The certificates to trust, as PEM, in place of those of the operating system.
    pub roots: Option<String>,
    /// The certificate of this client, for servers that ask for one.
    pub identity: Option<Identity>,
    /// The name that the server's certificate must have. By default the host to which the client connects.
    pub server_name: Option<String>,
}

/// A certificate and its private key. `Debug` hides the key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, as PEM, followed by those of its issuers up to a root.
    pub certificates: String,
    /// The private key of the first certificate, as PEM.
    pub key: String,
}

/// Options that TLS can't use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The roots have no certificate, or one that can't be read.
    #[error("the roots hold no usable certificate ({reason}): give PEM with `BEGIN CERTIFICATE`")]
    Roots {
        /// The error.
        reason: String,
    },
    /// The operating system has no roots.
    #[error(
        "no root certificate was found on this system ({reason}): install them (Debian: ca-certificates), \
             or give roots of your own"
    )]
    SystemRoots {
        /// The error.
        reason: String,
    },
    /// The identity has no certificate, or no key, or they don't belong together.
    #[error("the identity can't be used ({reason}): give a certificate and its private key, both as PEM")]
    Identity {
        /// The error.
        reason: String,
    },
    /// The text is no name that a certificate can have.
    #[error("`{name}` is no server name: give a DNS name or an IP address")]
    ServerName {
        /// The text.
        name: String,
    },
}

impl TlsOptions {
    /// Returns the name that the server's certificate must have, if it is given.
    pub(super) fn name(&self) -> Result<Option<ServerName<'static>>, TlsError> {
        self.server_name.as_deref().map(server_name).transpose()
    }

    pub(super) fn config(&self) -> Result<ClientConfig, TlsError> {
        let roots = match &self.roots {
            Some(pem) => own_roots(pem)?,
            None => system_roots()?,
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Identity { reason: error.to_string() })?
            .with_root_certificates(roots);
        let Some(identity) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let (certificates, key) = identity.parts()?;
        builder.with_client_auth_cert(certificates, key).map_err(identity_error)
    }
}

impl Identity {
    /// Reads the certificates and the key.
    pub(super) fn parts(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let certificates =
            certificates(&self.certificates).map_err(|reason| TlsError::Identity { reason })?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|error| TlsError::Identity { reason: format!("the key: {error}") })?;
        Ok((certificates, key))
    }
}

pub(super) fn identity_error(error: rustls::Error) -> TlsError {
    TlsError::Identity { reason: error.to_string() }
}

/// Returns the algorithms of every connection: those of `ring`, which builds without other tools.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Returns the roots of a PEM text.
pub(super) fn own_roots(pem: &str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem).map_err(|reason| TlsError::Roots { reason })? {
        roots.add(certificate).map_err(|error| TlsError::Roots { reason: error.to_string() })?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let reason = found.errors.first().map_or("none is installed".to_owned(), ToString::to_string);
        return Err(TlsError::SystemRoots { reason });
    }
    Ok(roots)
}

/// Reads all certificates of a PEM text, at least one.
fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match read {
        Ok(found) if found.is_empty() => Err("no certificate in the text".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::ServerName { name: name.to_owned() })
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roots = if self.roots.is_some() { "own" } else { "the system's" };
        f.debug_struct("TlsOptions")
            .field("roots", &roots)
            .field("identity", &self.identity)
            .field("server_name", &self.server_name)
            .finish()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}
