//! Simulated servers as hosts: their lives, their actions and their points.

use std::future::Future;
use std::time::Duration;

use sim::faults::{Crash, Cut};
use sim::servers::etcd::{Cluster, ClusterOptions};
use sim::servers::host::{Acted, Host};
use sim::servers::redis::{Persistence, RedisHost};
use sim::servers::zookeeper::{EnsembleOptions, ZooKeeperHost};
use sim::{Control, Sim};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::scripts::{points, run_script};

const PRIMARY: &str = "redis-1:6379";
const MS: Duration = Duration::from_millis(1);

/// Runs `test` in a world of these servers and a client; each segment takes 1 ms. Returns its output.
fn in_world<H: Host + Clone, T: Send, F: Future<Output = T>>(
    hosts: &[(&str, &H)],
    test: impl FnOnce(Control) -> F + Send,
) -> T {
    let build = |sim: &mut Sim| {
        hosts.iter().for_each(|(name, host)| _ = sim.host(name, (*host).clone()));
        sim.empty_process("client");
    };
    run_script(MS, build, test).1
}

/// Sends an inline command to the Redis at `address`; returns the reply, or the kind of the error.
async fn ask(control: &Control, address: &str, command: &str) -> String {
    let mut stream = match control.process("client").connect(address).await {
        Ok(stream) => stream,
        Err(error) => return error.kind().to_string(),
    };
    stream.write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
    let mut buffer = [0; 256];
    let length = stream.read(&mut buffer).await.unwrap();
    String::from_utf8_lossy(&buffer[..length]).trim().to_owned()
}

#[test]
fn an_unknown_action_is_refused_with_the_known_ones() {
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
fn a_restarted_server_has_the_contents_of_its_disk() {
    let durable: RedisHost = RedisHost::new().persistence(Persistence::Always).preset("n", "41");
    let forgetful = RedisHost::new();
    in_world(&[("redis-1", &durable), ("redis-2", &forgetful)], |control| async move {
        control.sleep(MS).await;
        assert_eq!(ask(&control, PRIMARY, "INCR n").await, ":42");
        assert_eq!(ask(&control, "redis-2:6379", "INCR n").await, ":1");
        let crashes = ["redis-1", "redis-2"].map(|name| control.strike(Crash::of(name)));
        assert_eq!(ask(&control, PRIMARY, "GET n").await, "connection refused");
        assert!(crashes.iter().all(|crash| crash.heal()));
        control.sleep(MS).await;
        assert_eq!(ask(&control, PRIMARY, "INCR n").await, ":43");
        assert_eq!(ask(&control, "redis-2:6379", "INCR n").await, ":1");
    });
    assert_eq!((durable.executed(), forgetful.executed()), (2, 2));
}

#[test]
fn a_promoted_replica_takes_the_name_of_the_primary() {
    let primary: RedisHost = RedisHost::new().primary_name("redis");
    let replica = RedisHost::new().replica_of(PRIMARY).primary_name("redis");
    in_world(&[("redis-1", &primary), ("replica-1", &replica)], |control| async move {
        control.sleep(200 * MS).await;
        assert_eq!(ask(&control, "redis:6379", "SET a 1").await, "+OK");
        control.sleep(10 * MS).await;
        let crash = control.strike(Crash::of("redis-1"));
        assert_eq!(ask(&control, "redis:6379", "GET a").await, "connection refused");
        assert_eq!(control.act("replica-1", "promote", None), Ok(Acted::Done("promoted".to_owned())));
        assert_eq!(ask(&control, "redis:6379", "SET b 1").await, "+OK", "it takes writes");
        assert_eq!(ask(&control, "redis:6379", "GET a").await, "$1\r\n1");
        crash.heal();
        control.sleep(MS).await;
        assert_eq!(
            ask(&control, "redis:6379", "GET b").await,
            "$1\r\n1",
            "the old primary does not take it back"
        );
    });
}

#[test]
fn an_eviction_drops_the_named_keys() {
    let host: RedisHost = RedisHost::new().preset("a", "1").preset("b", "1").preset("c", "1");
    in_world(&[("redis-1", &host)], |control| async move {
        control.sleep(MS).await;
        assert_eq!(control.act("redis-1", "evict", Some("a c")), Ok(Acted::Done("evicts a c".to_owned())));
        assert_eq!(ask(&control, PRIMARY, "EXISTS a b c").await, ":1");
        assert_eq!(ask(&control, PRIMARY, "GET b").await, "$1\r\n1");
    });
}

#[test]
fn each_executed_command_is_a_point_of_its_process() {
    in_world(&[("redis-1", &RedisHost::new())], |control| async move {
        let points = points(&control);
        control.sleep(MS).await;
        ask(&control, PRIMARY, "SET a 1").await;
        ask(&control, PRIMARY, "GET a").await;
        let expected = ["set", "get"].map(|command| ("redis-1".to_owned(), command.to_owned()));
        assert_eq!(*points.lock().unwrap(), expected);
    });
}

#[test]
fn a_process_can_be_killed_within_a_point() {
    let host: RedisHost = RedisHost::new().persistence(Persistence::Always);
    in_world(&[("redis-1", &host)], |control| async move {
        let killer = control.clone();
        control.hear_points(move |process, point| {
            if point == "incr" {
                killer.strike(Crash::of(process));
            }
        });
        control.sleep(MS).await;
        let mut stream = control.process("client").connect(PRIMARY).await.unwrap();
        stream.write_all(b"SET n 1\r\nINCR n\r\n").await.unwrap();
        let mut replies = Vec::new();
        let error = stream.read_to_end(&mut replies).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        control.heal(Crash::of("redis-1"));
        control.sleep(MS).await;
        assert_eq!(
            ask(&control, PRIMARY, "GET n").await,
            "$-1",
            "the file was not written before the replies"
        );
    });
}

#[test]
fn a_member_without_a_majority_can_not_lead() {
    let cluster: Cluster = Cluster::new(ClusterOptions::new("etcd", ["etcd-1", "etcd-2"]));
    assert!(cluster.member("etcd-3").is_none());
    let [one, two] = ["etcd-1", "etcd-2"].map(|name| cluster.member(name).unwrap());
    in_world(&[("etcd-1", &one), ("etcd-2", &two)], |control| async move {
        let failed = Acted::Failed("was to lead, and has no majority".to_owned());
        let crash = control.strike(Crash::of("etcd-2"));
        assert_eq!(control.act("etcd-1", "lead", None), Ok(failed.clone()));
        crash.heal();
        let leads = Acted::Done("leads from now on".to_owned());
        assert_eq!(control.act("etcd-2", "lead", None), Ok(leads));
        assert_eq!(cluster.leader(), 1);
        control.strike(Cut::one_way("etcd-2", "etcd-1"));
        assert_eq!(control.act("etcd-2", "lead", None), Ok(failed));
    });
}
