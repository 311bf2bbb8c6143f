//! Tests: each change reaches the append-only file and replicas as Redis would write it, and can be repeated.

mod fields;

use super::core::{Client, Core};
use super::effects::encode_unit;
use super::replay::Replay;
use super::reply::{Protocol, Reply};
use super::request::{ArgBuffer, RequestParser};
use super::snapshot::snapshot;
use super::state::State;
use super::version::Version;

const NOW_MICROS: i64 = 1_700_000_000_000_000;

/// A server without connections.
struct Bench {
    core: Core,
    client: Client,
    /// The commands that all changes so far were written as.
    written: Vec<u8>,
    now_micros: i64,
}

impl Bench {
    fn new() -> Self {
        let mut core = Core::default();
        let client = core.connect();
        Self { core, client, written: Vec::new(), now_micros: NOW_MICROS }
    }

    /// Runs a command. Returns its reply, and what was written for it.
    fn call(&mut self, line: &str) -> (Reply, Vec<u8>) {
        let mut args = ArgBuffer::default();
        line.split(' ').for_each(|word| args.push(word.as_bytes()));
        let reply = self.core.execute(&mut self.client, args.args(), self.now_micros);
        (reply, self.take_written())
    }

    /// Returns what was written since the last call.
    fn take_written(&mut self) -> Vec<u8> {
        let mut written = Vec::new();
        encode_unit(&self.core.state.record.effects, &mut written);
        self.core.state.record.clear();
        self.written.extend_from_slice(&written);
        written
    }
}

/// Returns the commands in `encoded`, separated by semicolons.
fn shown(encoded: &[u8]) -> String {
    let (mut parser, mut read, mut commands) = (RequestParser::default(), 0, Vec::new());
    while let Some(size) = parser.parse(&encoded[read..]).unwrap() {
        let words = parser.args(&encoded[read..]).iter().map(String::from_utf8_lossy);
        commands.push(words.collect::<Vec<_>>().join(" "));
        read += size;
    }
    commands.join("; ")
}

/// Returns the state that the commands in `encoded` lead to.
fn repeated(encoded: &[u8]) -> State {
    repeated_by(Version::default(), encoded)
}

/// As [`repeated`], on a server of this version.
fn repeated_by(version: Version, encoded: &[u8]) -> State {
    let (mut state, mut replay) = (State::default(), Replay::default());
    state.version = version;
    let (mut parser, mut read) = (RequestParser::default(), 0);
    while let Some(size) = parser.parse(&encoded[read..]).unwrap() {
        replay.apply(&mut state, parser.args(&encoded[read..]));
        read += size;
    }
    state
}

#[test]
fn changes_are_written_as_by_the_live_server() {
    let mut bench = Bench::new();
    let lines: Vec<_> =
        include_str!("propagation.txt").lines().filter(|line| !line.starts_with('#')).collect();
    for pair in lines.chunks(2) {
        let (reply, written) = bench.call(pair[0]);
        assert!(!reply.is_error(), "{}: {reply:?}", pair[0]);
        let written = shown(&written);
        let written = if written.is_empty() { "-" } else { &written };
        assert_eq!(written, pair[1].trim_start(), "{}", pair[0]);
        let repeated = repeated(&bench.written);
        assert_eq!(
            shown(&snapshot(&repeated)),
            shown(&snapshot(&bench.core.state)),
            "after the repetition of {}",
            pair[0]
        );
    }
    assert!(lines.len() > 120, "the table has only {} lines", lines.len());
}

