//! Faults on live servers.
//!
//! | fault | how |
//! |---|---|
//! | pause, resume | [`Process::pause`](crate::servers::Process::pause) (SIGSTOP), [`resume`](crate::servers::Process::resume) (SIGCONT) |
//! | crash, restart with or without its data | [`Process::kill`](crate::servers::Process::kill) (SIGKILL), `restart` of each server with its [`Persistence`](crate::servers::Persistence), [`Redis::restart_empty`](crate::servers::Redis::restart_empty) |
//! | a replica that lags takes over | [`Redis::promote`](crate::servers::Redis::promote) |
//! | another etcd leader | [`EtcdCluster::move_leader`](crate::servers::EtcdCluster::move_leader), or the leader is killed |
//! | a step of a server's wall clock | [`WallClock`] |
//! | a cable pulled; packets dropped in one direction, answered by a reset, lost at random | [`Network`], as root |
//! | a link that is slow, cut in one direction, or reset | [`Proxy`] |

mod error;
mod link;
mod network;
mod proxy;
mod pump;
mod wall_clock;

pub use error::FaultError;
pub use link::{Direction, Link};
pub use network::{Filter, Network};
pub use proxy::Proxy;
pub use wall_clock::WallClock;
