//! The operator of a long run: raises the counters of a Redis that has lost its data, by `real raise`.
#![allow(clippy::disallowed_methods, reason = "waits for another process, in real time")]

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::servers::{Launch, ServerError, Stage};

/// The time from the restart of the server until the operator acts: what the alert and a person take.
pub(super) const ACTS_AFTER: Duration = Duration::from_millis(500);

/// The number of raises of one fault until the run fails: other faults may hold them up.
pub(super) const TRIES: u32 = 120;

/// The timeout of one command.
const COMMAND: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);

/// The prefix of the workers' keys, their default.
const KEY: &str = "account";

/// The servers and the resource of a run.
pub(super) struct Operator<'a> {
    pub(super) stage: &'a Stage,
    pub(super) folder: &'a str,
    pub(super) system: &'a str,
    /// The lock servers, as `--servers` takes them.
    pub(super) servers: String,
    pub(super) resource: &'a str,
    /// The number of keys.
    pub(super) keys: u64,
}

impl Operator<'_> {
    /// Raises the counter of each key. Returns what the command said if it failed.
    pub(super) fn raise(&self) -> Result<Result<(), String>, ServerError> {
        for number in 0..self.keys {
            if let Err(words) = self.raise_one(&format!("{KEY}:{number}"))? {
                return Ok(Err(words));
            }
        }
        Ok(Ok(()))
    }

    fn raise_one(&self, key: &str) -> Result<Result<(), String>, ServerError> {
        let directory = self.stage.subdirectory(self.folder)?;
        // The running program, even if its file has been replaced since, as by a build.
        let program = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
        let launch = Launch::new(&format!("{}-operator", self.folder), program, &directory)
            .args(["raise", key, "--system", self.system, "--servers", &self.servers])
            .args(["--resource", self.resource, "--reason", "its data was lost"]);
        let mut process = self.stage.spawn(&launch)?;
        let begun = Instant::now();
        loop {
            match process.exited() {
                Some(status) if status.success() => return Ok(Ok(())),
                Some(_) => return Ok(Err(process.last_words())),
                None if begun.elapsed() > COMMAND => return Ok(Err("no answer of `real raise`".to_owned())),
                None => thread::sleep(PAUSE),
            }
        }
    }
}
