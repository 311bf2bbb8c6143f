//! The small workloads, for exhaustive searches.

use sim::{Schedule, Span};

use super::options::{Options, schedule};
use super::servers::{Resource, Store};
use super::system::System;
use super::worker::Worker;

/// Returns the schedule of two workers that want one key at once and write once each. Servers and the
/// resource keep all acknowledged writes on their disks, so that no crash excuses a verdict.
pub fn small(system: System) -> Schedule<Options> {
    let worker =
        |name: &str| Worker { name: name.into(), deadline: Span::from_secs(10), ..Worker::default() };
    let about = format!("Two workers, one key, one write each, on {system}");
    let mut schedule = schedule(&about, system, Span::from_secs(2), vec![worker("a"), worker("b")]);
    schedule.options.resource = Resource { store: Store::Redb };
    system.get().small(&mut schedule.options);
    schedule
}
