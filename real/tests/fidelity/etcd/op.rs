//! Requests to etcd. Revisions count from the one at which the script begins, leases are numbered.

use etcd_client::{
    Compare, CompareOp, DeleteOptions, GetOptions, PutOptions, SortOrder, SortTarget, Txn, TxnOp,
    WatchFilterType, WatchOptions,
};

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
    pub(super) key: &'static str,
    pub(super) value: &'static str,
    pub(super) lease: Option<i64>,
    pub(super) prev_key: bool,
    pub(super) ignore_value: bool,
    pub(super) ignore_lease: bool,
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
    pub(super) key: &'static str,
    pub(super) span: Span,
    pub(super) revision: Option<i64>,
    pub(super) limit: i64,
    pub(super) sort: Option<(SortTarget, SortOrder)>,
    pub(super) serializable: bool,
    pub(super) keys_only: bool,
    pub(super) count_only: bool,
    pub(super) min_mod: Option<i64>,
    pub(super) max_create: Option<i64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Delete {
    pub(super) key: &'static str,
    pub(super) span: Span,
    pub(super) prev_key: bool,
}

/// A comparison of a transaction. Positive revisions count from the script's beginning.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(super) key: &'static str,
    pub(super) span: Span,
    pub(super) how: CompareOp,
    pub(super) what: Target,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
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
    pub(super) key: &'static str,
    pub(super) span: Span,
    pub(super) start: Option<i64>,
    pub(super) prev_key: bool,
    pub(super) filter: Option<WatchFilterType>,
    pub(super) id: Option<i64>,
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
