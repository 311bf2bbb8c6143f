//! `--primitive` and `--tokens` of `worker` and `contend`, on a live Redis: each primitive does its rounds,
//! the audit finds nothing to say, tokens come from the source that is named, and what can't be done is
//! refused with a reason.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use dlock::redis::shared_counter;
use real::servers::{Persistence, Postgres, Redis, Stage};

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_real")).args(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A resource that keeps a history. It is killed at the end of the test.
struct Resource(Child, String);

impl Resource {
    fn start(history: &str) -> Self {
        let arguments = ["resource", "--listen", "127.0.0.1:0", "--store", "memory", "--history", history];
        let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().to_owned();
        Self(child, format!("127.0.0.1:{port}"))
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        // Fails only if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Each primitive, with the end of the lines of rounds that did what it is for, and their least number of
/// nine.
const PRIMITIVES: [(&str, &str, usize); 10] = [
    ("mutex", "written; released", 9),
    // A contender more than may wait is refused at once.
    ("bounded:1", "written; released", 3),
    ("semaphore:2", "written; released", 9),
    ("readers", "written; released", 9),
    ("several:2", "written; released", 9),
    ("reentrant:3", "written; released", 9),
    ("election", "written; released", 9),
    // A flight may be shared, and a tick run by another contender.
    ("single-flight", "a result, its own", 3),
    ("cron:20ms", ")", 3),
    ("jobs", "is done", 3),
];

#[test]
fn each_primitive_does_its_rounds_and_the_audit_accuses_none() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    for (primitive, end, least) in PRIMITIVES {
        let name = primitive.replace(':', "-");
        let file = |whose: &str| stage.directory().join(format!("{name}-{whose}.jsonl"));
        let [of_resource, of_workers] =
            ["resource", "workers"].map(|whose| file(whose).display().to_string());
        let resource = Resource::start(&of_resource);
        let (keys, servers) = (if primitive == "several:2" { "3" } else { "1" }, redis.address());
        let (code, printed, error) = run(&[
            "worker",
            "--primitive",
            primitive,
            "--servers",
            &servers,
            "--resource",
            &resource.1,
            "--key",
            &name,
            "--keys",
            keys,
            "--contenders",
            "3",
            "--rounds",
            "3",
            "--work",
            "5ms",
            "--claim",
            "on",
            "--history",
            &of_workers,
        ]);
        assert!(code == Some(0) || primitive == "bounded:1", "{primitive}: {printed}{error}");
        let done = printed.lines().filter(|line| line.ends_with(end)).count();
        assert!(done >= least, "{primitive}: {done} rounds\n{printed}");
        let (code, printed, error) = run(&["audit", &of_resource, &of_workers, "--served-within", "60s"]);
        assert_eq!(code, Some(0), "{primitive}: {printed}{error}");
        assert!(printed.ends_with("no verdicts\n"), "{primitive}: {printed}");
    }
}

/// Runs a worker whose ticks or jobs are kept by PostgreSQL. Returns its lines.
fn work_on_postgres(flags: &[&str], url: &str) -> String {
    let shared = ["worker", "--record", "postgres", "--postgres", url, "--rounds", "3", "--work", "5ms"];
    let (code, printed, error) = run(&[&shared[..], flags].concat());
    assert_eq!(code, Some(0), "{flags:?}: {printed}{error}");
    printed
}

#[test]
fn the_history_of_tasks_on_postgres_can_be_judged() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let history = stage.directory().join("jobs.jsonl").display().to_string();
    work_on_postgres(&["--primitive", "jobs", "--history", &history], &postgres.url());
    let (code, judged, error) = run(&["audit", &history]);
    assert_eq!(code, Some(0), "{judged}{error}");
    assert!(judged.ends_with("no verdicts\n") && !judged.contains("nobody ran"), "{judged}");
}

#[test]
fn ticks_and_jobs_are_kept_by_postgres() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let (url, servers) = (postgres.url(), redis.address());
    // Neither needs a resource, and the jobs no lock.
    let jobs = work_on_postgres(&["--contenders", "3", "--primitive", "jobs"], &url);
    let cron = ["--contenders", "3", "--primitive", "cron:20ms", "--servers", &servers];
    let ticks = work_on_postgres(&cron, &url);
    let jobs = jobs.lines().filter(|line| line.ends_with("is done")).count();
    let ticks = ticks.lines().filter(|line| line.contains("(ticks: ")).count();
    assert!(jobs >= 3 && ticks >= 1, "{jobs} jobs, {ticks} ticks");
    // Each has its row.
    let rows = rows_on(&url);
    assert!(rows.windows(2).all(|pair| pair[0] != pair[1]), "a task has two rows: {rows:?}");
    assert!(rows.len() >= jobs + ticks, "{jobs} jobs, {ticks} ticks: {rows:?}");
}

