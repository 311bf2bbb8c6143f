//! The published examples on live servers, run by the commands in their first lines; those of `sim` on
//! simulated ones.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use real::servers::{EtcdCluster, Persistence, Redis, Stage, ZooKeeper, ask_http};

use crate::eventually::eventually;
use crate::example::{Example, Server, assert_runs_all};

fn dlock_example(name: &str) -> Example {
    Example::read("dlock", name)
}

/// Runs an example of `sim` in an empty folder: it keeps the schedules that it finds.
fn run_sim_example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples").join(name);
    // Fails only if it is not there.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let output = Example::read("sim", name).command(&[]).current_dir(folder).output().unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{name}: {printed}");
    printed
}

/// A Redis of the test's own, in place of the one at the standard port.
fn one(redis: &Redis) -> [Server; 1] {
    [Server::new("redis", [redis.address()])]
}

/// An example that runs until it is told to end.
struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Self {
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Reads a line of its output.
    fn line(&mut self) -> String {
        // One byte at a time: a buffer would take the lines that follow.
        let (mut line, mut byte) = (Vec::new(), [0]);
        while self.0.stdout.as_mut().unwrap().read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.extend(byte);
        }
        String::from_utf8(line).unwrap()
    }

    /// Sends SIGTERM; returns the rest of its output once it has ended.
    fn end(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        let rest: Vec<_> = lines.map(Result::unwrap).collect();
        assert!(self.0.wait().unwrap().success(), "{rest:?}");
        rest.join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn each_backend_holds_its_lock() {
    let stage = Stage::new().unwrap();
    let three = Redis::start_many(&stage, 3).unwrap();
    let majority = Server::new("redis", three.iter().map(Redis::address));
    let etcd = EtcdCluster::start_one(&stage).unwrap();
    let zookeeper = ZooKeeper::start(&stage).unwrap();
    let printed = dlock_example("redis").run(&one(&three[0]), &[]);
    assert!(printed.starts_with("exports the report, with token "), "{printed}");
    let printed = dlock_example("blocking").run(&one(&three[1]), &[]);
    assert_eq!(printed.matches("writes invoice").count(), 3, "{printed}");
    let printed = dlock_example("redlock").run(&[majority], &[]);
    assert_eq!(printed, "warms the cache up, with token 1\n");
    let printed = dlock_example("etcd").run(&[Server::new("etcd", etcd.addresses())], &[]);
    assert_eq!(printed.matches("writes entry").count(), 3, "{printed}");
    let printed = dlock_example("zookeeper").run(&[Server::new("zookeeper", [zookeeper.address()])], &[]);
    assert_eq!(printed.matches("step ").count(), 3, "{printed}");
}

#[test]
fn three_processes_share_two_permits() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let example = dlock_example("semaphore");
    example.expect("Run it in three terminals");
    let runs = [(); 3].map(|()| {
        let (example, servers) = (example.clone(), one(&redis));
        std::thread::spawn(move || example.run(&servers, &[]))
    });
    let printed = runs.map(|run| run.join().unwrap()).concat();
    for token in 1..=9 {
        assert_eq!(printed.matches(&format!("with token {token} beside")).count(), 1, "{printed}");
    }
    // Two held permits at once, and no third.
    assert!(printed.contains("beside [1]") && !printed.contains(", 2]"), "{printed}");
}

#[test]
fn orders_share_a_counter_and_their_tokens_grow_with_gaps() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let printed = dlock_example("shared_counters").run(&one(&redis), &[]);
    let counter = dlock::redis::shared_counter("orders:42");
    let counters = ["42", "9487", "29119"].map(|id| format!("orders:{id} counts in {counter}\n")).concat();
    let written = "\
orders:42: written with token 1
orders:9487: written with token 2
orders:29119: written with token 3
orders:42: written with token 4
orders:9487: written with token 5
orders:29119: written with token 6
orders:42: token 1 is refused, 4 was seen
";
    assert_eq!(printed, counters + written);
}

