//! The lock laboratory: workers that lock, lock servers, and the resource to which the workers write. It is
//! one [`Subject`](sim::Subject) of many.

mod arm;
mod core;
mod default;
mod draw;
mod excuses;
pub(crate) mod flights;
mod get_then_del;
mod given;
mod hosts;
pub(crate) mod one_flight;
mod options;
mod point;
mod processes;
mod rounds;
mod scene;
mod seat;
mod servers;
mod small;
mod smaller;
mod subject;
mod system;
mod systems;
mod triggers;
mod validate;
mod wide;
mod wider;
pub mod wire;
mod worker;
mod workloads;

pub use arm::Arm;
pub use draw::{draw, draw_class, draw_for};
pub use excuses::excused;
pub use given::{Correct, StoredLock, Workplace};
pub use options::{Options, schedule};
pub use point::{Point, ProcessKind};
pub use scene::LabScene;
pub use servers::{Etcd, Persistence, Recipe, Redis, Resource, Store, Tokens, Version, Waiting};
pub use small::small;
pub use subject::{Lab, load, parse, run};
pub use system::System;
pub use validate::validate;
pub use worker::{ReadMode, ReleaseMode, Worker, WorkerMode};
