//! Keys with several permits, and keys with readers and a writer: histories within their capacity, and
//! beyond.

use std::time::Duration;

use history::{Capacity, Kind, Rules, Verdict, VerdictKind, audit};

use crate::story::{
    accepted, acquired, claimed, crashed, deleted, entered, expired, extended, granted, history, key, left,
    lines, millis_at, not_acquired, only, owner, queued, requested, shared,
};

fn rules(capacity: Capacity) -> Rules {
    Rules {
        capacities: [(key(), capacity)].into(),
        exact: true,
        fifo: true,
        servers: ["server".into()].into(),
        end: millis_at(10_000),
        ..Rules::default()
    }
}

fn judge<'a>(capacity: Capacity, events: impl IntoIterator<Item = (u64, &'a str, Kind)>) -> Vec<Verdict> {
    audit(&history(events), &rules(capacity))
}

/// Each of these gets the lock and enters its section, and stays there.
fn inside(processes: [&'static str; 3]) -> Vec<(u64, &'static str, Kind)> {
    let enters = |(at, name): (u64, &'static str)| {
        let events = [
            ("server", granted(name, at + 1)),
            (name, acquired(name, at + 1)),
            (name, entered(name, at + 1)),
        ];
        events.map(|(process, kind)| (at, process, kind))
    };
    (0..).zip(processes).flat_map(enters).collect()
}

#[test]
fn as_many_as_have_permits_may_be_inside() {
    assert_eq!(judge(Capacity::Permits(3), inside(["a", "b", "c"])), []);
}

#[test]
fn one_more_than_the_permits_is_convicted() {
    let verdicts = judge(Capacity::Permits(2), inside(["a", "b", "c"]));
    assert_eq!(lines(&verdicts), ["overlap a b c", "two_valid a b c"]);
    assert_eq!(
        verdicts[0].detail,
        "a (token 1) and b (token 2) were still in their critical sections when c (token 3) entered at 0.002"
    );
    assert_eq!(
        verdicts[1].detail,
        "the leases of a (token 1) and b (token 2) were valid by their own clocks, and from 0.002 on that of \
         c (token 3) was too"
    );
}

#[test]
fn the_number_of_permits_is_that_of_the_requests() {
    let judge = |of: [u64; 3]| {
        let asks = |(name, permits): (&'static str, u64)| {
            (0, name, Kind::LeasePermits { resource_type: None, key: key(), owner: owner(name), permits })
        };
        let asks = ["a", "b", "c"].into_iter().zip(of).map(asks);
        let rules = Rules { capacities: [].into(), ..rules(Capacity::Mutex) };
        lines(&audit(&history(asks.chain(inside(["a", "b", "c"])).collect::<Vec<_>>()), &rules))
    };
    assert!(judge([3, 3, 3]).is_empty());
    // Clients that differ give what the largest number allows.
    assert!(judge([2, 3, 2]).is_empty());
    assert_eq!(judge([2, 2, 2]), ["overlap a b c", "two_valid a b c"]);
}

#[test]
fn an_update_under_a_permit_is_not_lost() {
    let judge = |capacity| {
        let mut story = inside(["a", "b", "c"]);
        story.truncate(6);
        story.extend([(1, "resource", claimed("a", 1, 0)), (2, "resource", accepted("b", 2, 1))]);
        story.push((3, "resource", accepted("a", 1, 2)));
        lines(&judge(capacity, story))
    };
    let kept = judge(Capacity::Permits(2));
    assert!(!kept.iter().any(|line| line.starts_with("lost_update")), "{kept:?}");
    let lost = judge(Capacity::Mutex);
    assert!(lost.iter().any(|line| line.starts_with("lost_update")), "{lost:?}");
}

#[test]
fn a_permit_that_is_free_again_may_be_taken() {
    for end in [crashed(), left("a", 1)] {
        let mut story = inside(["a", "b", "c"]);
        story.insert(6, (2, "a", end));
        let verdicts = judge(Capacity::Permits(2), story);
        assert!(verdicts.iter().all(|verdict| verdict.kind != VerdictKind::Overlap), "{verdicts:?}");
    }
}

#[test]
fn one_permit_is_a_mutex() {
    let overlaps = |capacity| {
        let mut lines = lines(&judge(capacity, inside(["a", "b", "c"])));
        lines.retain(|line| line.starts_with("overlap a b"));
        lines
    };
    assert_eq!(overlaps(Capacity::Permits(1))[0], "overlap a b");
    assert_eq!(overlaps(Capacity::Mutex), ["overlap a b"]);
}

#[test]
fn readers_may_be_inside_together_and_no_writer_beside_them() {
    let with = |readers: &[&'static str]| {
        let shared = readers.iter().map(|name| (0, *name, shared(name)));
        judge(Capacity::ReadersWriter, shared.chain(inside(["a", "b", "c"])).collect::<Vec<_>>())
    };
    assert_eq!(with(&["a", "b", "c"]), []);
    // c writes.
    let of_writer = ["two_valid a c", "overlap a c", "two_valid b c", "overlap b c"];
    let mut found = lines(&with(&["a", "b"]));
    found.sort_unstable();
    let mut expected = of_writer.map(str::to_owned);
    expected.sort_unstable();
    assert_eq!(found, expected);
    // b and c write.
    let verdicts = lines(&with(&["a"]));
    assert!(
        verdicts.contains(&"overlap b c".into()) && verdicts.contains(&"overlap a b".into()),
        "{verdicts:?}"
    );
}

#[test]
fn a_request_for_reading_names_the_capacity() {
    let judge = |readers: &[&'static str]| {
        let shared = readers.iter().map(|name| (0, *name, shared(name)));
        let rules = Rules { capacities: [].into(), ..rules(Capacity::Mutex) };
        lines(&audit(&history(shared.chain(inside(["a", "b", "c"])).collect::<Vec<_>>()), &rules))
    };
    assert!(judge(&["a", "b", "c"]).is_empty());
    assert!(judge(&["a", "b"]).contains(&"overlap b c".into()));
    assert!(!judge(&["a", "b"]).contains(&"overlap a b".into()));
}

#[test]
fn a_writer_waits_for_the_reader_that_ends_last() {
    let judge = |ttl| {
        let rules = Rules {
            healed_at: Some(millis_at(0)),
            served_within: Some(Duration::from_secs(3)),
            ttl: Some(Duration::from_secs(ttl)),
            grace: Duration::from_secs(20),
            ..rules(Capacity::ReadersWriter)
        };
        // a reads on, and b, who came later, has left.
        let mut story = vec![(0, "a", shared("a")), (0, "b", shared("b"))];
        story.extend(c_waits(deleted("b", "b")));
        audit(&history(story), &rules)
    };
    assert_eq!(judge(8), []);
    only(VerdictKind::Stuck, &judge(2));
}

#[test]
fn a_writer_that_new_readers_pass_for_ever_is_stuck() {
    let rules = Rules {
        healed_at: Some(millis_at(0)),
        served_within: Some(Duration::from_secs(3)),
        ttl: Some(Duration::from_secs(1)),
        grace: Duration::from_secs(20),
        end: millis_at(12_000),
        ..rules(Capacity::ReadersWriter)
    };
    let judge = |reads: &[&'static str; 10]| {
        let reads = reads.iter().zip(0..).flat_map(|(name, second)| {
            let (from, to) = (second * 1_000, second * 1_000 + 1_100);
            [
                (from, *name, shared(name)),
                (from, "server", granted(name, second + 1)),
                (to, "server", deleted(name, name)),
            ]
        });
        let mut story = history(reads.chain([(500, "w", requested("w"))]).collect::<Vec<_>>());
        story.sort_by_key(|event| event.at);
        lines(&audit(&story, &rules))
    };
    let new = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    assert!(judge(&new).contains(&"stuck w".into()), "{:?}", judge(&new));
    // After the fourth one, those that were there stay.
    let mut story = judge(&["a", "b", "c", "d", "d", "d", "d", "d", "d", "d"]);
    story.retain(|line| line.starts_with("stuck"));
    assert!(story.is_empty(), "{story:?}");
}

#[test]
fn a_permit_that_the_server_dropped_is_unheld() {
    let mut story = inside(["a", "b", "c"]);
    story.push((500, "server", deleted("b", "c")));
    let verdicts = judge(Capacity::Permits(3), story);
    let unheld = verdicts.iter().find(|verdict| verdict.kind == VerdictKind::Unheld).unwrap();
    assert_eq!(unheld.processes, ["b".into()]);
    assert_eq!(verdicts.iter().filter(|verdict| verdict.kind == VerdictKind::Unheld).count(), 1);
}

/// a's permit is gone when c gets its own; b's is not.
fn c_after_a() -> Vec<(u64, &'static str, Kind)> {
    vec![
        (0, "server", granted("a", 1)),
        (0, "a", acquired("a", 1)),
        (1, "server", granted("b", 2)),
        (1, "b", acquired("b", 2)),
        (2_000, "server", expired("a")),
        (2_001, "server", granted("c", 3)),
        (2_001, "c", acquired("c", 3)),
        (2_002, "resource", accepted("c", 3, 1)),
    ]
}

#[test]
fn holders_of_permits_write_in_any_order() {
    let mut story = c_after_a();
    story.push((2_003, "resource", accepted("b", 2, 2)));
    let of_writes =
        |verdict: &Verdict| matches!(verdict.kind, VerdictKind::StaleWrite | VerdictKind::LateWrite);
    assert!(!judge(Capacity::Permits(2), story).iter().any(of_writes));
}

#[test]
fn a_write_of_a_permit_that_was_gone_is_stale() {
    let mut story = c_after_a();
    story.push((2_003, "resource", accepted("a", 1, 2)));
    let verdicts = judge(Capacity::Permits(2), story);
    assert!(lines(&verdicts).contains(&"stale_write a c".into()), "{verdicts:?}");
}

#[test]
fn a_write_of_a_permit_that_was_gone_is_late_after_a_read() {
    let mut story = c_after_a();
    story.pop();
    story.push((2_002, "resource", claimed("c", 3, 1)));
    story.push((2_003, "resource", accepted("a", 1, 2)));
    let verdicts = judge(Capacity::Permits(2), story);
    assert!(lines(&verdicts).contains(&"late_write a c".into()), "{verdicts:?}");
}

#[test]
fn a_waiter_is_overtaken_by_more_than_the_permits() {
    let queue = || vec![(1, "a", queued("a", 10)), (1, "b", queued("b", 11)), (1, "c", queued("c", 12))];
    let served = |first: &'static str| {
        let mut story = queue();
        story.push((5, first, acquired(first, 1)));
        lines(&judge(Capacity::Permits(2), story))
    };
    // The second of two waiters that are served at once may learn it first.
    assert!(!served("b").iter().any(|line| line.starts_with("unfair")));
    assert!(served("c").contains(&"unfair c a".into()));
}

