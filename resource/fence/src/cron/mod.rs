//! A cron whose ticks run once each, on one of several machines.
//!
//! Each tick of a schedule is named by its scheduled time, not by the time at which it runs. A runner fires
//! by its own clock, takes the lock of the cron as a prefilter, and then asks the guarded side for the last
//! tick that is done: [`Ticks::claim`], with the fencing token of its grant. [`Policy::due`] says which ticks
//! to run (pure). [`Ticks::commit`] makes the tick done and takes its effect in one step, with the token. So
//! no tick is committed twice, whatever the clocks and the lock do. A tick whose runner has crashed or paused
//! is run by the next holder, and the former one's commit is refused.
//!
//! `resource::cron` has the runner, and [`Ticks`] at a resource over HTTP. In a transaction on PostgreSQL the
//! functions `claim_ticks`, `begin_tick` and `finish_tick` are the three steps.
//!
//! # What it does not promise
//!
//! - That a tick's work is done once: a runner that pauses after its work and before its commit is replaced,
//!   and the tick's work is done again. Only what is committed with the tick is done once.
//! - That a tick runs on time, or that it does not run early: a runner fires by its own clock. If the clock
//!   is an hour ahead, the ticks of this hour are done when it comes. On PostgreSQL the server's clock
//!   decides which ticks are due.
//! - That the first tick of a new cron is caught up on: as long as no tick is done, only those on time are
//!   run.
//! - That two runners with different schedules or policies agree.
//!
//! Source: exactly-once effect by a durable transition, Computing Series, part 018, section 22; the deadline
//! of late runs is `startingDeadlineSeconds` of a CronJob of Kubernetes.

mod policy;
mod schedule;
mod ticks;

pub use policy::{Due, Missed, Policy, RUNS_MAX};
pub use schedule::{Every, EveryError, Schedule, Tick};
pub use ticks::{Grant, Seen, Ticks, TicksError};
