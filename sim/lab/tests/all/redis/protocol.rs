//! The wire protocol: arbitrary bytes, fragments of any size, pipelined requests, and errors.

use super::support::{Client, Clock, connect, encode, run, server, settle};
use proptest::collection::vec;
use proptest::prelude::*;
use redis_protocol::resp2::types::{OwnedFrame, Resp2Frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Requests by an independent encoder, split anywhere, are echoed unchanged and in order.
    #[test]
    fn requests_survive_any_split(
        texts in vec(vec(any::<u8>(), 0..40), 1..8),
        cuts in vec(1usize..30, 1..40),
    ) {
        run(async {
            let mut bytes = Vec::new();
            for text in &texts {
                let words = [b"ECHO".to_vec(), text.clone()].map(OwnedFrame::BulkString);
                let request = OwnedFrame::Array(words.into());
                let start = bytes.len();
                bytes.resize(start + request.encode_len(false), 0);
                redis_protocol::resp2::encode::encode(&mut bytes[start..], &request, false).unwrap();
            }
            let mut client = Client::new(&server(&Clock::new()));
            let mut rest = &bytes[..];
            for cut in cuts.iter().cycle() {
                let (piece, left) = rest.split_at((*cut).min(rest.len()));
                client.stream.write_all(piece).await.unwrap();
                settle().await;
                rest = left;
                if rest.is_empty() {
                    break;
                }
            }
            for text in &texts {
                assert_eq!(client.reply().await, format!("\"{}\"", text.escape_ascii()));
            }
        });
    }

    /// The server survives any input.
    #[test]
    fn no_bytes_bring_the_server_down(bytes in vec(prop_oneof![any::<u8>(), Just(b'*'), Just(b'$'),
        Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'"')], 0..200)) {
        run(async {
            let server = server(&Clock::new());
            let mut client = Client::new(&server);
            client.stream.write_all(&bytes).await.unwrap();
            settle().await;
            assert_eq!(Client::new(&server).call("PING").await, "+PONG");
        });
    }
}

#[test]
fn a_malformed_request_gets_its_error_and_a_disconnect() {
    let too_long = "x".repeat(70_000);
    let long_count = format!("*{}", "1".repeat(70_000));
    let long_bulk = format!("*1\r\n${}", "1".repeat(70_000));
    // As Redis 7.0.15 answers.
    for (bytes, error) in [
        ("*abc\r\n", "invalid multibulk length"),
        ("*2147483648\r\n", "invalid multibulk length"),
        ("*1\r\nGET\r\n", "expected '$', got 'G'"),
        ("*1\r\n$abc\r\n", "invalid bulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$999999999999\r\n", "invalid bulk length"),
        ("GET \"a\r\n", "unbalanced quotes in request"),
        ("GET 'a'b\r\n", "unbalanced quotes in request"),
        (&too_long, "too big inline request"),
        (&long_count, "too big mbulk count string"),
        (&long_bulk, "too big bulk count string"),
    ] {
        run(async {
            let mut client = Client::new(&server(&Clock::new()));
            client.stream.write_all(bytes.as_bytes()).await.unwrap();
            assert_eq!(client.reply().await, format!("-ERR Protocol error: {error}"));
            assert_eq!(client.reply().await, "closed");
        });
    }
}

#[test]
fn empty_requests_are_ignored() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        client.stream.write_all(b"*0\r\n*-1\r\n\r\n   \r\nPING\r\n").await.unwrap();
        assert_eq!(client.reply().await, "+PONG");
    });
}

#[test]
fn inline_requests_are_split_at_spaces_and_quotes() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        for (line, reply) in [
            ("ECHO plain", r#""plain""#),
            (r#"  ECHO   "two words"  "#, r#""two words""#),
            (r#"ECHO "\x00\n\t\"q\"""#, r#""\x00\n\t\"q\"""#),
            (r"ECHO 'it\'s \n'", r#""it\'s \\n""#),
            (r#"ECHO """#, r#""""#),
        ] {
            assert_eq!(client.type_line(line).await, reply, "{line}");
        }
    });
}

/// Pipelined requests are answered in order, and a long batch does not wait for its end.
#[test]
fn a_thousand_requests_at_once_are_answered_in_order() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let batch: Vec<u8> = (0..1000).flat_map(|_| encode(&["INCR", "n"])).collect();
        client.stream.write_all(&batch).await.unwrap();
        for number in 1..=1000 {
            assert_eq!(client.reply().await, format!(":{number}"));
        }
    });
}

#[test]
fn replies_larger_than_the_output_buffer_arrive_whole() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let large = "x".repeat(300_000);
        client.call_words(&["SET", "a", &large]).await;
        for _ in 0..3 {
            client.stream.write_all(&encode(&["GET", "a"])).await.unwrap();
        }
        for _ in 0..3 {
            assert_eq!(client.reply().await.len(), large.len() + 2);
        }
    });
}

#[test]
fn replies_before_hello_in_a_transaction_keep_their_protocol() {
    run(async {
        let mut stream = connect(&server(&Clock::new()), "client");
        for words in [&["MULTI"][..], &["GET", "a"], &["HELLO", "3"], &["GET", "a"], &["EXEC"]] {
            stream.write_all(&encode(words)).await.unwrap();
        }
        let mut answer = Vec::new();
        while !answer.ends_with(b"_\r\n") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains("*3\r\n$-1\r\n%7\r\n"), "{answer}");
    });
}

#[test]
fn messages_use_the_protocol_at_their_publication() {
    run(async {
        let mut stream = connect(&server(&Clock::new()), "client");
        let steps = [
            &["SUBSCRIBE", "a"][..],
            &["UNSUBSCRIBE", "a"],
            &["HELLO", "3"],
            &["SUBSCRIBE", "a"],
            &["PUBLISH", "a", "first"],
            &["HELLO", "2"],
            &["UNSUBSCRIBE", "a"],
            &["SUBSCRIBE", "a"],
            &["RESET"],
        ];
        for words in steps {
            stream.write_all(&encode(words)).await.unwrap();
        }
        let mut answer = Vec::new();
        while !answer.ends_with(b"+RESET\r\n") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains(">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\nfirst\r\n"), "{answer}");
        assert!(answer.contains("*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n*3\r\n"), "{answer}");
    });
}
