//! Draws requests to etcd.

use etcd_client::{CompareOp, SortOrder, SortTarget, WatchFilterType};
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::{Just, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::Strategy;

use super::op::{Action, Condition, Delete, Op, Put, Range, SHORT_TTL, Span, Target, Watch};

/// Draws the first steps of a script, so that cases that need several steps occur in every run.
pub(crate) fn beginnings() -> impl Strategy<Value = Vec<Op>> {
    let grants = [Op::Grant { lease: 1, ttl: 100 }, Op::Grant { lease: 2, ttl: 200 }];
    let put = |value| Op::Put(Put { key: "a", value, ..Put::default() });
    let watch = Watch { key: "a", span: Span::One, start: Some(1), prev_key: true, filter: None, id: None };
    let numbered = |start| Op::Watch(Watch { start, id: Some(7), ..watch.clone() });
    let again = [numbered(Some(1)), numbered(None), Op::Cancel(7), numbered(None), put("2")];
    let compaction = vec![put("1"), put("2"), put("1"), Op::Compact(2), Op::Watch(watch.clone())];
    let twice = [&compaction[..4], &again].concat();
    let locks = [1, 2].map(|lease| Op::Lock { name: "lock", lease });
    let queue = [&grants[..], &locks, &[Op::Unlock]].concat();
    prop_oneof![
        4 => Just(Vec::new()),
        4 => Just(grants.to_vec()),
        3 => select(vec![compaction, twice, queue]),
    ]
}

/// Draws any step but a wait.
pub(crate) fn ops() -> impl Strategy<Value = Op> {
    let grant = (leases(), select(&[SHORT_TTL, 100, 100, 200, 9_000_000_001][..]));
    let or_else = vec(actions(1), 0..3);
    prop_oneof![
        10 => puts().prop_map(Op::Put),
        8 => ranges().prop_map(Op::Range),
        3 => deletes().prop_map(Op::Delete),
        8 => (vec(conditions(), 0..3), vec(actions(1), 0..3), or_else)
            .prop_map(|(when, then, or_else)| Op::Txn { when, then, or_else }),
        4 => batches(),
        1 => crowded(),
        1 => (-1..7_i64).prop_map(Op::Compact),
        4 => grant.prop_map(|(lease, ttl)| Op::Grant { lease, ttl }),
        1 => leases().prop_map(Op::Revoke),
        2 => leases().prop_map(Op::KeepAlive),
        2 => (leases(), any::<bool>()).prop_map(|(lease, keys)| Op::TimeToLive { lease, keys }),
        1 => Just(Op::Leases),
        4 => watches().prop_map(Op::Watch),
        1 => select(&[0, 1, 7][..]).prop_map(Op::Cancel),
        1 => Just(Op::Progress),
        3 => (select(&["lock", "other"][..]), leases()).prop_map(|(name, lease)| Op::Lock { name, lease }),
        2 => Just(Op::Unlock),
    ]
}

fn leases() -> impl Strategy<Value = i64> {
    select(&[1, 1, 2, 2, 3][..])
}

fn keys() -> impl Strategy<Value = &'static str> {
    select(&["a", "ab", "b", "c", ""][..])
}

fn spans() -> impl Strategy<Value = Span> {
    prop_oneof![4 => Just(Span::One), 2 => Just(Span::Prefix), 1 => Just(Span::FromKey),
        1 => select(&["b", "c", "a"][..]).prop_map(Span::To)]
}

fn puts() -> impl Strategy<Value = Put> {
    let flags = (any::<bool>(), weighted(0.1, Just(())), weighted(0.1, Just(())));
    (keys(), select(&["", "1", "2"][..]), weighted(0.3, leases()), flags).prop_map(
        |(key, value, lease, (prev_key, ignore_value, ignore_lease))| Put {
            key,
            value: if ignore_value.is_some() && prev_key { "" } else { value },
            lease,
            prev_key,
            ignore_value: ignore_value.is_some(),
            ignore_lease: ignore_lease.is_some(),
        },
    )
}

