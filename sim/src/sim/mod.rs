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
mod panic;
pub mod point;
mod process;
mod progress;
mod rekey;
mod report;
mod run;
mod schedule;
mod section;
mod stage;
mod steps;
mod strategy;
mod subject;
mod thread;
mod validate;

pub use builder::Sim;
pub(crate) use cast::Points;
pub use check::{Check, Evidence, Finding, no};
pub use checks::{holder_accepted, own_key, own_token};
pub use control::{Control, Struck};
pub use core::{CorePhase, draw as draw_core};
pub use error::RunError;
pub use expect::{Expect, Mismatch, Outcome};
pub use process::Process;
pub use rekey::Rekey;
pub use report::{Report, Served};
pub use schedule::{Latency, Network, Schedule, ScheduleError};
pub use section::Section;
pub(crate) use steps::Group;
pub use steps::Step;
pub use strategy::Strategy;
pub use subject::{Draw, NoOptions, Subject, build, load, parse, run, steps, survey};
pub(crate) use subject::{points_of, survey_run};

pub use crate::world::escape::Outside;
