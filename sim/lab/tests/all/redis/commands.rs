//! Replies to commands equal those of Redis, to the letter.

use super::support::{Client, Clock, run, server};

#[test]
fn commands_answer_as_the_live_server_did() {
    compare(include_str!("commands.txt"));
}

#[test]
fn commands_on_collections_answer_as_the_live_server_did() {
    compare(include_str!("collections.txt"));
}

/// Sends every request of the table, in order, to one server.
fn compare(table: &str) {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let lines: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
        let mut differences = Vec::new();
        for pair in lines.chunks(2) {
            let (request, expected) = (pair[0], pair[1].trim_start());
            let got = client.type_line(request).await;
            if got != expected {
                differences.push(format!("{request}\n  Redis: {expected}\n  ours:  {got}"));
            }
        }
        assert!(lines.len() > 400, "the table has only {} lines", lines.len());
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    });
}

#[test]
fn keys_come_in_order_and_scan_ends_at_once() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        client.call("MSET b 2 a 1 c 3").await;
        assert_eq!(client.call("KEYS *").await, r#"["a", "b", "c"]"#);
        assert_eq!(client.call("SCAN 0 MATCH [ab] COUNT 1").await, r#"["0", ["a", "b"]]"#);
        assert_eq!(client.call("SCAN 0 TYPE list").await, r#"["0", []]"#);
    });
}

#[test]
fn time_is_the_server_clock() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        assert_eq!(client.call("TIME").await, r#"["1700000000", "0"]"#);
    });
}

#[test]
fn connections_have_numbers_and_names() {
    run(async {
        let server = server(&Clock::new());
        let (mut first, mut second) = (Client::new(&server), Client::new(&server));
        assert_eq!(first.call("CLIENT ID").await, ":1");
        assert_eq!(second.call("CLIENT ID").await, ":2");
        first.call("CLIENT SETNAME worker").await;
        assert_eq!(first.call("CLIENT INFO").await, r#""id=1 name=worker db=0 resp=2\n""#);
        assert_eq!(second.call("CLIENT GETNAME").await, "nil");
        let hello = second.call("HELLO 2 SETNAME other").await;
        assert!(hello.contains(r#""proto", :2, "id", :2"#), "{hello}");
        assert_eq!(second.call("CLIENT GETNAME").await, r#""other""#);
        assert_eq!(second.call("HELLO 4").await, "-NOPROTO unsupported protocol version");
        assert_eq!(second.call("QUIT").await, "+OK");
        assert_eq!(second.reply().await, "closed");
    });
}

#[test]
fn info_has_the_sections_that_clients_read() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        client.call("SET a 1 PX 1000").await;
        let text = client.call("INFO").await;
        for part in ["redis_version:7.0.15", "role:master", "connected_clients:1", "db0:keys=1,expires=1"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(
            client.call("INFO keyspace").await,
            r##""# Keyspace\r\ndb0:keys=1,expires=1,avg_ttl=0\r\n""##
        );
    });
}

/// A change by any client, or the key's expiry, prevents the execution of a transaction that watches the key.
#[test]
fn a_watched_key_that_changed_stops_the_transaction() {
    run(async {
        let clock = Clock::new();
        let server = server(&clock);
        let (mut client, mut other) = (Client::new(&server), Client::new(&server));
        for change in ["SET a 2", "PEXPIRE a 5000", "DEL a", "FLUSHALL", "PING"] {
            client.call("SET a 1 PX 1000").await;
            client.call("WATCH a b").await;
            other.call(change).await;
            client.call("MULTI").await;
            assert_eq!(client.call("INCR n").await, "+QUEUED");
            let is_executed = client.call("EXEC").await != "nil";
            assert_eq!(is_executed, change == "PING", "{change}");
        }
        client.call("WATCH a").await;
        clock.advance_ms(1001).await;
        client.call("MULTI").await;
        assert_eq!(client.call("EXEC").await, "nil");
    });
}

/// A key that had expired before the watch was missing already: its removal is no change. A write is one.
#[test]
fn only_a_write_changes_a_watched_key_that_had_expired() {
    run(async {
        let clock = Clock::new();
        let server = server(&clock);
        let (mut client, mut other) = (Client::new(&server), Client::new(&server));
        for change in ["PING", "GET k", "DEL k", "FLUSHALL", "SET k y", "INCR k"] {
            client.call("SET k v PX 20").await;
            clock.advance_ms(21).await;
            assert_eq!(client.call("DBSIZE").await, ":1", "the key is still stored");
            client.call("WATCH k").await;
            other.call(change).await;
            client.call("MULTI").await;
            assert_eq!(client.call("SET k x").await, "+QUEUED");
            let is_write = ["SET k y", "INCR k"].contains(&change);
            assert_eq!(client.call("EXEC").await, if is_write { "nil" } else { "[+OK]" }, "{change}");
        }
    });
}
