//! Keys expire by the server's own wall clock: on access, and in the background ten times a second.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::support::{Client, Clock, Diary, run, server_of, settle, start_background};
use sim::servers::redis::{Server, ServerOptions, Version};

fn observed(clock: &Clock) -> (Server<Clock>, Arc<Diary>) {
    let diary = Arc::new(Diary::default());
    let options = ServerOptions { observer: diary.clone(), ..ServerOptions::new("redis") };
    (Server::new(options, clock.clone()), diary)
}

#[test]
fn a_key_lives_through_the_millisecond_of_its_expiry() {
    run(async {
        let clock = Clock::new();
        let (server, _) = observed(&clock);
        let mut client = Client::new(&server);
        client.call("SET a 1 PX 100").await;
        clock.advance_ms(100).await;
        assert_eq!(client.call("GET a").await, r#""1""#);
        assert_eq!(client.call("PTTL a").await, ":0");
        clock.advance_ms(1).await;
        assert_eq!(client.call("GET a").await, "nil");
        assert_eq!(client.call("PTTL a").await, ":-2");
    });
}

#[test]
fn access_to_an_expired_key_removes_it() {
    run(async {
        let clock = Clock::new();
        let (server, diary) = observed(&clock);
        let mut client = Client::new(&server);
        client.call("SET a 1 PX 100").await;
        clock.advance_ms(101).await;
        diary.take();
        assert_eq!(client.call("DBSIZE").await, ":1");
        assert_eq!(client.call("EXISTS a").await, ":0");
        assert_eq!(client.call("DBSIZE").await, ":0");
        assert!(diary.take().contains(&"test: removed a Expired".to_owned()));
    });
}

#[test]
fn the_background_task_expires_keys_at_its_next_tick() {
    run(async {
        let clock = Clock::new();
        let (server, diary) = observed(&clock);
        start_background(&server);
        let mut client = Client::new(&server);
        client.call("SET a 1 PX 150").await;
        client.call("SET b 1 PX 120").await;
        diary.take();
        clock.advance_ms(199).await;
        assert_eq!(diary.take(), Vec::<String>::new());
        clock.advance_ms(1).await;
        assert_eq!(diary.take(), ["redis: removed b Expired", "redis: removed a Expired"]);
    });
}

#[test]
fn the_background_task_removes_expired_fields_at_its_next_tick() {
    run(async {
        for version in [Version::Redis84, Version::Valkey9] {
            let clock = Clock::new();
            let server = server_of(version, &clock);
            start_background(&server);
            let mut client = Client::new(&server);
            client.call("HSETEX h PX 150 FIELDS 1 a 1").await;
            client.call("HSET h b 2").await;
            client.call("HSETEX gone PX 150 FIELDS 1 a 1").await;
            clock.advance_ms(199).await;
            assert_eq!(client.call("HGETALL h").await, r#"["b", "2"]"#, "{version:?}");
            assert_eq!(client.call("HLEN h").await, ":2", "{version:?}");
            clock.advance_ms(1).await;
            assert_eq!(client.call("HLEN h").await, ":1", "{version:?}");
            assert_eq!(client.call("EXISTS gone").await, ":0", "{version:?}");
        }
    });
}

#[test]
fn a_shorter_expiry_wakes_the_background_task_early() {
    run(async {
        let clock = Clock::new();
        let (server, diary) = observed(&clock);
        start_background(&server);
        let mut client = Client::new(&server);
        client.call("SET a 1 PX 3600000").await;
        settle().await;
        client.call("SET b 1 PX 50").await;
        settle().await;
        diary.take();
        clock.advance_ms(100).await;
        assert_eq!(diary.take(), ["redis: removed b Expired"]);
    });
}

/// Renewing one key ten thousand times must not cost ten thousand wake-ups, nor an idle hour 36,000.
#[test]
fn the_background_task_sleeps_while_there_is_nothing_to_do() {
    run(async {
        let clock = Clock::new();
        let (server, _) = observed(&clock);
        start_background(&server);
        settle().await;
        let mut client = Client::new(&server);
        client.call("SET a 1 PX 3600000").await;
        for _ in 0..10_000 {
            client.call("PEXPIRE a 3600000").await;
        }
        for _ in 0..3000 {
            clock.advance_ms(1000).await;
        }
        assert!(clock.sleeps.load(Ordering::SeqCst) < 20, "{:?}", clock.sleeps);
        assert_eq!(client.call("EXISTS a").await, ":1");
    });
}

#[test]
fn a_clock_that_steps_back_prolongs_a_key() {
    run(async {
        let clock = Clock::new();
        let (server, diary) = observed(&clock);
        start_background(&server);
        let mut client = Client::new(&server);
        client.call("SET a 1 PX 10000").await;
        clock.step_back_ms(60_000);
        clock.advance_ms(30_000).await;
        assert_eq!(client.call("PTTL a").await, ":40000");
        diary.take();
        clock.advance_ms(40_001).await;
        server.clock_changed();
        settle().await;
        assert_eq!(client.call("GET a").await, "nil");
        assert!(diary.take().iter().any(|line| line.contains("removed a Expired")));
    });
}

/// A script sees one time from its start to its end.
#[test]
fn no_key_expires_during_a_script() {
    run(async {
        let clock = Clock::new();
        let (server, _) = observed(&clock);
        let mut client = Client::new(&server);
        let script = "
            local before = redis.call('TIME')
            redis.call('SET', 'a', '1', 'PX', 1)
            for i = 1, 100000 do end
            local after = redis.call('TIME')
            return {redis.call('GET', 'a'), redis.call('PTTL', 'a'), before[2] == after[2]}";
        assert_eq!(client.call_words(&["EVAL", script, "0"]).await, r#"["1", :1, :1]"#);
    });
}

#[test]
fn an_evicted_key_is_gone_at_once() {
    run(async {
        let clock = Clock::new();
        let (server, diary) = observed(&clock);
        let mut client = Client::new(&server);
        client.call("SET a 1").await;
        diary.take();
        assert!(server.evict(b"a"));
        assert!(!server.evict(b"a"));
        assert_eq!(diary.take(), ["redis: removed a Evicted"]);
        assert_eq!(client.call("GET a").await, "nil");
        client.call("SET b 1").await;
        server.flush();
        assert_eq!(client.call("DBSIZE").await, ":0");
    });
}
