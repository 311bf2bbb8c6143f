//! The conditions of a transaction. Source: etcd's `applyCompare` (server/etcdserver/apply.go).

use std::cmp::Ordering;

use etcd_client::proto::{PbCompare, PbKeyValue, PbTargetUnion};

use super::Store;
use super::span::Span;

const TARGET_VALUE: i32 = 3;

impl Store {
    /// Returns true if the condition holds for the key, or for each key of the range. An absent key has
    /// version, revisions and lease 0, and no value: a comparison of values fails.
    pub(super) fn holds(&self, compare: &PbCompare) -> bool {
        let span = Span::new(&compare.key, &compare.range_end);
        let mut found = self.keys_at(&span, i64::MAX).peekable();
        if found.peek().is_none() {
            return compare.target != TARGET_VALUE && matches(compare, &PbKeyValue::default());
        }
        found.all(|kv| matches(compare, kv))
    }
}

fn matches(compare: &PbCompare, kv: &PbKeyValue) -> bool {
    let ordering = order(compare, kv);
    match compare.result {
        0 => ordering == Ordering::Equal,
        1 => ordering == Ordering::Greater,
        2 => ordering == Ordering::Less,
        _ => ordering != Ordering::Equal,
    }
}

/// Compares the target of the key with the value in the request, which is zero if the request has a value for
/// another target.
fn order(compare: &PbCompare, kv: &PbKeyValue) -> Ordering {
    let wanted = compare.target_union.as_ref();
    match compare.target {
        0 => kv.version.cmp(&number(wanted, |union| match union {
            PbTargetUnion::Version(version) => Some(*version),
            _ => None,
        })),
        1 => kv.create_revision.cmp(&number(wanted, |union| match union {
            PbTargetUnion::CreateRevision(revision) => Some(*revision),
            _ => None,
        })),
        2 => kv.mod_revision.cmp(&number(wanted, |union| match union {
            PbTargetUnion::ModRevision(revision) => Some(*revision),
            _ => None,
        })),
        TARGET_VALUE => match wanted {
            Some(PbTargetUnion::Value(value)) => kv.value.cmp(value),
            _ => kv.value.as_slice().cmp(&[]),
        },
        _ => kv.lease.cmp(&number(wanted, |union| match union {
            PbTargetUnion::Lease(lease) => Some(*lease),
            _ => None,
        })),
    }
}

fn number(wanted: Option<&PbTargetUnion>, pick: impl Fn(&PbTargetUnion) -> Option<i64>) -> i64 {
    wanted.and_then(pick).unwrap_or_default()
}
