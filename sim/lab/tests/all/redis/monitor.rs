//! MONITOR.

use super::support::{Client, Clock, encode, run, server};
use tokio::io::AsyncWriteExt;

/// The time of [`Clock::new`].
const TIME: &str = "1700000000.000000";

/// Returns the next lines that `monitor` gets, without their time.
async fn lines(monitor: &mut Client, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..count {
        let line = monitor.reply().await;
        lines.push(line.strip_prefix(&format!("+{TIME} ")).expect(&line).to_owned());
    }
    lines
}

#[test]
fn a_monitor_is_shown_commands_after_they_ran() {
    run(async {
        let server = server(&Clock::new());
        let (mut monitor, mut client) = (Client::named(&server, "monitor"), Client::named(&server, "app:1"));
        assert_eq!(monitor.call("MONITOR").await, "+OK");
        for command in [
            "set a \u{e9}\"",
            "GET a b",
            "NOSUCH",
            "CONFIG GET save",
            "CLIENT LIST",
            "CLIENT ID",
            "ROLE",
            "SELECT 3",
            "INCR a",
            "LPUSH b x",
            "BLPOP b 0",
            "EXEC a",
            "LPUSH a",
        ] {
            client.call(command).await;
        }
        client.call_words(&["ECHO", "a b\n"]).await;
        assert_eq!(
            lines(&mut monitor, 9).await,
            [
                r#"[0 app:1] "set" "a" "\xc3\xa9\"""#,
                r#"[0 app:1] "CLIENT" "ID""#,
                r#"[0 app:1] "ROLE""#,
                r#"[3 app:1] "SELECT" "3""#,
                r#"[3 app:1] "INCR" "a""#,
                r#"[3 app:1] "LPUSH" "b" "x""#,
                r#"[3 app:1] "BLPOP" "b" "0""#,
                r#"[3 app:1] "EXEC" "a""#,
                r#"[3 app:1] "ECHO" "a b\n""#,
            ]
        );
    });
}

#[test]
fn scripts_come_before_their_commands_and_exec_after_them() {
    run(async {
        let server = server(&Clock::new());
        let (mut monitor, mut client) = (Client::new(&server), Client::named(&server, "app"));
        monitor.call("MONITOR").await;
        let script = "redis.call('SELECT', 2) redis.pcall('LPUSH', 'a') return redis.call('SET', 'a', 1)";
        client.call_words(&["EVAL", script, "0"]).await;
        for command in ["MULTI", "GET a", "GET", "GET b", "DISCARD", "MULTI", "GET a", "SELECT 1", "EXEC"] {
            client.call(command).await;
        }
        assert_eq!(
            lines(&mut monitor, 9).await,
            [
                &format!(r#"[0 app] "EVAL" "{script}" "0""#),
                r#"[2 lua] "SELECT" "2""#,
                r#"[2 lua] "SET" "a" "1""#,
                r#"[0 app] "MULTI""#,
                r#"[0 app] "DISCARD""#,
                r#"[0 app] "MULTI""#,
                r#"[0 app] "GET" "a""#,
                r#"[1 app] "SELECT" "1""#,
                r#"[1 app] "EXEC""#,
            ]
        );
    });
}

#[test]
fn a_monitor_may_not_read_keys_until_it_resets() {
    run(async {
        let server = server(&Clock::new());
        let (mut monitor, mut client) = (Client::named(&server, "monitor"), Client::named(&server, "app"));
        monitor.call("MONITOR").await;
        let refused = "-ERR Replica can't interact with the keyspace";
        for command in ["GET a", "SET a 1", "PUBLISH a b", "EVAL script 0", "KEYS *", "BLPOP a 0"] {
            assert_eq!(monitor.call(command).await, refused, "{command}");
        }
        assert_eq!(monitor.call("PING").await, "+PONG");
        assert_eq!(lines(&mut monitor, 1).await, [r#"[0 monitor] "PING""#], "its own, after the reply");
        // A second MONITOR has no reply: the next one is that to ECHO.
        monitor.stream.write_all(&encode(&["MONITOR"])).await.unwrap();
        assert_eq!(monitor.call("ECHO a").await, r#""a""#);
        assert_eq!(lines(&mut monitor, 1).await, [r#"[0 monitor] "ECHO" "a""#]);
        assert_eq!(monitor.call("RESET").await, "+RESET");
        client.call("SET a 1").await;
        assert_eq!(monitor.call("GET a").await, r#""1""#);
    });
}

#[test]
fn a_transaction_cannot_begin_to_monitor() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        client.call("MULTI").await;
        client.call("MONITOR").await;
        assert_eq!(client.call("EXEC").await, "[-ERR MONITOR isn't allowed for DENY BLOCKING client]");
    });
}
