//! Limits: clients that read nothing, and scripts that take all memory.

use super::support::{Client, Clock, connect, run, server, settle};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A client may send a long pipeline before it reads the first reply: 60,000 requests, and replies of 6 MB.
#[test]
fn a_pipeline_is_read_though_no_reply_is() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let value = "x".repeat(200);
        let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200\r\n{value}\r\n");
        let get = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
        let pipeline = format!("{set}{get}").repeat(30_000);
        client.stream.write_all(pipeline.as_bytes()).await.unwrap();
        let mut replies = vec![0; 30_000 * ("+OK\r\n".len() + "$200\r\n".len() + 200 + 2)];
        client.stream.read_exact(&mut replies).await.unwrap();
        assert!(replies.ends_with(format!("{value}\r\n").as_bytes()));
    });
}

#[test]
fn a_script_that_takes_all_memory_is_stopped() {
    run(async {
        let server = server(&Clock::new());
        let mut client = Client::new(&server);
        let eats = "local t = {} while true do t[#t + 1] = string.rep('x', 1000000) .. #t end";
        let reply = client.call_words(&["EVAL", eats, "0"]).await;
        assert!(reply.contains("memory"), "{reply}");
        // The interpreter has its memory back, for the servers of other tests, too.
        let mut other = Client::new(&server);
        assert_eq!(other.call_words(&["EVAL", "return #string.rep('x', 10000000)", "0"]).await, ":10000000");
        assert_eq!(other.call("PING").await, "+PONG");
    });
}

/// An interpreter keeps compiled scripts with their texts, here of 4 MiB: 70 of them are more than its
/// memory.
#[test]
fn large_scripts_leave_memory_for_the_next() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        for number in 100..170 {
            // Lua keeps equal texts once.
            let script = format!("return #'{number}{}'", "x".repeat(4 * MIB));
            assert_eq!(client.call_words(&["EVAL", &script, "0"]).await, format!(":{}", 4 * MIB + 3));
        }
    });
}

/// Before it is stopped, `load` gets some million parts of a text.
#[test]
fn a_script_that_loads_a_text_without_end_is_stopped() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let script = "return load(function() return ' ' end)";
        let reply = client.call_words(&["EVAL", script, "0"]).await;
        assert!(reply.contains("ran for too long"), "{reply}");
    });
}

/// In Redis as here, an error in a handler of errors calls it again, up to the limit of C's stack. A handler
/// that handles errors of its own doubles the time at each of the 200 levels.
#[test]
fn a_script_that_is_stopped_in_handlers_of_errors_ends() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let script = "local function handle() xpcall(error, handle) error('again') end \
            return xpcall(error, handle)";
        let reply = client.call_words(&["EVAL", script, "0"]).await;
        assert!(reply.contains("ran for too long"), "{reply}");
        assert_eq!(client.call("PING").await, "+PONG");
    });
}

/// The server records the commands of a script until the script ends. APPEND stores the whole value each
/// time.
#[test]
fn the_commands_of_a_script_take_limited_memory() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let commands = [("'SET', 'k' .. i, text", 300), ("'APPEND', 'k', text", 30), ("text", 300)];
        for (command, count) in commands {
            let script = format!(
                "local text = string.rep('x', {MIB}) for i = 1, {count} do redis.pcall({command}) end \
                 return redis.call('PING')"
            );
            let reply = client.call_words(&["EVAL", &script, "0"]).await;
            assert!(reply.contains("OOM command not allowed"), "{command}: {reply}");
            assert_eq!(client.call("FLUSHALL").await, "+OK");
        }
    });
}

/// Tables that have the same element twice, 23 levels of them, have a reply of 8 million elements.
#[test]
fn a_script_with_an_immense_reply_gets_an_error() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let scripts = [
            "local t = {1} for _ = 1, 23 do t = {t, t} end return t",
            "local s, t = string.rep('x', 1000000), {} for i = 1, 300 do t[i] = s end return t",
            "local s, t = {ok = string.rep('x', 1000000)}, {} for i = 1, 300 do t[i] = s end return t",
        ];
        for script in scripts {
            let reply = client.call_words(&["EVAL", script, "0"]).await;
            assert!(reply.contains("returns more than 256 MiB"), "{script}: {}", &reply[..60]);
        }
    });
}

const MIB: usize = 1 << 20;

/// Publishes a message of 1 MiB. Returns the number of subscribers that get it.
async fn publish(client: &mut Client) -> String {
    let received = client.call_words(&["PUBLISH", "news", &"x".repeat(MIB)]).await;
    settle().await;
    received
}

#[test]
fn a_subscriber_that_leaves_32_megabytes_unread_is_closed() {
    run(async {
        let server = server(&Clock::new());
        let (mut slow, mut publisher) = (Client::new(&server), Client::new(&server));
        slow.call("SUBSCRIBE news").await;
        let mut received = 0;
        while publish(&mut publisher).await == ":1" {
            received += 1;
            assert!(received < 64, "the subscriber is still there");
        }
        // The stream itself takes 1 MiB.
        assert!((32..=33).contains(&received), "{received}");
        let (mut rest, mut reader) = (vec![0; MIB], Client::new(&server));
        while slow.stream.read(&mut rest).await.unwrap() > 0 {}
        reader.call("SUBSCRIBE news").await;
        for _ in 0..40 {
            assert_eq!(publish(&mut publisher).await, ":1", "one that reads stays");
            assert!(reader.reply().await.ends_with("x\"]"));
        }
    });
}

#[test]
fn a_subscriber_that_leaves_8_megabytes_unread_for_a_minute_is_closed() {
    run(async {
        let clock = Clock::new();
        let server = server(&clock);
        let (mut slow, mut publisher) = (Client::new(&server), Client::new(&server));
        slow.call("SUBSCRIBE news").await;
        for _ in 0..10 {
            assert_eq!(publish(&mut publisher).await, ":1");
        }
        clock.advance_ms(59_000).await;
        assert_eq!(publish(&mut publisher).await, ":1");
        clock.advance_ms(2_000).await;
        assert_eq!(publish(&mut publisher).await, ":1", "this one closes it");
        assert_eq!(publish(&mut publisher).await, ":0");
    });
}

#[test]
fn a_replica_that_leaves_64_megabytes_unread_for_a_minute_is_closed() {
    run(async {
        let clock = Clock::new();
        let server = server(&clock);
        let mut writer = Client::new(&server);
        let mut replica = connect(&server, "replica");
        replica.write_all(b"*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n").await.unwrap();
        settle().await;
        let value = "x".repeat(MIB);
        for after_ms in std::iter::repeat_n(0, 67).chain([59_000, 2_000]) {
            clock.advance_ms(after_ms).await;
            let replicas = writer.call("INFO replication").await;
            assert!(replicas.contains("connected_slaves:1"), "{replicas}");
            writer.call_words(&["SET", "k", &value]).await;
            settle().await;
        }
        let replicas = writer.call("INFO replication").await;
        assert!(replicas.contains("connected_slaves:0"), "{replicas}");
    });
}
