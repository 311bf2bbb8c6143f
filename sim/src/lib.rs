//! Deterministic simulation: the real lock clients against simulated servers, network, clocks and disks.

#[cfg(not(madsim))]
compile_error!(
    "`sim` needs `--cfg madsim`. The workspace sets it in .cargo/config.toml, but a RUSTFLAGS variable in the \
     environment overrides that file: unset RUSTFLAGS, or add `--cfg madsim` to it."
);

pub mod allocator;
pub mod compare;
pub mod corpus;
pub mod entropy;
pub mod etcd_lock_service;
pub mod explore;
pub mod mutants;
pub mod record;
pub mod run;
pub mod schedule;
pub mod serve;
pub mod servers;
pub mod trace;
pub mod world;
