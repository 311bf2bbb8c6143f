//! Clients that wait for elements are served in order, for as long as the server's clock allows.

use std::sync::Arc;

use super::support::{Client, Clock, Diary, encode, run, server, settle};
use sim::servers::redis::{Server, ServerOptions};
use tokio::io::AsyncWriteExt;

/// Sends a command without waiting for its reply.
async fn send(client: &mut Client, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    client.stream.write_all(&encode(&words)).await.unwrap();
    settle().await;
}

#[test]
fn the_client_that_has_waited_longest_is_served_first() {
    run(async {
        let server = server(&Clock::new());
        let [mut first, mut second, mut third, mut other] = [(); 4].map(|()| Client::new(&server));
        send(&mut first, "BLPOP a b 0").await;
        send(&mut second, "BLMOVE b c LEFT RIGHT 0").await;
        send(&mut third, "BRPOP c b 0").await;
        assert!(other.call("INFO clients").await.contains("blocked_clients:3"));
        assert_eq!(other.call("RPUSH b 1 2 3").await, ":3");
        assert_eq!(first.reply().await, r#"["b", "1"]"#);
        assert_eq!(second.reply().await, r#""2""#);
        assert_eq!(third.reply().await, r#"["b", "3"]"#);
        assert_eq!(other.call("LRANGE c 0 -1").await, r#"["2"]"#);
        assert!(other.call("INFO clients").await.contains("blocked_clients:0"));
    });
}

#[test]
fn a_timeout_counts_on_the_server_clock() {
    run(async {
        let clock = Clock::new();
        let server = server(&clock);
        let (mut client, mut other) = (Client::new(&server), Client::new(&server));
        send(&mut client, "BLPOP a 1.5").await;
        clock.step_back_ms(1000);
        clock.advance_ms(1600).await;
        assert!(other.call("INFO clients").await.contains("blocked_clients:1"));
        clock.advance_ms(1000).await;
        assert_eq!(client.reply().await, "nil");
        assert_eq!(other.call("RPUSH a 1").await, ":1");
        assert_eq!(other.call("LLEN a").await, ":1");
    });
}

#[test]
fn a_client_that_left_gets_nothing() {
    run(async {
        let server = server(&Clock::new());
        let (mut client, mut other) = (Client::new(&server), Client::new(&server));
        send(&mut client, "BLPOP a 0").await;
        drop(client);
        settle().await;
        assert_eq!(other.call("RPUSH a 1").await, ":1");
        assert_eq!(other.call("LLEN a").await, ":1");
    });
}

#[test]
fn requests_behind_one_that_waits_are_answered_after_it() {
    run(async {
        let server = server(&Clock::new());
        let (mut client, mut other) = (Client::new(&server), Client::new(&server));
        send(&mut client, "BZPOPMIN a 0").await;
        send(&mut client, "ECHO later").await;
        other.call("ZADD a 1 x").await;
        assert_eq!(client.reply().await, r#"["a", "x", "1"]"#);
        assert_eq!(client.reply().await, r#""later""#);
    });
}

/// The elements of a transaction or script are given away when it has ended.
#[test]
fn waiting_clients_are_served_after_a_transaction() {
    run(async {
        let server = server(&Clock::new());
        let (mut client, mut other) = (Client::new(&server), Client::new(&server));
        send(&mut client, "BLPOP a 0").await;
        other.call("MULTI").await;
        other.call("RPUSH a 1 2").await;
        other.call("LPOP a").await;
        other.call("BLPOP nosuch 0").await;
        assert_eq!(other.call("EXEC").await, r#"[:2, "1", nil]"#);
        assert_eq!(client.reply().await, r#"["a", "2"]"#);
    });
}

#[test]
fn observers_learn_which_client_got_an_element() {
    run(async {
        let diary = Arc::new(Diary::default());
        let options = ServerOptions { observer: diary.clone(), ..ServerOptions::new("redis") };
        let server = Server::new(options, Clock::new());
        let (mut client, mut other) = (Client::named(&server, "taker"), Client::named(&server, "giver"));
        send(&mut client, "BLPOP a 0").await;
        other.call("RPUSH a 1").await;
        client.reply().await;
        let expected = [
            "taker: executed blpop",
            "giver: changed a",
            "giver: executed rpush",
            "taker: removed a Deleted",
        ];
        assert_eq!(diary.take(), expected);
    });
}

#[test]
fn a_step_of_the_clock_ends_a_wait_for_replicas() {
    run(async {
        let clock = Clock::new();
        clock.step_back_ms(60_000);
        let server = server(&clock);
        let mut client = Client::new(&server);
        client.call("SET a 1").await;
        send(&mut client, "WAIT 1 30000").await;
        clock.step_forward_ms(60_000);
        server.clock_changed();
        settle().await;
        let reply = futures_util::FutureExt::now_or_never(client.reply());
        assert_eq!(reply.as_deref(), Some(":0"));
    });
}
