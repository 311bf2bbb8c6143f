//! Building and running a simulated world: the part that every user of the simulator needs.

mod arrivals;
mod builder;
mod cast;
mod check;
mod checks;
pub mod clients;
mod control;
mod core;
mod error;
#[cfg(feature = "etcd")]
mod etcd_channel;
mod expect;
mod marks;
#[cfg(unix)]
mod own_process;
mod panic;
#[doc(hidden)]
pub mod point;
mod process;
mod progress;
mod rekey;
mod report;
mod run;
mod schedule;
mod section;
pub(crate) mod seed;
mod single;
mod stage;
mod steps;
mod strategy;
mod subject;
mod thread;
#[cfg(feature = "postgres")]
mod unconnected;
mod validate;

pub use builder::Sim;
pub(crate) use cast::Points;
pub use check::{Check, Evidence, Finding, no};
pub use checks::{holder_accepted, own_key, own_token};
pub use control::{Control, Struck};
pub use core::CorePhase;
#[doc(hidden)]
pub use core::draw as draw_core;
pub use error::RunError;
#[doc(hidden)]
pub use expect::Mismatch;
pub use expect::{Expect, Outcome};
pub use process::Process;
#[doc(hidden)]
pub use rekey::Rekey;
pub use report::Report;
#[doc(hidden)]
pub use report::Served;
pub use schedule::{Latency, Network, Schedule, ScheduleError};
pub use sim_host::Section;
pub(crate) use steps::Group;
#[doc(hidden)]
pub use steps::Step;
pub use strategy::Strategy;
pub use subject::{Draw, Subject, load, parse, run};
#[doc(hidden)]
pub use subject::{NoOptions, build, steps, survey};
pub(crate) use subject::{points_of, survey_run};

#[doc(hidden)]
pub use crate::world::escape::Outside;
pub use crate::world::escape::allow;
