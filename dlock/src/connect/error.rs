//! The errors of a connection by URL.

use super::url::UrlError;
use crate::error::BackendError;
use crate::options::OptionsError;
use crate::setup::SetupError;

/// Why there is no lock on the servers of a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL names no lock server.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The client of these servers is not part of this program.
    #[error("`{scheme}://` needs the feature `{feature}` of fencepost-dlock: add it in Cargo.toml")]
    NoFeature {
        /// The scheme of the URL.
        scheme: &'static str,
        /// The feature to add.
        feature: &'static str,
    },
    /// The servers can't be used so.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The options contradict each other.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The certificates can't be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] dlock_runtime::tls::TlsError),
    /// The program is not inside a tokio runtime.
    #[error("no tokio runtime runs here: call it in `#[tokio::main]`, or in a task of a runtime")]
    NoTokio,
    /// The thread of a [`blocking::Lock`](crate::blocking) can't be started.
    #[cfg(feature = "blocking")]
    #[error("can't start the thread of the lock: {reason}")]
    Thread {
        /// The error of the operating system.
        reason: String,
    },
    /// The servers can't be reached, or refuse the client.
    #[error(transparent)]
    Server(#[from] BackendError),
}
