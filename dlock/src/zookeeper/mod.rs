//! Locks on a ZooKeeper ensemble, and the session that they live by, in ZooKeeper's own wire format.
//!
//! No crate is used for the protocol: those that exist open their own sockets and read their own clocks, and could not
//! be driven by a [`Runtime`](crate::Runtime).
//!
//! [`ZooKeeper`] is the lock's backend: `acquisition.rs` the recipe from top to bottom, `place.rs` one entry of a queue,
//! `queue.rs` who is ahead of whom.
//!
//! [`Client`] is the session; `driver.rs` keeps it alive from connection to connection, `link.rs` is one connection,
//! `watches.rs` remembers who waits for which node. [`path`] says where locks lie, [`wire`] how it all looks as bytes.
//!
//! # How a lock is held
//!
//! Each claim creates an ephemeral sequential node, its entry, under the queue of its key; the lowest number holds the
//! lock, and every other watches the one directly ahead of it, so that a release wakes one waiter. After the wait it looks
//! again: its own entry first, which must still be its session's, then who is ahead now. Source: the ZooKeeper recipe for
//! locks.
//!
//! The fencing token is the zxid of the transaction that created the entry, by whichever way that became known. Entries are
//! numbered in the order of their creation and served in the order of their numbers, so tokens grow from grant to grant.
//! A queue has 2 147 483 647 numbers; once they are used up it grants nothing until it is empty, and then counts anew.
//! An ensemble that is set up anew, without its data, begins again at low zxids: then the tokens go back.
//!
//! A lease lives for as long as the session: its TTL bounds only for how long the client trusts it after a proof. A proof
//! is a request that the leader has a hand in (a create, or a sync with the reads behind it), counted from before it was
//! sent; an answered ping is none here, which narrows the limit below from `syncLimit` ticks to the half tick in which a
//! follower reports who was heard of.
//!
//! With the session, a holder loses its lease and a waiter its place in line: the waiter's call fails with
//! [`BackendError::SessionLost`](crate::BackendError::SessionLost), and the next one begins at the end of the line.
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

mod acquisition;
mod backend;
mod client;
mod driver;
mod error;
mod link;
mod options;
mod order;
pub mod path;
mod place;
mod queue;
mod session;
mod sessions;
mod watches;
pub mod wire;

pub use backend::ZooKeeper;
pub use client::{Children, Client, Created};
pub use error::Error;
pub use options::{ClientOptions, ZooKeeperOptions};
pub use session::{Session, State};
pub use watches::{Fired, Watch};
pub use wire::{CreateMode, Stat};
