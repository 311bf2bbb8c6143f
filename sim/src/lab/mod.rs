//! The lock laboratory: workers that lock, lock servers, and the resource that they write to. One [`Subject`](crate::Subject) of many.

mod arm;
mod classes;
mod draw;
mod excuses;
mod hosts;
mod options;
mod point;
mod scene;
mod servers;
mod subject;
mod triggers;
mod validate;
mod worker;
mod workloads;

pub use arm::Arm;
pub use classes::FaultClass;
pub use draw::{draw, draw_class, draw_for};
pub use excuses::excused;
pub use options::{Options, schedule};
pub use point::{Kind, Point};
pub use servers::{Etcd, Persistence, Recipe, Redis, Resource, Store, System, Tokens, Waiting};
pub use subject::{Lab, run, run_with};
pub use worker::{ReadMode, ReleaseMode, Worker, WorkerMode};
