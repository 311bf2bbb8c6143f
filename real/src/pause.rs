//! How a live worker is made to pause: as by a garbage collection, or by SIGSTOP.
#![allow(clippy::disallowed_methods, reason = "to block the thread is the point")]

use std::time::Duration;

use resource::worker::{Pauses, Step};
use rustix::process::{Signal, getpid, kill_process};

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
        tracing::info!(target: "fault", event = "fault_applied", detail);
        match self.how {
            How::World(time) => std::thread::sleep(time),
            // It does not return before the process is continued. To stop oneself can't fail.
            _ => drop(kill_process(getpid(), Signal::STOP)),
        }
        tracing::info!(target: "fault", event = "fault_healed", detail = "resumed");
    }
}