#[test]
fn a_reader_overtakes_readers_and_no_writer() {
    let served = |readers: &[&'static str]| {
        let mut story: Vec<_> = readers.iter().map(|name| (0, *name, shared(name))).collect();
        story.extend([(1, "a", queued("a", 10)), (1, "b", queued("b", 11)), (5, "b", acquired("b", 1))]);
        lines(&judge(Capacity::ReadersWriter, story))
    };
    assert!(!served(&["a", "b"]).iter().any(|line| line.starts_with("unfair")));
    assert!(served(&["b"]).contains(&"unfair b a".into()));
}

/// Waits beside two holders, of whom one has left.
fn c_waits(end: Kind) -> Vec<(u64, &'static str, Kind)> {
    vec![
        (0, "server", granted("a", 1)),
        (0, "server", granted("b", 2)),
        (1, "c", requested("c")),
        (100, "server", end),
    ]
}

#[test]
fn a_permit_that_nobody_takes_is_idle() {
    let rules = Rules { longest_retry: Some(Duration::from_secs(1)), ..rules(Capacity::Permits(2)) };
    let verdicts = audit(&history(c_waits(deleted("a", "a"))), &rules);
    let idle = only(VerdictKind::Idle, &verdicts);
    assert_eq!(
        idle.detail,
        "a permit was free from 0.100 on, c had asked for it at 0.001, and at 1.100 nobody had it"
    );
    // All permits are taken.
    let mut story = c_waits(deleted("a", "a"));
    story.push((101, "server", granted("d", 4)));
    assert_eq!(audit(&history(story), &rules), []);
}

