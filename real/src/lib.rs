//! The same locks on tokio and live servers: nothing of the protocols is written a second time here.
//!
//! To read it: [`TokioRuntime`] is the seam's other side (the operating system's clock, sockets, scheduler and random
//! source); [`servers`] starts and ends the servers that a lock needs, [`faults`] breaks them; [`systems`] is the one place
//! that knows all kinds of them; [`work`] is the worker and [`pause`] what stops it, [`store`] and [`serve`] the resource;
//! [`history`] records what each process says, and [`judgement`] what it comes to; [`mod@contend`] is the load,
//! [`mod@fill`] ten million locks, [`lab`] what the following share: [`experiments`], [`chaos`] (the long run under faults)
//! and [`peers`] (the comparison with other locks). [`report`] makes text, tables and figures of what was found.

pub mod chaos;
mod clock;
pub mod contend;
pub mod experiments;
pub mod faults;
pub mod fill;
pub mod history;
pub mod judgement;
pub mod lab;
mod limits;
pub mod pause;
pub mod peers;
pub mod report;
mod runtime;
pub mod serve;
pub mod servers;
pub mod span;
pub mod store;
mod stream;
pub mod systems;
mod timer;
pub mod work;

pub use runtime::TokioRuntime;
pub use stream::Stream;
