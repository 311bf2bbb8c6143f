//! A replica lags behind, refuses writes, and can be promoted with the writes that have reached it.
#![allow(clippy::disallowed_methods, reason = "a test")]

use std::sync::Arc;

use super::support::{Client, Clock, Diary, connect, run, server, settle, start_background};
use sim::servers::redis::{Persistence, Server, ServerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

fn replica(clock: &Clock) -> Server<Clock> {
    Server::new(ServerOptions { is_replica: true, ..ServerOptions::new("replica") }, clock.clone())
}

/// Lets `replica` follow the server at the other end of `stream`.
fn follow(replica: &Server<Clock>, stream: DuplexStream) -> tokio::task::JoinHandle<std::io::Result<()>> {
    let replica = replica.clone();
    tokio::spawn(async move { replica.follow(stream).await })
}

/// Forwards the bytes of one read from one stream to the other. A test delays replication by not calling
/// it.
async fn pass(from: &mut DuplexStream, to: &mut DuplexStream) {
    let mut buffer = vec![0; 1 << 16];
    let size = from.read(&mut buffer).await.unwrap();
    to.write_all(&buffer[..size]).await.unwrap();
    settle().await;
}

#[test]
fn a_replica_gets_existing_keys_and_later_writes() {
    run(async {
        let clock = Clock::new();
        let (primary, replica) = (server(&clock), replica(&clock));
        let (mut writer, mut reader) = (Client::new(&primary), Client::new(&replica));
        writer.call("SET before 1 PX 5000").await;
        follow(&replica, connect(&primary, "replica"));
        settle().await;
        assert_eq!(reader.call("PTTL before").await, ":5000");
        let script = "redis.call('SET', 'b', '1') redis.call('DEL', 'before') return redis.call('INCR', 'n')";
        writer.call_words(&["EVAL", script, "0"]).await;
        settle().await;
        assert_eq!(reader.call("MGET before b n").await, r#"[nil, "1", "1"]"#);
        writer.call("FLUSHALL").await;
        settle().await;
        assert_eq!(reader.call("DBSIZE").await, ":0");
        let info = writer.call("INFO replication").await;
        assert!(info.contains("role:master") && info.contains("connected_slaves:1"), "{info}");
    });
}

#[test]
fn a_replica_gets_collections_of_all_databases() {
    run(async {
        let clock = Clock::new();
        let (primary, replica) = (server(&clock), replica(&clock));
        let (mut writer, mut reader) = (Client::new(&primary), Client::new(&replica));
        writer.call("HSET hash b 1 a 2").await;
        writer.call("SELECT 5").await;
        writer.call("ZADD sorted 2 b 1 a").await;
        follow(&replica, connect(&primary, "replica"));
        settle().await;
        assert_eq!(reader.call("HGETALL hash").await, r#"["b", "1", "a", "2"]"#);
        writer.call("RPUSH list a b").await;
        writer.call("BRPOP list 0").await;
        settle().await;
        assert_eq!(reader.call("EXISTS list").await, ":0");
        reader.call("SELECT 5").await;
        assert_eq!(reader.call("LRANGE list 0 -1").await, r#"["a"]"#);
        assert_eq!(reader.call("ZRANGE sorted 0 -1").await, r#"["a", "b"]"#);
        let refusal = "-READONLY You can't write against a read only replica.";
        assert_eq!(reader.call("BLPOP list 0").await, refusal);
    });
}

#[test]
fn a_replica_refuses_writes() {
    run(async {
        let clock = Clock::new();
        let replica = replica(&clock);
        let mut client = Client::new(&replica);
        let refusal = "-READONLY You can't write against a read only replica.";
        for line in ["SET a 1", "DEL a", "INCR a", "PEXPIRE a 1", "FLUSHALL"] {
            assert_eq!(client.call(line).await, refusal, "{line}");
        }
        let reply = client.call_words(&["EVAL", "return redis.call('SET', 'a', '1')", "0"]).await;
        assert!(reply.starts_with(refusal) && reply.contains("script: "), "{reply}");
        assert_eq!(client.call("GET a").await, "nil");
        assert!(client.call("ROLE").await.starts_with(r#"["slave""#));
    });
}

/// A replica does not remove expired keys, but never returns one.
#[test]
fn a_replica_leaves_expiry_to_its_primary() {
    run(async {
        let clock = Clock::new();
        let (primary, replica) = (server(&clock), replica(&clock));
        start_background(&replica);
        let (mut writer, mut reader) = (Client::new(&primary), Client::new(&replica));
        follow(&replica, connect(&primary, "replica"));
        writer.call("SET a 1 PX 1000").await;
        clock.advance_ms(1500).await;
        assert_eq!(reader.call("GET a").await, "nil");
        assert_eq!(reader.call("DBSIZE").await, ":1");
        assert_eq!(writer.call("GET a").await, "nil");
        settle().await;
        assert_eq!(reader.call("DBSIZE").await, ":0");
    });
}

/// Neither the expired key that a replica still stores nor its removal by the primary is a change.
#[test]
fn an_expired_key_on_a_replica_stops_no_transaction() {
    run(async {
        let clock = Clock::new();
        let (primary, replica) = (server(&clock), replica(&clock));
        let (mut writer, mut reader) = (Client::new(&primary), Client::new(&replica));
        follow(&replica, connect(&primary, "replica"));
        writer.call("SET a 1 PX 1000").await;
        clock.advance_ms(1500).await;
        for (command, keys) in [("PING", ":1"), ("GET a", ":0")] {
            reader.call("WATCH a").await;
            writer.call(command).await;
            settle().await;
            assert_eq!(reader.call("DBSIZE").await, keys);
            reader.call("MULTI").await;
            assert_eq!(reader.call("GET a").await, "+QUEUED");
            assert_eq!(reader.call("EXEC").await, "[nil]", "{command}");
        }
    });
}

/// The failover that loses a lock: the grant was acknowledged to the client, but had not reached the replica.
#[test]
fn a_promotion_loses_writes_in_flight() {
    run(async {
        let clock = Clock::new();
        let (primary, replica) = (server(&clock), replica(&clock));
        let (mut near, mut primary_end) = (connect(&primary, "replica"), tokio::io::duplex(1 << 20));
        let following = follow(&replica, primary_end.1);
        pass(&mut primary_end.0, &mut near).await;
        pass(&mut near, &mut primary_end.0).await;
        let mut writer = Client::new(&primary);
        writer.call("SET arrived 1").await;
        pass(&mut near, &mut primary_end.0).await;
        assert_eq!(writer.call("SET lost 1").await, "+OK");
        replica.promote();
        settle().await;
        assert!(following.is_finished());
        let mut client = Client::new(&replica);
        assert_eq!(client.call("MGET arrived lost").await, r#"["1", nil]"#);
        assert_eq!(client.call("SET lost 2").await, "+OK");
        assert!(client.call("ROLE").await.starts_with(r#"["master""#));
    });
}

#[test]
fn a_promoted_replica_expires_keys_itself() {
    run(async {
        let clock = Clock::new();
        let (primary, replica) = (server(&clock), replica(&clock));
        start_background(&replica);
        follow(&replica, connect(&primary, "replica"));
        Client::new(&primary).call("SET a 1 PX 1000").await;
        settle().await;
        let mut client = Client::new(&replica);
        assert_eq!(client.call("REPLICAOF NO ONE").await, "+OK");
        clock.advance_ms(1100).await;
        assert_eq!(client.call("DBSIZE").await, ":0");
    });
}

/// A grant must appear once in the history, by the server that gave it.
#[test]
fn observers_of_a_replica_receive_no_effects_of_its_primary() {
    run(async {
        let clock = Clock::new();
        let diary = Arc::new(Diary::default());
        let options =
            ServerOptions { is_replica: true, observer: diary.clone(), ..ServerOptions::new("replica") };
        let (primary, replica) = (server(&clock), Server::new(options, clock.clone()));
        follow(&replica, connect(&primary, "replica"));
        Client::new(&primary).call("SET a 1").await;
        settle().await;
        assert_eq!(Client::new(&replica).call("GET a").await, r#""1""#);
        assert_eq!(diary.take(), ["test: executed get"]);
    });
}

#[test]
fn wait_counts_the_replicas_that_have_the_write() {
    run(async {
        let clock = Clock::new();
        let (primary, replica) = (server(&clock), replica(&clock));
        let (mut near, mut primary_end) = (connect(&primary, "replica"), tokio::io::duplex(1 << 20));
        follow(&replica, primary_end.1);
        pass(&mut primary_end.0, &mut near).await;
        pass(&mut near, &mut primary_end.0).await;
        let mut writer = Client::new(&primary);
        writer.call("SET a 1").await;
        writer.stream.write_all(&super::support::encode(&["WAIT", "1", "500"])).await.unwrap();
        settle().await;
        clock.advance_ms(500).await;
        assert_eq!(writer.reply().await, ":0");
        writer.stream.write_all(&super::support::encode(&["WAIT", "1", "0"])).await.unwrap();
        pass(&mut near, &mut primary_end.0).await;
        pass(&mut primary_end.0, &mut near).await;
        assert_eq!(writer.reply().await, ":1");
        assert_eq!(writer.call("WAIT 0 0").await, ":1");
    });
}

/// A replica disconnects with an error from a peer that is not a Redis primary.
#[test]
fn following_something_else_is_an_error() {
    run(async {
        let clock = Clock::new();
        for answer in ["-ERR unknown command\r\n", "+HELLO\r\n", "%not RESP\r\n"] {
            let (mut theirs, ours) = tokio::io::duplex(1024);
            let following = follow(&replica(&clock), ours);
            theirs.write_all(answer.as_bytes()).await.unwrap();
            let error = following.await.unwrap().unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{answer}");
        }
    });
}

#[test]
fn a_replica_syncs_its_file_once_a_second() {
    run(async {
        let clock = Clock::new();
        let primary = server(&clock);
        let start = |is_replica| {
            let options = ServerOptions::new("replica");
            let persistence = Persistence::EverySecond;
            Server::new(ServerOptions { is_replica, persistence, ..options }, clock.clone())
        };
        let replica = start(true);
        let background = start_background(&replica);
        follow(&replica, connect(&primary, "replica"));
        settle().await;
        Client::new(&primary).call("SET a 1").await;
        settle().await;
        clock.advance_ms(1000).await;
        background.abort();
        clock.disk.crash(true);
        assert_eq!(Client::new(&start(false)).call("GET a").await, r#""1""#);
    });
}

#[test]
fn a_replica_refuses_scripts_that_declare_to_write() {
    run(async {
        let mut client = Client::new(&replica(&Clock::new()));
        let refusal = "-READONLY You can't write against a read only replica.";
        assert_eq!(client.call_words(&["EVAL", "#!lua\nreturn 1", "0"]).await, refusal);
        let name = client.call_words(&["SCRIPT", "LOAD", "#!lua\nreturn 2"]).await;
        let name = name.trim_matches('"').to_uppercase();
        assert_eq!(client.call(&format!("EVALSHA {name} 0")).await, refusal);
        client.call("MULTI").await;
        assert_eq!(client.call(&format!("EVALSHA {name} 0")).await, refusal);
        let aborted = "-EXECABORT Transaction discarded because of previous errors.";
        assert_eq!(client.call("EXEC").await, aborted);
        for script in ["return 1", "#!lua flags=no-writes\nreturn 1"] {
            assert_eq!(client.call_words(&["EVAL", script, "0"]).await, ":1", "{script}");
        }
    });
}

#[test]
fn a_client_that_leaves_while_it_waits_for_replicas_is_gone() {
    run(async {
        let server = server(&Clock::new());
        let (mut writer, mut other) = (Client::new(&server), Client::new(&server));
        writer.call("SET a 1").await;
        writer.stream.write_all(&super::support::encode(&["WAIT", "1", "0"])).await.unwrap();
        settle().await;
        drop(writer);
        settle().await;
        let info = other.call("INFO clients").await;
        assert!(info.contains("connected_clients:1\\r"), "{info}");
    });
}

#[test]
fn a_replica_tells_its_place_in_the_stream() {
    run(async {
        let clock = Clock::new();
        let (primary, replica) = (server(&clock), replica(&clock));
        follow(&replica, connect(&primary, "replica"));
        settle().await;
        let (mut writer, mut reader) = (Client::new(&primary), Client::new(&replica));
        writer.call("SET a 1").await;
        settle().await;
        let offset = |info: &str| info.split("master_repl_offset:").nth(1).map(str::to_owned);
        let (one, other) = (writer.call("INFO replication").await, reader.call("INFO replication").await);
        assert_eq!(offset(&one), offset(&other));
        assert!(!one.contains("master_repl_offset:0"), "{one}");
    });
}
