//! Channels, patterns, and the limit on what their subscribers leave unread.
#![allow(clippy::disallowed_methods, reason = "a test")]

use super::support::{Client, Clock, connect, encode, run, server, settle};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Sends a command, and returns everything that has arrived since.
async fn say(stream: &mut DuplexStream, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    stream.write_all(&encode(&words)).await.unwrap();
    received(stream).await
}

/// Returns the bytes that have arrived. Lines end with a space.
async fn received(stream: &mut DuplexStream) -> String {
    settle().await;
    let mut bytes = Vec::new();
    // A read that must wait does not end.
    while let Some(Ok(1..)) = futures_util::FutureExt::now_or_never(stream.read_buf(&mut bytes)) {}
    String::from_utf8(bytes).unwrap().replace("\r\n", " ")
}

#[test]
fn counts_of_subscriptions_include_patterns() {
    run(async {
        let mut stream = connect(&server(&Clock::new()), "client");
        for (line, reply) in [
            ("PUNSUBSCRIBE", "*3 $12 punsubscribe $-1 :0 "),
            ("SUBSCRIBE a", "*3 $9 subscribe $1 a :1 "),
            ("PSUBSCRIBE b* c*", "*3 $10 psubscribe $2 b* :2 *3 $10 psubscribe $2 c* :3 "),
            ("PSUBSCRIBE b*", "*3 $10 psubscribe $2 b* :3 "),
            ("UNSUBSCRIBE", "*3 $11 unsubscribe $1 a :2 "),
            ("UNSUBSCRIBE", "*3 $11 unsubscribe $-1 :2 "),
            ("PING", "*2 $4 pong $0  "),
            ("PUNSUBSCRIBE nosuch", "*3 $12 punsubscribe $6 nosuch :2 "),
            ("PUNSUBSCRIBE", "*3 $12 punsubscribe $2 b* :1 *3 $12 punsubscribe $2 c* :0 "),
            ("PING", "+PONG "),
        ] {
            assert_eq!(say(&mut stream, line).await, reply, "{line}");
        }
    });
}

#[test]
fn a_message_comes_for_the_channel_and_then_for_each_pattern() {
    run(async {
        let server = server(&Clock::new());
        let [mut old, mut new, mut other] = ["old", "new", "other"].map(|name| connect(&server, name));
        say(&mut new, "HELLO 3").await;
        for client in [&mut old, &mut new] {
            say(client, "PSUBSCRIBE n*s ?ews").await;
            say(client, "SUBSCRIBE news").await;
        }
        assert_eq!(say(&mut other, "PUBLISH news hi").await, ":6 ");
        assert_eq!(
            received(&mut old).await,
            "*3 $7 message $4 news $2 hi *4 $8 pmessage $3 n*s $4 news $2 hi \
             *4 $8 pmessage $4 ?ews $4 news $2 hi "
        );
        assert_eq!(
            received(&mut new).await,
            ">3 $7 message $4 news $2 hi >4 $8 pmessage $3 n*s $4 news $2 hi \
             >4 $8 pmessage $4 ?ews $4 news $2 hi "
        );
        assert_eq!(say(&mut other, "PUBLISH nose hi").await, ":0 ");
        say(&mut old, "RESET").await;
        assert_eq!(say(&mut other, "PUBLISH nothings hi").await, ":1 ");
    });
}

#[test]
fn a_client_of_patterns_may_send_only_the_commands_of_subscribers() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        client.call("PSUBSCRIBE a").await;
        let refused =
            "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context";
        assert_eq!(client.call("GET a").await, format!("-ERR Can't execute 'get': {refused}"));
        assert_eq!(
            client.call("PUBSUB NUMPAT").await,
            format!("-ERR Can't execute 'pubsub|numpat': {refused}")
        );
        assert_eq!(
            client.call("EXEC").await,
            format!("-EXECABORT Transaction discarded because of: Can't execute 'exec': {refused}")
        );
        assert_eq!(client.call("PSUBSCRIBE b").await, r#"["psubscribe", "b", :2]"#);
        assert_eq!(client.call("RESET").await, "+RESET");
        assert_eq!(client.call("GET a").await, "nil");
    });
}

