//! The fencing tokens of Redlock on simulated servers, and those of one server whose counter is lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lab::{Lab, Member, in_lab, key};
use dlock::Runtime;
use dlock::redis::{Redis, RedisOptions, TokenSource};
use dlock::{Lock, Options};
use sim::entropy::Entropy;

const TTL: Duration = Duration::from_secs(2);
const SETTLE: Duration = Duration::from_millis(400);

/// Acquires while `member` reaches only `nodes`, and releases. Returns the fencing token.
async fn grant(lab: &Lab, member: &Member, nodes: [usize; 3]) -> u64 {
    let away: Vec<_> = (0..5).filter(|node| !nodes.contains(node)).collect();
    away.iter().for_each(|node| lab.cut(member, *node));
    let handle = member.lock.acquire(&key(), member.within(TTL * 5)).await.unwrap();
    let token = handle.fence().as_u64();
    handle.release().await.unwrap();
    lab.sleep(SETTLE).await;
    away.iter().for_each(|node| lab.heal(member, *node));
    lab.sleep(TTL).await;
    token
}

#[test]
fn two_majorities_that_share_one_node_keep_the_order() {
    in_lab(5, 2, |lab| async move {
        let (a, b) = (lab.member(0, TTL), lab.member(1, TTL));
        lab.server(0).preset(key().fence_key().as_bytes(), b"10");
        assert_eq!(grant(&lab, &a, [0, 1, 2]).await, 11);
        assert_eq!(lab.counters().await, [11, 11, 11, 0, 0]);
        assert_eq!(grant(&lab, &b, [2, 3, 4]).await, 12);
        assert_eq!(lab.counters().await, [11, 11, 12, 12, 12]);
        assert_eq!(grant(&lab, &a, [0, 1, 3]).await, 13);
    });
}

#[test]
fn tokens_regress_if_the_shared_node_loses_its_data() {
    in_lab(5, 2, |lab| async move {
        let (a, b) = (lab.member(0, TTL), lab.member(1, TTL));
        lab.server(0).preset(key().fence_key().as_bytes(), b"10");
        assert_eq!(grant(&lab, &a, [0, 1, 2]).await, 11);
        lab.server(2).flush();
        assert_eq!(grant(&lab, &b, [2, 3, 4]).await, 1);
    });
}

#[test]
fn tokens_by_server_time_survive_the_loss_of_a_node() {
    in_lab(5, 2, |lab| async move {
        let member = |number| lab.member_with(number, TTL, TokenSource::ServerTime);
        let (a, b) = (member(0), member(1));
        let first = grant(&lab, &a, [0, 1, 2]).await;
        assert!(first > 1_000_000_000_000_000, "microseconds since 1970: {first}");
        assert_eq!(lab.counters().await, [first, first, first, 0, 0], "no digit is lost");
        lab.server(2).flush();
        let second = grant(&lab, &b, [2, 3, 4]).await;
        assert!(second > first);
        // The limit: clocks that differ by more than the time since the last grant.
        (2..5).for_each(|node| lab.step_back(node));
        lab.server(2).flush();
        assert!(grant(&lab, &a, [0, 1, 2]).await > second, "a majority has kept its counters or clocks");
        (2..5).for_each(|node| lab.server(node).flush());
        assert!(grant(&lab, &b, [2, 3, 4]).await < second);
    });
}

/// Acquires and releases on node 0 alone, with tokens from `tokens`. Returns the fencing token.
async fn grant_of_one(lab: &Lab, tokens: TokenSource) -> u64 {
    let member = lab.member(0, TTL);
    let mut redis = RedisOptions::default();
    redis.tokens = tokens;
    let redis = Redis::new(member.runtime.clone(), "redis-1:6379", redis);
    let lock = Lock::new(redis.unwrap(), Options::new(TTL)).unwrap();
    let handle = lock.acquire(&key(), member.runtime.now() + TTL).await.unwrap();
    let token = handle.fence().as_u64();
    handle.release().await.unwrap();
    lab.sleep(SETTLE).await;
    token
}

#[test]
fn tokens_by_server_time_survive_the_loss_of_the_counter() {
    in_lab(3, 1, |lab| async move {
        let first = grant_of_one(&lab, TokenSource::ServerTime).await;
        assert!(first > 1_000_000_000_000_000, "microseconds since 1970: {first}");
        assert_eq!(lab.counters().await[0], first, "no digit is lost");
        lab.server(0).flush();
        let second = grant_of_one(&lab, TokenSource::ServerTime).await;
        assert!(second > first);
        // A clock that steps back does no harm while the counter exists.
        lab.step_back(0);
        assert_eq!(grant_of_one(&lab, TokenSource::ServerTime).await, second + 1);
        assert_eq!(grant_of_one(&lab, TokenSource::Counter).await, second + 2);
        lab.server(0).flush();
        assert!(
            grant_of_one(&lab, TokenSource::ServerTime).await < second,
            "the limit: counter and clock are lost"
        );
        lab.server(0).flush();
        assert_eq!(grant_of_one(&lab, TokenSource::Counter).await, 1);
    });
}

