//! The `real` command: its output, its exit codes and errors, and the processes and files that it leaves.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use history::{EventName, VerdictKind};
use real::servers::{Persistence, Redis, Stage, ask_http};

use crate::eventually::eventually;

fn real(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(arguments);
    command
}

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A process that is killed at the end of the test, and the port that it serves.
struct Served(Child, u16);

impl Drop for Served {
    fn drop(&mut self) {
        // Fails only if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(arguments: &[&str]) -> Served {
    let mut command = real(&["resource", "--listen", "127.0.0.1:0"]);
    let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().rsplit(':').next().unwrap().parse().unwrap();
    Served(child, port)
}

#[test]
fn up_starts_a_server_and_down_stops_it() {
    let stage = Stage::new().unwrap();
    let state = stage.directory().join("state.json");
    let state = ["--state", state.to_str().unwrap()];
    let (code, printed, _) = run(real(&["up", "redis"]).args(state));
    assert_eq!(code, Some(0), "{printed}");
    let (code, _, error) = run(real(&["up", "redis"]).args(state));
    assert_eq!(code, Some(2));
    assert!(error.contains("run `real down` first"), "{error}");
    let served = serve(&["--store", "memory"]);
    let address = format!("127.0.0.1:{}", served.1);
    let (code, printed, error) = run(real(&["worker", "--resource", &address, "--work", "0"]).args(state));
    assert_eq!(
        (code, printed.as_str()),
        (Some(0), "worker: account:0 token 1: written; released\n"),
        "{error}"
    );
    let polling = ["worker", "--resource", &address, "--work", "0", "--busy-poll", "0"];
    let (code, printed, error) = run(real(&polling).args(state));
    assert_eq!(
        (code, printed.as_str()),
        (Some(0), "worker: account:0 token 2: written; released\n"),
        "{error}"
    );
    let (code, _, error) = run(real(&["down"]).args(state));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let (code, _, error) = run(real(&["worker", "--resource", &address]).args(state));
    assert_eq!(code, Some(2));
    assert!(error.contains("run `real up redis` first"), "{error}");
}

#[test]
fn nothing_is_left_when_the_command_is_killed() {
    let stage = Stage::new().unwrap();
    // The experiment's directory is inside a known one, so that the test finds it.
    let folder = stage.subdirectory("tmp").unwrap();
    let mut command = real(&["experiment", "1", "--system", "redis", "--out"]);
    let mut child = command.arg(folder.join("out.json")).env("TMPDIR", &folder).spawn().unwrap();
    let inside =
        || fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()).collect::<Vec<PathBuf>>();
    // The Redis, the four resources, and a worker.
    let notes = || {
        let pids = inside().into_iter().flat_map(|stage| fs::read_dir(stage.join("pids")));
        let pids: Vec<_> = pids.flatten().flatten().collect();
        (pids.len() >= 6).then_some(pids)
    };
    let pids = eventually("six processes run", notes);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the directory is gone", || inside().is_empty().then_some(()));
    for pid in pids {
        let directory = Path::new("/proc").join(pid.file_name()).join("cwd");
        assert!(directory.read_link().is_err(), "{pid:?} still runs");
    }
}