fn ranges() -> impl Strategy<Value = Range> {
    use SortTarget::{Create, Key, Mod, Value, Version};
    let targets = select(&[Key, Version, Create, Mod, Value][..]);
    let sort = (targets, select(&[SortOrder::None, SortOrder::Ascend, SortOrder::Descend][..]));
    let flags = (any::<bool>(), weighted(0.2, Just(())), weighted(0.2, Just(())));
    let limits = (weighted(0.2, 0..6_i64), weighted(0.2, 0..6_i64));
    (keys(), spans(), weighted(0.3, -2..7_i64), select(&[0, 0, 1, 2][..]), of(sort), flags, limits).prop_map(
        |(key, span, revision, limit, sort, (serializable, keys_only, count_only), limits)| Range {
            key,
            span,
            revision,
            limit,
            sort,
            serializable,
            keys_only: keys_only.is_some(),
            count_only: count_only.is_some(),
            min_mod: limits.0,
            max_create: limits.1,
        },
    )
}

fn deletes() -> impl Strategy<Value = Delete> {
    (keys(), spans(), any::<bool>()).prop_map(|(key, span, prev_key)| Delete { key, span, prev_key })
}

fn conditions() -> impl Strategy<Value = Condition> {
    use CompareOp::{Equal, Greater, Less, NotEqual};
    let what = prop_oneof![
        (0..3_i64).prop_map(Target::Version),
        (0..5_i64).prop_map(Target::Create),
        (0..5_i64).prop_map(Target::Mod),
        select(&["", "1", "2"][..]).prop_map(Target::Value),
        (0..3_i64).prop_map(Target::Lease),
    ];
    (keys(), spans(), select(&[Equal, Greater, Less, NotEqual][..]), what)
        .prop_map(|(key, span, how, what)| Condition { key, span, how, what })
}

/// Draws an action of a transaction, with transactions nested `depth` deep at most.
fn actions(depth: u32) -> proptest::strategy::BoxedStrategy<Action> {
    let flat = prop_oneof![
        3 => puts().prop_map(Action::Put),
        2 => ranges().prop_map(Action::Range),
        1 => deletes().prop_map(Action::Delete),
    ];
    if depth == 0 {
        return flat.boxed();
    }
    let inner = (vec(conditions(), 0..2), vec(actions(depth - 1), 0..2), vec(actions(depth - 1), 0..2));
    let inner = inner.prop_map(|(when, then, or_else)| Action::Txn(when, then, or_else));
    prop_oneof![6 => flat, 1 => inner].boxed()
}

/// Draws a transaction of nested ones, each with conditions of its own, as the lock sends them for many
/// claims. The outer one has none, so its else branch is never taken.
fn batches() -> impl Strategy<Value = Op> {
    let branch = || vec(actions(0), 0..3);
    let claims = (vec(conditions(), 0..3), branch(), branch());
    let claims = claims.prop_map(|(when, then, or_else)| Action::Txn(when, then, or_else));
    let checked = vec(deletes().prop_map(Action::Delete), 0..3);
    (vec(claims, 1..4), checked).prop_map(|(then, or_else)| Op::Txn { when: Vec::new(), then, or_else })
}

/// Draws a transaction with about as many operations, at two levels, as etcd allows.
fn crowded() -> impl Strategy<Value = Op> {
    let delete = || Action::Delete(Delete { key: "a", span: Span::One, prev_key: false });
    (124..129_usize, 1..4_usize).prop_map(move |(outer, inner)| {
        // An else branch counts as well, and may delete a key several times.
        let nested = Action::Txn(Vec::new(), Vec::new(), vec![delete(); inner]);
        Op::Txn { when: Vec::new(), then: vec![nested; outer], or_else: Vec::new() }
    })
}

fn watches() -> impl Strategy<Value = Watch> {
    let filters = select(&[WatchFilterType::NoPut, WatchFilterType::NoDelete][..]);
    let ids = weighted(0.2, select(&[1_i64, 7][..]));
    (keys(), spans(), weighted(0.4, 0..5_i64), any::<bool>(), weighted(0.2, filters), ids)
        .prop_map(|(key, span, start, prev_key, filter, id)| Watch { key, span, start, prev_key, filter, id })
}
