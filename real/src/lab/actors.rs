//! This program as the processes of an experiment: workers and resources, each with a history of its own.
#![allow(clippy::disallowed_methods, reason = "waits for other processes, in real time")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use dlock::LockKey;
use history::{Event, Kind, Span};
use resource::ResourceKey;

use super::LabError;
use crate::clock::machine_time;
use crate::servers::{Launch, Process, ServerError, Stage, ask_http};
use crate::systems::System;

/// Timeout for a single step of a process; long enough for a machine under load.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// A process of this program.
pub(crate) struct Actor {
    pub(crate) process: Process,
    /// The file of its history.
    pub(crate) history: PathBuf,
}

impl Actor {
    /// Starts `real COMMAND ARGUMENTS…`; `folder` is its place in the stage, `name` its name in the history.
    pub(crate) fn start(
        stage: &Stage,
        folder: &str,
        name: &str,
        command: &str,
        arguments: &[&str],
    ) -> Result<Self, ServerError> {
        // The running program, even if its file has been replaced since, as by a build.
        let program = format!("/proc/{}/exe", std::process::id());
        let directory = stage.subdirectory(folder)?;
        let history = directory.join(format!("{name}.jsonl"));
        let launch = Launch::new(&format!("{folder}-{name}"), program, &directory)
            .args([command, "--name", name, "--history"])
            .args([&history])
            .args(arguments);
        Ok(Self { process: stage.spawn(&launch)?, history })
    }

    /// Waits until it exits.
    pub(crate) fn ended(&mut self) -> Result<(), LabError> {
        self.until("end", |actor| actor.process.exited().map(|_| ()))
    }

    /// Waits until its history has an event of this name.
    pub(crate) fn wait_for_event(&mut self, event: &str) -> Result<(), LabError> {
        let line = format!(r#""event":"{event}""#);
        self.until("record the expected event", |actor| {
            fs::read_to_string(&actor.history).ok().filter(|text| text.contains(&line)).map(|_| ())
        })
    }

    /// Waits until it is stopped by SIGSTOP.
    pub(crate) fn stopped(&mut self) -> Result<(), LabError> {
        self.until("stop itself", |actor| actor.process.is_paused().then_some(()))
    }

    /// Kills it and records the crash in a history of its own, whose path it returns: the process's last line
    /// may be incomplete.
    pub(crate) fn crash(&mut self) -> Result<PathBuf, LabError> {
        self.process.kill();
        let process = self.history.file_stem().unwrap_or_default().to_string_lossy();
        let path = self.history.with_file_name(format!("{process}-crash.jsonl"));
        let kind = Kind::ProcessCrashed { detail: Some("killed by SIGKILL".into()) };
        let event = Event { at: machine_time(), process: process.as_ref().into(), kind };
        let written = fs::File::create(&path).and_then(|file| event.write_json(file));
        let help = "set TMPDIR to a directory that this user can write to";
        written.map_err(|source| LabError::File { path: path.clone(), source, help })?;
        Ok(path)
    }

    fn until<T>(
        &mut self,
        what: &'static str,
        mut done: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, LabError> {
        let begun = Instant::now();
        loop {
            if let Some(done) = done(self) {
                return Ok(done);
            }
            if begun.elapsed() > STEP_TIMEOUT {
                let (name, words) = (self.process.name().to_owned(), self.process.last_words());
                return Err(LabError::Stuck { name, what, seconds: STEP_TIMEOUT.as_secs(), words });
            }
            thread::sleep(PAUSE);
        }
    }
}

/// The options that the workers of one run share.
#[derive(Clone, Copy)]
pub(crate) struct Crew<'a> {
    pub(crate) stage: &'a Stage,
    /// The place of the run in the stage, and its key.
    pub(crate) run: &'a str,
    pub(crate) system: System,
    /// The lock servers, as `--servers` takes them.
    pub(crate) servers: &'a str,
    /// The address of the resource.
    pub(crate) resource: &'a str,
    pub(crate) ttl: Duration,
    pub(crate) work: Duration,
    /// The timeout of a worker's acquire.
    pub(crate) acquire_timeout: Duration,
}

impl<'a> Crew<'a> {
    /// Creates options for workers whose work takes no time, with a long acquire timeout.
    pub(crate) fn new(
        stage: &'a Stage,
        run: &'a str,
        system: System,
        servers: &'a str,
        resource: &'a str,
        ttl: Duration,
    ) -> Self {
        Self {
            stage,
            run,
            system,
            servers,
            resource,
            ttl,
            work: Duration::ZERO,
            acquire_timeout: STEP_TIMEOUT,
        }
    }