#[test]
fn the_histories_of_several_processes_are_judged_as_one() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let file = |name: &str| stage.directory().join(name).to_str().unwrap().to_owned();
    let (of_resource, of_workers) = (file("resource.jsonl"), file("workers.jsonl"));
    let served = serve(&["--path", &file("resource.redb"), "--history", &of_resource]);
    let address = format!("127.0.0.1:{}", served.1);
    let mut workers =
        real(&["worker", "--servers", &redis.address(), "--resource", &address, "--history", &of_workers]);
    let (code, printed, error) = run(workers.args([
        "--contenders",
        "4",
        "--rounds",
        "3",
        "--keys",
        "2",
        "--work",
        "1ms",
        "--claim",
        "on",
    ]));
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(printed.lines().filter(|line| line.ends_with("written; released")).count(), 12, "{printed}");
    let (code, printed, error) =
        run(&mut real(&["audit", &of_resource, &of_workers, "--served-within", "60s"]));
    assert_eq!(code, Some(0), "{printed}{error}");
    assert!(
        printed.contains("12 grants, 12 releases, 0 renewals, 12 writes accepted, 0 refused"),
        "{printed}"
    );
    assert!(printed.contains("not judged: foreign_release"), "{printed}");
    assert!(printed.ends_with("no verdicts\n"), "{printed}");
    let lines = fs::read_to_string(&of_workers).unwrap();
    assert!(lines.contains(r#""process":"worker-4""#), "each contender has a name of its own");
    assert!(lines.contains(EventName::SectionEntered.as_str()));
}

#[test]
fn a_violation_exits_with_1_and_invalid_input_with_2() {
    let stage = Stage::new().unwrap();
    let (history, nonsense) = (stage.directory().join("h.jsonl"), stage.directory().join("n.jsonl"));
    let write = |at: u64, token: u64, version: u64| {
        format!(
            "{{\"at\":{at},\"process\":\"resource\",\"event\":\"write_accepted\",\
             \"resource_id_hash\":\"k\",\"fencing_token\":{token},\"version\":{version}}}"
        )
    };
    // The last line is torn, as by a SIGKILL.
    fs::write(&history, format!("{}\n{}\n{{\"at\":9", write(5, 2, 1), write(7, 1, 2))).unwrap();
    let (code, printed, _) = run(real(&["audit"]).arg(&history));
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains(VerdictKind::StaleWrite.name()), "{printed}");
    fs::write(&nonsense, "nonsense\n").unwrap();
    let (code, _, error) = run(real(&["audit"]).arg(&nonsense));
    assert_eq!(code, Some(2));
    assert!(error.contains("n.jsonl: line 1"), "{error}");
}

#[test]
fn the_resource_fences_unless_fencing_is_off() {
    for (fence, status) in [("on", "409 Conflict"), ("off", "200 OK")] {
        let served = serve(&["--store", "memory", "--fence", fence]);
        let put = |token: u64| {
            ask_http(served.1, "PUT", "/r/account:0", &format!("X-Fence-Token: {token}\r\n"), "x").unwrap()
        };
        assert!(put(34).starts_with("HTTP/1.1 200 OK"));
        assert!(put(33).starts_with(&format!("HTTP/1.1 {status}")), "{fence}");
        let metrics = ask_http(served.1, "GET", "/metrics", "", "").unwrap();
        let refused = u64::from(fence == "on");
        let series = r#"resource_stale_token_rejections_total{resource_type="account"}"#;
        assert!(metrics.contains(&format!("\n{series} {refused}\n")), "{metrics}");
    }
}

#[test]
fn a_worker_that_does_not_check_pauses_before_it_writes() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let served = serve(&["--store", "memory"]);
    let address = format!("127.0.0.1:{}", served.1);
    let history = stage.directory().join("worker.jsonl");
    let mut worker = real(&["worker", "--servers", &redis.address(), "--resource", &address]);
    let (code, _, error) =
        run(worker.args(["--check", "off", "--work", "1ms", "--pause", "2ms", "--history"]).arg(&history));
    assert_eq!(code, Some(0), "{error}");
    let history = fs::read_to_string(&history).unwrap();
    let paused = history.find("paused 2ms").expect("a pause");
    assert!(paused < history.find(EventName::WriteAnswered.as_str()).unwrap(), "{history}");
}

#[test]
fn a_system_is_also_called_a_backend() {
    for command in ["worker", "contend", "chaos", "gen"] {
        let (code, _, error) = run(&mut real(&[command, "--backend", "mysql"]));
        assert_eq!(code, Some(2));
        assert!(error.contains("invalid value 'mysql'") && error.contains("redis"), "{command}: {error}");
    }
}

