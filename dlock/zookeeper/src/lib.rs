//! A ZooKeeper client in ZooKeeper's own wire format, on any [`Runtime`](dlock_runtime::Runtime).
//!
//! Other clients open their own sockets and read their own clocks, and could not run in a simulation. `dlock`
//! uses this one for its locks; a simulated server can use [`wire`] for its own end of the protocol.
//!
//! # How long a session lives
//!
//! The server counts a session's timeout from the last message it received, the client from the sending of
//! the last acknowledged message ([`Client::valid_until`]), and never from the arrival of an answer, which
//! may be late. A session therefore lives at the server at least as long as here, with two limits of
//! ZooKeeper's own. A follower answers pings by itself, and after losing its leader continues to for up to
//! `syncLimit` ticks, while the leader, which receives no ping, lets the session expire. And the leader
//! learns of a follower's sessions every half tick, by the answer to its own ping: a request that the
//! follower passes on restarts no timeout there. So the leader may count from the message before, which is up
//! to a third of the timeout older.
//!
//! # What to do after a lost connection
//!
//! A request that was sent and not answered may have been executed ([`Error::is_unknown`]). The server
//! executes no request of an old connection after it has answered on a newer one: after a loss, call
//! [`Client::sync`] and then read. Watches end with their connection ([`Fired::Disconnected`]): read again if
//! you still need one.

// client.rs is the session for its users; order.rs a request on its way to driver.rs, which keeps the session
// alive across connections; connection.rs a single connection; session.rs the state shared by client and
// driver; watches.rs the watches set on a connection.

mod client;
mod connection;
mod driver;
mod error;
mod options;
mod order;
pub mod path;
mod session;
mod watches;
pub mod wire;

pub use client::{Children, Client, Created};
pub use error::Error;
pub use options::ClientOptions;
pub use session::{Session, SessionState};
pub use watches::{Fired, Watch};
pub use wire::{CreateMode, Stat};

/// Returns the probes of this crate: the simulator lists those that a search has missed.
#[doc(hidden)]
pub fn probes() -> Vec<&'static dlock_runtime::Probe> {
    driver::probe::ALL.to_vec()
}
