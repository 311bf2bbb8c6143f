//! Newer servers: their commands for compare-and-set and compare-and-delete, and the locks that use them.

use lab::museum::run as run_lab;
use lab::{Arm, Options, System};
use sim::Schedule;
use sim::servers::redis::Version;

use super::support::{Client, Clock, run, server_of};
use crate::messages::recorded;
use crate::support::corpus;

/// Sends the requests of a table to one server. Returns the differences, and the number of lines.
async fn differences(version: Version, table: &str) -> (Vec<String>, usize) {
    let mut client = Client::new(&server_of(version, &Clock::new()));
    let lines: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
    let mut differences = Vec::new();
    for pair in lines.chunks(2) {
        let (request, expected) = (pair[0], pair[1].strip_prefix("    ").unwrap());
        let got = client.type_line(request).await;
        if got != expected {
            differences.push(format!("{request}\n  expected: {expected}\n  ours:     {got}"));
        }
    }
    (differences, lines.len())
}

#[test]
fn valkey_answers_as_the_live_server_did() {
    run(async {
        let (differences, lines) = differences(Version::Valkey9, include_str!("valkey.txt")).await;
        assert!(differences.is_empty(), "{}", differences.join("\n"));
        assert!(lines > 100, "{lines}");
    });
}

#[test]
fn redis_8_4_answers_as_its_source_says() {
    run(async {
        let (differences, lines) = differences(Version::Redis84, include_str!("redis84.txt")).await;
        assert!(differences.is_empty(), "{}", differences.join("\n"));
        assert!(lines > 100, "{lines}");
    });
}

#[test]
fn an_older_server_changes_nothing_when_it_refuses_a_newer_command() {
    run(async {
        let mut client = Client::new(&server_of(Version::Redis7, &Clock::new()));
        client.call("SET k v").await;
        assert_eq!(client.call("SET k v IFEQ v PX 1000").await, "-ERR syntax error");
        for option in ["IFNE w", "IFDEQ b6acb9d84a38ff74", "IFDNE b6acb9d84a38ff74"] {
            assert_eq!(client.call(&format!("SET k v {option}")).await, "-ERR syntax error", "{option}");
        }
        let refused = client.call("DELEX k IFEQ v").await;
        assert!(refused.starts_with("-ERR unknown command 'DELEX'"), "{refused}");
        let refused = client.call("DIGEST k").await;
        assert!(refused.starts_with("-ERR unknown command 'DIGEST'"), "{refused}");
        assert!(client.call("DELIFEQ k v").await.starts_with("-ERR unknown command 'DELIFEQ'"));
        for command in ["HEXPIRE h 1 FIELDS 1 a", "HSETEX h FIELDS 1 a 1", "MSETEX 1 k w"] {
            assert!(client.call(command).await.starts_with("-ERR unknown command"), "{command}");
        }
        assert_eq!(client.call("GET k").await, r#""v""#);
        assert_eq!(client.call("PTTL k").await, ":-1");
    });
}

#[test]
fn an_expired_key_is_neither_extended_nor_deleted() {
    run(async {
        let versions = [(Version::Redis84, "DELEX k IFEQ v"), (Version::Valkey9, "DELIFEQ k v")];
        for (version, delete) in versions {
            let clock = Clock::new();
            let mut client = Client::new(&server_of(version, &clock));
            client.call("SET k v PX 1000").await;
            clock.advance_ms(900).await;
            assert_eq!(client.call("SET k v IFEQ v PX 1000").await, "+OK");
            clock.advance_ms(900).await;
            assert_eq!(client.call("PTTL k").await, ":100");
            clock.advance_ms(101).await;
            assert_eq!(client.call("SET k v IFEQ v PX 1000").await, "nil");
            assert_eq!(client.call(delete).await, ":0");
            assert_eq!(client.call("GET k").await, "nil");
        }
    });
}

#[test]
fn a_server_tells_its_version() {
    run(async {
        for (version, hello, info, count) in [
            (Version::Redis7, r#""redis", "version", "7.0.15""#, "redis_version:7.0.15", ":170"),
            (Version::Redis84, r#""redis", "version", "8.4.0""#, "redis_version:8.4.0", ":185"),
            (Version::Valkey9, r#""valkey", "version", "9.1.2""#, "valkey_version:9.1.2", ":184"),
        ] {
            let mut client = Client::new(&server_of(version, &Clock::new()));
            let answer = client.call("HELLO").await;
            assert!(answer.contains(hello), "{answer}");
            let answer = client.call("INFO server").await;
            assert!(answer.contains(info), "{answer}");
            assert_eq!(client.call("COMMAND COUNT").await, count);
        }
    });
}

/// A fault at a command of a script strikes at another moment, or never, if the script is replaced.
fn aims_at_a_command(schedule: &Schedule<Options>) -> bool {
    let text = schedule.to_toml();
    text.contains("after = \"DEL\"") || text.contains("after = \"PEXPIRE\"")
}

/// The locks must be the same to their users: by scripts, by commands, and where a restart changes between
/// them.
#[test]
fn every_schedule_has_the_same_verdicts_on_newer_servers() {
    let mut problems = Vec::new();
    let mut cases = 0;
    let of_redis = |schedule: &Schedule<Options>| {
        [System::REDIS, System::REDLOCK].contains(&schedule.options.system) && !aims_at_a_command(schedule)
    };
    for case in corpus().iter().filter(|case| of_redis(&case.schedule)) {
        use lab::Version::{Redis7, Redis84, Valkey9};
        for (version, upgrade) in
            [(Redis84, None), (Valkey9, None), (Redis7, Some(Redis84)), (Valkey9, Some(Redis7))]
        {
            cases += 1;
            let mut schedule = case.schedule.clone();
            (schedule.options.redis.version, schedule.options.redis.upgrade) = (version, upgrade);
            for arm in Arm::of(&schedule.expect) {
                let report = run_lab(&schedule, arm, schedule.seed).unwrap();
                let demanded = schedule.expect.of(arm.name()).unwrap();
                for mismatch in demanded.mismatches(&report) {
                    problems.push(format!("{}, {version}, then {upgrade:?}, {arm}: {mismatch}", case.name));
                }
            }
        }
    }
    assert!(cases > 150, "{cases}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The schedules of newer servers do use their commands, and scripts where a server has none.
#[test]
fn the_schedules_of_newer_servers_use_their_commands() {
    for (name, commands) in [
        ("upgrade-while-held", &["EVAL renew", "SET orders:42", "DELEX orders:42", "PUBLISH"][..]),
        ("repeated-compare-and-set", &["EVAL renew", "SET orders:42", "EVAL release"]),
        ("downgrade-redlock", &["EVAL renew", "SET orders:42"]),
    ] {
        let report = recorded(name, Arm::Fenced);
        for command in commands {
            let is_sent = report.messages.iter().any(|message| message.words.starts_with(command));
            assert!(is_sent, "{name}: nobody sent {command}");
        }
    }
}