#[test]
fn a_worker_refuses_a_resource_with_the_other_fencing() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    for (runs, other) in [("on", "off"), ("off", "on")] {
        let served = serve(&["--store", "memory", "--fence", runs]);
        let address = format!("127.0.0.1:{}", served.1);
        let worker = |fence: &str| {
            let servers = redis.address();
            let flags = ["worker", "--servers", &servers, "--resource", &address, "--fence", fence];
            run(real(&flags).args(["--work", "0"]))
        };
        let (code, printed, error) = worker(runs);
        assert_eq!(code, Some(0), "{printed}{error}");
        let (code, printed, error) = worker(other);
        assert_eq!((code, &*printed), (Some(2), ""), "{error}");
        assert!(error.contains(&format!("does not run with --fence {other}")), "{error}");
    }
}

#[test]
fn a_worker_shows_its_metrics() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let served = serve(&["--store", "memory"]);
    let address = format!("127.0.0.1:{}", served.1);
    let mut command =
        real(&["worker", "--servers", &redis.address(), "--resource", &address, "--metrics", "127.0.0.1:0"]);
    // The pause keeps the worker alive for the requests below.
    let mut child = command.args(["--work", "0", "--pause", "1h"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim_end_matches("/metrics\n").rsplit(':').next().unwrap().parse().unwrap();
    let worker = Served(child, port);
    let acquired = r#"redis_lease_acquire_total{system="redis",resource_type="account",outcome="done"} 1"#;
    let metrics = || ask_http(worker.1, "GET", "/metrics", "", "").unwrap();
    eventually("the acquire is counted", || metrics().contains(acquired).then_some(()));
    let elsewhere = ask_http(worker.1, "GET", "/", "", "").unwrap();
    assert!(elsewhere.starts_with("HTTP/1.1 404"), "{elsewhere}");
}

#[test]
fn errors_say_what_to_do() {
    let served = serve(&["--store", "memory"]);
    let address = format!("127.0.0.1:{}", served.1);
    let (code, _, error) = run(&mut real(&["resource", "--store", "memory", "--listen", &address]));
    assert_eq!(code, Some(2));
    assert!(error.contains("stop the process that listens there"), "{error}");
    let (code, _, error) =
        run(&mut real(&["worker", "--servers", "127.0.0.1:1,127.0.0.1:2", "--resource", &address]));
    assert_eq!(code, Some(2));
    assert!(error.contains("redis needs one server, but --servers lists 2"), "{error}");
    let (code, _, error) = run(&mut real(&["worker", "--busy-poll", "2ms"]));
    assert_eq!(code, Some(2));
    assert!(error.contains("give 1ms or less"), "{error}");
    let (code, printed, _) = run(&mut real(&[
        "worker",
        "--servers",
        "127.0.0.1:1",
        "--resource",
        &address,
        "--acquire-timeout",
        "100ms",
    ]));
    assert_eq!(code, Some(1), "nothing was done");
    assert!(printed.contains("no connection to the lock server at 127.0.0.1:1"), "{printed}");
    let mut missing = real(&["experiment", "1", "--system", "redis", "--out", "/dev/null"]);
    let (code, _, error) = run(missing.env("TMPDIR", "/no/such/directory"));
    assert_eq!(code, Some(2));
    assert!(error.contains("set TMPDIR"), "{error}");
}

#[test]
fn environment_variables_set_the_flags() {
    let served = serve(&["--store", "memory"]);
    let mut worker = real(&["worker"]);
    worker.envs([
        ("DLOCK_RESOURCE", format!("127.0.0.1:{}", served.1)),
        ("DLOCK_SERVERS", "127.0.0.1:1".to_owned()),
    ]);
    let (_, printed, _) =
        run(worker.env("DLOCK_ACQUIRE_TIMEOUT", "50ms").env("DLOCK_NAME", "from-the-environment"));
    assert!(printed.starts_with("from-the-environment: account:0: no lock until the deadline"), "{printed}");
    let mut output = String::new();
    real(&["worker", "--help"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
        .stdout
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    for flag in ["system", "ttl", "work", "pause", "contenders", "keys", "claim", "check"] {
        assert!(
            output.contains(&format!("DLOCK_{}", flag.to_uppercase())),
            "--{flag} has no variable:\n{output}"
        );
    }
}