#[test]
fn pubsub_tells_channels_and_counts() {
    run(async {
        let server = server(&Clock::new());
        let [mut first, mut second, mut other] = [(); 3].map(|()| Client::new(&server));
        first.call("SUBSCRIBE b").await;
        first.call("SUBSCRIBE a").await;
        second.call("SUBSCRIBE b").await;
        first.call("PSUBSCRIBE x*").await;
        second.call("PSUBSCRIBE x*").await;
        second.call("PSUBSCRIBE y*").await;
        let wrong = "unknown subcommand or wrong number of arguments for 'channels'. Try PUBSUB HELP.";
        for (line, reply) in [
            ("PUBSUB CHANNELS", r#"["a", "b"]"#),
            ("PUBSUB channels [^a]", r#"["b"]"#),
            ("PUBSUB NUMSUB", "[]"),
            ("PUBSUB NUMSUB a b x", r#"["a", :1, "b", :2, "x", :0]"#),
            ("PUBSUB NUMPAT", ":2"),
            ("PUBSUB SHARDCHANNELS", "[]"),
            ("PUBSUB SHARDNUMSUB a", r#"["a", :0]"#),
            ("PUBSUB channels a b", &format!("-ERR {wrong}")),
            ("PUBSUB NUMPAT a", "-ERR wrong number of arguments for 'pubsub|numpat' command"),
            ("PUBSUB nosuch", "-ERR unknown subcommand 'nosuch'. Try PUBSUB HELP."),
            ("PUBSUB", "-ERR wrong number of arguments for 'pubsub' command"),
        ] {
            assert_eq!(other.call(line).await, reply, "{line}");
        }
        assert!(other.call("PUBSUB HELP").await.starts_with("[+PUBSUB <subcommand> [<arg>"));
        assert_eq!(other.call_words(&["EVAL", "return redis.call('PUBSUB', 'NUMPAT')", "0"]).await, ":2");
        drop((first, second));
        settle().await;
        assert_eq!(other.call("PUBSUB NUMPAT").await, ":0");
    });
}

#[test]
fn a_client_that_waits_for_elements_gets_messages_meanwhile() {
    run(async {
        let server = server(&Clock::new());
        let (mut waiting, mut other) = (connect(&server, "waiting"), connect(&server, "other"));
        say(&mut waiting, "HELLO 3").await;
        say(&mut waiting, "PSUBSCRIBE *").await;
        assert_eq!(say(&mut waiting, "BLPOP list 0").await, "");
        say(&mut other, "PUBLISH news first").await;
        say(&mut other, "PUBLISH news second").await;
        let message = |text: &str| format!(">4 $8 pmessage $1 * $4 news ${} {text} ", text.len());
        assert_eq!(received(&mut waiting).await, message("first") + &message("second"));
        say(&mut other, "RPUSH list 1").await;
        assert_eq!(received(&mut waiting).await, "*2 $4 list $1 1 ");
        assert_eq!(say(&mut waiting, "PING").await, "+PONG ");
    });
}

const MIB: usize = 1 << 20;

/// Publishes messages of 1 MiB for as long as `slow` is there. Returns their number.
async fn unread(slow: &str, server: &sim::servers::redis::Server<Clock>) -> usize {
    let (mut subscriber, mut publisher) = (Client::new(server), Client::new(server));
    subscriber.call(slow).await;
    let text = "x".repeat(MIB);
    for count in 1..64 {
        publisher.call_words(&["PUBLISH", "news", &text]).await;
        settle().await;
        if publisher.call("INFO clients").await.contains("connected_clients:1\\r") {
            return count;
        }
    }
    panic!("it is still there");
}

#[test]
fn clients_of_patterns_and_monitors_that_read_nothing_are_closed() {
    run(async {
        let server = server(&Clock::new());
        for slow in ["PSUBSCRIBE n*", "MONITOR"] {
            let count = unread(slow, &server).await;
            // The stream itself takes 1 MiB.
            assert!((32..=34).contains(&count), "{slow}: {count}");
        }
    });
}

#[test]
fn a_reset_loses_no_message() {
    run(async {
        let server = server(&Clock::new());
        let (mut subscriber, mut publisher) = (Client::new(&server), Client::new(&server));
        subscriber.call("SUBSCRIBE news").await;
        publisher.call("PING").await;
        // The server reads both requests before it sends anything.
        publisher.stream.write_all(&encode(&["PUBLISH", "news", "hi"])).await.unwrap();
        subscriber.stream.write_all(&encode(&["RESET"])).await.unwrap();
        assert_eq!(publisher.reply().await, ":1");
        assert_eq!(subscriber.reply().await, r#"["message", "news", "hi"]"#);
        assert_eq!(subscriber.reply().await, "+RESET");
    });
}
