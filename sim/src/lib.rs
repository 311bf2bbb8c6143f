//! Simulates the world around a distributed lock, to find the schedules that break it: the real lock clients
//! run against simulated servers, networks, clocks and disks.
//!
//! You describe a world of servers and processes. The processes run your own async code, in simulated time.
//! [`check`] draws faults at random (pauses, crashes, cut links, lost replies, clocks that are set), runs the
//! world under each schedule of faults, and judges its history. The first failure is shrunk, explained and
//! kept, and replays byte for byte.
//!
//! `docs/test-your-own-lock.md` leads from an empty crate to such a test, step by step.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//!
//! use redis::{AsyncCommands, ExistenceCheck, RedisResult, Script, SetExpiry, SetOptions};
//! use sim::servers::redis::RedisHost;
//! use sim::{Process, Sim};
//!
//! /// Deletes the key if its value is still the owner's. A bare `DEL` could release another owner's lock,
//! /// and the test would fail with the verdict `foreign_release`.
//! const RELEASE: &str =
//!     "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";
//!
//! /// Builds the world: a Redis, and two processes that move money under a lock.
//! fn transfers(sim: &mut Sim) {
//!     // The server's key `account-7` exists while a process holds the lock, which we call `account:7`.
//!     sim.host("redis", RedisHost::new().lock_key("account-7", "account:7")).key("account:7");
//!     for name in ["a", "b"] {
//!         sim.process(name, |process: Process| async move {
//!             // A connection that breaks ends the work.
//!             let _ = transfer(&process).await;
//!         });
//!     }
//! }
//!
//! async fn transfer(process: &Process) -> RedisResult<()> {
//!     let mut redis = sim::clients::redis(process, "redis:6379").await?;
//!     let owner = process.random().to_string();
//!     let options = || {
//!         let options = SetOptions::default().conditional_set(ExistenceCheck::NX);
//!         options.with_expiration(SetExpiry::PX(1000))
//!     };
//!     while redis.set_options::<_, _, Option<String>>("account-7", &owner, options()).await?.is_none() {
//!         process.sleep(Duration::from_millis(50)).await;
//!     }
//!     let section = process.section("account:7");
//!     process.point("moving money");
//!     process.sleep(Duration::from_millis(100)).await;
//!     drop(section);
//!     Script::new(RELEASE).key("account-7").arg(&owner).invoke_async(&mut redis).await
//! }
//!
//! // In a test, with more schedules.
//! sim::check("transfers", transfers).schedules(50).run();
//! ```
//!
//! # Map, in the order of reading
//!
//! 1. [`check`] begins a [`Search`]; [`Failure`] is what it finds, [`Exercised`] what its runs have done.
//! 2. [`Sim`] is a world that is being built, and [`Process`] is how code in it reaches clocks, network and
//!    disk. [`servers`] are the simulated Redis, etcd, ZooKeeper and resource; [`clients`] are the real
//!    clients for them.
//! 3. [`Report`] is the result of one run: its history, the [`Verdict`]s of the audit by some [`Rules`], and
//!    each [`Finding`] of a check. A [`Check`] of your own is a closure from [`Evidence`]; [`no`],
//!    [`own_token`], [`own_key`] and [`holder_accepted`] are ready-made ones.
//! 4. [`Control`] drives a run from a script, step by step: [`Sim::run_script`].
//! 5. [`faults`]: each fault as a value, and the trigger of its strike.
//! 6. [`Schedule`] is a run as a file. [`Subject`] is a world with options of its own, which [`Draw`] draws
//!    from a seed. [`Span`], [`Shift`] and [`FieldPath`] are times and fields in such files.
//! 7. [`explore`](mod@explore): searching, shrinking and explaining step by step, by some [`Strategy`], and
//!    exhaustive searches.
//! 8. [`sim`](mod@sim): reads and runs schedules. [`world`]: the streams, disks and runtimes that a process
//!    gets.
//! 9. [`allow`] lets code of a process leave the simulation, which is refused otherwise.
//! 10. [`section`], [`point`], [`always!`], [`buggify!`] and their like find the process by themselves, and
//!     do nothing outside of a simulation: marks for production code, also from the crate
//!     `fencepost-sim-host`.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `etcd` | simulated etcd, its client, and its protocol in traces |
//! | `postgres` | simulated PostgreSQL, its client, and its protocol in traces |
//! | `zookeeper` | simulated ZooKeeper, its client, and its protocol in traces |
//! | `pages` | pages of HTML that draw a failing run |

#[cfg(not(madsim))]
compile_error!(
    "`sim` needs `--cfg madsim`. `tools/init FOLDER` in the checkout of `sim` sets a crate up for it. \
     A RUSTFLAGS variable in the environment overrides .cargo/config.toml: unset it, or add `--cfg madsim` \
     to it."
);

#[doc(hidden)]
pub mod allocator;
#[doc(hidden)]
pub mod entropy;
pub mod explore;
pub mod faults;
mod field_path;
#[doc(hidden)]
pub mod pool;
#[doc(hidden)]
pub mod probes;
#[doc(hidden)]
pub mod record;
pub mod servers;
pub mod sim;
mod span;
#[doc(hidden)]
pub mod trace;
pub mod world;

pub use explore::{Exercised, Failure, Search, check};
pub use field_path::{FieldPath, Invalid};
pub use history::{Capacity, Effect, Event, Kind, Name, Nanos, Rules, Verdict, VerdictKind};
#[doc(hidden)]
pub use history::{ClockFault, InstantFault, LinkFault, LookUpFault, RoleFault, UnknownName};
pub use sim::{
    Check, Control, CorePhase, Draw, Evidence, Finding, Process, Report, RunError, Schedule, ScheduleError,
    Sim, Strategy, Struck, Subject, allow, clients, holder_accepted, no, own_key, own_token,
};
#[doc(hidden)]
pub use sim::{NoOptions, Served, Step};
/// Marks of the code under test, which find its process by themselves. They are those of the crate
/// `fencepost-sim-host`, which has no dependencies: production code uses them from there.
pub use sim_host::{
    Section, always, buggify, closest, is_simulated, point, reached, section, section_with_token, sometimes,
};
pub use span::{Shift, Span};
#[doc(hidden)]
pub use span::{ShiftError, SpanError};
