//! The words of messages, in runs of the corpus.

use lab::Arm;

use super::{page, recorded};

/// Asserts that messages with these words were sent, in this order; others may be between.
#[track_caller]
fn assert_said(name: &str, arm: Arm, expected: &[&str]) {
    let report = recorded(name, arm);
    let mut words = report.messages.iter().map(|message| message.words.as_str());
    for expected in expected {
        let said = words.any(|words| matches(words, expected));
        assert!(said, "no `{expected}` after those before it:\n{}", page(&report));
    }
}

/// Returns true if `words` are those of `pattern`, in which `#` stands for hexadecimal digits.
fn matches(words: &str, pattern: &str) -> bool {
    let mut rest = words;
    for (number, part) in pattern.split('#').enumerate() {
        if number > 0 {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        }
        match rest.strip_prefix(part) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

#[test]
fn redis_and_the_resource_are_read() {
    let expected = [
        "EVAL acquire orders:42 a:# 2000",
        "1",
        "EVAL acquire orders:42 b:# 2000",
        "[0, 1900]",
        "EVALSHA acquire orders:42 b:# 2000",
        "2",
        "EVAL release orders:42 b:#",
        "PUT /r/orders:42 token 1 by a:# body \"a:# 1.1\"",
        "409 stale fencing token, seen 2, got 1",
    ];
    assert_said("gc-pause", Arm::Fenced, &expected);
}

#[test]
fn subscribers_and_resp3_are_read() {
    let expected = [
        "HELLO 3",
        "SUBSCRIBE orders:42:freed",
        "subscribe orders:42:freed 1",
        "EVAL release orders:42 a:# orders:42:freed",
        "message orders:42:freed \"\"",
    ];
    assert_said("called-waiters", Arm::Fenced, &expected);
    let report = recorded("called-waiters", Arm::Fenced);
    let published = report.messages.iter().find(|message| message.words.starts_with("message ")).unwrap();
    assert!(!published.is_reply, "a published message answers no command");
}

#[test]
fn etcd_is_read() {
    let expected = [
        "LeaseGrant ttl 2",
        "LeaseGrant lease # ttl 2",
        "Txn if modified(lock/guard/#) = 0 and no orders:42/# then put orders:42/#=a:# lease #, range \
         orders:42/* limit 2 else range orders:42/#, range lock/guard/#",
        "Txn succeeded: put, orders:42/# created at 2, revision 2",
        "Watch orders:42/# from revision 4",
        "Watch 0: created, revision 3",
        "LeaseKeepAlive lease #",
        "LeaseKeepAlive lease # ttl 2",
        "Watch 0: deleted orders:42/#, revision 4",
        "LeaseRevoke lease #",
        "LeaseRevoke failed: NotFound \"etcdserver: requested lease not found\"",
    ];
    assert_said("etcd-gc-pause", Arm::Fenced, &expected);
    let report = recorded("etcd-gc-pause", Arm::Fenced);
    let event = report.messages.iter().find(|message| message.words.contains("deleted orders:42")).unwrap();
    assert!(!event.is_reply, "an event answers no message");
    let locks = ["Lock orders:42 lease #", "Lock orders:42/#, revision 2"];
    assert_said("etcd-waiter-lease-expired-service", Arm::Fenced, &locks);
}

#[test]
fn zookeeper_is_read() {
    let expected = [
        "connect, new session, timeout 2000 ms",
        "session #, timeout 2000 ms",
        "create2 orders:42/_c_#-lock- a:# ephemeral sequential",
        "getChildren2 orders:42",
        "create2 → no node",
        "create2 → orders:42/_c_#-lock-# zxid #",
        "getData orders:42/_c_#-lock-# watch",
        "getData → a:#, created by zxid # of session #",
        "ping",
        "event: orders:42/_c_#-lock-# deleted",
        "delete orders:42/_c_#-lock-#",
        "delete → done",
        "closeSession",
    ];
    assert_said("gc-pause-zookeeper", Arm::Fenced, &expected);
}

#[test]
fn an_owner_token_appears_as_in_the_trace() {
    let report = recorded("gc-pause", Arm::Fenced);
    let trace = report.trace();
    let granted = trace.lines().find_map(|line| Some(line.split_once("granted to ")?.1)).unwrap();
    let owner = granted.split(',').next().unwrap().split(' ').next().unwrap();
    let mut words = report.messages.iter().flat_map(|message| message.words.split(' '));
    assert!(words.any(|word| word == owner), "{owner}\n{}", page(&report));
}
