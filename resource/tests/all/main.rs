//! Tests of the service, its stores and its client, in one program: each further program is linked with all
//! that the service needs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[cfg(feature = "objects")]
mod bucket;
mod client;
mod client_guards;
mod common {
    #[cfg(feature = "objects")]
    pub(crate) mod blocked;
    pub(crate) mod calls;
    pub(crate) mod disk;
    pub(crate) mod events;
    #[cfg(feature = "objects")]
    pub(crate) mod puppet;
    #[cfg(feature = "files")]
    pub(crate) mod scratch;
    pub(crate) mod service;
    pub(crate) mod world;
}
mod fence_admin;
#[cfg(feature = "files")]
mod folder;
mod guards;
mod http;
mod http_conditional;
mod jobs;
mod metrics;
mod next_step;
mod permits;
mod store_contract;
mod update;
