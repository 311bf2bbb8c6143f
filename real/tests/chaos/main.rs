//! The long run, shortened, as one program.
//!
//! No test here may change the state of the process: the global subscriber, metrics recorder or environment.

mod postgres;
mod redis_etcd_zookeeper;
