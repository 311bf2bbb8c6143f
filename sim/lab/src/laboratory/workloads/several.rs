//! Several keys at once: a worker acquires the locks on some keys together, works under each of them in turn,
//! writes with the token of that key, and releases all.

use futures_util::future::BoxFuture;
use sim::entropy::Site;
use sim::{FieldPath, Invalid};

use super::super::options::Options;
use super::super::point::Point;
use super::super::seat::Seat;
use super::super::wider::Wider;
use super::super::worker::{ReleaseMode, SEVERAL, Worker, WorkerMode};
use super::Workload;
use super::lock::Locking;

/// The workload `several`.
pub(super) struct Several;

impl Workload for Several {
    fn name(&self) -> &'static str {
        SEVERAL
    }

    fn acquires(&self) -> bool {
        true
    }

    fn round(&self) -> &'static str {
        "locks its `keys` together"
    }

    fn check(&self, path: &FieldPath, worker: &Worker, options: &Options) -> Result<(), Invalid> {
        let name = &worker.name;
        if worker.key.is_some() {
            let problem =
                format!("`key` does not apply to `mode = \"{SEVERAL}\"`: `{name}` {}", self.round());
            return Err(path.key("key").says(problem));
        }
        if worker.release == ReleaseMode::GetDel {
            let problem =
                format!("`release` = \"get-del\" of `{name}`: it does not apply to `mode = \"{SEVERAL}\"`");
            return Err(path.key("release").says(problem));
        }
        for (at, key) in worker.keys.iter().enumerate() {
            let problem = match () {
                () if !options.keys.contains(key) => {
                    format!("unknown key `{key}` of `{name}`: the schedule has {}", options.keys.join(", "))
                }
                () if worker.keys[..at].contains(key) => format!("`{name}` names the key `{key}` twice"),
                () => continue,
            };
            return Err(path.key("keys").index(at).says(problem));
        }
        match options.keys_of(worker).len() {
            0 | 1 => {
                let problem = format!("`{name}` has one key: `mode = \"{SEVERAL}\"` needs two at least");
                Err(path.key("mode").says(problem))
            }
            _ => Ok(()),
        }
    }

    fn reads(&self, worker: &Worker) -> bool {
        Locking.reads(worker)
    }

    fn never_passes(&self, worker: &Worker, point: Point) -> Option<&'static str> {
        Locking.never_passes(worker, point)
    }

    fn wider(&self) -> &'static [Wider] {
        const { &[Wider::new("several keys", 0.06, several_keys)] }
    }

    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        seat.options.system.get().work(seat)
    }
}

/// The keys of a drawn schedule: few, so that workers meet.
const KEYS: std::ops::Range<u32> = 42..45;

/// Makes workers lock two or three keys, each in an order of its own; one in five locks one of them.
fn several_keys(options: &mut Options, site: &mut Site) {
    options.keys = KEYS.map(|number| format!("orders:{number}")).collect();
    for worker in options.workers.iter_mut().filter(|worker| worker.mode == WorkerMode::default()) {
        let mut keys = options.keys.clone();
        let drawn: Vec<String> =
            (0..2 + site.below(2)).map(|_| keys.remove(site.below(keys.len() as u64) as usize)).collect();
        if site.chance(0.2) {
            worker.key = drawn.into_iter().next();
            continue;
        }
        (worker.mode, worker.key, worker.keys) = (WorkerMode::new(SEVERAL), None, drawn);
    }
    // Workers of other workloads have their keys still.
    let first = options.keys.first().cloned();
    for worker in &mut options.workers {
        worker.key =
            worker.key.take().filter(|key| options.keys.contains(key) && Some(key) != first.as_ref());
    }
}