/// Returns the tasks of which PostgreSQL has a row, in their order.
fn rows_on(url: &str) -> Vec<String> {
    let executor =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    executor.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let query = "SELECT resource_id || ' ' || task FROM task_row ORDER BY resource_id, task";
        client.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    })
}

#[test]
fn contenders_begin_with_the_key_that_they_are_given() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let resource = Resource::start(&stage.directory().join("resource.jsonl").display().to_string());
    let servers = redis.address();
    let worker = |primitive, first| {
        run(&[
            "worker",
            "--primitive",
            primitive,
            "--servers",
            &servers,
            "--resource",
            &resource.1,
            "--keys",
            "3",
            "--first-key",
            first,
            "--work",
            "0",
        ])
    };
    let (_, printed, error) = worker("mutex", "4");
    assert!(printed.starts_with("worker: account:1 token 1: "), "{printed}{error}");
    let (_, printed, error) = worker("several:2", "2");
    assert!(printed.starts_with("worker: account:2, account:0: "), "{printed}{error}");
}

#[test]
fn several_keys_are_contended_for_at_once() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let file = |name: &str| stage.directory().join(name).display().to_string();
    let (out, history) = (file("report.json"), file("history.jsonl"));
    let (code, printed, error) = run(&[
        "contend",
        "--primitive",
        "several:2",
        "--keys",
        "3",
        "--servers",
        &redis.address(),
        "--contenders",
        "4",
        "--rate",
        "50",
        "--for",
        "1s",
        "--work",
        "1ms",
        "--out",
        &out,
        "--history",
        &history,
    ]);
    assert_eq!(code, Some(0), "{printed}{error}");
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    assert_eq!(report["load"]["primitive"], "several:2", "{report}");
    assert_eq!((&report["served"], &report["lost"]), (&50.into(), &0.into()), "{report}");
    let history = fs::read_to_string(history).unwrap();
    // Two keys an attempt, and the warm-up.
    assert_eq!(history.matches(r#""event":"lease_acquired""#).count(), 101, "{history}");
}

/// Microseconds from 1970 to a day that is past: a counter does not get there.
const PAST_MICROS: u64 = 1_600_000_000_000_000;

/// Returns the tokens in the lines that `worker` has printed.
fn tokens_in(printed: &str) -> Vec<u64> {
    let token = |line: &str| line.split_once(" token ")?.1.split_once(':')?.0.parse::<u64>().ok();
    printed.lines().filter_map(token).collect()
}

/// Returns the number in a key of the Redis at `address`; `None` if there is no such key.
fn number_in(address: &str, key: &str) -> Option<u64> {
    let client = redis::Client::open(format!("redis://{address}")).unwrap();
    let mut connection = client.get_connection().unwrap();
    redis::cmd("GET").arg(key).query::<Option<u64>>(&mut connection).unwrap()
}

#[test]
fn a_worker_takes_its_tokens_from_the_named_source() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let resource = Resource::start(&stage.directory().join("resource.jsonl").display().to_string());
    let servers = redis.address();
    let worker = |tokens, key| {
        let (code, printed, error) = run(&[
            "worker",
            "--tokens",
            tokens,
            "--key",
            key,
            "--servers",
            &servers,
            "--resource",
            &resource.1,
            "--rounds",
            "2",
            "--work",
            "0",
        ]);
        assert_eq!(code, Some(0), "{tokens}: {printed}{error}");
        tokens_in(&printed)
    };
    assert_eq!(worker("counter", "own"), [1, 2]);
    assert_eq!(number_in(&servers, "lock:v1:{own:0}:fence"), Some(2));
    assert_eq!(worker("shared", "sharing"), [1, 2]);
    assert_eq!(number_in(&servers, &shared_counter("sharing:0")), Some(2));
    assert_eq!(number_in(&servers, "lock:v1:{sharing:0}:fence"), None);
    let timed = worker("server-time", "timed");
    assert!(timed.len() == 2 && timed.iter().all(|token| *token > PAST_MICROS), "{timed:?}");
}

