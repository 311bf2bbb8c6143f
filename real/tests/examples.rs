//! The examples of `dlock` on live servers, run as their first lines say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, reason = "a live test")]

#[path = "support/eventually.rs"]
mod eventually;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use eventually::eventually;
use real::servers::{EtcdCluster, Persistence, Redis, Stage, ZooKeeper, ask_http};

/// Returns an example's program, which `cargo test --workspace` has built.
fn program(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_real")).parent().unwrap().join("examples");
    let program = folder.join(name);
    assert!(program.exists(), "{} is missing: run `cargo build --workspace --examples`", program.display());
    program
}

/// Runs an example to its end; returns all that it printed.
fn run(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(program(name)).args(arguments).output().unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{name}: {printed}");
    printed
}

/// An example that runs until it is told to end.
struct Running(Child);

impl Running {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program(name));
        Self(command.args(arguments).stdout(Stdio::piped()).spawn().unwrap())
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
    let addresses: Vec<_> = three.iter().map(Redis::address).collect();
    let etcd = EtcdCluster::start_one(&stage).unwrap();
    let zookeeper = ZooKeeper::start(&stage).unwrap();
    let printed = run("redis", &[&format!("redis://{}", addresses[0])]);
    assert!(printed.starts_with("exports the report, with token "), "{printed}");
    let printed = run("blocking", &[&format!("redis://{}", addresses[1])]);
    assert_eq!(printed.matches("writes invoice").count(), 3, "{printed}");
    let printed = run("redlock", &[&format!("redis://{}", addresses.join(","))]);
    assert_eq!(printed, "warms the cache up, with token 1\n");
    let printed = run("etcd", &[&format!("etcd://{}", etcd.addresses()[0])]);
    assert_eq!(printed.matches("writes entry").count(), 3, "{printed}");
    let printed = run("zookeeper", &[&format!("zookeeper://app:secret@{}/prod", zookeeper.address())]);
    assert_eq!(printed.matches("step ").count(), 3, "{printed}");
}

#[test]
fn three_processes_share_two_permits() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let url = format!("redis://{}", redis.address());
    let runs = [(); 3].map(|()| {
        let url = url.clone();
        std::thread::spawn(move || run("semaphore", &[&url]))
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
    let printed = run("shared_counters", &[&format!("redis://{}", redis.address())]);
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
    let printed = run("transfer", &[&format!("redis://{}", redis.address())]);
    for (account, change) in [("3", "+25"), ("7", "-25"), ("3", "-10"), ("7", "+10")] {
        assert!(printed.contains(&format!("accounts:{account}: {change}, with token ")), "{printed}");
    }
    assert_eq!(printed.matches("with token 2").count(), 2, "each account has tokens of its own: {printed}");
}

#[test]
fn three_processes_read_together_and_write_alone() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let url = format!("redis://{}", redis.address());
    let runs = [(); 3].map(|()| {
        let url = url.clone();
        std::thread::spawn(move || run("readers", &[&url]))
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
    let printed = run("queue", &[&format!("redis://{}", redis.address())]);
    for token in 1..=3 {
        assert_eq!(printed.matches(&format!("made with token {token}\n")).count(), 1, "{printed}");
    }
    assert_eq!(printed.matches("busy, 2 of 2 wait\n").count(), 2, "{printed}");
}

#[test]
fn sections_of_a_request_share_a_token() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let printed = run("reentrant", &[&format!("redis://{}", redis.address())]);
    let of_request = |token: u32| {
        ["packed", "billed", "shipped"]
            .map(|state| format!("order 42: {state}, with token {token}\n"))
            .concat()
            + "released\n"
    };
    assert_eq!(printed, of_request(1) + &of_request(2));
}

#[test]
fn three_workers_share_one_report() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let printed = run("single_flight", &[&format!("redis://{}", redis.address())]);
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
    let printed = run("job_queue", &[&redis.address()]);
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
    let mut web = Running::start("web", &[&format!("redis://{}", redis.address()), "127.0.0.1:0"]);
    let port: u16 = web.line().rsplit(':').next().unwrap().parse().unwrap();
    // Of two requests at once, one holds the lock for longer than this waits for its answer.
    let pay = move || ask_http(port, "POST", "/orders/42/pay", "", "").ok();
    let refused = eventually("a request is refused", || {
        let other = std::thread::spawn(pay);
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
    let url = format!("redis://{}", redis.address());
    let mut one = Running::start("queue_worker", &[&url]);
    assert_eq!(one.line(), "job 1 is done, with token 1");
    // It skips the job that the other one has done.
    let printed = run("queue_worker", &[&url]);
    assert!(!printed.contains("job 1 is done"), "{printed}");
    drop(one);
}

#[test]
fn leaders_follow_each_other_and_write_in_their_terms() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let url = format!("redis://{}", redis.address());
    let mut resource = Command::new(env!("CARGO_BIN_EXE_real"));
    resource.args(["resource", "--listen", "127.0.0.1:0", "--store", "memory"]).stdout(Stdio::piped());
    let mut resource = Running(resource.spawn().unwrap());
    let listening = resource.line();
    let address = listening.strip_prefix("listening on ").unwrap();
    let lines_of = |process: &mut Running, wanted: [&str; 3]| {
        let mut missing = wanted.to_vec();
        while !missing.is_empty() {
            let line = process.line();
            missing.retain(|wanted| !line.contains(wanted));
        }
    };
    let mut leader = Running::start("leader", &[&url, address]);
    lines_of(&mut leader, ["leads in term 1", "wrote decision 1 in term 1", "lead in term 1"]);
    let mut next = Running::start("leader", &[&url, address]);
    leader.end();
    lines_of(&mut next, ["leads in term 2", "wrote decision 1 in term 2", "lead in term 2"]);
    next.end();
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    let stale = ask_http(port, "PUT", "/r/leader:scheduler", "X-Fence-Token: 1\r\n", "late").unwrap();
    assert!(stale.contains(" 409 "), "{stale}");
}
