//! Faults on live servers.
//!
//! | fault | how |
//! |---|---|
//! | pause, resume | [`Process::pause`](crate::servers::Process::pause) (SIGSTOP), [`resume`](crate::servers::Process::resume) (SIGCONT) |
//! | crash, restart with or without its data | [`Process::kill`](crate::servers::Process::kill) (SIGKILL), `restart` of each server, with its [`Persistence`](crate::servers::Persistence) |
//! | a replica that lags takes over | [`Redis::promote`](crate::servers::Redis::promote) |
//! | another etcd leader | [`EtcdCluster::move_leader`](crate::servers::EtcdCluster::move_leader), or the leader is killed |
//! | a link that is slow, cut in one direction, or reset | [`Proxy`] |

mod proxy;
mod pump;

pub use proxy::{Direction, Link, Proxy};