#[test]
fn a_load_takes_its_tokens_from_the_named_source() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let (servers, out) = (redis.address(), stage.directory().join("report.json").display().to_string());
    let contend = |more: &[&str]| {
        let flags = ["contend", "--servers", &servers, "--rate", "20", "--for", "1s", "--work", "1ms"];
        let (code, printed, error) = run(&[&flags[..], &["--out", &out][..], more].concat());
        assert_eq!(code, Some(0), "{more:?}: {printed}{error}");
        let report: serde_json::Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
        (printed, report)
    };
    let (printed, report) = contend(&["--key", "own"]);
    assert!(report["load"].get("tokens").is_none() && !printed.contains("tokens"), "{printed}{report}");
    let (printed, report) = contend(&["--key", "sharing", "--tokens", "shared"]);
    assert_eq!((&report["load"]["system"], &report["load"]["tokens"]), (&"redis".into(), &"shared".into()));
    assert!(printed.contains(", tokens shared\n"), "{printed}");
    assert_eq!(number_in(&servers, &shared_counter("sharing:0")), report["served"].as_u64());
}

#[test]
fn what_can_not_be_done_is_refused_with_a_reason() {
    for (arguments, reason) in [
        (&["worker", "--primitive", "several:2"][..], "set --keys to at least 2"),
        (
            &["worker", "--primitive", "jobs", "--system", "etcd"],
            "etcd has no job queue: give --system redis",
        ),
        (&["worker", "--primitive", "cron:1"], "unknown primitive `cron:1`"),
        (&["worker", "--primitive", "jobs", "--record", "postgres"], "--postgres <URL>"),
        (
            &["worker", "--primitive", "jobs", "--record", "postgres", "--postgres", "postgresql:///db"],
            "must name a host",
        ),
        (
            &["worker", "--primitive", "election", "--record", "postgres", "--postgres", "postgresql://h/db"],
            "election writes to the resource",
        ),
        (
            &["chaos", "--primitive", "mutex", "--record", "postgres", "--plan"],
            "mutex writes to the resource",
        ),
        (
            &["chaos", "--primitive", "cron", "--record", "postgres", "--fence", "off", "--plan"],
            "a transaction on PostgreSQL always checks the token",
        ),
        (
            &["chaos", "--primitive", "jobs", "--record", "postgres", "--system", "etcd", "--plan"],
            "the queue of jobs is on PostgreSQL and needs no lock",
        ),
        (&["contend", "--primitive", "several:3", "--keys", "2"], "set --keys to at least 3"),
        (
            &["contend", "--primitive", "jobs", "--system", "etcd"],
            "etcd has no job queue: give --system redis",
        ),
        (&["contend", "--primitive", "cron", "--fence", "off"], "cron:1s always demands fencing tokens"),
        (&["contend", "--primitive", "election", "--fence", "off"], "election always demands fencing tokens"),
        (&["chaos", "--primitive", "several:2", "--plan"], "set --keys to more"),
        (&["chaos", "--primitive", "jobs", "--raise", "--system", "redis", "--plan"], "no counter is raised"),
        (&["chaos", "--primitive", "bounded:1", "--system", "redlock", "--plan"], "redlock has no bounded:1"),
        (&["worker", "--tokens", "time"], "invalid value 'time'"),
        (&["worker", "--tokens", "shared", "--system", "redlock"], "redlock counts for each key"),
        (&["worker", "--tokens", "counter", "--system", "zookeeper"], "zookeeper numbers the grants itself"),
        (&["worker", "--tokens", "shared", "--primitive", "readers"], "readers counts for each key"),
        (&["contend", "--tokens", "server-time", "--system", "etcd"], "etcd numbers the grants itself"),
        (&["contend", "--tokens", "shared", "--fence", "off"], "demand no fencing token"),
        // The run on redis does not begin.
        (
            &["chaos", "--tokens", "shared", "--system", "redis,redlock", "--plan"],
            "redlock counts for each key",
        ),
    ] {
        let servers = if arguments[0] == "chaos" { &[][..] } else { &["--servers", "127.0.0.1:1"][..] };
        let (code, printed, error) = run(&[arguments, servers].concat());
        assert_eq!(code, Some(2), "{arguments:?}: {printed}{error}");
        assert!(error.contains(reason), "{arguments:?}: {error}");
    }
}
