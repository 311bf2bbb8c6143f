//! TLS to the lock servers, by rustls: certificates, and the runtime that encrypts.
//!
//! [`Lock::connect`](crate::Lock::connect) needs no more than [`TlsOptions`]. A backend on a runtime of one's
//! own is encrypted by [`Tls`], which wraps that runtime; a server accepts by [`TlsAcceptor`].

pub use dlock_runtime::tls::{
    Identity, Tls, TlsAcceptor, TlsConnector, TlsError, TlsOptions, TlsServerOptions, TlsStream,
};
