//! The commands that work on a connection, on scripts or on the whole server.

pub(crate) mod channels;
pub(crate) mod connection;
pub(crate) mod info;
pub(crate) mod replica;
pub(crate) mod scripting;
pub(crate) mod server;
pub(crate) mod transaction;
