//! The options of a session.

use std::fmt;
use std::time::Duration;

use dlock_runtime::Backoff;

/// The options of a session. `Debug` hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// The servers, each written `host:port`. The first one tried is drawn at random, to spread the clients.
    pub servers: Vec<String>,
    /// The session timeout to request, in whole milliseconds; the server may grant another.
    pub session_timeout: Duration,
    /// The backoff after all servers failed.
    pub backoff: Backoff,
    /// The user and the password to log in with (scheme `digest`). With it, nodes that the client creates are
    /// open to that user alone; without it, to everybody.
    pub login: Option<(String, String)>,
}

impl ClientOptions {
    /// Creates the options of a session with this timeout at these servers, with the default backoff.
    pub fn new<S: Into<String>>(servers: impl IntoIterator<Item = S>, session_timeout: Duration) -> Self {
        let servers = servers.into_iter().map(Into::into).collect();
        Self { servers, session_timeout, backoff: Backoff::default(), login: None }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("servers", &self.servers)
            .field("session_timeout", &self.session_timeout)
            .field("backoff", &self.backoff)
            .field("user", &self.login.as_ref().map(|(user, _)| user))
            .finish()
    }
}
