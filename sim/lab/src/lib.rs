//! The lock laboratory, on top of the simulator: workers that lock, known mistakes, and what is made of their
//! runs.
//!
//! [`Lab`] is a subject of the library `sim`: workers, lock servers and the resource to which the workers
//! write. [`museum`] puts one known mistake into it; [`kit`] has the parts of which mistakes are made.
//! [`corpus`] holds the kept schedules, [`advise`], [`compare`], [`exhaustive`] and [`gallery`] are made of
//! runs, [`serve`] runs the simulated servers on real ports, and [`perfetto`] shows a run in Perfetto. The
//! program `sim` is the command line of all this.

pub mod advise;
pub mod compare;
pub mod corpus;
pub mod etcd_lock_service;
pub mod exhaustive;
pub mod gallery;
pub mod kit;
mod laboratory;
pub mod museum;
pub mod perfetto;
pub mod serve;

pub use laboratory::{
    Arm, Correct, Cron, Etcd, Lab, LabScene, MissedMode, Options, Persistence, Point, ProcessKind, ReadMode,
    Recipe, Redis, ReleaseMode, Resource, Store, StoredLock, System, TickError, TickRecord, TickStore,
    Tokens, Version, Waiting, Worker, WorkerMode, Workplace, draw, draw_class, draw_for, excused, load,
    parse, run, schedule, small, small_with_keys, validate, wire,
};
