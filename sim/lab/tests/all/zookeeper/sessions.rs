//! Sessions: their timeouts, their validity by the client's clock, and the effects of failing servers.

use std::time::Duration;

use super::support::{SERVERS, Zoo, in_zoo};
use dlock::{Runtime, timeout_at};
use dlock_zookeeper::{Client, CreateMode, Error, Fired, SessionState};
use sim::Span;
use sim::faults::{Crash, Delay, Pause};
use sim::world::runtime::SimRuntime;

const PLAIN: CreateMode = CreateMode::PERSISTENT;
const EPHEMERAL: CreateMode = CreateMode { ephemeral: true, sequential: false };

async fn established(zoo: &Zoo, name: &str) -> Client<SimRuntime> {
    let client = zoo.client(name);
    client.established(zoo.within(name, 3000)).await.unwrap();
    client
}

#[test]
fn the_timeout_lies_between_2_and_20_ticks() {
    in_zoo(|zoo| async move {
        for (wish, settled) in [(100, 200), (1000, 1000), (3_600_000, 2000)] {
            let client = zoo.client_of("a", &SERVERS, Duration::from_millis(wish));
            let session = client.established(zoo.within("a", 3000)).await.unwrap();
            assert_eq!(session.timeout, Duration::from_millis(settled));
        }
    });
}

#[test]
fn pings_keep_an_idle_session() {
    in_zoo(|zoo| async move {
        let client = established(&zoo, "a").await;
        let session = client.session();
        for _ in 0..100 {
            zoo.pass(50).await;
            let left = client.valid_until().unwrap().saturating_since(zoo.runtime("a").now());
            assert!(left > Duration::from_millis(600), "{left:?}");
        }
        assert_eq!((client.state(), client.session()), (SessionState::Connected, session));
    });
}

#[test]
fn validity_ends_before_the_session_expires() {
    in_zoo(|zoo| async move {
        let (a, b) = (established(&zoo, "a").await, established(&zoo, "b").await);
        let deadline = zoo.within("b", 9000);
        a.create("/mine", b"", EPHEMERAL, zoo.within("a", 1000)).await.unwrap();
        let (_, gone) = b.exists_watched("/mine", deadline).await.unwrap();
        let pause = zoo.control.strike(Pause::of("a"));
        let believed_until = a.valid_until().unwrap();
        assert_eq!(gone.await, Fired::Deleted);
        let over = zoo.runtime("a").now();
        assert!(over > believed_until);
        // The rounding up to a tick, and the time between the last acknowledged ping and the pause.
        assert!(over.saturating_since(believed_until) < Duration::from_millis(250), "{over:?}");
        pause.heal();
        assert_eq!(a.state_after(SessionState::Connected).await, SessionState::Disconnected);
        assert_eq!(a.state_after(SessionState::Disconnected).await, SessionState::Expired);
        assert_eq!(a.exists("/mine", zoo.within("a", 100)).await, Err(Error::SessionExpired));
    });
}

#[test]
fn validity_counts_from_the_sending_of_the_request() {
    in_zoo(|zoo| async move {
        let a = established(&zoo, "a").await;
        for server in SERVERS {
            zoo.control.strike(Delay::one_way(server, "a", Span::from_millis(200)));
        }
        let sent = zoo.runtime("a").now();
        a.exists("/", zoo.within("a", 1000)).await.unwrap();
        assert!(zoo.runtime("a").now().saturating_since(sent) >= Duration::from_millis(200));
        // Rounded, since the simulation itself takes some nanoseconds.
        let validity = a.valid_until().unwrap().saturating_since(sent);
        assert_eq!(validity.as_micros(), 1_000_000);
    });
}

