//! Ranges. Source: etcd's `applyV3.Range` (server/etcdserver/apply.go).

use std::sync::Arc;

use etcd_client::proto::{PbKeyValue, PbRangeRequest, PbRangeResponse, PbResponseHeader};

use super::Store;
use super::span::Span;
use crate::servers::etcd::error::Refusal;

const ORDER_NONE: i32 = 0;
const ORDER_DESCEND: i32 = 2;
const TARGET_KEY: i32 = 0;

/// The view of a read. `newest` is the revision of the reader; `last` is the last visible revision if the
/// request names none (a transaction sees its own writes, which have the next revision).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct View {
    pub(in super::super) newest: i64,
    pub(in super::super) last: i64,
}

impl View {
    /// Creates the view of a member that has applied `revision`.
    pub(in super::super) const fn at(revision: i64) -> Self {
        Self { newest: revision, last: revision }
    }
}

impl Store {
    /// Checks that a request for `revision` (0: the newest) can be answered.
    pub(in super::super) fn check_revision(&self, revision: i64, newest: i64) -> Result<(), Refusal> {
        match revision {
            r if r > newest => Err(Refusal::FutureRevision),
            r if r > 0 && r < self.compacted.min(newest) => Err(Refusal::Compacted),
            _ => Ok(()),
        }
    }

    /// Does the same as [`Store::check_revision`] within a transaction, where only 0 is the newest revision:
    /// a negative one counts as compacted (`checkRequestRange` in server/etcdserver/apply.go).
    pub(super) fn check_revision_in_txn(&self, revision: i64) -> Result<(), Refusal> {
        match revision {
            r if r > self.revision => Err(Refusal::FutureRevision),
            r if r != 0 && r < self.compacted => Err(Refusal::Compacted),
            _ => Ok(()),
        }
    }

    /// Returns the newest version of one key.
    pub(in super::super) fn latest(&self, key: &[u8]) -> Option<&Arc<PbKeyValue>> {
        self.keys.get(key)?.0.last()?.kv.as_ref()
    }

    /// Returns the keys of a span at a revision, in the order of their names.
    pub(in super::super) fn keys_at<'a>(
        &'a self,
        span: &'a Span<'_>,
        revision: i64,
    ) -> impl Iterator<Item = &'a Arc<PbKeyValue>> {
        let keys = (!span.is_empty()).then(|| self.keys.range::<[u8], _>(span.bounds()));
        keys.into_iter().flatten().filter_map(move |(_, history)| history.at(revision))
    }

    /// Answers a range.
    pub(in super::super) fn range(
        &self,
        request: &PbRangeRequest,
        view: View,
    ) -> Result<PbRangeResponse, Refusal> {
        self.check_revision(request.revision, view.newest)?;
        let revision = if request.revision > 0 { request.revision } else { view.last };
        let header = PbResponseHeader { revision: view.last, ..PbResponseHeader::default() };
        let span = Span::new(&request.key, &request.range_end);
        let mut found: Vec<&Arc<PbKeyValue>> = self.keys_at(&span, revision).collect();
        let count = i64::try_from(found.len()).unwrap_or(i64::MAX);
        if request.count_only {
            return Ok(PbRangeResponse { header: Some(header), count, ..PbRangeResponse::default() });
        }
        let more = choose(&mut found, request);
        let kvs = found.into_iter().map(|kv| copy(kv, request.keys_only)).collect();
        Ok(PbRangeResponse { header: Some(header), kvs, more, count })
    }
}

/// Filters, sorts and truncates. Returns true if the limit left something out.
fn choose(found: &mut Vec<&Arc<PbKeyValue>>, request: &PbRangeRequest) -> bool {
    let limit = usize::try_from(request.limit).unwrap_or(0);
    // Without an order and filters etcd reads no more than one beyond the limit, and sorts only those.
    if limit > 0 && request.sort_order == ORDER_NONE && !has_filters(request) {
        found.truncate(limit.saturating_add(1));
    }
    found.retain(|kv| is_wanted(kv, request));
    sort(found, request);
    let more = limit > 0 && found.len() > limit;
    if more {
        found.truncate(limit);
    }
    more
}

fn has_filters(request: &PbRangeRequest) -> bool {
    [
        request.min_mod_revision,
        request.max_mod_revision,
        request.min_create_revision,
        request.max_create_revision,
    ]
    .iter()
    .any(|&bound| bound != 0)
}

fn is_wanted(kv: &PbKeyValue, request: &PbRangeRequest) -> bool {
    let within = |value, least, most| (least == 0 || value >= least) && (most == 0 || value <= most);
    within(kv.mod_revision, request.min_mod_revision, request.max_mod_revision)
        && within(kv.create_revision, request.min_create_revision, request.max_create_revision)
}

/// Sorts by the target. Without an order the keys come by name, or ascending by another target.
fn sort(found: &mut [&Arc<PbKeyValue>], request: &PbRangeRequest) {
    match request.sort_target {
        TARGET_KEY => {}
        1 => found.sort_by_key(|kv| kv.version),
        2 => found.sort_by_key(|kv| kv.create_revision),
        3 => found.sort_by_key(|kv| kv.mod_revision),
        _ => found.sort_by(|a, b| a.value.cmp(&b.value)),
    }
    if request.sort_order == ORDER_DESCEND {
        found.reverse();
    }
}

fn copy(kv: &PbKeyValue, without_value: bool) -> PbKeyValue {
    if !without_value {
        return kv.clone();
    }
    PbKeyValue { key: kv.key.clone(), value: Vec::new(), ..*kv }
}
