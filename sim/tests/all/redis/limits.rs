//! Limits: clients that read nothing, and scripts that take all memory.

use super::support::{Client, Clock, run, server};
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
