//! The client on connections that fail: the errors it reports, and the retries that the service recognises.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::common::world::{Link, World, run};
use bytes::Bytes;
use dlock::{FencingToken, Owner};
use resource::client::{Client, ClientError, Failure, PutAnswer, ReadAnswer, Retry};
use resource::fence::{Beside, Guard, Refusal, WriteSeq};
use resource::http::{App, Config};
use resource::store::{MemoryStore, Read, Snapshot, Write};
use resource::{OwnerToken, ResourceKey};

fn app() -> App {
    App::new(Arc::new(MemoryStore::new()), Config::default())
}

fn key() -> ResourceKey {
    ResourceKey::new("acme/orders:42 ö%2F").unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn owner(name: &str) -> OwnerToken {
    OwnerToken::new(name).unwrap()
}

fn write(number: u64, name: &str) -> Write {
    Write {
        guard: Guard::token(token(number)),
        owner: Some(owner(name)),
        body: Bytes::from(format!("by {name}")),
    }
}

fn client(world: &World) -> Client<World> {
    Client::new(world.clone(), "resource:80")
}

#[test]
fn writes_and_reads_share_one_connection() {
    run(&app(), &[], async |world| {
        let client = client(&world);
        let deadline = World::at(9);
        let empty = Snapshot { value: None, version: 0, max_fence: None };
        assert_eq!(client.read(&key(), deadline).await, Ok(ReadAnswer::Read(empty)));
        assert_eq!(
            client.put(&key(), &write(33, "a"), deadline).await,
            Ok(PutAnswer::Accepted { version: 1 })
        );
        let claimed = Snapshot { value: Some("by a".into()), version: 1, max_fence: Some(token(34)) };
        let claim = client.fenced_read(&key(), token(34), Some(&owner("b")), deadline).await;
        assert_eq!(claim, Ok(ReadAnswer::Read(claimed)));
        let first =
            Write { guard: Guard::Token { token: token(34), seq: Some(WriteSeq::FIRST) }, ..write(34, "b") };
        assert_eq!(client.put(&key(), &first, deadline).await, Ok(PutAnswer::Accepted { version: 2 }));
        assert_eq!(
            client.put(&key(), &write(34, "b"), deadline).await,
            Ok(PutAnswer::Accepted { version: 3 })
        );
        assert_eq!(world.opened(), 1);
    });
}

#[test]
fn a_connection_that_ends_before_the_request_says_why() {
    run(&app(), &[Link::FailsAtOnce], async |world| {
        let answer = client(&world).put(&key(), &write(33, "a"), World::at(9)).await;
        let Err(ClientError::NotSent(Failure::Network(text))) = answer else { panic!("{answer:?}") };
        assert!(text.ends_with("the certificate is refused"), "{text}");
    });
}

#[test]
fn a_refusal_names_the_highest_token() {
    run(&app(), &[], async |world| {
        let client = client(&world);
        let deadline = World::at(9);
        client.put(&key(), &write(34, "b"), deadline).await.unwrap();
        let (seen, got) = (token(34), token(33));
        assert_eq!(
            client.put(&key(), &write(33, "a"), deadline).await,
            Ok(PutAnswer::Refused(Refusal::Stale { seen, got }))
        );
        let claim = client.fenced_read(&key(), got, Some(&owner("a")), deadline).await;
        assert_eq!(claim, Ok(ReadAnswer::Stale { seen, got }));
        let foreign = client.put(&key(), &write(34, "a"), deadline).await;
        assert_eq!(foreign, Ok(PutAnswer::Refused(Refusal::ForeignOwner { seen, got: seen })));
        let claim = client.fenced_read(&key(), seen, Some(&owner("a")), deadline).await;
        assert_eq!(claim, Ok(ReadAnswer::ForeignOwner { seen, got: seen }));
    });
}

#[test]
fn a_permit_sends_the_set_with_writes_and_fenced_reads() {
    run(&app(), &[], async |world| {
        let (client, deadline) = (client(&world), World::at(9));
        let accepted = |version| Ok(PutAnswer::Accepted { version });
        let beside = Beside::new([token(5), token(7)]).unwrap();
        let permit = client.beside(&beside);
        // Neither a plain read nor a conditional write has a token, so they have no set.
        assert!(matches!(permit.read_as(&key(), &Read::default(), deadline).await, Ok(ReadAnswer::Read(_))));
        assert_eq!(permit.put(&key(), &conditional(0, "x"), deadline).await, accepted(1));
        assert_eq!(permit.put(&key(), &write(9, "c"), deadline).await, accepted(2));
        assert_eq!(client.put(&key(), &write(7, "b"), deadline).await, accepted(3));
        let beside = Beside::new([token(5)]).unwrap();
        let claim = client.beside(&beside).fenced_read(&key(), token(12), None, deadline).await;
        assert!(matches!(claim, Ok(ReadAnswer::Read(_))), "{claim:?}");
        let stale = PutAnswer::Refused(Refusal::Stale { seen: token(12), got: token(9) });
        assert_eq!(client.put(&key(), &write(9, "C"), deadline).await, Ok(stale));
        let retry = Retry::default();
        let answer = client.beside(&beside).put_with_retry(&key(), &write(13, "d"), deadline, retry).await;
        assert_eq!(answer, accepted(4));
        assert_eq!(client.put(&key(), &write(5, "a"), deadline).await, accepted(5));
    });
}

#[test]
fn any_bytes_are_read_as_written() {
    run(&app(), &[], async |world| {
        let client = client(&world);
        for (number, body) in [(1, &b"\xff\x00\xfe"[..]), (2, b""), (3, "\"ö\u{0}\n".as_bytes())] {
            let body = Bytes::from_static(body);
            client
                .put(&key(), &Write { body: body.clone(), ..write(number, "a") }, World::at(9))
                .await
                .unwrap();
            match client.read(&key(), World::at(9)).await {
                Ok(ReadAnswer::Read(snapshot)) => assert_eq!(snapshot.value, Some(body)),
                other => panic!("{other:?}"),
            }
        }
    });
}

/// However the reply is lost: the write is applied, the client does not know, and the same write again gets
/// the first answer.
#[test]
fn a_lost_reply_is_unknown_and_the_retry_is_recognised() {
    for (link, timeout) in [(Link::LosesReplies, true), (Link::ResetsBeforeReply, false)] {
        run(&app(), &[link], async |world| {
            let client = client(&world);
            let lost = client.put(&key(), &write(33, "a"), World::at(1)).await.unwrap_err();
            assert!(matches!(lost, ClientError::Unknown(_)), "{link:?}: {lost:?}");
            assert_eq!(lost.is_timeout(), timeout, "{link:?}");
            let again = client.put(&key(), &write(33, "a"), World::at(2)).await;
            assert_eq!(again, Ok(PutAnswer::Accepted { version: 1 }), "{link:?}");
            assert_eq!(world.opened(), 2, "{link:?}");
        });
    }
}

#[test]
fn put_with_retry_outlasts_lost_replies() {
    let app = app();
    let links = [Link::LosesReplies, Link::Refused, Link::ResetsBeforeReply, Link::Hangs];
    run(&app, &links, async |world| {
        let answer =
            client(&world).put_with_retry(&key(), &write(33, "a"), World::at(9), Retry::default()).await;
        assert_eq!(answer, Ok(PutAnswer::Accepted { version: 1 }));
        assert_eq!(world.opened(), 5);
    });
    assert_eq!(app.metrics().writes_accepted(), 1);
}

/// The last attempt was not sent, an earlier one may have been applied: the write's outcome is unknown.
#[test]
fn one_unknown_attempt_makes_the_write_unknown() {
    let mut links = vec![Link::LosesReplies];
    links.resize(100, Link::Refused);
    run(&app(), &links, async |world| {
        let answer =
            client(&world).put_with_retry(&key(), &write(33, "a"), World::at(3), Retry::default()).await;
        assert!(matches!(answer, Err(ClientError::Unknown(Failure::Network(_)))), "{answer:?}");
        assert!(dlock::Runtime::now(&world) <= World::at(3));
    });
}

#[test]
fn a_write_without_a_connection_is_not_sent() {
    let app = app();
    let refused = |answer: &Result<PutAnswer, ClientError>| {
        matches!(answer, Err(ClientError::NotSent(Failure::Network(_))))
    };
    run(&app, &[Link::Refused, Link::Hangs], async |world| {
        let client = client(&world);
        let answer = client.put(&key(), &write(33, "a"), World::at(1)).await;
        assert!(refused(&answer), "{answer:?}");
        let answer = client.put(&key(), &write(33, "a"), World::at(1)).await;
        assert_eq!(answer, Err(ClientError::NotSent(Failure::Timeout)));
    });
    run(&app, &[Link::Refused; 100], async |world| {
        let answer =
            client(&world).put_with_retry(&key(), &write(33, "a"), World::at(1), Retry::default()).await;
        assert!(refused(&answer), "{answer:?}");
    });
    assert_eq!(app.metrics().writes_accepted(), 0);
}

/// After a pause past the deadline the client still has an open connection, but must not send the write.
#[test]
fn a_deadline_in_the_past_sends_nothing() {
    let app = app();
    run(&app, &[], async |world| {
        let client = client(&world);
        client.put(&key(), &write(33, "a"), World::at(1)).await.unwrap();
        world.pause(Duration::from_secs(5));
        let late = client.put(&key(), &write(34, "a"), World::at(1)).await;
        assert_eq!(late, Err(ClientError::NotSent(Failure::Timeout)));
    });
    assert_eq!(app.metrics().writes_accepted(), 1);
}

#[test]
fn a_connection_that_was_closed_while_idle_is_replaced() {
    run(&app(), &[Link::ClosesAfterReply, Link::ClosesAfterReply], async |world| {
        let client = client(&world);
        for number in 1..=3 {
            let answer = client.put(&key(), &write(number, "a"), World::at(9)).await;
            assert_eq!(answer, Ok(PutAnswer::Accepted { version: number }));
        }
        assert_eq!(world.opened(), 3);
    });
}

/// The client still takes the connection for open and uses it. hyper returns the request unsent.
#[test]
fn a_connection_that_ends_as_it_is_used_is_replaced() {
    run(&app(), &[], async |world| {
        let client = client(&world);
        client.put(&key(), &write(1, "a"), World::at(9)).await.unwrap();
        world.end_connections();
        let answer = client.put(&key(), &write(2, "a"), World::at(9)).await;
        assert_eq!(answer, Ok(PutAnswer::Accepted { version: 2 }));
        assert_eq!(world.opened(), 2);
    });
}

/// Drops a call after 1, 2, … polls, until a call completes earlier. The next call must not read the answer
/// of the dropped one.
#[test]
fn a_dropped_call_closes_its_connection() {
    let dropped = (1..).take_while(|polls| drop_after(*polls)).count();
    assert!(dropped >= 1, "no call was dropped before its answer");
}

/// Drops a call after `polls` polls; returns false if it completed within them.
fn drop_after(polls: usize) -> bool {
    let pending = std::cell::Cell::new(true);
    run(&app(), &[], async |world| {
        let (client, key, dropped) = (client(&world), key(), write(2, "a"));
        client.put(&key, &write(1, "a"), World::at(9)).await.unwrap();
        let mut call = Box::pin(client.put(&key, &dropped, World::at(9)));
        for _ in 0..polls {
            if std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await.is_ready() {
                return pending.set(false);
            }
            tokio::task::yield_now().await;
        }
        drop(call);
        let answer = client.read(&key, World::at(9)).await;
        assert!(matches!(answer, Ok(ReadAnswer::Read(_))), "{polls}: {answer:?}");
        assert_eq!(world.opened(), 2, "after {polls} polls");
        assert_eq!(world.closed(), 1, "after {polls} polls the dropped call's connection is closed");
    });
    pending.get()
}

#[test]
fn concurrent_calls_use_separate_connections() {
    run(&app(), &[], async |world| {
        let client = client(&world);
        let (one, two, write) = (key(), ResourceKey::new("other").unwrap(), write(33, "a"));
        let calls = (client.put(&one, &write, World::at(9)), client.read(&two, World::at(9)));
        let (first, second) = futures_util::future::join(calls.0, calls.1).await;
        assert_eq!(first, Ok(PutAnswer::Accepted { version: 1 }));
        assert!(matches!(second, Ok(ReadAnswer::Read(Snapshot { value: None, .. }))), "{second:?}");
        assert_eq!(world.opened(), 2);
        client.read(&two, World::at(9)).await.unwrap();
        assert_eq!(world.opened(), 2, "one of the two was kept");
    });
}

#[test]
fn a_malformed_request_is_explained() {
    run(&app(), &[], async |world| {
        let large = Write { body: Bytes::from(vec![0; 64 * 1024 + 1]), ..write(33, "a") };
        match client(&world).put_with_retry(&key(), &large, World::at(9), Retry::default()).await {
            Err(ClientError::Refused { status: 413, error, help }) => {
                assert!(error.contains("65536") && !help.is_empty(), "{error}; {help}");
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_lock_owner_is_sent_as_it_is() {
    run(&app(), &[], async |world| {
        let locks = Owner::random(&world, Some("wörker-4"));
        let mine = Write { owner: Some(OwnerToken::try_from(&locks).unwrap()), ..write(34, "x") };
        let client = client(&world);
        client.put(&key(), &mine, World::at(9)).await.unwrap();
        // It is recognised as a retry, so the service has recorded the same owner.
        assert_eq!(client.put(&key(), &mine, World::at(9)).await, Ok(PutAnswer::Accepted { version: 1 }));
    });
}

fn conditional(expected: u64, name: &str) -> Write {
    Write {
        guard: Guard::Version { expected },
        owner: Some(owner(name)),
        body: Bytes::from(format!("by {name}")),
    }
}

#[test]
fn a_refused_conditional_write_names_the_reason() {
    run(&app(), &[], async |world| {
        let client = client(&world);
        let put_if =
            async |expected, name| client.put(&key(), &conditional(expected, name), World::at(9)).await;
        assert_eq!(put_if(0, "a").await, Ok(PutAnswer::Accepted { version: 1 }));
        assert_eq!(
            put_if(0, "b").await,
            Ok(PutAnswer::Refused(Refusal::Conflict { expected: 0, current: 1 }))
        );
        client.put(&key(), &write(34, "c"), World::at(9)).await.unwrap();
        assert_eq!(put_if(2, "b").await, Ok(PutAnswer::Refused(Refusal::Fenced { seen: token(34) })));
    });
}

#[test]
fn a_retried_conditional_write_does_not_conflict_with_itself() {
    for link in [Link::LosesReplies, Link::ResetsBeforeReply] {
        run(&app(), &[link], async |world| {
            let client = client(&world);
            let mine = conditional(0, "a");
            let answer = client.put_with_retry(&key(), &mine, World::at(9), Retry::default()).await;
            assert_eq!(answer, Ok(PutAnswer::Accepted { version: 1 }), "{link:?}");
            assert!(world.opened() > 1, "{link:?}: no reply was lost");
        });
    }
}
