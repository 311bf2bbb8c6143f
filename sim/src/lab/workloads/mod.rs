//! What the workers of the laboratory do: the real lock library and the real HTTP client, on the simulated world.

mod cas;
mod lock;

use futures_util::future::BoxFuture;

use super::given::MakeLock;
use super::options::Options;
use super::rounds::apart;
use super::seat::Seat;
use super::worker::WorkerMode;
use crate::sim::Process;

/// The main task of the worker `number`: waits for its start, then works all its rounds.
pub(super) async fn main(process: Process, options: Options, number: usize, given: Option<MakeLock>) {
    let spec = &options.workers[number];
    process.sleep(spec.starts.duration()).await;
    let seat = Seat { process: &process, options: &options, spec, number, given: given.as_ref() };
    rounds(seat).await;
}

fn rounds(seat: Seat<'_>) -> BoxFuture<'_, ()> {
    match seat.spec.mode {
        WorkerMode::Lock => lock::rounds(seat),
        WorkerMode::Cas => apart(cas::rounds(seat)),
    }
}