#[test]
fn a_shared_counter_goes_on_from_the_keys_own() {
    in_lab(3, 1, |lab| async move {
        let server = lab.server(0);
        server.preset(key().fence_key().as_bytes(), b"10");
        assert_eq!(grant_of_one(&lab, TokenSource::Shared).await, 11);
        assert_eq!(lab.counters().await[0], 0, "the key's own counter is gone");
        assert_eq!(grant_of_one(&lab, TokenSource::Shared).await, 12);
        // The counter of another client that counts by key begins again: its token is refused, not accepted.
        assert_eq!(grant_of_one(&lab, TokenSource::Counter).await, 1);
        assert_eq!(
            grant_of_one(&lab, TokenSource::Shared).await,
            13,
            "a lower counter of its own is no help"
        );
    });
}

/// Lua counts in floating-point numbers, of which 2^53 + 1 is none.
#[test]
fn tokens_of_one_server_are_exact_beyond_the_numbers_of_lua() {
    in_lab(3, 1, |lab| async move {
        let start = (1 << 53) - 2;
        lab.server(0).preset(key().fence_key().as_bytes(), start.to_string().as_bytes());
        for next in 1..6 {
            assert_eq!(grant_of_one(&lab, TokenSource::Counter).await, start + next);
        }
        for next in 6..9 {
            assert_eq!(grant_of_one(&lab, TokenSource::Shared).await, start + next);
        }
    });
}

#[test]
fn a_lock_that_counts_in_lua_refuses_the_first_token_that_is_not_exact() {
    in_lab(3, 1, |lab| async move {
        let last = ((1_u64 << 53) - 1).to_string();
        (0..3).for_each(|node| lab.server(node).preset(key().fence_key().as_bytes(), last.as_bytes()));
        let a = lab.member(0, TTL);
        let refused = a.lock.acquire(&key(), a.within(TTL)).await.unwrap_err();
        assert!(refused.to_string().contains("the fencing counter has reached 2^53"), "{refused}");
        assert_eq!(lab.held().await, 0, "no node keeps the vote");
        let mut options = RedisOptions::default();
        options.tokens = TokenSource::ServerTime;
        let redis = Redis::new(a.runtime.clone(), "redis-1:6379", options).unwrap();
        let lock = Lock::new(redis, Options::new(TTL)).unwrap();
        let refused = lock.acquire(&key(), a.runtime.now() + TTL).await.unwrap_err();
        assert!(refused.to_string().contains("the fencing counter has reached 2^53"), "{refused}");
        assert_eq!(lab.held().await, 0);
    });
}

/// Lets three clients acquire and release repeatedly while nodes crash and restart, at most two at a time.
/// Returns the fencing tokens in the order of grants.
fn tokens_through_crashes(seed: u64) -> Vec<u64> {
    in_lab(5, 3, |lab| async move {
        let tokens = Arc::new(Mutex::new(Vec::new()));
        for number in 0..3 {
            let (member, tokens) = (lab.member(number, Duration::from_millis(500)), Arc::clone(&tokens));
            member.process.clone().spawn(async move {
                for _ in 0..20 {
                    let Ok(handle) = member.lock.acquire(&key(), member.within(TTL)).await else { continue };
                    if handle.is_valid() {
                        tokens.lock().unwrap().push(handle.fence().as_u64());
                    }
                    drop(handle);
                }
            });
        }
        let mut site = Entropy::new(seed).site("crashes");
        for _ in 0..40 {
            let first = site.below(5);
            let second = (first + 1 + site.below(4)) % 5;
            let (down, up) = (site.below(300), site.below(300));
            for node in [first, second] {
                lab.crash(usize::try_from(node).unwrap());
            }
            lab.sleep(Duration::from_millis(down)).await;
            for node in [first, second] {
                lab.restart(usize::try_from(node).unwrap());
            }
            lab.sleep(Duration::from_millis(up)).await;
        }
        tokens.lock().unwrap().clone()
    })
}

#[test]
fn tokens_grow_through_crashes_of_minorities_that_keep_their_data() {
    let mut granted = 0;
    for seed in 0..5 {
        let tokens = tokens_through_crashes(seed);
        assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: {tokens:?}");
        granted += tokens.len();
    }
    assert!(granted > 100, "{granted}");
}
