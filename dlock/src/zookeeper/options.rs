//! What a session is told.

use std::time::Duration;

use crate::lease::DriftMargin;
use crate::retry::Backoff;

/// Where and how to open a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// The servers, each written `host:port`. The first to be tried is drawn at random, so that clients spread.
    pub servers: Vec<String>,
    /// The session timeout to ask for; the server may answer with another. Whole milliseconds count.
    pub session_timeout: Duration,
    /// What the client's trust in its session is short of the timeout.
    pub drift: DriftMargin,
    /// How long to wait once all servers were tried in vain.
    pub backoff: Backoff,
}

impl ClientOptions {
    /// A session of `session_timeout` at these servers, with the usual drift margin and backoff.
    pub fn new<S: Into<String>>(servers: impl IntoIterator<Item = S>, session_timeout: Duration) -> Self {
        let servers = servers.into_iter().map(Into::into).collect();
        Self { servers, session_timeout, drift: DriftMargin::default(), backoff: Backoff::default() }
    }
}
