//! Tests: commands on the expiries of fields, and MSETEX, answer as newer servers do, publish the same events
//! and are written as the same commands.

use std::sync::Arc;

use super::super::channels::Topic;
use super::super::events::Classes;
use super::super::reply::{Protocol, Reply};
use super::super::snapshot::snapshot;
use super::super::version::Version;
use super::{Bench, repeated_by, shown};

/// The client that gets the events.
const LISTENER: u64 = u64::MAX;

/// Replies, events and written commands, each as a text: `-` for none.
type Answers = Vec<String>;

fn bench(version: Version) -> Bench {
    let mut bench = Bench::new();
    let state = &mut bench.core.state;
    state.version = version;
    state.published = Classes::parse(b"KEAnm").unwrap();
    let pattern = b"__keyevent@*";
    state.channels.subscribe(LISTENER, Protocol::Resp2, &Arc::default(), Topic::Pattern, pattern);
    bench
}

fn ask(bench: &mut Bench, request: &str) -> Answers {
    let (reply, written) = bench.call(request);
    vec![text(&reply), events(bench), or_none(shown(&written))]
}

/// Lets the server look for expired fields.
fn tick(bench: &mut Bench) -> Answers {
    bench.core.state.now_micros = bench.now_micros;
    bench.core.state.select(0);
    bench.core.expire_due();
    let written = bench.take_written();
    vec![events(bench), or_none(shown(&written))]
}

/// Returns the events since the last call.
fn events(bench: &mut Bench) -> String {
    let mut encoded = Vec::new();
    bench.core.state.channels.take_pending(LISTENER, &mut encoded, usize::MAX);
    let messages = shown(&encoded);
    let names = messages.split("; ").filter_map(|message| message.split_once("__:"));
    or_none(names.map(|(_, event)| event).collect::<Vec<_>>().join(", "))
}

fn or_none(text: String) -> String {
    if text.is_empty() { String::from("-") } else { text }
}

fn text(reply: &Reply) -> String {
    let array = |items: Vec<String>| format!("[{}]", items.join(", "));
    match reply {
        Reply::Status(text) => format!("+{}", text.escape_ascii()),
        Reply::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
        Reply::Integer(number) => format!(":{number}"),
        Reply::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Reply::Nil => String::from("nil"),
        Reply::Array(items) => array(items.iter().map(text).collect()),
        Reply::Pairs(pairs) | Reply::Nested(pairs) => {
            array(pairs.iter().flat_map(|(one, other)| [text(one), text(other)]).collect())
        }
        other => panic!("{other:?}"),
    }
}

/// Sends the requests of a table to a server, and compares its answers with those of the table.
fn compare(version: Version, table: &str) {
    let mut bench = bench(version);
    let mut lines = table.lines().filter(|line| !line.starts_with('#'));
    let (mut differences, mut count, mut has_expired) = (Vec::new(), 0, false);
    while let Some(request) = lines.next() {
        if let Some(millis) = request.strip_prefix("wait ") {
            bench.now_micros += 1000 * millis.parse::<i64>().unwrap();
            has_expired = true;
            continue;
        }
        let answers = if request == "tick" { tick(&mut bench) } else { ask(&mut bench, request) };
        let expected: Answers =
            lines.by_ref().take(answers.len()).map(|line| line.trim_start().into()).collect();
        if answers != expected {
            differences.push(format!("{request}\n  expected: {expected:#?}\n  ours:     {answers:#?}"));
        }
        has_expired &= request != "tick";
        count += 1;
        // A replica still has the fields that have expired, and may keep one that the primary hides.
        if !has_expired {
            let repeated = repeated_by(version, &bench.written);
            let (ours, theirs) = (snapshot(&bench.core.state), snapshot(&repeated));
            assert_eq!(shown(&theirs), shown(&ours), "after the repetition of {request}");
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(count > 150, "the table has only {count} requests");
}

#[test]
fn valkey_has_its_expiries_as_the_live_server() {
    compare(Version::Valkey9, include_str!("valkey_expiries.txt"));
}

#[test]
fn redis_8_4_has_expiries_of_fields_as_its_source_says() {
    compare(Version::Redis84, include_str!("redis84_fields.txt"));
}

/// A snapshot has each field with its expiry, and a small hash of Redis in the same order.
#[test]
fn a_snapshot_restores_the_expiries_of_fields() {
    for version in [Version::Redis84, Version::Valkey9] {
        let mut bench = bench(version);
        for request in [
            "HSET h d 4 c 3 b 2 a 1 e 5",
            "HPEXPIRE h 5000 FIELDS 2 a b",
            "HPEXPIRE h 9000 FIELDS 1 c",
            "HSETEX gone PX 10 FIELDS 1 a 1",
        ] {
            bench.call(request);
        }
        bench.now_micros += 20_000;
        let written = snapshot(&bench.core.state);
        let restored = repeated_by(version, &written);
        assert_eq!(shown(&snapshot(&restored)), shown(&written), "{version:?}");
        let of_gone = "HSETEX gone PXAT 1700000000010 FIELDS 1 a 1";
        assert!(shown(&written).starts_with(of_gone), "{}", shown(&written));
        *bench.core.state = restored;
        let expected = if version == Version::Redis84 { "b2a1c3d4e5" } else { "a1b2c3d4e5" };
        let (reply, _) = bench.call("HGETALL h");
        assert_eq!(text(&reply).replace([' ', '"', ',', '[', ']'], ""), expected, "{version:?}");
        assert_eq!(text(&bench.call("HPEXPIRETIME h FIELDS 2 b d").0), "[:1700000005000, :-1]");
    }
}

/// A replica hides expired fields, and leaves their removal to its primary.
#[test]
fn a_replica_hides_expired_fields() {
    for version in [Version::Redis84, Version::Valkey9] {
        let mut bench = bench(version);
        bench.call("HSETEX h PX 10 FIELDS 1 a 1");
        events(&mut bench);
        bench.core.state.is_replica = true;
        bench.now_micros += 20_000;
        assert_eq!(ask(&mut bench, "HGET h a"), ["nil", "-", "-"], "{version:?}");
        assert_eq!(ask(&mut bench, "HMGET h a b"), ["[nil, nil]", "-", "-"], "{version:?}");
        assert_eq!(ask(&mut bench, "HTTL h FIELDS 1 a"), ["[:-2]", "-", "-"], "{version:?}");
        assert_eq!(ask(&mut bench, "HRANDFIELD h 5"), ["[]", "-", "-"], "{version:?}");
        assert_eq!(ask(&mut bench, "HLEN h"), [":1", "-", "-"], "{version:?}");
    }
}
