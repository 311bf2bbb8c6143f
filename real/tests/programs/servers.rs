//! Servers as child processes: ready when started, gone when dropped.

use std::path::Path;
use std::time::Duration;

use real::servers::{
    EtcdCluster, Launch, Persistence, Postgres, Redis, RedisCluster, ServerError, Stage, ZooKeeper,
    ZooKeeperEnsemble, ask, end_left_stage,
};

use crate::eventually::eventually;

fn redis_says(port: u16, command: &str) -> String {
    ask(port, &format!("{command}\r\n"), |answer| answer.ends_with("\r\n")).unwrap()
}

fn is_alive(pid: u32) -> bool {
    // A zombie has no working directory.
    Path::new(&format!("/proc/{pid}/cwd")).read_link().is_ok()
}

#[test]
fn five_redis_are_independent() {
    let stage = Stage::new().unwrap();
    let five = Redis::start_many(&stage, 5).unwrap();
    redis_says(five[0].port(), "SET k v");
    let sizes: Vec<_> = five.iter().map(|redis| redis_says(redis.port(), "DBSIZE")).collect();
    assert_eq!(sizes, [":1\r\n", ":0\r\n", ":0\r\n", ":0\r\n", ":0\r\n"]);
}

#[test]
fn a_restarted_redis_has_the_data_it_persists() {
    for (persistence, answer) in [(Persistence::None, "$-1\r\n"), (Persistence::Always, "$1\r\nv\r\n")] {
        let stage = Stage::new().unwrap();
        let mut redis = Redis::start(&stage, "redis", persistence).unwrap();
        assert_eq!(redis_says(redis.port(), "SET k v"), "+OK\r\n");
        redis.restart().unwrap();
        assert_eq!(redis_says(redis.port(), "GET k"), answer, "{persistence:?}");
    }
}

#[test]
fn a_redis_restarted_with_an_empty_disk_has_no_data() {
    let stage = Stage::new().unwrap();
    let mut redis = Redis::start(&stage, "redis", Persistence::Always).unwrap();
    redis_says(redis.port(), "SET k v");
    redis.restart_empty().unwrap();
    assert_eq!(redis_says(redis.port(), "GET k"), "$-1\r\n");
    assert_eq!(redis_says(redis.port(), "SET k w"), "+OK\r\n");
    redis.restart().unwrap();
    assert_eq!(redis_says(redis.port(), "GET k"), "$1\r\nw\r\n", "it persists data as before");
}

#[test]
fn a_restarted_primary_can_follow_its_successor() {
    let stage = Stage::new().unwrap();
    let mut old = Redis::start(&stage, "old", Persistence::Always).unwrap();
    let mut new = Redis::start(&stage, "new", Persistence::Always).unwrap();
    new.follow(old.port()).unwrap();
    old.process().kill();
    new.promote().unwrap();
    assert_eq!(redis_says(new.port(), "SET k v"), "+OK\r\n");
    old.restart().unwrap();
    old.follow(new.port()).unwrap();
    assert_eq!(redis_says(old.port(), "GET k"), "$1\r\nv\r\n");
    assert!(redis_says(old.port(), "SET k w").starts_with("-READONLY"));
}

#[test]
fn a_promoted_replica_has_the_data_of_its_primary() {
    let stage = Stage::new().unwrap();
    let mut primary = Redis::start(&stage, "primary", Persistence::None).unwrap();
    redis_says(primary.port(), "SET k v");
    let replica = Redis::start_replica(&stage, "replica", &primary).unwrap();
    primary.process().kill();
    assert!(redis_says(replica.port(), "SET k w").starts_with("-READONLY"));
    replica.promote().unwrap();
    assert_eq!(redis_says(replica.port(), "GET k"), "$1\r\nv\r\n");
    assert_eq!(redis_says(replica.port(), "SET k w"), "+OK\r\n");
}

#[test]
fn a_cluster_sends_clients_to_the_owner_of_a_slot() {
    let stage = Stage::new().unwrap();
    let cluster = RedisCluster::start(&stage).unwrap();
    // `foo` is in slot 12182, which the third member owns.
    let owner = cluster.members[2].port();
    assert_eq!(
        redis_says(cluster.members[0].port(), "GET foo"),
        format!("-MOVED 12182 127.0.0.1:{owner}\r\n")
    );
    assert_eq!(redis_says(owner, "SET foo bar"), "+OK\r\n");
}

#[test]
fn the_leader_of_an_etcd_cluster_moves() {
    let stage = Stage::new().unwrap();
    let mut cluster = EtcdCluster::start(&stage).unwrap();
    let leader = cluster.leader().unwrap();
    let other = (leader + 1) % 3;
    cluster.move_leader(other).unwrap();
    assert_eq!(cluster.leader(), Some(other));
    cluster.members[other].process().kill();
    eventually("another member leads instead of the killed one", || {
        cluster.leader().filter(|leader| *leader != other)
    });
    cluster.members[other].restart().unwrap();
}

#[test]
fn zookeeper_serves_alone_and_in_an_ensemble() {
    let stage = Stage::new().unwrap();
    let mode = |server: &ZooKeeper| ask(server.port(), "srvr", |_| false).unwrap();
    let mut alone = ZooKeeper::start(&stage).unwrap();
    assert!(mode(&alone).contains("Mode: standalone"));
    alone.restart().unwrap();
    let three = ZooKeeperEnsemble::start(&stage).unwrap();
    let leaders = three.members.iter().filter(|member| mode(member).contains("Mode: leader"));
    assert_eq!(leaders.count(), 1);
    assert!(three.leader().is_some_and(|leader| mode(&three.members[leader]).contains("Mode: leader")));
}