#[test]
fn a_waiter_with_a_permit_left_is_stuck() {
    let rules = Rules {
        healed_at: Some(millis_at(0)),
        served_within: Some(Duration::from_secs(3)),
        ttl: Some(Duration::from_secs(2)),
        grace: Duration::from_secs(20),
        ..rules(Capacity::Permits(2))
    };
    // b is renewed all the time; a's permit is free.
    let renewed = (1..10).map(|second| (second * 1_000, "server", extended("b", "b")));
    let mut story = c_waits(deleted("a", "a"));
    story.extend(renewed);
    let verdicts = audit(&history(story.clone()), &rules);
    only(VerdictKind::Stuck, &verdicts);
    let mutex = Rules { capacities: [(key(), Capacity::Permits(1))].into(), ..rules };
    assert_eq!(audit(&history(story), &mutex), [], "the one permit is taken");
}

#[test]
fn a_permit_that_its_client_gave_up_is_leaked_beside_others() {
    let of_leaks = |end| {
        let rules = Rules {
            ttl: Some(Duration::from_secs(2)),
            longest_retry: Some(Duration::from_millis(500)),
            ..rules(Capacity::Permits(2))
        };
        let story = [
            (0, "b", requested("b")),
            (10, "server", granted("b", 1)),
            (20, "a", requested("a")),
            (100, "server", granted("a", 2)),
            (200, "a", not_acquired("a")),
            end,
            (4_000, "server", extended("b", "b")),
        ];
        let mut found = lines(&audit(&history(story), &rules));
        found.retain(|line| line.starts_with("leaked"));
        found
    };
    assert_eq!(of_leaks((2_100, "server", expired("a"))), ["leaked a server"]);
    assert!(of_leaks((300, "server", deleted("a", "a"))).is_empty());
}

#[test]
fn a_reader_without_a_lease_is_convicted_and_the_others_are_not() {
    let of_unheld = |removed: &'static str| {
        let readers = ["a", "b"].map(|name| (0, name, shared(name)));
        let mut story: Vec<_> = readers.into_iter().chain(inside(["a", "b", "c"])).collect();
        // Without c.
        story.truncate(8);
        story.push((5, "server", deleted(removed, removed)));
        let mut found = lines(&judge(Capacity::ReadersWriter, story));
        found.retain(|line| line.starts_with("unheld"));
        found
    };
    assert_eq!(of_unheld("b"), ["unheld b"]);
    assert_eq!(of_unheld("a"), ["unheld a"]);
}
