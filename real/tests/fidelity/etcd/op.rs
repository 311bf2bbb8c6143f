//! Draws requests to etcd. Revisions count from the one at which the script begins, leases are numbered.

use etcd_client::{
    Compare, CompareOp, DeleteOptions, GetOptions, PutOptions, SortOrder, SortTarget, Txn, TxnOp,
    WatchFilterType, WatchOptions,
};
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::{Just, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::Strategy;

/// A TTL that one wait outlasts, in seconds; the others outlast all waits.
pub(crate) const SHORT_TTL: i64 = 4;

/// One step of a script.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Put(Put),
    Range(Range),
    Delete(Delete),
    Txn {
        when: Vec<Condition>,
        then: Vec<Action>,
        or_else: Vec<Action>,
    },
    Compact(i64),
    Grant {
        lease: i64,
        ttl: i64,
    },
    Revoke(i64),
    KeepAlive(i64),
    TimeToLive {
        lease: i64,
        keys: bool,
    },
    Leases,
    Watch(Watch),
    Cancel(i64),
    Progress,
    Lock {
        name: &'static str,
        lease: i64,
    },
    /// Releases the lock that was granted first of those still held.
    Unlock,
    Wait,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Put {
    key: &'static str,
    value: &'static str,
    lease: Option<i64>,
    prev_key: bool,
    ignore_value: bool,
    ignore_lease: bool,
}

/// The keys of a request, from its first key on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Span {
    One,
    Prefix,
    FromKey,
    To(&'static str),
}

#[derive(Clone, Debug)]
pub(crate) struct Range {
    key: &'static str,
    span: Span,
    revision: Option<i64>,
    limit: i64,
    sort: Option<(SortTarget, SortOrder)>,
    serializable: bool,
    keys_only: bool,
    count_only: bool,
    min_mod: Option<i64>,
    max_create: Option<i64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Delete {
    key: &'static str,
    span: Span,
    prev_key: bool,
}

/// A comparison of a transaction. Positive revisions count from the script's beginning.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    key: &'static str,
    span: Span,
    how: CompareOp,
    what: Target,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Version(i64),
    Create(i64),
    Mod(i64),
    Value(&'static str),
    Lease(i64),
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Put(Put),
    Range(Range),
    Delete(Delete),
    Txn(Vec<Condition>, Vec<Action>, Vec<Action>),
}

#[derive(Clone, Debug)]
pub(crate) struct Watch {
    key: &'static str,
    span: Span,
    start: Option<i64>,
    prev_key: bool,
    filter: Option<WatchFilterType>,
    id: Option<i64>,
}

/// The revision and lease id from which a script's numbers count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) revision: i64,
    pub(crate) lease: i64,
}

impl Origin {
    fn revision(self, revision: i64) -> i64 {
        if revision > 0 { self.revision + revision } else { revision }
    }

    pub(crate) fn lease(self, lease: i64) -> i64 {
        if lease > 0 { self.lease + lease } else { lease }
    }
}

impl Put {
    pub(crate) fn parts(&self, origin: Origin) -> (&'static str, &'static str, PutOptions) {
        let mut options = PutOptions::new();
        if let Some(lease) = self.lease {
            options = options.with_lease(origin.lease(lease));
        }
        if self.prev_key {
            options = options.with_prev_key();
        }
        if self.ignore_value {
            options = options.with_ignore_value();
        }
        if self.ignore_lease {
            options = options.with_ignore_lease();
        }
        (self.key, self.value, options)
    }
}

impl Range {
    pub(crate) fn parts(&self, origin: Origin) -> (&'static str, GetOptions) {
        let mut options = GetOptions::new().with_limit(self.limit);
        options = match self.span {
            Span::One => options,
            Span::Prefix => options.with_prefix(),
            Span::FromKey => options.with_from_key(),
            Span::To(end) => options.with_range(end),
        };
        if let Some((target, order)) = self.sort {
            options = options.with_sort(target, order);
        }
        if let Some(revision) = self.revision {
            options = options.with_revision(origin.revision(revision));
        }
        if let Some(revision) = self.min_mod {
            options = options.with_min_mod_revision(origin.revision(revision));
        }
        if let Some(revision) = self.max_create {
            options = options.with_max_create_revision(origin.revision(revision));
        }
        let when = |is_set: bool, with: fn(GetOptions) -> GetOptions, options| {
            if is_set { with(options) } else { options }
        };
        options = when(self.serializable, GetOptions::with_serializable, options);
        options = when(self.keys_only, GetOptions::with_keys_only, options);
        (self.key, when(self.count_only, GetOptions::with_count_only, options))
    }
}

impl Delete {
    pub(crate) fn parts(&self) -> (&'static str, DeleteOptions) {
        let options = DeleteOptions::new();
        let options = match self.span {
            Span::One => options,
            Span::Prefix => options.with_prefix(),
            Span::FromKey => options.with_from_key(),
            Span::To(end) => options.with_range(end),
        };
        (self.key, if self.prev_key { options.with_prev_key() } else { options })
    }
}

impl Watch {
    pub(crate) fn parts(&self, origin: Origin) -> (&'static str, WatchOptions) {
        let mut options = WatchOptions::new();
        options = match self.span {
            Span::One => options,
            Span::Prefix => options.with_prefix(),
            Span::FromKey => options.with_from_key(),
            Span::To(end) => options.with_range(end),
        };
        if let Some(start) = self.start {
            options = options.with_start_revision(origin.revision(start));
        }
        if self.prev_key {
            options = options.with_prev_key();
        }
        if let Some(filter) = self.filter {
            options = options.with_filters([filter]);
        }
        (self.key, if let Some(id) = self.id { options.with_watch_id(id) } else { options })
    }
}

/// Builds a transaction.
pub(crate) fn txn(when: &[Condition], then: &[Action], or_else: &[Action], origin: Origin) -> Txn {
    let actions = |actions: &[Action]| actions.iter().map(|action| action.op(origin)).collect::<Vec<_>>();
    Txn::new()
        .when(when.iter().map(|condition| condition.compare(origin)).collect::<Vec<_>>())
        .and_then(actions(then))
        .or_else(actions(or_else))
}

impl Action {
    fn op(&self, origin: Origin) -> TxnOp {
        match self {
            Self::Put(put) => {
                let (key, value, options) = put.parts(origin);
                TxnOp::put(key, value, Some(options))
            }
            Self::Range(range) => {
                let (key, options) = range.parts(origin);
                TxnOp::get(key, Some(options))
            }
            Self::Delete(delete) => {
                let (key, options) = delete.parts();
                TxnOp::delete(key, Some(options))
            }
            Self::Txn(when, then, or_else) => TxnOp::txn(txn(when, then, or_else, origin)),
        }
    }
}

impl Condition {
    fn compare(&self, origin: Origin) -> Compare {
        let (key, how) = (self.key, self.how);
        let compare = match self.what {
            Target::Version(version) => Compare::version(key, how, version),
            Target::Create(revision) => Compare::create_revision(key, how, origin.revision(revision)),
            Target::Mod(revision) => Compare::mod_revision(key, how, origin.revision(revision)),
            Target::Value(value) => Compare::value(key, how, value),
            Target::Lease(lease) => Compare::lease(key, how, origin.lease(lease)),
        };
        match self.span {
            Span::One => compare,
            Span::Prefix | Span::FromKey => compare.with_prefix(),
            Span::To(end) => compare.with_range(end),
        }
    }
}

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

fn watches() -> impl Strategy<Value = Watch> {
    let filters = select(&[WatchFilterType::NoPut, WatchFilterType::NoDelete][..]);
    let ids = weighted(0.2, select(&[1_i64, 7][..]));
    (keys(), spans(), weighted(0.4, 0..5_i64), any::<bool>(), weighted(0.2, filters), ids)
        .prop_map(|(key, span, start, prev_key, filter, id)| Watch { key, span, start, prev_key, filter, id })
}
