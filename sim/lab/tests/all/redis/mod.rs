//! The simulated Redis, over its wire protocol.

mod support;

mod client;
mod commands;
mod expiry;
mod limits;
mod newer;
mod observer;
mod persistence;
mod protocol;
mod replica;
mod scripts;
mod waiting;
