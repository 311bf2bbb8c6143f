//! Locks on several Redis servers.

mod lab;

mod lock;
mod tokens;
