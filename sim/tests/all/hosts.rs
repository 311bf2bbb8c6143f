//! Simulated servers as hosts: their lives, their actions, and the points that they pass.

use std::future::Future;
use std::time::Duration;

use dlock::Runtime;
use sim::entropy::Entropy;
use sim::servers::etcd::{Cluster, ClusterOptions};
use sim::servers::host::{Acted, Host};
use sim::servers::redis::{Persistence, RedisHost};
use sim::servers::zookeeper::{EnsembleOptions, ZooKeeperHost};
use sim::world::World;
use sim::world::process::ProcessId;
use sim::world::runtime::SimRuntime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::hosts;

const PRIMARY: &str = "redis-1:6379";

/// Runs `test` in a world of two servers' processes and a client, in which each segment takes 1 ms.
fn in_world<F: Future>(names: [&str; 2], test: impl FnOnce(World) -> F) -> F::Output {
    let runtime = madsim::runtime::Runtime::with_seed_and_config(1, madsim::Config::default());
    runtime.block_on(async {
        let latency = Duration::from_millis(1);
        let world = World::new(Entropy::new(1), &[names[0], names[1], "client"], (latency, latency));
        let result = test(world.clone()).await;
        world.end().await;
        result
    })
}

fn id(world: &World, name: &str) -> ProcessId {
    world.find(name).unwrap()
}

async fn pass(world: &World, millis: u64) {
    world.sleep_until(world.now() + millis * 1_000_000).await;
}

/// The reply of the Redis at `address` to an inline command, or the kind of the error.
async fn ask(world: &World, address: &str, command: &str) -> String {
    let runtime = SimRuntime::new(world, id(world, "client"));
    let mut stream = match runtime.connect(address).await {
        Ok(stream) => stream,
        Err(error) => return error.kind().to_string(),
    };
    stream.write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
    let mut buffer = [0; 256];
    let length = stream.read(&mut buffer).await.unwrap();
    String::from_utf8_lossy(&buffer[..length]).trim().to_owned()
}

#[test]
fn an_unknown_action_gets_the_list_of_actions() {
    let host: RedisHost = RedisHost::new();
    let error = host.act("promotee", None).unwrap_err().to_string();
    assert_eq!(error, "a Redis server has no action `promotee`: known are promote, evict");
    let member: ZooKeeperHost = ZooKeeperHost::first(EnsembleOptions::new(["zookeeper-1"]));
    let error = member.check("evict", Some("a")).unwrap_err().to_string();
    assert_eq!(error, "a ZooKeeper server has no action `evict`: known are lead");
}

#[test]
fn an_action_takes_exactly_its_argument() {
    let host: RedisHost = RedisHost::new();
    let error = host.check("evict", None).unwrap_err().to_string();
    assert_eq!(error, "`evict` of a Redis server needs an argument: the server's keys, separated by spaces");
    let error = host.check("promote", Some("now")).unwrap_err().to_string();
    assert_eq!(error, "`promote` of a Redis server takes no argument, and `now` was given: leave it out");
    assert!(host.check("evict", Some("a b")).is_ok() && host.check("promote", None).is_ok());
}

#[test]
fn a_server_that_is_down_does_not_act() {
    let host: RedisHost = RedisHost::new();
    assert_eq!(host.act("evict", Some("a")), Ok(Acted::Down));
}

#[test]
fn a_restarted_server_has_what_its_disk_has_and_counts_on() {
    in_world(["redis-1", "redis-2"], |world| async move {
        let (durable, forgetful): (RedisHost, RedisHost) =
            (RedisHost::new().persistence(Persistence::Always).preset("n", "41"), RedisHost::new());
        let ids = ["redis-1", "redis-2"].map(|name| id(&world, name));
        hosts::start(&world, ids[0], &durable);
        hosts::start(&world, ids[1], &forgetful);
        pass(&world, 1).await;
        assert_eq!(ask(&world, PRIMARY, "INCR n").await, ":42");
        assert_eq!(ask(&world, "redis-2:6379", "INCR n").await, ":1");
        hosts::crash(&world, ids[0], &durable);
        hosts::crash(&world, ids[1], &forgetful);
        assert_eq!(ask(&world, PRIMARY, "GET n").await, "connection refused");
        hosts::restart(&world, ids[0], &durable);
        hosts::restart(&world, ids[1], &forgetful);
        pass(&world, 1).await;
        assert_eq!(ask(&world, PRIMARY, "INCR n").await, ":43");
        assert_eq!(ask(&world, "redis-2:6379", "INCR n").await, ":1");
        assert_eq!((durable.executed(), forgetful.executed()), (2, 2));
    });
}