/// Source: `t_string.c` and `db.c` of Redis 8.4. A replica has no conditions to judge: it gets the changes.
#[test]
fn conditional_commands_are_written_as_their_changes() {
    let mut bench = Bench::new();
    bench.core.state.version = Version::Redis84;
    bench.call("SET a v");
    let digest = match bench.call("DIGEST a") {
        (Reply::Bulk(digest), written) if written.is_empty() => String::from_utf8(digest.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    };
    let other_digest = "0000000000000000";
    for (line, expected) in [
        (format!("SET a w IFDEQ {other_digest}"), ""),
        (format!("SET a w IFDNE {digest} GET"), ""),
        (format!("DELEX a IFDNE {digest}"), ""),
        (format!("DELEX a IFDEQ {other_digest}"), ""),
        (format!("SET a w IFDEQ {digest} PX 5000"), "SET a w PXAT 1700000005000"),
        (format!("SET a v IFDNE {digest}"), "SET a v"),
        (format!("DELEX a IFDEQ {digest}"), "DEL a"),
    ] {
        let (reply, written) = bench.call(&line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
        assert_eq!(shown(&written), expected, "{line}");
        let repeated = repeated(&bench.written);
        assert_eq!(shown(&snapshot(&repeated)), shown(&snapshot(&bench.core.state)), "after {line}");
    }
}

#[test]
fn a_snapshot_restores_all_types_databases_and_expiries() {
    let mut bench = Bench::new();
    for line in [
        "SET text v PX 5000",
        "HSET hash b 1 a 2",
        "SELECT 3",
        "RPUSH list c a b",
        "PEXPIRE list 7000",
        "SADD set x 1",
        "SELECT 15",
        "ZADD sorted 1.5 b -inf a 0.1 c",
    ] {
        bench.call(line);
    }
    (0..100).for_each(|number| _ = bench.call(&format!("RPUSH long {number}")));
    let snapshot = super::snapshot::snapshot(&bench.core.state);
    let text = shown(&snapshot);
    let start = "HMSET hash b 1 a 2; SET text v PXAT 1700000005000; SELECT 3; RPUSH list c a b; \
                 PEXPIREAT list 1700000007000; SADD set 1 x; SELECT 15; RPUSH long 0 ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.ends_with("; ZADD sorted -inf a 0.10000000000000001 c 1.5 b; SELECT 0"), "{text}");
    assert_eq!(shown(&super::snapshot::snapshot(&repeated(&snapshot))), text);
}

#[test]
fn a_change_in_another_database_is_one_unit_that_returns_to_the_first() {
    let mut bench = Bench::new();
    bench.call("SELECT 2");
    let (_, written) = bench.call("SADD s a");
    assert_eq!(shown(&written), "MULTI; SELECT 2; SADD s a; SELECT 0; EXEC");
    let (_, written) = bench.call("MOVE s 0");
    assert_eq!(shown(&written), "MULTI; SELECT 2; MOVE s 0; SELECT 0; EXEC");
    assert_eq!(shown(&snapshot(&repeated(&bench.written))), "SADD s a");
}

#[test]
fn a_script_returns_maps_and_sets_of_resp3() {
    let mut bench = Bench::new();
    bench.call("HSET h a 1");
    bench.call("SADD s 1");
    let mut call = |text: &str| {
        let mut args = ArgBuffer::default();
        ["EVAL", text, "0"].iter().for_each(|word| args.push(word.as_bytes()));
        let reply = bench.core.execute(&mut bench.client, args.args(), NOW_MICROS);
        let mut out = Vec::new();
        reply.encode(&mut out, Protocol::Resp3);
        String::from_utf8(out).unwrap().replace("\r\n", " ")
    };
    assert_eq!(call("redis.setresp(3) return redis.call('HGETALL', 'h')"), "%1 $1 a $1 1 ");
    assert_eq!(call("redis.setresp(3) return redis.call('SMEMBERS', 's')"), "~1 $1 1 ");
    assert_eq!(call("redis.setresp(3) return {{redis.call('HGETALL', 'h')}}"), "*1 *1 %1 $1 a $1 1 ");
    assert_eq!(call("return redis.call('HGETALL', 'h')"), "*2 $1 a $1 1 ");
    assert_eq!(call("return {map={x={map={y={set={z=1}}}}}}"), "%1 $1 x %1 $1 y ~1 $1 z ");
    assert_eq!(call("return {double=3.5}"), ",3.5 ");
}

#[test]
fn the_idle_time_counts_from_the_last_use() {
    let mut bench = Bench::new();
    bench.call("SET a 1");
    for (line, idle) in [("EXISTS a", 3), ("TYPE a", 6), ("TTL a", 9), ("GET a", 12), ("RENAME a a", 3)] {
        bench.now_micros += 3_000_000;
        assert_eq!(bench.call("OBJECT IDLETIME a").0, Reply::Integer(idle), "before {line}");
        bench.call(line);
    }
}

#[test]
fn a_script_selects_a_database_for_itself() {
    let mut bench = Bench::new();
    let mut args = ArgBuffer::default();
    ["EVAL", "redis.call('SELECT', 2) redis.call('SET', 'a', 1)", "0"]
        .iter()
        .for_each(|word| args.push(word.as_bytes()));
    bench.core.execute(&mut bench.client, args.args(), NOW_MICROS);
    assert_eq!(bench.client.database, 0);
    assert_eq!(bench.call("EXISTS a").0, Reply::Integer(0));
    bench.call("SELECT 2");
    assert_eq!(bench.call("EXISTS a").0, Reply::Integer(1));
}
