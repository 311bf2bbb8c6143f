//! The protected resource: the fence check, its stores, its HTTP app and client, the worker that uses a lock to write to
//! it, and the audit that judges a history.

pub mod audit;
