//! The small workloads, for exhaustive searches.

use std::num::NonZeroU8;

use sim::{Schedule, Span};

use super::options::{Options, schedule};
use super::servers::{Resource, Store};
use super::system::System;
use super::worker::{SEVERAL, Worker, WorkerMode};

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

/// Returns [`small`] with this number of keys, all of which each worker locks at once and writes. The second
/// worker names them in reverse: locks taken in the order of the request would wait for each other for ever.
pub fn small_with_keys(system: System, keys: NonZeroU8) -> Schedule<Options> {
    let mut schedule = small(system);
    if keys.get() > 1 {
        schedule.about =
            format!("Two workers that name the same {keys} keys in opposite orders, on {system}");
        let names: Vec<_> =
            (0..keys.get()).map(|number| format!("orders:{}", 42 + u32::from(number))).collect();
        schedule.options.keys.clone_from(&names);
        for (worker, reversed) in schedule.options.workers.iter_mut().zip([false, true]) {
            worker.mode = WorkerMode::new(SEVERAL);
            worker.keys.clone_from(&names);
            if reversed {
                worker.keys.reverse();
            }
        }
    }
    schedule
}
