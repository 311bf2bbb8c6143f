//! One ZooKeeper session, and the operations that a lock needs of it, in ZooKeeper's own wire format.
//!
//! No crate is used for the protocol: those that exist open their own sockets and read their own clocks, and could not
//! be driven by a [`Runtime`](crate::Runtime).
//!
//! [`Client`] is the session; `driver.rs` keeps it alive from connection to connection, `link.rs` is one connection,
//! `watches.rs` remembers who waits for which node. [`path`] says where locks lie, [`wire`] how it all looks as bytes.
//!
//! # What a session is worth
//!
//! The server counts a session's timeout from the last message that reached it, the client from the sending of the last
//! message that was answered ([`Client::valid_until`]): never from the arrival of the answer, which may be late. So a
//! session lasts at the server at least as long as here, with one limit that is ZooKeeper's own: a follower answers
//! pings by itself, and one that has just lost its leader goes on doing so for up to `syncLimit` ticks, while the
//! leader, which hears of no ping, lets the session expire. Only a fencing token stops a holder whom that deceives.
//!
//! # What a lost connection means
//!
//! A request that was sent and not answered may have been executed ([`Error::is_unknown`]); the server executes none of
//! an old connection's requests once it has answered on a newer one. So after a loss: [`Client::sync`] and then look.
//! Watches end with their connection ([`Fired::Disconnected`]): whoever still needs one reads again.

mod client;
mod driver;
mod error;
mod link;
mod options;
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