#[test]
fn a_promoted_replica_takes_the_name_of_the_primary() {
    in_world(["redis-1", "replica-1"], |world| async move {
        let primary: RedisHost = RedisHost::new().primary_name("redis");
        let replica: RedisHost = RedisHost::new().replica_of(PRIMARY).primary_name("redis");
        hosts::start(&world, id(&world, "redis-1"), &primary);
        hosts::start(&world, id(&world, "replica-1"), &replica);
        pass(&world, 200).await;
        assert_eq!(ask(&world, "redis:6379", "SET a 1").await, "+OK");
        pass(&world, 10).await;
        hosts::crash(&world, id(&world, "redis-1"), &primary);
        assert_eq!(ask(&world, "redis:6379", "GET a").await, "connection refused");
        assert_eq!(replica.act("promote", None), Ok(Acted::Done("promoted".to_owned())));
        assert_eq!(ask(&world, "redis:6379", "SET b 1").await, "+OK", "it takes writes");
        assert_eq!(ask(&world, "redis:6379", "GET a").await, "$1\r\n1");
        hosts::restart(&world, id(&world, "redis-1"), &primary);
        pass(&world, 1).await;
        assert_eq!(
            ask(&world, "redis:6379", "GET b").await,
            "$1\r\n1",
            "the old primary does not take it back"
        );
    });
}

#[test]
fn eviction_drops_the_keys_that_it_names() {
    in_world(["redis-1", "redis-2"], |world| async move {
        let host: RedisHost = RedisHost::new().preset("a", "1").preset("b", "1").preset("c", "1");
        hosts::start(&world, id(&world, "redis-1"), &host);
        pass(&world, 1).await;
        assert_eq!(host.act("evict", Some("a c")), Ok(Acted::Done("evicts a c".to_owned())));
        assert_eq!(ask(&world, PRIMARY, "EXISTS a b c").await, ":1");
        assert_eq!(ask(&world, PRIMARY, "GET b").await, "$1\r\n1");
    });
}

#[test]
fn each_executed_command_is_a_point_of_its_process() {
    in_world(["redis-1", "redis-2"], |world| async move {
        let points = hosts::points(&world);
        let host: RedisHost = RedisHost::new();
        hosts::start(&world, id(&world, "redis-1"), &host);
        pass(&world, 1).await;
        ask(&world, PRIMARY, "SET a 1").await;
        ask(&world, PRIMARY, "GET a").await;
        let expected = ["set", "get"].map(|command| ("redis-1".to_owned(), command.to_owned()));
        assert_eq!(*points.lock().unwrap(), expected);
    });
}

#[test]
fn a_process_can_be_killed_within_a_point() {
    in_world(["redis-1", "redis-2"], |world| async move {
        let host: RedisHost = RedisHost::new().persistence(Persistence::Always);
        let (killer, killed) = (world.clone(), host.clone());
        world.hear_points(move |process: ProcessId, name: &str| {
            if name == "incr" {
                hosts::crash(&killer, process, &killed);
            }
        });
        let redis = id(&world, "redis-1");
        hosts::start(&world, redis, &host);
        pass(&world, 1).await;
        let runtime = SimRuntime::new(&world, id(&world, "client"));
        let mut stream = runtime.connect(PRIMARY).await.unwrap();
        stream.write_all(b"SET n 1\r\nINCR n\r\n").await.unwrap();
        let mut replies = Vec::new();
        let error = stream.read_to_end(&mut replies).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        hosts::restart(&world, redis, &host);
        pass(&world, 1).await;
        assert_eq!(ask(&world, PRIMARY, "GET n").await, "$-1", "the file was not written before the replies");
    });
}

#[test]
fn a_member_without_a_majority_can_not_lead() {
    in_world(["etcd-1", "etcd-2"], |world| async move {
        let cluster: Cluster = Cluster::new(ClusterOptions::new("etcd", ["etcd-1", "etcd-2"]));
        assert!(cluster.member("etcd-3").is_none());
        let [one, two] = ["etcd-1", "etcd-2"].map(|name| cluster.member(name).unwrap());
        hosts::start(&world, id(&world, "etcd-1"), &one);
        let failed = Acted::Failed("was to lead, and has no majority".to_owned());
        assert_eq!(one.act("lead", None), Ok(failed.clone()));
        hosts::start(&world, id(&world, "etcd-2"), &two);
        assert_eq!(two.act("lead", None), Ok(Acted::Done("leads from now on".to_owned())));
        assert_eq!(cluster.leader(), 1);
        world.cut(id(&world, "etcd-2"), id(&world, "etcd-1"));
        assert_eq!(two.act("lead", None), Ok(failed));
    });
}
