//! The rounds of a worker that fires by its own clock: it waits for the next tick, acquires the lock, runs
//! the ticks that are due, commits each at the resource with its token, and releases.

use std::time::Duration;

use dlock::{Backend, Lock, LockKey};
use resource::cron::{Cron, Runner};
use resource::fence::cron::{Every, Tick};
use resource::worker::Pauses;
use sim::Process;
use sim::world::runtime::SimRuntime;

use super::options::Options;
use super::worker::Worker as Spec;

/// Longest time for which a lease is renewed if the schedule sets none: longer than any run.
const RENEW_CAP: Duration = Duration::from_secs(3600);

/// A worker that fires, with its process, its options, and a record of ticks of type `T`.
pub(crate) struct Firings<B: Backend<Runtime = SimRuntime>, T, P> {
    process: Process,
    runner: Runner<B, T, Every, P>,
    work: Duration,
}

impl<B, T, P> Firings<B, T, P>
where
    B: Backend<Runtime = SimRuntime>,
    T: resource::fence::cron::Ticks,
    P: Pauses,
{
    /// Creates the worker; `None` for options that no valid schedule has.
    pub(crate) fn new(
        (process, options, spec): (&Process, &Options, &Spec),
        lock: Lock<B>,
        key: LockKey,
        ticks: T,
        pauses: P,
    ) -> Option<Self> {
        let cron = Cron {
            acquire_timeout: spec.deadline.duration(),
            answer_timeout: spec.deadline.duration(),
            renew: spec.renew.then(|| spec.renew_cap.map_or(RENEW_CAP, |cap| cap.duration())),
            check: spec.check,
            ..Cron::new(key, options.cron.schedule().ok()?, options.cron.policy())
        };
        let (process, work) = (process.clone(), spec.work.duration());
        Some(Self { runner: Runner::new(lock, ticks, cron, pauses), process, work })
    }

    /// Waits for the next tick by the clock of the process.
    pub(crate) async fn next(&self) -> Option<Tick> {
        self.runner.next(|| wall_ms(&self.process)).await
    }

    /// Acquires the lock.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire`].
    pub(crate) async fn acquire(&self) -> Result<dlock::Handle<B>, dlock::AcquireError> {
        self.runner.acquire().await
    }

    /// Runs the ticks that are due, and releases.
    pub(crate) async fn run(&mut self, handle: dlock::Handle<B>) {
        let Self { process, runner, work } = self;
        let (work, of) = (*work, process.clone());
        // The history shows a firing that fails; the next one goes on.
        let worked = move |tick: Tick| {
            let process = of.clone();
            async move {
                if !work.is_zero() {
                    process.sleep(work).await;
                }
                format!("by {} at {tick}", process.name()).into_bytes()
            }
        };
        let _ = runner.run(handle, || wall_ms(process), worked).await;
    }
}

/// Returns the wall clock of the process in milliseconds of Unix time.
fn wall_ms(process: &Process) -> u64 {
    process.runtime().wall_nanos() / 1_000_000
}
