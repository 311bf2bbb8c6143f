//! Events of keys (`notify-keyspace-events`).
#![allow(clippy::disallowed_methods, reason = "a test")]

use super::support::{Client, Clock, connect, encode, run, server, settle, start_background};
use sim::servers::redis::{Persistence, Server, ServerOptions};
use tokio::io::AsyncWriteExt;

/// A client that gets all events.
struct Listener(Client);

impl Listener {
    async fn new(server: &Server<Clock>, classes: &str) -> Self {
        let mut client = Client::new(server);
        assert_eq!(client.call_words(&["CONFIG", "SET", "notify-keyspace-events", classes]).await, "+OK");
        client.call("PSUBSCRIBE __key*").await;
        Self(client)
    }

    /// Returns the messages since the last call: channels and texts.
    async fn messages(&mut self) -> Vec<(String, String)> {
        let mut reply = self.0.call("PING").await;
        let mut messages = Vec::new();
        while reply != r#"["pong", ""]"# {
            let words: Vec<&str> = reply.trim_matches(['[', ']']).split(", ").collect();
            let [kind, pattern, channel, text] = words[..] else { panic!("{reply}") };
            assert_eq!((kind, pattern), (r#""pmessage""#, r#""__key*""#));
            messages.push((channel.trim_matches('"').into(), text.trim_matches('"').into()));
            reply = self.0.reply().await;
        }
        messages
    }

    /// Returns the events since the last call. Each must come twice, first to the channel of the key; one
    /// called `own` comes from a script.
    async fn events(&mut self) -> String {
        let messages = self.messages().await;
        let (mut at, mut events) = (0, Vec::new());
        while let Some((channel, text)) = messages.get(at) {
            if channel == "__keyevent@0__:own" {
                events.push(format!("own {text}"));
                at += 1;
                continue;
            }
            let (database, key) = channel.strip_prefix("__keyspace@").unwrap().split_once("__:").unwrap();
            assert_eq!(messages[at + 1], (format!("__keyevent@{database}__:{text}"), key.to_owned()));
            let database = if database == "0" { String::new() } else { format!("@{database}") };
            events.push(format!("{text} {key}{database}"));
            at += 2;
        }
        events.join(", ")
    }
}

#[test]
fn each_command_publishes_the_events_of_redis() {
    run(async {
        let server = server(&Clock::new());
        let mut listener = Listener::new(&server, "KEAnm").await;
        let mut client = Client::new(&server);
        let (mut differences, mut count) = (Vec::new(), 0);
        let lines: Vec<&str> =
            include_str!("events.txt").lines().filter(|line| !line.starts_with('#')).collect();
        for pair in lines.chunks(2) {
            let (request, expected) = (pair[0], pair[1].trim_start());
            let reply = client.type_line(request).await;
            assert!(!reply.starts_with('-'), "{request}: {reply}");
            let got = listener.events().await;
            count += 1;
            if got != expected {
                differences.push(format!("{request}\n  Redis: {expected}\n  ours:  {got}"));
            }
        }
        assert!(count > 150, "{count}");
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    });
}

#[test]
fn only_the_classes_and_forms_of_the_setting_are_published() {
    run(async {
        let server = server(&Clock::new());
        let mut client = Client::new(&server);
        for (classes, expected) in [
            ("", &[][..]),
            ("KE", &[]),
            ("A", &[]),
            ("K$", &[("__keyspace@0__:a", "set"), ("__keyspace@0__:a", "set")]),
            ("Eg", &[("__keyevent@0__:expire", "a"), ("__keyevent@0__:del", "a")]),
            ("Enm", &[("__keyevent@0__:new", "a"), ("__keyevent@0__:keymiss", "a")]),
        ] {
            let mut listener = Listener::new(&server, classes).await;
            for command in ["SET a 1", "SET a 1 EX 10", "DEL a", "GET a"] {
                client.call(command).await;
            }
            let expected: Vec<_> =
                expected.iter().map(|(channel, text)| ((*channel).into(), (*text).into())).collect();
            assert_eq!(listener.messages().await, expected, "{classes}");
        }
    });
}

#[test]
fn the_setting_is_checked_and_shown_as_in_redis() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let name = "notify-keyspace-events";
        assert_eq!(client.call("CONFIG GET notify*").await, format!(r#"["{name}", ""]"#));
        assert_eq!(client.call("CONFIG SET Notify-Keyspace-Events KExe").await, "+OK");
        assert_eq!(client.call("CONFIG GET notify*").await, format!(r#"["{name}", "xeKE"]"#));
        let set_failed = "-ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - ";
        assert_eq!(
            client.call("CONFIG SET notify-keyspace-events KEy").await,
            format!("{set_failed}Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
        );
        assert_eq!(
            client.call("CONFIG SET notify-keyspace-events K notify-keyspace-events E").await,
            format!("{set_failed}duplicate parameter")
        );
        assert_eq!(client.call("CONFIG SET notify-keyspace-events K x").await, "-ERR syntax error");
        assert_eq!(
            client.call("CONFIG SET notify-keyspace-events K nosuch x").await,
            "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'"
        );
        assert_eq!(client.call("CONFIG GET notify*").await, format!(r#"["{name}", "xeKE"]"#));
    });
}

#[test]
fn a_key_that_expires_or_is_evicted_is_an_event() {
    run(async {
        let clock = Clock::new();
        let server = server(&clock);
        let mut client = Client::new(&server);
        client.call("SET a 1 PX 10").await;
        client.call("SET b 1 PX 10").await;
        client.call("SET c 1").await;
        let mut listener = Listener::new(&server, "KEAm").await;
        clock.advance_ms(11).await;
        client.call("GET a").await;
        assert_eq!(listener.events().await, "expired a, keymiss a", "found by a client");
        let background = start_background(&server);
        settle().await;
        clock.advance_ms(100).await;
        assert_eq!(listener.events().await, "expired b", "found by the server");
        assert!(server.evict(b"c"));
        assert_eq!(listener.events().await, "evicted c");
        background.abort();
    });
}

#[test]
fn a_waiting_client_that_is_served_is_an_event() {
    run(async {
        let server = server(&Clock::new());
        let mut listener = Listener::new(&server, "KEAnm").await;
        let (mut waiting, mut client) = (Client::new(&server), Client::new(&server));
        for (request, push, events) in [
            ("BLPOP a 0", "RPUSH a 1 2", "new a, rpush a, lpop a"),
            ("BLMOVE b c RIGHT LEFT 0", "RPUSH b 1", "new b, rpush b, new c, lpush c, rpop b, del b"),
            ("BLMPOP 0 1 d LEFT COUNT 9", "RPUSH d 1 2", "new d, rpush d, lpop d, del d"),
            ("BZPOPMAX e 0", "ZADD e 1 m", "new e, zadd e, zpopmax e, del e"),
            ("BZMPOP 0 1 f MIN", "ZADD f 1 m 2 n", "new f, zadd f, zpopmin f"),
        ] {
            let words: Vec<&str> = request.split(' ').collect();
            waiting.stream.write_all(&encode(&words)).await.unwrap();
            settle().await;
            client.call(push).await;
            waiting.reply().await;
            assert_eq!(listener.events().await, events, "{request}");
        }
    });
}

#[test]
fn a_replica_publishes_the_events_of_the_stream() {
    run(async {
        let clock = Clock::new();
        let primary = server(&clock);
        let options = ServerOptions { is_replica: true, ..ServerOptions::new("replica") };
        let replica = Server::new(options, clock.clone());
        let (mut writer, mut reader) = (Client::new(&primary), Client::new(&replica));
        writer.call("SET before 1").await;
        let mut listener = Listener::new(&replica, "KEAnm").await;
        let follower = replica.clone();
        let stream = connect(&primary, "replica");
        tokio::spawn(async move { follower.follow(stream).await });
        settle().await;
        assert_eq!(listener.events().await, "", "a snapshot is no event");
        writer.call("SET a 1 PX 10").await;
        writer.call("RPUSH l 1").await;
        writer.call("RPOP l").await;
        settle().await;
        assert_eq!(listener.events().await, "new a, set a, expire a, new l, rpush l, rpop l, del l");
        clock.advance_ms(11).await;
        reader.call("GET a").await;
        assert_eq!(listener.events().await, "keymiss a", "the primary removes it");
        writer.call("GET a").await;
        settle().await;
        assert_eq!(listener.events().await, "del a");
    });
}

#[test]
fn a_restart_forgets_the_setting() {
    run(async {
        let clock = Clock::new();
        let options = || ServerOptions { persistence: Persistence::Always, ..ServerOptions::new("redis") };
        let mut client = Client::new(&Server::new(options(), clock.clone()));
        client.call("CONFIG SET notify-keyspace-events KEA").await;
        client.call("SET a 1").await;
        let mut client = Client::new(&Server::new(options(), clock));
        assert_eq!(client.call("GET a").await, r#""1""#);
        assert_eq!(client.call("CONFIG GET notify*").await, r#"["notify-keyspace-events", ""]"#);
    });
}