#[test]
fn transfers_there_and_back_both_end() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let printed = dlock_example("transfer").run(&one(&redis), &[]);
    for (account, change) in [("3", "+25"), ("7", "-25"), ("3", "-10"), ("7", "+10")] {
        assert!(printed.contains(&format!("accounts:{account}: {change}, with token ")), "{printed}");
    }
    assert_eq!(printed.matches("with token 2").count(), 2, "each account has tokens of its own: {printed}");
}

#[test]
fn three_processes_read_together_and_write_alone() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let example = dlock_example("readers");
    example.expect("Run it in three terminals");
    let runs = [(); 3].map(|()| {
        let (example, servers) = (example.clone(), one(&redis));
        std::thread::spawn(move || example.run(&servers, &[]))
    });
    let printed = runs.map(|run| run.join().unwrap()).concat();
    for token in 1..=18 {
        let count = |end| printed.matches(&format!("with token {token}{end}")).count();
        assert_eq!(count(" beside") + count(", alone"), 1, "{printed}");
    }
    assert_eq!(printed.matches("alone").count(), 9, "{printed}");
    assert!(printed.contains("beside [1]"), "{printed}");
}

#[test]
fn of_five_requests_one_is_served_two_wait_and_two_are_refused() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let printed = dlock_example("queue").run(&one(&redis), &[]);
    for token in 1..=3 {
        assert_eq!(printed.matches(&format!("made with token {token}\n")).count(), 1, "{printed}");
    }
    assert_eq!(printed.matches("busy, 2 of 2 wait\n").count(), 2, "{printed}");
}

#[test]
fn sections_of_a_request_share_a_token() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let printed = dlock_example("reentrant").run(&one(&redis), &[]);
    let of_request = |token: u32| {
        ["packed", "billed", "shipped"].map(|state| format!("order 42: {state}, with token {token}"))
    };
    // The second request may be granted the lock before the first one reads the answer to its release.
    let (released, written): (Vec<_>, Vec<_>) = printed.lines().partition(|line| *line == "released");
    assert_eq!(written, [of_request(1), of_request(2)].concat(), "{printed}");
    assert_eq!(released.len(), 2, "{printed}");
    assert!(printed.ends_with("released\n"), "{printed}");
}

#[test]
fn three_workers_share_one_report() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let printed = dlock_example("single_flight").run(&one(&redis), &[]);
    // The token of the second report is above 2 if the lock went to one that waited for the first.
    assert_eq!(printed.matches("report 1, made by another worker").count(), 2, "{printed}");
    assert_eq!(printed.matches("report 1, made here").count(), 1, "{printed}");
    assert_eq!(printed.matches("made here").count(), 2, "{printed}");
    assert_eq!(printed.lines().count(), 5, "{printed}");
}

#[test]
fn a_paused_workers_job_is_done_by_the_next_one() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let printed = dlock_example("job_queue").run(&one(&redis), &[]);
    let expected = [
        "the second worker sends mail 2, in attempt 1",
        "the second worker sends mail 1, in attempt 2",
        "the first worker comes too late with mail 1",
        "2 mails",
    ];
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_request_whose_order_is_taken_gets_409() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let example = dlock_example("web");
    let [redis] = one(&redis);
    let any_port = Server::new("http", ["127.0.0.1:0".to_owned()]);
    let mut web = Running::start(example.command(&[redis, any_port]));
    let port: u16 = web.line().rsplit(':').next().unwrap().parse().unwrap();
    let curl = example.code("curl").concat();
    let ["curl", "-i", "-X", "POST", url] = curl.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        panic!("the test does not know {curl:?}");
    };
    let path = url.strip_prefix("http://127.0.0.1:8080").unwrap().to_owned();
    example.expect("twice within two seconds");
    // Of two requests at once, one holds the lock for longer than this waits for its answer.
    let pay = move || ask_http(port, "POST", &path, "", "").ok();
    let refused = eventually("a request is refused", || {
        let other = std::thread::spawn(pay.clone());
        [pay(), other.join().unwrap()].into_iter().flatten().find(|answer| answer.contains(" 409 "))
    });
    assert!(refused.contains("retry-after: "), "{refused}");
    let rest = web.end();
    assert!(rest.contains("unconfirmed 0"), "{rest}");
}