    /// Starts a worker with the shared flags and those in `more`.
    pub(crate) fn worker(&self, name: &str, more: &[&str]) -> Result<Actor, ServerError> {
        let Self { stage, run, system, servers, resource, .. } = *self;
        let [ttl, work, acquire_timeout] =
            [self.ttl, self.work, self.acquire_timeout].map(|span| Span(span).to_string());
        let mut arguments = vec!["--system", system.as_str(), "--servers", servers, "--key", run];
        arguments.extend([
            "--resource",
            resource,
            "--ttl",
            &ttl,
            "--work",
            &work,
            "--acquire-timeout",
            &acquire_timeout,
        ]);
        arguments.extend(more);
        Actor::start(stage, run, name, "worker", &arguments)
    }

    /// Returns the key of its resource.
    pub(crate) fn key(&self) -> Result<ResourceKey, LabError> {
        let no_key = |error: String| LabError::Resource(io::Error::other(error));
        let key = LockKey::new(self.run, "0").map_err(|error| no_key(error.to_string()))?;
        ResourceKey::new(key.name()).map_err(|error| no_key(error.to_string()))
    }
}

/// A resource as a process of its own.
pub(crate) struct ResourceActor {
    pub(crate) actor: Actor,
    port: u16,
    address: String,
}

impl ResourceActor {
    /// Starts a resource with a store on disk, on a free port, and waits until it listens.
    pub(crate) fn start(stage: &Stage, folder: &str, fence: &str) -> Result<Self, LabError> {
        Self::start_on(stage, folder, "redb", fence)
    }

    /// As [`ResourceActor::start`], with the store `store`: `redb`, a file on the disk, or `memory`.
    pub(crate) fn start_on(stage: &Stage, folder: &str, store: &str, fence: &str) -> Result<Self, LabError> {
        let arguments =
            ["--listen", "127.0.0.1:0", "--store", store, "--path", "resource.redb", "--fence", fence];
        let mut actor = Actor::start(stage, folder, "resource", "resource", &arguments)?;
        let port = actor.until("listen", |actor| listening(actor.process.log()))?;
        Ok(Self { actor, port, address: format!("127.0.0.1:{port}") })
    }

    /// Returns `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Waits until it has accepted or refused `writes` writes.
    pub(crate) fn wait_for_writes(&mut self, writes: usize) -> Result<(), LabError> {
        const ANSWERS: [&str; 2] = [r#""event":"write_accepted""#, r#""event":"write_rejected""#];
        self.actor.until("receive all writes", |actor| {
            let text = fs::read_to_string(&actor.history).ok()?;
            let decided =
                text.lines().filter(|line| ANSWERS.iter().any(|answer| line.contains(answer))).count();
            (decided >= writes).then_some(())
        })
    }

    /// Returns the answer to `GET /r/KEY`.
    pub(crate) fn read(&self, key: &ResourceKey) -> Result<String, LabError> {
        self.ask("GET", &format!("/r/{}", key.to_path_segment()), "", "").map(|(_, body)| body)
    }

    /// Returns the status line and body of the answer to a `PUT /r/KEY` with this token.
    pub(crate) fn write(&self, key: &ResourceKey, token: u64) -> Result<(String, String), LabError> {
        let path = format!("/r/{}", key.to_path_segment());
        self.ask("PUT", &path, &format!("X-Fence-Token: {token}\r\n"), "once more")
    }

    /// Returns the sum of a metric's time series; zero if there is none yet.
    pub(crate) fn metric(&self, name: &str) -> Result<u64, LabError> {
        let (_, text) = self.ask("GET", "/metrics", "", "")?;
        if !text.contains(&format!("# TYPE {name} ")) {
            return Err(LabError::Resource(io::Error::other(format!("it has no metric {name}"))));
        }
        let sample = |line: &str| {
            let rest = line.strip_prefix(name).filter(|rest| rest.starts_with(['{', ' ']))?;
            rest.rsplit_once(' ')?.1.parse::<u64>().ok()
        };
        Ok(text.lines().filter_map(sample).sum())
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Result<(String, String), LabError> {
        let answer = ask_http(self.port, method, path, headers, body).map_err(LabError::Resource)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        Ok((head.lines().next().unwrap_or_default().to_owned(), body.to_owned()))
    }
}

fn listening(log: &Path) -> Option<u16> {
    let text = fs::read_to_string(log).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("listening on "))?;
    line.rsplit_once(':')?.1.parse().ok()
}
