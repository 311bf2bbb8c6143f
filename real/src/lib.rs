//! The same locks on tokio and live servers; the protocols are those of the library.
//!
//! [`dlock::TokioRuntime`] is the runtime of all commands. [`servers`] starts and stops lock servers,
//! [`faults`] breaks them, and [`place`] makes a backend on those of a system, with [`tokens`] from a chosen
//! source. [`work`] is the worker, with a [`mod@record`] of its ticks and jobs, and [`pause`] its pauses,
//! [`stop`] ends it; [`store`] and [`serve`] are the resource. [`history`] records the events of each
//! process, with the times of [`clock`], and [`judgement`] judges them. [`mod@contend`] is the load,
//! [`mod@fill`] makes millions of locks. [`experiments`], [`chaos`] (the long run under faults) and [`peers`]
//! (the comparison with other locks) share [`lab`]; [`report`] renders text, tables and figures.
//! [`mod@metrics`] serves the metrics of a command. [`operate`] inspects and mends one lock.

mod acquire;
pub mod chaos;
pub mod clock;
pub mod contend;
pub mod experiments;
pub mod faults;
pub mod fidelity;
pub mod fill;
pub mod judgement;
pub mod lab;
mod limits;
pub mod logs;
pub mod metrics;
#[cfg(doctest)]
mod moving;
pub mod operate;
mod patient;
pub mod pause;
pub mod peers;
pub mod place;
pub mod primitive;
pub mod record;
pub mod recording;
pub mod report;
pub mod serve;
pub mod servers;
pub mod stop;
pub mod store;
pub mod systems;
mod task_rows;
mod timer;
pub mod tokens;
pub mod work;
