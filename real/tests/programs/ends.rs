//! The ends of commands on live servers: a signal gives the report so far and frees the locks, and a command
//! that has checked nothing, or failed, is no success.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use dlock::LockKey;
use real::recording::read;
use real::servers::{Persistence, Redis, Stage, ask, ask_http};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::eventually::eventually;

fn real(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(arguments);
    command
}

/// Runs a command to its end: its exit code, its output and its errors.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = real(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A command that runs. Its output goes to files, so that no full pipe holds it up.
struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    fn start(folder: &Path, name: &str, command: &mut Command) -> Self {
        let (stdout, stderr) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
        let file = |path: &Path| File::create(path).unwrap();
        command.stdin(Stdio::null()).stdout(file(&stdout)).stderr(file(&stderr));
        Self { child: command.spawn().unwrap(), stdout, stderr }
    }

    fn stdout(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; returns the exit code and the output with the errors.
    fn end(&mut self) -> (Option<i32>, String) {
        let status = eventually("the command ends", || self.child.try_wait().unwrap());
        (status.code(), self.stdout() + &fs::read_to_string(&self.stderr).unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A resource that accepts connections, but never answers.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// A Redis, a resource, and a folder for files.
struct Site {
    stage: Stage,
    redis: Redis,
    resource: Running,
    address: String,
}

impl Site {
    fn new() -> Self {
        let stage = Stage::new().unwrap();
        let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
        let mut command = real(&["resource", "--listen", "127.0.0.1:0", "--store", "memory"]);
        let resource = Running::start(stage.directory(), "resource", &mut command);
        let listening = || resource.stdout().trim().strip_prefix("listening on ").map(str::to_owned);
        let address = eventually("the resource listens", listening);
        Self { stage, redis, resource, address }
    }

    fn file(&self, name: &str) -> String {
        self.stage.directory().join(name).to_str().unwrap().to_owned()
    }

    /// Starts a worker on the key `account:0`, whose lease lasts a minute. Its history is `worker.jsonl`.
    fn worker(&self, resource: &str, more: &[&str]) -> Running {
        let (servers, history) = (self.redis.address(), self.file("worker.jsonl"));
        let mut worker = real(&["worker", "--servers", &servers, "--resource", resource, "--ttl", "60s"]);
        worker.args(["--acquire-timeout", "1h", "--history", &history]).args(more);
        Running::start(self.stage.directory(), "worker", &mut worker)
    }

    /// Returns the owner of a key of `PREFIX:0`, as the server knows it; `None` if nobody holds it.
    fn owner(&self, prefix: &str) -> Option<String> {
        let key = LockKey::new(prefix, "0").unwrap();
        let get = format!("GET {}\r\n", key.owner_key());
        let is_whole = |answer: &str| answer == "$-1\r\n" || answer.matches("\r\n").count() == 2;
        let answer = ask(self.redis.port(), &get, is_whole).unwrap();
        (answer != "$-1\r\n").then(|| answer.lines().nth(1).unwrap_or_default().to_owned())
    }

    /// Sends the worker the signal once its history has `event`. It must end with 130, its history must be
    /// whole, and the lock must be free at once. Returns its output.
    fn stops(&self, mut worker: Running, event: &str, signal: Signal) -> String {
        let history = self.file("worker.jsonl");
        let happened = || fs::read_to_string(&history).ok()?.contains(event).then_some(());
        eventually(event, happened);
        worker.signal(signal);
        let (code, printed) = worker.end();
        assert_eq!(self.owner("account"), None, "the lock is still held: {printed}");
        assert_eq!(code, Some(130), "{printed}");
        let text = fs::read_to_string(&history).unwrap();
        assert!(text.ends_with('\n') && read(&[&history]).is_ok(), "{text}");
        fs::remove_file(&history).unwrap();
        printed
    }
}

#[test]
fn a_worker_that_gets_a_signal_releases_its_lock() {
    let site = Site::new();
    for signal in [Signal::TERM, Signal::INT] {
        let worker = site.worker(&site.address, &["--work", "1h"]);
        let printed = site.stops(worker, "section_entered", signal);
        assert!(printed.contains("stopped, perhaps before its write; released"), "{printed}");
        // Beside the renewals.
        let worker = site.worker(&site.address, &["--work", "1h", "--renew", "2h", "--claim", "on"]);
        let printed = site.stops(worker, "\"step\":\"read\"", signal);
        assert!(printed.contains("stopped, perhaps before its write; released"), "{printed}");
    }
}

#[test]
fn a_worker_that_gets_a_signal_leaves_any_wait() {
    let site = Site::new();
    // Between two rounds.
    let resting = ["--work", "0", "--rounds", "2", "--rest", "1h"];
    let printed = site.stops(site.worker(&site.address, &resting), "lease_released", Signal::TERM);
    assert!(printed.contains("written; released"), "{printed}");
    // In a pause of its whole thread.
    let paused = site.worker(&site.address, &["--work", "0", "--pause", "1h"]);
    site.stops(paused, "paused", Signal::TERM);
    // In a write that is never answered.
    let (listener, silent) = silent();
    site.stops(site.worker(&silent, &["--work", "0"]), "write_sent", Signal::TERM);
    drop(listener);
}

#[test]
fn a_worker_that_waits_for_the_lock_gives_up_at_a_signal() {
    let site = Site::new();
    let key = LockKey::new("account", "0").unwrap();
    let taken = format!("SET {} somebody PX 600000\r\n", key.owner_key());
    assert_eq!(ask(site.redis.port(), &taken, |answer| answer.ends_with("\r\n")).unwrap(), "+OK\r\n");
    let mut worker = site.worker(&site.address, &[]);
    let history = site.file("worker.jsonl");
    let waits = || fs::read_to_string(&history).ok()?.contains("lease_requested").then_some(());
    eventually("the worker waits", waits);
    worker.signal(Signal::TERM);
    let (code, printed) = worker.end();
    assert_eq!(code, Some(130), "{printed}");
    assert_eq!(site.owner("account").as_deref(), Some("somebody"));
}

#[test]
fn all_contenders_of_a_worker_release_their_locks() {
    let site = Site::new();
    let mut worker =
        site.worker(&site.address, &["--work", "1h", "--contenders", "6", "--keys", "3", "--key", "many"]);
    let history = site.file("worker.jsonl");
    let entered = || {
        let text = fs::read_to_string(&history).ok()?;
        (text.matches("section_entered").count() == 3).then_some(())
    };
    eventually("three hold a lock, and three wait", entered);
    worker.signal(Signal::TERM);
    let (code, printed) = worker.end();
    let keys = ask(site.redis.port(), "KEYS *:owner*\r\n", |answer| answer.ends_with("\r\n")).unwrap();
    assert_eq!((code, keys.as_str()), (Some(130), "*0\r\n"), "{printed}");
}

#[test]
fn a_second_signal_ends_a_worker_at_once() {
    let site = Site::new();
    let mut worker = site.worker(&site.address, &["--work", "1h"]);
    let history = site.file("worker.jsonl");
    let entered = || fs::read_to_string(&history).ok()?.contains("section_entered").then_some(());
    eventually("the worker works", entered);
    // The release gets no answer while the server is stopped.
    let mut redis = site.redis;
    redis.process().pause();
    worker.signal(Signal::TERM);
    let asked = || fs::read_to_string(&history).ok()?.contains("release_requested").then_some(());
    eventually("the worker releases", asked);
    worker.signal(Signal::INT);
    let (code, printed) = worker.end();
    assert_eq!(code, Some(130), "{printed}");
    assert!(!printed.contains("stopped"), "it ended before its release: {printed}");
    redis.process().resume();
}

#[test]
fn a_resource_that_gets_a_signal_ends_well() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut site = Site::new();
        site.resource.signal(signal);
        assert_eq!(site.resource.end(), (Some(0), format!("listening on {}\n", site.address)));
    }
}

#[test]
fn a_worker_without_a_resource_fails_at_once() {
    let site = Site::new();
    let (code, _, error) = run(&["worker", "--servers", &site.redis.address(), "--resource", "127.0.0.1:1"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("no connection to the resource at 127.0.0.1:1 within 5 s"), "{error}");
    assert!(error.contains("give its address to --resource"), "{error}");
    assert_eq!(site.owner("account"), None);
}

#[test]
fn a_worker_whose_write_fails_says_so() {
    let site = Site::new();
    let servers = site.redis.address();
    let port = site.address.rsplit(':').next().unwrap().parse().unwrap();
    // Another writer was there with a token that only the third grant exceeds.
    ask_http(port, "PUT", "/r/account:0", "X-Fence-Token: 2\r\n", "x").unwrap();
    let worker = ["worker", "--servers", &servers, "--resource", &site.address, "--work", "0"];
    let (code, printed, error) = run(&[&worker[..], &["--rounds", "3"]].concat());
    assert_eq!(code, Some(1), "{printed}{error}");
    let why = "2 of 3 writes failed, the first: worker: account:0 token 1: refused, 409 stale fencing token";
    assert!(error.contains(why), "{printed}{error}");
}

#[test]
fn a_worker_whose_write_has_no_answer_says_so() {
    let site = Site::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // Closes every connection, as a resource that crashes.
    thread::Builder::new().spawn(move || listener.incoming().for_each(drop)).unwrap();
    let (code, printed, error) =
        run(&["worker", "--servers", &site.redis.address(), "--resource", &address, "--work", "0"]);
    assert_eq!(code, Some(1), "{printed}{error}");
    assert!(
        error.contains("1 of 1 writes failed, the first: worker: account:0 token 1: no answer"),
        "{error}"
    );
}

#[test]
fn a_worker_without_rounds_is_an_error() {
    let site = Site::new();
    let servers = site.redis.address();
    let worker = ["worker", "--servers", &servers, "--resource", &site.address, "--rounds", "0"];
    let (code, _, error) = run(&worker);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("set --contenders, --keys and --rounds to at least 1"), "{error}");
}

#[test]
fn a_load_that_gets_a_signal_reports_and_frees_its_locks() {
    let site = Site::new();
    for (name, signal) in [("int", Signal::INT), ("term", Signal::TERM)] {
        let (servers, out) = (site.redis.address(), site.file(&format!("{name}.json")));
        let mut command = real(&["contend", "--servers", &servers, "--for", "10m", "--rate", "200"]);
        command.args(["--ttl", "60s", "--work", "20ms", "--contenders", "8", "--out", &out]);
        let mut load = Running::start(site.stage.directory(), name, &mut command);
        eventually("the load holds a lock", || site.owner("contend"));
        load.signal(signal);
        let (code, printed) = load.end();
        assert_eq!(site.owner("contend"), None, "{printed}");
        assert_eq!(code, Some(130), "{printed}");
        assert!(printed.contains(" attempts: ") && printed.contains("interrupted after "), "{printed}");
        let report: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
        let count = |name: &str| report[name].as_u64().unwrap();
        assert_eq!(count("offered"), count("served") + count("unserved") + count("failed"), "{report}");
        assert!(count("offered") < 200 * 60, "only those due by then: {report}");
        assert!(report["stopped_after"].is_object(), "{report}");
    }
}

#[test]
fn a_load_of_tasks_that_gets_a_signal_stops_its_work() {
    let site = Site::new();
    for (primitive, begun) in
        [("single-flight", "computation_started"), ("cron:100ms", "task_started"), ("jobs", "task_started")]
    {
        let (name, servers) = (primitive.replace(':', "-"), site.redis.address());
        let history = site.file(&format!("{name}.jsonl"));
        let mut command = real(&["contend", "--servers", &servers, "--for", "10m", "--rate", "50"]);
        command.args(["--primitive", primitive, "--work", "1h", "--contenders", "2", "--history", &history]);
        let mut load = Running::start(site.stage.directory(), &name, &mut command);
        eventually("the work begins", || {
            fs::read_to_string(&history).ok().filter(|events| events.contains(begun))
        });
        load.signal(Signal::INT);
        // The work would take an hour.
        let (code, printed) = load.end();
        assert!(code == Some(130) && printed.contains("interrupted after "), "{primitive}: {printed}");
    }
}

#[test]
fn a_load_that_serves_nobody_is_no_success() {
    let site = Site::new();
    let key = LockKey::new("contend", "0").unwrap();
    let taken = format!("SET {} somebody PX 600000\r\n", key.owner_key());
    assert_eq!(ask(site.redis.port(), &taken, |answer| answer.ends_with("\r\n")).unwrap(), "+OK\r\n");
    let (code, printed, error) =
        run(&["contend", "--servers", &site.redis.address(), "--for", "200ms", "--rate", "50"]);
    assert_eq!(code, Some(1), "{printed}{error}");
    assert!(error.contains("no attempt was served"), "{printed}{error}");
}

/// Starts a long run of workers on one Redis, with its processes in the folder `tmp`.
fn chaos(stage: &Stage, more: &[&str]) -> Running {
    let (out, tmp) = (stage.directory().join("out"), stage.subdirectory("tmp").unwrap());
    let mut command =
        real(&["chaos", "--system", "redis", "--workers", "3", "--for", "10m", "--every", "300ms"]);
    command.args(["--faults", "pause-worker,cut-link", "--out"]).arg(out).args(more).env("TMPDIR", tmp);
    Running::start(stage.directory(), "chaos", &mut command)
}

/// Ends the long run by the signal. It must report, keep its files, and exit with 130. Returns its report.
fn stops_chaos(stage: &Stage, mut chaos: Running, signal: Signal) -> Value {
    chaos.signal(signal);
    let (code, printed) = chaos.end();
    assert_eq!(code, Some(130), "{printed}");
    assert!(printed.contains("  interrupted: the report is of the time before"), "{printed}");
    let folder = stage.directory().join("out/redis-on-1");
    assert!(!read(&[folder.join("history.jsonl")]).unwrap().events.is_empty(), "{printed}");
    let report: Value = serde_json::from_slice(&fs::read(folder.join("report.json")).unwrap()).unwrap();
    assert_eq!(report["interrupted"], true, "{report}");
    let left = fs::read_dir(stage.directory().join("tmp")).unwrap().count();
    assert_eq!(left, 0, "its processes have ended");
    report
}

#[test]
fn a_long_run_that_gets_a_signal_reports_on_the_time_before() {
    let stage = Stage::new().unwrap();
    for signal in [Signal::INT, Signal::TERM] {
        let chaos = chaos(&stage, &[]);
        eventually("a fault strikes", || chaos.stdout().lines().nth(2).map(drop));
        let report = stops_chaos(&stage, chaos, signal);
        let faults = report["faults"].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
        assert!((1..100).contains(&faults), "only those that struck: {report}");
        assert!(report["grants"].as_u64().unwrap() > 0, "{report}");
    }
    let kept = stage.directory().join("out/redis-on-1.earlier");
    assert!(!read(&[kept.join("history.jsonl")]).unwrap().events.is_empty(), "the first run's files");
    assert!(kept.join("plan.json").exists() && kept.join("report.json").exists());
}

#[test]
fn a_long_run_that_gets_a_signal_while_it_waits_for_its_workers_ends() {
    let stage = Stage::new().unwrap();
    // The third worker renews its lease for as long as it works, so that the others are never served.
    let chaos = chaos(&stage, &["--work", "1h"]);
    let histories = || fs::read_dir(stage.directory().join("tmp")).ok()?.next()?.ok().map(|at| at.path());
    let waits = || {
        let worker = fs::read_to_string(histories()?.join("chaos/c.jsonl")).ok()?;
        worker.contains("lease_requested").then_some(())
    };
    eventually("the workers ask for the lock", waits);
    let report = stops_chaos(&stage, chaos, Signal::TERM);
    assert_eq!(report["faults"].as_object().unwrap().len(), 0, "{report}");
}

#[test]
fn a_long_run_without_a_fault_is_an_error() {
    let stage = Stage::new().unwrap();
    let out = stage.directory().join("out");
    let chaos =
        ["chaos", "--system", "redis", "--for", "1s", "--every", "1h", "--out", out.to_str().unwrap()];
    let (code, _, error) = run(&chaos);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("no fault strikes within --for 1s"), "{error}");
}
