//! Pauses of a live worker: as by a garbage collection, or by SIGSTOP.
#![allow(clippy::disallowed_methods, reason = "to block the thread is the point")]

use std::future::Future;
use std::time::Duration;

use history::Effect;
use resource::worker::{Droppable, Pauses, Step};
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tracing::field::display;

use crate::stop::Stop;

/// Pauses at each step `at`, and stops everything in the worker: its renewals and its session too.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// The step.
    pub at: Step,
    /// The kind of pause.
    pub how: How,
}

/// The kind of pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// No pause.
    Not,
    /// Blocks its thread with its whole runtime, as a stop-the-world garbage collection does.
    World(Duration),
    /// Stops its process by SIGSTOP, until it receives SIGCONT.
    Stop,
}

/// The pauses of a worker that can be asked to stop: then it drops its section, and goes on to the release.
#[derive(Clone, Debug)]
pub(crate) struct Stoppable {
    pub(crate) pause: Pause,
    pub(crate) stop: Stop,
}

impl Pauses for Stoppable {
    async fn at(&self, step: Step) {
        let Pause { at, how } = self.pause;
        if step != at || how == How::Not {
            return;
        }
        let detail = match how {
            How::World(time) => format!("paused {time:?}"),
            _ => "stopped by SIGSTOP".to_owned(),
        };
        let effect = display(Effect::Pause);
        history::emit!(FaultApplied {
            fault: 0_u64,
            verb: "pause",
            effect: effect,
            until: None::<u64>,
            detail: detail
        });
        match how {
            How::World(time) => drop(self.stop.block(time)),
            _ => stop_until_continued().await,
        }
        let detail = "resumed";
        let effect = display(Effect::Pause);
        history::emit!(FaultHealed { fault: 0_u64, verb: "pause", effect: effect, detail: detail });
    }

    async fn run<F>(&self, which: Droppable, future: F) -> Option<F::Output>
    where
        F: Future + Send,
        F::Output: Send,
    {
        match which {
            Droppable::Section | Droppable::Renewed => self.stop.or(future).await,
            // A stop is to free the lock.
            Droppable::Release => Some(future.await),
        }
    }
}

/// Stops the process and waits for SIGCONT. The signal goes to the whole process: another thread may take it,
/// and this one may run for a moment before all are stopped.
async fn stop_until_continued() {
    let continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()));
    // Sending a signal to oneself can't fail.
    let _ = kill_process(getpid(), Signal::STOP);
    if let Ok(mut continued) = continued {
        continued.recv().await;
    }
}
