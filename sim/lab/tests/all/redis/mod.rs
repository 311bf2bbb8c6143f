//! The simulated Redis, over its wire protocol.

mod support;

mod channels;
mod client;
mod commands;
mod events;
mod expiry;
mod limits;
mod monitor;
mod newer;
mod observer;
mod persistence;
mod protocol;
mod replica;
mod scripts;
mod waiting;
