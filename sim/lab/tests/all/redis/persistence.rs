//! The data that survive a restart, by persistence policy and kind of crash.

use std::sync::Arc;

use super::support::{Client, Clock, Diary, run, settle, start_background};
use redb::StorageBackend;
use sim::servers::redis::{Persistence, Server, ServerOptions};

fn start(clock: &Clock, persistence: Persistence) -> Server<Clock> {
    Server::new(ServerOptions { persistence, ..ServerOptions::new("redis") }, clock.clone())
}

#[test]
fn without_a_file_a_restart_forgets_everything() {
    run(async {
        let clock = Clock::new();
        Client::new(&start(&clock, Persistence::None)).call("SET a 1").await;
        assert_eq!(Client::new(&start(&clock, Persistence::None)).call("GET a").await, "nil");
    });
}

#[test]
fn always_syncs_before_the_reply() {
    run(async {
        let clock = Clock::new();
        let mut client = Client::new(&start(&clock, Persistence::Always));
        client.call("SET a 1").await;
        client.call("INCR n").await;
        client.call("GET a").await;
        assert_eq!(clock.disk.syncs(), 2, "a read syncs nothing");
        clock.disk.crash(true);
        let mut client = Client::new(&start(&clock, Persistence::Always));
        assert_eq!(client.call("MGET a n").await, r#"["1", "1"]"#);
    });
}

#[test]
fn everysec_loses_the_writes_of_the_last_second() {
    run(async {
        let clock = Clock::new();
        let server = start(&clock, Persistence::EverySecond);
        let background = start_background(&server);
        let mut client = Client::new(&server);
        client.call("SET a 1").await;
        settle().await;
        clock.advance_ms(1000).await;
        assert_eq!(clock.disk.syncs(), 1);
        client.call("SET b 1").await;
        clock.advance_ms(500).await;
        background.abort();
        clock.disk.crash(true);
        let mut client = Client::new(&start(&clock, Persistence::EverySecond));
        assert_eq!(client.call("MGET a b").await, r#"["1", nil]"#);
    });
}

#[test]
fn a_process_crash_without_power_loss_loses_nothing() {
    run(async {
        let clock = Clock::new();
        let mut client = Client::new(&start(&clock, Persistence::EverySecond));
        client.call("SET a 1").await;
        let mut client = Client::new(&start(&clock, Persistence::EverySecond));
        assert_eq!(client.call("GET a").await, r#""1""#);
    });
}

#[test]
fn collections_and_databases_survive_a_restart() {
    run(async {
        let clock = Clock::new();
        let mut client = Client::new(&start(&clock, Persistence::Always));
        for line in [
            "HSET hash b 1 a 2",
            "HINCRBYFLOAT hash a 0.5",
            "SADD set x y z",
            "SPOP set",
            "SELECT 3",
            "RPUSH list a b c d",
            "BLPOP list 0",
            "EXPIRE list 100",
            "ZADD sorted 1 a 2 b 3 c",
            "BZPOPMAX sorted 0",
            "COPY list list DB 4",
            "MOVE sorted 0",
        ] {
            client.call(line).await;
        }
        client.call("SELECT 0").await;
        let left = client.call("SMEMBERS set").await;
        let mut client = Client::new(&start(&clock, Persistence::Always));
        assert_eq!(client.call("HGETALL hash").await, r#"["b", "1", "a", "2.5"]"#);
        assert_eq!(client.call("SMEMBERS set").await, left);
        assert_eq!(client.call("ZRANGE sorted 0 -1 WITHSCORES").await, r#"["a", "1", "b", "2"]"#);
        for database in ["SELECT 3", "SELECT 4"] {
            client.call(database).await;
            assert_eq!(client.call("LRANGE list 0 -1").await, r#"["b", "c", "d"]"#);
            assert_eq!(client.call("TTL list").await, ":100");
            assert_eq!(client.call("DBSIZE").await, ":1");
        }
    });
}

#[test]
fn every_kind_of_write_survives_a_restart() {
    run(async {
        let clock = Clock::new();
        let mut client = Client::new(&start(&clock, Persistence::Always));
        for line in [
            "SET plain 1",
            "SET lease x PX 5000",
            "SET kept x PX 5000",
            "PERSIST kept",
            "SET extended x PX 100",
            "PEXPIRE extended 9000",
            "SET gone x",
            "DEL gone",
            "SET count 5 PX 7000",
            "INCRBY count 3",
            "DECR count",
            "APPEND plain 2",
            "SET ended x PX 10",
        ] {
            client.call(line).await;
        }
        clock.advance_ms(1000).await;
        let mut client = Client::new(&start(&clock, Persistence::Always));
        for (line, reply) in [
            ("KEYS *", r#"["count", "extended", "kept", "lease", "plain"]"#),
            ("MGET plain lease kept extended count", r#"["12", "x", "x", "x", "7"]"#),
            ("PTTL lease", ":4000"),
            ("PTTL kept", ":-1"),
            ("PTTL extended", ":8000"),
            ("PTTL count", ":6000"),
            ("DBSIZE", ":5"),
        ] {
            assert_eq!(client.call(line).await, reply, "{line}");
        }
    });
}

/// A lease goes on expiring while its server is down, and observers receive its expiry.
#[test]
fn time_passes_while_the_server_is_down() {
    run(async {
        let clock = Clock::new();
        let mut client = Client::new(&start(&clock, Persistence::Always));
        client.call("SET lease x PX 2000").await;
        clock.advance_ms(2001).await;
        let diary = Arc::new(Diary::default());
        let persistence = Persistence::Always;
        let options = ServerOptions { persistence, observer: diary.clone(), ..ServerOptions::new("redis") };
        let mut client = Client::new(&Server::new(options, clock.clone()));
        assert_eq!(diary.take(), ["redis: removed lease Expired"]);
        assert_eq!(client.call("GET lease").await, "nil");
        let file = String::from_utf8(contents(&clock)).unwrap();
        assert!(file.ends_with("*2\r\n$3\r\nDEL\r\n$5\r\nlease\r\n"), "{file}");
    });
}

#[test]
fn a_restart_forgets_scripts() {
    run(async {
        let clock = Clock::new();
        let mut client = Client::new(&start(&clock, Persistence::Always));
        let script = "return redis.call('INCR', 'n')";
        client.call_words(&["EVAL", script, "0"]).await;
        let mut client = Client::new(&start(&clock, Persistence::Always));
        assert_eq!(client.call("GET n").await, r#""1""#);
        let name = sha1_smol::Sha1::from(script).digest().to_string();
        let reply = client.call(&format!("EVALSHA {name} 0")).await;
        assert!(reply.starts_with("-NOSCRIPT"), "{reply}");
    });
}

/// Wherever the file is truncated, the server starts with all complete commands and no part of a script.
#[test]
fn a_truncated_file_gives_only_complete_commands() {
    run(async {
        let clock = Clock::new();
        let script = "redis.call('SET', 'b', '1') return redis.call('INCR', 'n')";
        fill(&clock, script).await;
        let length = contents(&clock).len();
        for cut in 1..length {
            let clock = clock.with_empty_disk();
            fill(&clock, script).await;
            let file = clock.disk.open();
            file.set_len((length - cut) as u64).unwrap();
            let mut client = Client::new(&start(&clock, Persistence::Always));
            let state = client.call("MGET a b n c e f").await;
            let whole = [
                "[nil, nil, nil, nil, nil, nil]",
                r#"["1", nil, nil, nil, nil, nil]"#,
                r#"["1", "1", "1", nil, nil, nil]"#,
                r#"["1", "1", "1", "1", nil, nil]"#,
            ];
            assert!(whole.contains(&state.as_str()), "{state} after {cut} bytes were lost");
            // New writes must be readable behind the rest of the file.
            client.call("SET d 1").await;
            let mut client = Client::new(&start(&clock, Persistence::Always));
            assert_eq!(client.call("GET d").await, r#""1""#);
            assert_eq!(client.call("MGET a b n c e f").await, state);
        }
    });
}

/// Returns the contents of the append-only file. Servers started earlier can't write to it any more.
fn contents(clock: &Clock) -> Vec<u8> {
    clock.disk.open().contents().unwrap()
}

async fn fill(clock: &Clock, script: &str) {
    let mut client = Client::new(&start(clock, Persistence::Always));
    client.call("SET a 1").await;
    client.call_words(&["EVAL", script, "0"]).await;
    client.call("SET c 1").await;
    for line in ["MULTI", "SET e 1", "SET f 1", "EXEC"] {
        client.call(line).await;
    }
}

#[test]
fn restored_keys_count_as_just_used() {
    run(async {
        let clock = Clock::new();
        Client::new(&start(&clock, Persistence::Always)).call("SET a 1").await;
        clock.advance_ms(5000).await;
        let mut client = Client::new(&start(&clock, Persistence::Always));
        assert_eq!(client.call("OBJECT IDLETIME a").await, ":0");
    });
}
