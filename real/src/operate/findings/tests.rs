//! Each finding, and the nearest state that has none.

use super::*;
use crate::operate::{Path, RedisLease, Seen, Session};

fn owner(name: &str) -> Owner {
    Owner(format!("{name}:0123456789abcdef0123456789abcdef"))
}

fn server(number: usize, holder: Option<&str>, counter: Option<u64>) -> RedisServer {
    let lease = holder.map(|holder| RedisLease { owner: owner(holder), left_ms: Some(900) });
    let state = RedisState { lease, counter, counter_left_ms: None, listeners: Some(0) };
    RedisServer { server: format!("redis-{number}"), answer: Answer::Read(state) }
}

fn inspection(state: State, seen: Option<u64>) -> Inspection {
    let system = match &state {
        State::Servers(servers) if servers.len() > 1 => System::Redlock,
        State::Servers(_) => System::Redis,
        State::Queue(_) => System::Etcd,
    };
    let resource = Some(Seen { highest_token: seen, writes: 1 });
    Inspection { key: "orders:42".to_owned(), system, state, resource }
}

fn of_redis(servers: Vec<RedisServer>, seen: Option<u64>) -> Vec<Finding> {
    findings(&inspection(State::Servers(servers), seen))
}

fn change(mut server: RedisServer, change: impl FnOnce(&mut RedisState)) -> RedisServer {
    if let Answer::Read(state) = &mut server.answer {
        change(state);
    }
    server
}

#[test]
fn a_counter_below_the_resource_does_not_fit() {
    assert_eq!(of_redis(vec![server(1, Some("a"), Some(7))], Some(7)), []);
    assert_eq!(of_redis(vec![server(1, None, None)], None), []);
    let behind = |counter| [Finding::CounterBehind { counter, seen: 7 }];
    assert_eq!(of_redis(vec![server(1, Some("a"), Some(6))], Some(7)), behind(6));
    assert_eq!(of_redis(vec![server(1, None, None)], Some(7)), behind(0));
}

#[test]
fn a_held_lock_without_a_counter_does_not_fit() {
    let missing = Finding::NoCounter { servers: vec!["redis-1".to_owned()] };
    assert_eq!(of_redis(vec![server(1, Some("a"), None)], None), [missing]);
}

#[test]
fn a_majority_that_lost_its_counters_does_not_fit() {
    // One server of three may lose its counter: every majority has one that is high enough.
    let counters = |counters: [Option<u64>; 3]| {
        let servers = (1..).zip(counters).map(|(number, counter)| server(number, None, counter)).collect();
        of_redis(servers, Some(7))
    };
    assert_eq!(counters([Some(7), None, Some(7)]), []);
    assert_eq!(counters([Some(7), None, Some(6)]), [Finding::CounterBehind { counter: 6, seen: 7 }]);
}

#[test]
fn a_server_that_is_down_hides_no_counter() {
    let down = RedisServer { server: "redis-3".to_owned(), answer: Answer::Failed("refused".to_owned()) };
    let unread = Finding::Unread { server: "redis-3".to_owned(), reason: "refused".to_owned() };
    let found = of_redis(vec![server(1, None, Some(6)), server(2, None, Some(5)), down.clone()], Some(7));
    assert_eq!(found, [unread.clone(), Finding::CounterBehind { counter: 6, seen: 7 }]);
    // One of three decides nothing.
    let found = of_redis(vec![server(1, None, None), down.clone(), down], Some(7));
    assert_eq!(found, [unread.clone(), unread]);
}

#[test]
fn votes_for_different_owners_and_a_minority_do_not_fit() {
    let votes = |holders: [Option<&str>; 3]| {
        let servers = (1..).zip(holders).map(|(number, holder)| server(number, holder, Some(3))).collect();
        of_redis(servers, None)
    };
    assert_eq!(votes([Some("a"), Some("a"), None]), []);
    assert_eq!(votes([None, None, None]), []);
    assert_eq!(
        votes([None, Some("a"), None]),
        [Finding::Minority { owner: owner("a"), votes: 1, needed: 2 }]
    );
    let split = Finding::SplitVotes { votes: vec![(owner("b"), 2), (owner("a"), 1)], needed: 2 };
    assert_eq!(votes([Some("a"), Some("b"), Some("b")]), [split]);
}

