//! Locks on several Redis.

mod lab;

mod lock;
mod tokens;