#[test]
fn a_reconnect_keeps_the_session_and_its_nodes() {
    in_zoo(|zoo| async move {
        let a = established(&zoo, "a").await;
        let deadline = zoo.within("a", 9000);
        let session = a.session().unwrap();
        a.create("/mine", b"", EPHEMERAL, deadline).await.unwrap();
        for _ in 0..4 {
            zoo.reset_all("a");
            assert_eq!(a.state_after(SessionState::Connected).await, SessionState::Disconnected);
            let stat = a.exists("/mine", deadline).await.unwrap().unwrap();
            assert_eq!((stat.ephemeral_owner, a.session()), (session.id, Some(session)));
        }
        assert_eq!(zoo.ensemble.sessions(), 1);
    });
}

#[test]
fn closing_or_dropping_a_client_ends_its_session_at_once() {
    in_zoo(|zoo| async move {
        let b = established(&zoo, "b").await;
        for drops in [false, true] {
            let a = established(&zoo, "a").await;
            a.create("/mine", b"", EPHEMERAL, zoo.within("a", 500)).await.unwrap();
            let (_, gone) = b.exists_watched("/mine", zoo.within("b", 500)).await.unwrap();
            let before = zoo.now();
            if drops {
                drop(a);
            } else {
                a.close(zoo.within("a", 500)).await.unwrap();
                assert_eq!(a.state(), SessionState::Closed);
                assert_eq!(a.exists("/", zoo.within("a", 500)).await, Err(Error::Closed));
            }
            assert_eq!(gone.await, Fired::Deleted);
            assert!(zoo.now() - before < 5 * super::support::MS);
        }
    });
}

#[test]
fn a_member_cut_off_serves_stale_reads_then_disconnects() {
    in_zoo(|zoo| async move {
        let b = zoo.client_of("b", &["zk-2"], Duration::from_secs(1));
        let a = zoo.client_of("a", &["zk-1"], Duration::from_secs(1));
        let deadline = zoo.within("b", 9000);
        b.create("/t", b"old", PLAIN, deadline).await.unwrap();
        a.create("/mine", b"", EPHEMERAL, zoo.within("a", 900)).await.unwrap();
        let (_, gone) = b.exists_watched("/mine", deadline).await.unwrap();
        assert_eq!(zoo.ensemble.leader(), Some("zk-3"));
        zoo.part("zk-1", "zk-2");
        zoo.part("zk-1", "zk-3");
        zoo.pass(1).await;
        // The follower still serves: it has not noticed yet that its leader is silent, and its data stay old.
        assert_eq!(a.data("/t", zoo.within("a", 300)).await.unwrap().0, b"old");
        b.set_data("/t", b"new", None, deadline).await.unwrap();
        assert_eq!(a.data("/t", zoo.within("a", 300)).await.unwrap().0, b"old", "a stale read");
        assert_eq!(a.sync("/t", zoo.within("a", 100)).await, Err(Error::NoAnswer), "no leader, no sync");
        assert_eq!(a.state_after(SessionState::Connected).await, SessionState::Disconnected);
        assert!(matches!(a.sync("/t", zoo.within("a", 100)).await, Err(Error::NotSent { .. })));
        assert_eq!(gone.await, Fired::Deleted, "expired at the leader");
        zoo.join("zk-1", "zk-2");
        zoo.join("zk-1", "zk-3");
        assert_eq!(a.state_after(SessionState::Disconnected).await, SessionState::Expired);
    });
}

#[test]
fn pings_to_a_partitioned_follower_do_not_prolong_a_session() {
    in_zoo(|zoo| async move {
        let b = zoo.client_of("b", &["zk-2"], Duration::from_millis(300));
        let a = zoo.client_of("a", &["zk-1"], Duration::from_millis(300));
        a.create("/mine", b"", EPHEMERAL, zoo.within("a", 900)).await.unwrap();
        let (_, gone) = b.exists_watched("/mine", zoo.within("b", 900)).await.unwrap();
        zoo.part("zk-1", "zk-2");
        zoo.part("zk-1", "zk-3");
        let gone = timeout_at(&zoo.runtime("b"), zoo.within("b", 3000), gone).await;
        assert_eq!(gone, Ok(Fired::Deleted));
        assert_eq!(a.state(), SessionState::Connected);
        assert!(
            a.valid_until().unwrap() > zoo.runtime("a").now(),
            "ZooKeeper's own limit: only a token helps"
        );
    });
}

