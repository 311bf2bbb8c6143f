//! Live servers as child processes, on free ports, in one temporary directory.
//!
//! A [`Stage`] is the directory and its guard: when the stage is dropped, and also when this process is
//! killed or interrupted, all processes of the stage are killed and the directory is removed. Servers are
//! values: a started one is ready, a dropped one is gone.
//!
//! The calls block until the server is ready: from async code, call them on a thread that may block.

mod error;
mod etcd;
mod guard;
mod host;
mod mariadb;
mod port;
mod postgres;
mod process;
mod program;
mod prometheus;
mod ready;
mod redis;
mod redis_cluster;
mod s3;
mod tls;
mod versions;
mod zookeeper;

pub use error::ServerError;
pub use etcd::{Etcd, EtcdCluster};
pub use guard::{Stage, end_left_stage};
pub(crate) use host::Cable;
pub use host::Host;
pub use mariadb::MariaDb;
pub use port::free_port;
pub use postgres::Postgres;
pub use process::{Launch, Process};
pub use prometheus::Prometheus;
pub use ready::{ask, ask_http};
pub use redis::{Persistence, Redis};
pub use redis_cluster::RedisCluster;
pub use s3::S3;
pub use tls::TlsFiles;
pub(crate) use versions::versions;
pub use zookeeper::{ZooKeeper, ZooKeeperEnsemble};