#[test]
fn postgres_recovers_from_a_restart() {
    let stage = Stage::new().unwrap();
    let mut postgres = Postgres::start(&stage).unwrap();
    postgres.restart().unwrap();
    let log = std::fs::read_to_string(postgres.process().log()).unwrap();
    assert!(log.contains("automatic recovery in progress"), "{log}");
}

/// Opens a session, which lives as long as the executor.
fn session(executor: &tokio::runtime::Runtime, postgres: &Postgres) -> tokio_postgres::Client {
    executor.block_on(async {
        let opened = tokio_postgres::connect(&postgres.url(), tokio_postgres::NoTls).await;
        let (client, connection) = opened.unwrap();
        tokio::spawn(connection);
        client
    })
}

/// Returns true if the session has the answer to `query` within `time`.
fn answers(
    executor: &tokio::runtime::Runtime,
    client: &tokio_postgres::Client,
    query: &str,
    time: Duration,
) -> bool {
    let answer = async { tokio::time::timeout(time, client.batch_execute(query)).await };
    matches!(executor.block_on(answer), Ok(Ok(())))
}

#[test]
fn all_sessions_of_postgres_are_paused_and_killed_with_it() {
    const SHORT: Duration = Duration::from_millis(300);
    const LONG: Duration = Duration::from_secs(20);
    let stage = Stage::new().unwrap();
    let mut postgres = Postgres::start(&stage).unwrap();
    let executor =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let client = session(&executor, &postgres);
    assert!(answers(&executor, &client, "CREATE TABLE kept ()", LONG));
    postgres.pause();
    assert!(!answers(&executor, &client, "SELECT 1", SHORT));
    postgres.resume();
    assert!(answers(&executor, &client, "SELECT 1", LONG));
    postgres.kill();
    assert!(!answers(&executor, &client, "SELECT 1", LONG));
    postgres.restart().unwrap();
    let client = session(&executor, &postgres);
    assert!(answers(&executor, &client, "SELECT FROM kept", LONG), "a commit was lost");
}

#[test]
fn a_paused_process_is_silent_until_it_resumes() {
    let stage = Stage::new().unwrap();
    let mut redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    redis.process().pause();
    eventually("it is stopped", || redis.process().is_paused().then_some(()));
    assert!(ask(redis.port(), "PING\r\n", |answer| answer.ends_with("\r\n")).is_err());
    redis.process().resume();
    assert_eq!(redis_says(redis.port(), "PING"), "+PONG\r\n");
}

#[test]
fn a_dropped_stage_leaves_nothing_behind() {
    let stage = Stage::new().unwrap();
    let directory = stage.directory().to_owned();
    let mut redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let pid = redis.process().pid();
    redis.process().pause();
    assert!(is_alive(pid));
    drop((redis, stage));
    assert!(!is_alive(pid));
    assert!(!directory.exists());
}

#[test]
fn a_left_stage_can_be_stopped_later() {
    let stage = Stage::new().unwrap();
    let directory = stage.directory().to_owned();
    let mut redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let (pid, port) = (redis.process().pid(), redis.port());
    redis.process().leave();
    stage.leave();
    drop((redis, stage));
    assert_eq!(redis_says(port, "PING"), "+PONG\r\n");
    end_left_stage(&directory).unwrap();
    assert!(!is_alive(pid));
    assert!(!directory.exists());
}

#[test]
fn a_directory_without_a_stage_is_not_removed() {
    let error = end_left_stage(&std::env::temp_dir()).unwrap_err();
    assert!(error.to_string().contains("no directory that `real up` made"), "{error}");
}

#[test]
fn the_error_quotes_the_log_of_a_dead_server() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "first", Persistence::None).unwrap();
    let error = Redis::start_on(&stage, "second", redis.port(), Persistence::None).unwrap_err();
    assert!(matches!(error, ServerError::PortTaken { port } if port == redis.port()), "{error}");
    // The disk of `broken` holds a file that Redis can't read.
    let directory = stage.subdirectory("broken").unwrap();
    std::fs::create_dir(directory.join("appendonlydir")).unwrap();
    std::fs::write(directory.join("appendonlydir/appendonly.aof.manifest"), "nonsense\n").unwrap();
    let error = Redis::start(&stage, "broken", Persistence::Always).unwrap_err();
    assert!(
        matches!(&error, ServerError::Died { log, .. } if log.contains("Invalid AOF manifest")),
        "{error}"
    );
}

#[test]
fn a_program_that_is_missing_is_named_with_its_package() {
    let stage = Stage::new().unwrap();
    let launch = Launch::new("nobody", "/no/such/program", stage.directory());
    let mut process = stage.spawn(&launch).unwrap();
    eventually("it ends", || process.exited());
    assert!(process.last_words().contains("not found"), "{}", process.last_words());
    let missing = ServerError::Missing { program: "etcd".to_owned(), package: "etcd-server" };
    assert_eq!(missing.to_string(), "`etcd` is not installed: run `apt-get install etcd-server`");
}