#[test]
fn a_leader_crash_starts_a_new_epoch_and_keeps_sessions() {
    in_zoo(|zoo| async move {
        let a = established(&zoo, "a").await;
        let deadline = zoo.within("a", 9000);
        let first = a.create("/one", b"", EPHEMERAL, deadline).await.unwrap().stat.czxid;
        assert_eq!(zoo.ensemble.leader(), Some("zk-3"));
        let crash = zoo.control.strike(Crash::of("zk-3"));
        zoo.pass(200).await;
        assert_eq!(zoo.ensemble.leader(), Some("zk-2"));
        let second = a.create("/two", b"", EPHEMERAL, deadline).await.unwrap().stat.czxid;
        assert_eq!((first >> 32, second >> 32), (1, 2));
        assert!(a.exists("/one", deadline).await.unwrap().is_some(), "the session goes on");
        crash.heal();
        zoo.pass(200).await;
        assert_eq!(zoo.ensemble.leader(), Some("zk-2"), "it follows");
        assert_eq!(zoo.ensemble.change_leader(), Some("zk-3"));
        assert_eq!(
            a.state_after(SessionState::Connected).await,
            SessionState::Disconnected,
            "all members hang up"
        );
        let third = a.create("/three", b"", EPHEMERAL, deadline).await.unwrap().stat.czxid;
        assert_eq!(third >> 32, 3);
    });
}

#[test]
fn without_a_majority_no_session_is_served_or_expires() {
    in_zoo(|zoo| async move {
        let a = established(&zoo, "a").await;
        a.create("/mine", b"", EPHEMERAL, zoo.within("a", 900)).await.unwrap();
        for (one, other) in [("zk-1", "zk-2"), ("zk-1", "zk-3"), ("zk-2", "zk-3")] {
            zoo.part(one, other);
        }
        assert_eq!(a.state_after(SessionState::Connected).await, SessionState::Disconnected);
        zoo.pass(3000).await;
        assert_eq!((a.state(), zoo.ensemble.leader()), (SessionState::Disconnected, None));
        let refused = a.create("/other", b"", EPHEMERAL, zoo.within("a", 100)).await;
        assert!(matches!(refused, Err(Error::NotSent { .. })), "{refused:?}");
        for (one, other) in [("zk-1", "zk-2"), ("zk-1", "zk-3"), ("zk-2", "zk-3")] {
            zoo.join(one, other);
        }
        let found = a.exists("/mine", zoo.within("a", 3000)).await.unwrap();
        assert!(found.is_some(), "no leader was there to expire the session");
        assert_eq!(a.exists("/other", zoo.within("a", 1000)).await, Ok(None), "never sent");
    });
}

#[test]
fn a_paused_leader_is_deposed_and_disconnects_its_clients() {
    in_zoo(|zoo| async move {
        let a = zoo.client_of("a", &["zk-3"], Duration::from_secs(2));
        a.create("/mine", b"", EPHEMERAL, zoo.within("a", 900)).await.unwrap();
        let pause = zoo.control.strike(Pause::of("zk-3"));
        zoo.pass(1000).await;
        assert_eq!(zoo.ensemble.leader(), Some("zk-2"));
        pause.heal();
        let asked = a.exists("/mine", zoo.within("a", 2000)).await;
        assert_eq!(asked, Err(Error::ConnectionLoss), "it learns of the new leader and hangs up");
        assert!(a.exists("/mine", zoo.within("a", 2000)).await.unwrap().is_some(), "as a follower");
        assert_eq!(zoo.ensemble.leader(), Some("zk-2"));
    });
}
