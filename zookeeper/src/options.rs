//! Where and how to open a session.

use std::time::Duration;

use dlock_runtime::Backoff;

/// Where and how to open a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// The servers, each written `host:port`. The first to be tried is drawn at random, so that clients
    /// spread.
    pub servers: Vec<String>,
    /// The session timeout to ask for; the server may answer with another. Whole milliseconds count.
    pub session_timeout: Duration,
    /// The wait after all servers were tried without success.
    pub backoff: Backoff,
}

impl ClientOptions {
    /// A session of `session_timeout` at these servers, with the usual backoff.
    pub fn new<S: Into<String>>(servers: impl IntoIterator<Item = S>, session_timeout: Duration) -> Self {
        let servers = servers.into_iter().map(Into::into).collect();
        Self { servers, session_timeout, backoff: Backoff::default() }
    }
}
