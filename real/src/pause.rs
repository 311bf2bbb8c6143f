//! How a live worker is made to pause: as by a garbage collection, or by SIGSTOP.
#![allow(clippy::disallowed_methods, reason = "to block the thread is the point")]

use std::time::Duration;

use resource::worker::{Pauses, Step};
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

/// A pause at each step `at`, that stops everything the worker does beside it: its renewals and its session too.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// Where in its round.
    pub at: Step,
    /// How.
    pub how: How,
}

/// What stops the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Nothing.
    Not,
    /// Its thread sleeps, with the whole of its runtime: a garbage collection that stops the world.
    World(Duration),
    /// Its process stops itself by SIGSTOP, until somebody sends it SIGCONT.
    Stop,
}

impl Pauses for Pause {
    async fn at(&self, step: Step) {
        if step != self.at || self.how == How::Not {
            return;
        }
        let detail = match self.how {
            How::World(time) => format!("paused {time:?}"),
            _ => "stopped by SIGSTOP".to_owned(),
        };
        tracing::info!(target: "fault", event = "fault_applied", fault = 0_u64, verb = "pause", detail);
        match self.how {
            How::World(time) => std::thread::sleep(time),
            _ => stop_until_continued().await,
        }
        tracing::info!(target: "fault", event = "fault_healed", fault = 0_u64, verb = "pause", detail = "resumed");
    }
}

/// The signal is the process's: another thread may take it, and this one run on for a moment before all are stopped. So
/// it goes on only when SIGCONT has come.
async fn stop_until_continued() {
    let continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()));
    // To stop oneself can't fail.
    let _ = kill_process(getpid(), Signal::STOP);
    if let Ok(mut continued) = continued {
        continued.recv().await;
    }
}
