//! Deterministic simulation: the real lock clients against simulated servers, network, clocks and disks.

#[cfg(not(madsim))]
compile_error!(
    "`sim` needs `--cfg madsim`. `tools/init FOLDER` in the checkout of `sim` sets a crate up for it. \
     A RUSTFLAGS variable in the environment overrides .cargo/config.toml: unset it, or add `--cfg madsim` \
     to it."
);

pub mod allocator;
pub mod entropy;
pub mod explore;
pub mod faults;
pub mod meter;
mod place;
pub mod pool;
pub mod probes;
pub mod record;
pub mod servers;
pub mod sim;
mod span;
pub mod trace;
pub mod world;

pub use explore::{Exercised, Failure, Search, check};
pub use history::{
    ClockFault, Effect, Event, InstantFault, Kind, LinkFault, Name, Nanos, RoleFault, Rules, UnknownName,
    Verdict, VerdictKind,
};
pub use place::{Invalid, Place};
pub use sim::{
    Check, Control, Core, Draw, Evidence, Finding, NoOptions, Process, Report, RunError, Schedule,
    ScheduleError, Served, Sim, Step, Strategy, Struck, Subject, clients, holder_accepted, no, own_key,
    own_token,
};
pub use span::{Shift, ShiftError, Span, SpanError};
