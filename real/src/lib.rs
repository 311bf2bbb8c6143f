//! The same locks on tokio and live servers.