#[test]
fn a_lease_without_expiry_and_a_counter_with_one_do_not_fit() {
    let forever = change(server(1, Some("a"), Some(1)), |state| {
        state.lease.as_mut().unwrap().left_ms = None;
    });
    assert_eq!(
        of_redis(vec![forever], None),
        [Finding::NoExpiry { server: "redis-1".to_owned(), owner: owner("a") }]
    );
    let ends = change(server(1, Some("a"), Some(1)), |state| state.counter_left_ms = Some(5));
    assert_eq!(
        of_redis(vec![ends], None),
        [Finding::CounterExpires { server: "redis-1".to_owned(), left_ms: 5 }]
    );
}

fn claim(name: &str, token: u64) -> Claim {
    let session = Session { id: "1f".to_owned(), is_gone: Some(false), ..Session::default() };
    Claim {
        name: format!("lock/v1/orders:42/{name}"),
        owner: owner(name),
        token,
        session: Some(session),
        is_used_up: false,
        version: 1,
        path: Path::default(),
    }
}

fn of_claims(claims: Vec<Claim>, revision: u64, seen: u64) -> Vec<Finding> {
    let queue = Queue { revision: Some(revision), claims, strangers: Vec::new() };
    findings(&inspection(State::Queue(queue), Some(seen)))
}

#[test]
fn a_holder_whose_token_is_behind_does_not_fit() {
    assert_eq!(of_claims(vec![claim("a", 7), claim("b", 9)], 9, 7), []);
    let behind = Finding::TokenBehind { owner: owner("a"), token: 7, seen: 8 };
    assert_eq!(of_claims(vec![claim("a", 7), claim("b", 9)], 9, 8), [behind]);
}

#[test]
fn a_cluster_that_was_set_back_does_not_fit() {
    assert_eq!(of_claims(Vec::new(), 8, 8), []);
    assert_eq!(of_claims(Vec::new(), 7, 8), [Finding::RevisionBehind { revision: 7, seen: 8 }]);
}

#[test]
fn a_claim_whose_session_is_gone_does_not_fit() {
    let mut gone = claim("b", 9);
    gone.session.as_mut().unwrap().is_gone = Some(true);
    let (name, owner) = (gone.name.clone(), gone.owner.clone());
    let found = of_claims(vec![claim("a", 7), gone], 9, 7);
    let session = "1f".to_owned();
    assert_eq!(found, [Finding::SessionGone { name: name.clone(), owner: owner.clone(), session }]);
    let alone = Claim { session: None, ..claim("b", 9) };
    assert_eq!(of_claims(vec![alone], 9, 7), [Finding::NoSession { name, owner }]);
    let mut unknown = claim("a", 7);
    unknown.session.as_mut().unwrap().is_gone = None;
    assert_eq!(of_claims(vec![unknown], 9, 7), []);
}

#[test]
fn nodes_that_are_no_claims_and_used_up_numbers_do_not_fit() {
    let used_up = Claim { is_used_up: true, ..claim("a", 7) };
    let name = used_up.name.clone();
    assert_eq!(of_claims(vec![used_up], 9, 7), [Finding::QueueUsedUp { name }]);
    let queue = Queue { revision: Some(9), claims: Vec::new(), strangers: vec!["config".to_owned()] };
    let found = findings(&inspection(State::Queue(queue), None));
    assert_eq!(found, [Finding::Stranger { name: "config".to_owned() }]);
}

#[test]
fn no_finding_shows_a_whole_owner_token() {
    let found = [
        Finding::NoExpiry { server: "redis-1".to_owned(), owner: owner("a") },
        Finding::SplitVotes { votes: vec![(owner("a"), 1)], needed: 2 },
        Finding::NoSession { name: "x".to_owned(), owner: owner("a") },
    ];
    for finding in found {
        let json = serde_json::to_string(&finding).unwrap();
        for text in [finding.to_string(), json, format!("{finding:?}")] {
            assert!(text.contains("a:01234567") && !text.contains("a:012345678"), "{text}");
        }
    }
}

#[test]
fn a_prefix_may_name_several_owners() {
    let claims = vec![claim("worker-10", 7), claim("worker-1", 9)];
    let queue = Queue { revision: Some(9), claims, strangers: Vec::new() };
    let inspection = inspection(State::Queue(queue), None);
    let named = |prefix| {
        let holders = inspection.claimants(prefix).into_iter();
        holders.map(|holder| holder.owner).collect::<Vec<_>>()
    };
    assert_eq!(named("worker-1"), [owner("worker-10"), owner("worker-1")]);
    assert_eq!(named("worker-1:"), [owner("worker-1")]);
    assert_eq!(named(""), []);
}
