//! Connects a program on tokio.

use ::tokio::runtime::Handle;
use dlock_runtime::Runtime;

use super::TokioRuntime;
use crate::any::AnyBackend;
use crate::backend::Backend;
use crate::connect::{ConnectError, ConnectOptions};
use crate::lock::Lock;
use crate::options::Options;

impl Lock<AnyBackend<TokioRuntime>> {
    /// Connects to the lock servers that `url` names, on the tokio runtime of the caller: see
    /// [`AnyBackend::from_url`] for the forms of a URL.
    ///
    /// It returns once a server has taken the login, so that a wrong password, name or certificate is
    /// reported here. Later it reconnects by itself. For a program that must start without its lock servers,
    /// use [`AnyBackend::from_url`] and [`Lock::new`].
    ///
    /// # Errors
    ///
    /// [`ConnectError`]; [`ConnectError::Server`] if no server has answered within
    /// [`Options::request_timeout`].
    ///
    /// # Example
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use dlock::{ConnectError, Lock, Options};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let options = Options::new(Duration::from_secs(30));
    /// // Nothing listens on port 1.
    /// let error = Lock::connect("redis://:secret@127.0.0.1:1", options).await.unwrap_err();
    /// assert!(matches!(error, ConnectError::Server(_)));
    /// assert!(error.to_string().contains("127.0.0.1:1") && !error.to_string().contains("secret"));
    /// # }
    /// ```
    pub async fn connect(url: &str, options: Options) -> Result<Self, ConnectError> {
        Self::connect_with(url, options, ConnectOptions::default()).await
    }

    /// Connects as [`Lock::connect`] does, with options that a URL can't hold, such as certificates.
    ///
    /// # Errors
    ///
    /// As [`Lock::connect`].
    pub async fn connect_with(
        url: &str,
        options: Options,
        servers: ConnectOptions,
    ) -> Result<Self, ConnectError> {
        let runtime = TokioRuntime::new(Handle::try_current().map_err(|_| ConnectError::NoTokio)?);
        let backend = AnyBackend::from_url(runtime, url, &options, &servers)?;
        let deadline = backend.runtime().now() + options.request_timeout;
        let lock = Self::new(backend, options)?;
        lock.backend().connect(deadline).await?;
        Ok(lock)
    }
}
