//! A ZooKeeper client in ZooKeeper's own wire format, on any [`Runtime`](dlock_runtime::Runtime).
//!
//! Other clients open their own sockets and read their own clocks, and could not run in a simulation. `dlock`
//! uses this one for its locks; a simulated server can use [`wire`] for its own end of the protocol.
//!
//! # What a session is worth
//!
//! The server counts a session's timeout from the last message that reached it, the client from the sending
//! of the last message that was answered ([`Client::valid_until`]): never from the arrival of the answer,
//! which may be late. So a session lasts at the server at least as long as here, with one limit that is
//! ZooKeeper's own: a follower answers pings by itself, and one that has just lost its leader goes on doing
//! so for up to `syncLimit` ticks, while the leader, which receives no ping, lets the session expire.
//!
//! # What a lost connection means
//!
//! A request that was sent and not answered may have been executed ([`Error::is_unknown`]). The server
//! executes none of an old connection's requests once it has answered on a newer one: after a loss,
//! [`Client::sync`] and then look. Watches end with their connection ([`Fired::Disconnected`]): read again if
//! you still need one.

// client.rs is a session as its users see it; order.rs a request on its way to driver.rs, which keeps the
// session alive from connection to connection; connection.rs is one connection; session.rs what client and
// driver both know; watches.rs remembers who waits for which node.

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
pub use session::{Session, State};
pub use watches::{Fired, Watch};
pub use wire::{CreateMode, Stat};
