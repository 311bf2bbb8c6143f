//! The state of a proxied link.

use std::time::Duration;

/// The state of a link in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// Passes bytes on at once.
    #[default]
    Open,
    /// Passes each byte on after this delay.
    Slow(Duration),
    /// Holds bytes back until the link is open again.
    Cut,
}

/// A direction of a proxied connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server: requests.
    ToServer,
    /// From the server to the client: replies.
    ToClient,
}