#[test]
fn workers_share_the_jobs() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let example = dlock_example("queue_worker");
    example.expect("Run it in two terminals");
    let mut first = Running::start(example.command(&one(&redis)));
    assert_eq!(first.line(), "job 1 is done, with token 1");
    // It skips the job that the other one has done.
    let printed = example.run(&one(&redis), &[]);
    assert!(!printed.contains("job 1 is done"), "{printed}");
    drop(first);
}

/// Returns the arguments of `real` in the command that starts a resource.
fn resource_arguments(example: &Example) -> Vec<String> {
    let command = example.code("cargo run -p fencepost-real --").concat();
    assert!(command.len() > 5, "{example:?} does not start a resource");
    command[5..].to_vec()
}

#[test]
fn leaders_follow_each_other_and_write_in_their_terms() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let example = dlock_example("leader");
    example.expect("Run this in two terminals, and stop one");
    let mut resource = Command::new(env!("CARGO_BIN_EXE_real"));
    resource.args(resource_arguments(&example)).args(["--listen", "127.0.0.1:0", "--store", "memory"]);
    let mut resource = Running::start(resource);
    let listening = resource.line();
    let address = listening.strip_prefix("listening on ").unwrap();
    let [redis] = one(&redis);
    let servers = [redis, Server::new("http", [address.to_owned()])];
    let lines_of = |process: &mut Running, wanted: [&str; 3]| {
        let mut missing = wanted.to_vec();
        while !missing.is_empty() {
            let line = process.line();
            missing.retain(|wanted| !line.contains(wanted));
        }
    };
    let mut leader = Running::start(example.command(&servers));
    lines_of(&mut leader, ["leads in term 1", "wrote decision 1 in term 1", "lead in term 1"]);
    let mut next = Running::start(example.command(&servers));
    leader.end();
    lines_of(&mut next, ["leads in term 2", "wrote decision 1 in term 2", "lead in term 2"]);
    next.end();
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    let stale = ask_http(port, "PUT", "/r/leader:scheduler", "X-Fence-Token: 1\r\n", "late").unwrap();
    assert!(stale.contains(" 409 "), "{stale}");
}

#[test]
fn simulated_schedules_find_the_mistakes() {
    let foreign = "foreign_release";
    for (printed, expected) in [
        (run_sim_example("naive_lock"), [foreign, ""]),
        (run_sim_example("etcd_lock"), [foreign, "no schedule broke deletes_own"]),
        (run_sim_example("hash_lock"), [foreign, "no schedule broke releases_own"]),
        (run_sim_example("zookeeper_lock"), [foreign, "no schedule broke patient"]),
        (run_sim_example("wall_clock_lock"), ["delays don't break it", "clocks that are set break it"]),
        (run_sim_example("own_service"), ["each number once", "for the second time"]),
        (run_sim_example("without_a_lock"), ["no schedule lost an update", ""]),
    ] {
        assert!(expected.iter().all(|words| printed.contains(words)), "{expected:?}: {printed}");
    }
}

#[test]
fn each_published_example_is_run() {
    assert_runs_all(include_str!("examples.rs"), "dlock_example", "dlock");
    assert_runs_all(include_str!("examples.rs"), "run_sim_example", "sim");
    // `fence_examples.rs` runs those of `resource/fence`.
    assert_eq!(published_with_examples(), ["dlock", "resource/fence", "sim"]);
}

/// Returns the folders of the published crates that have examples.
fn published_with_examples() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifest = |folder: &Path| {
        fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse::<toml::Table>().unwrap()
    };
    let members = manifest(root)["workspace"]["members"].as_array().unwrap().clone();
    let mut folders: Vec<_> = members.iter().map(|member| member.as_str().unwrap().to_owned()).collect();
    folders.retain(|folder| {
        let is_published = manifest(&root.join(folder))["package"].get("publish").is_none();
        is_published && root.join(folder).join("examples").exists()
    });
    folders
}
