//! The options of a session.

use std::time::Duration;

use dlock_runtime::Backoff;

/// The options of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// The servers, each written `host:port`. The first one tried is drawn at random, to spread the clients.
    pub servers: Vec<String>,
    /// The session timeout to request, in whole milliseconds; the server may grant another.
    pub session_timeout: Duration,
    /// The backoff after all servers failed.
    pub backoff: Backoff,
}

impl ClientOptions {
    /// Creates the options of a session with this timeout at these servers, with the default backoff.
    pub fn new<S: Into<String>>(servers: impl IntoIterator<Item = S>, session_timeout: Duration) -> Self {
        let servers = servers.into_iter().map(Into::into).collect();
        Self { servers, session_timeout, backoff: Backoff::default() }
    }
}
