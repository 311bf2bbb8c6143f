//! Puts and deletes, in a transaction: all changes of one get one revision.

use std::sync::Arc;

use etcd_client::proto::{
    PbDeleteRequest, PbDeleteResponse, PbKeyValue, PbPutRequest, PbPutResponse, PbResponseHeader,
};

use super::read::View;
use super::span::Span;
use super::{Change, State};

/// A transaction in progress. It can't fail: requests were validated before (see [`super::check`]).
pub(in super::super) struct Write<'a> {
    pub(super) state: &'a mut State,
    changes: Vec<Change>,
}

impl<'a> Write<'a> {
    pub(in super::super) fn begin(state: &'a mut State) -> Self {
        Self { state, changes: Vec::new() }
    }

    /// Ends the transaction: its changes are stored under the next revision, if there are any.
    pub(in super::super) fn commit(self) {
        if !self.changes.is_empty() {
            self.state.store.commit(self.changes);
        }
    }

    /// Returns the view of reads within the transaction, which includes its own writes.
    pub(super) fn view(&self) -> View {
        View { newest: self.state.store.revision, last: self.revision() }
    }

    pub(super) fn header(&self) -> PbResponseHeader {
        PbResponseHeader { revision: self.revision(), ..PbResponseHeader::default() }
    }

    pub(in super::super) fn put(&mut self, request: PbPutRequest) -> PbPutResponse {
        let former = self.state.store.latest(&request.key).cloned();
        let kept = former.as_deref();
        let lease = if request.ignore_lease { kept.map_or(0, |kv| kv.lease) } else { request.lease };
        let value = match kept {
            Some(kv) if request.ignore_value => kv.value.clone(),
            _ => request.value,
        };
        let revision = self.next();
        let kv = Arc::new(PbKeyValue {
            create_revision: kept.map_or(revision, |kv| kv.create_revision),
            mod_revision: revision,
            version: kept.map_or(1, |kv| kv.version + 1),
            key: request.key,
            value,
            lease,
        });
        self.state.lessor.move_key(&kv.key, kept.map_or(0, |kv| kv.lease), lease);
        self.record(Change { kv, former: former.clone(), is_delete: false });
        let prev_kv = former.filter(|_| request.prev_kv).map(|kv| (*kv).clone());
        PbPutResponse { header: Some(self.header()), prev_kv }
    }

    pub(in super::super) fn delete_range(&mut self, request: &PbDeleteRequest) -> PbDeleteResponse {
        let span = Span::new(&request.key, &request.range_end);
        let former: Vec<_> = self.state.store.keys_at(&span, i64::MAX).cloned().collect();
        let deleted = i64::try_from(former.len()).unwrap_or(i64::MAX);
        let prev_kvs = match request.prev_kv {
            true => former.iter().map(|kv| (**kv).clone()).collect(),
            false => Vec::new(),
        };
        former.into_iter().for_each(|kv| self.delete(kv));
        PbDeleteResponse { header: Some(self.header()), deleted, prev_kvs }
    }

    /// Deletes one key, if it is there.
    pub(in super::super) fn delete_key(&mut self, key: &[u8]) {
        if let Some(former) = self.state.store.latest(key).cloned() {
            self.delete(former);
        }
    }

    fn delete(&mut self, former: Arc<PbKeyValue>) {
        self.state.lessor.move_key(&former.key, former.lease, 0);
        let kv = PbKeyValue { key: former.key.clone(), mod_revision: self.next(), ..PbKeyValue::default() };
        self.record(Change { kv: Arc::new(kv), former: Some(former), is_delete: true });
    }

    fn record(&mut self, change: Change) {
        let kv = (!change.is_delete).then(|| Arc::clone(&change.kv));
        let keys = &mut self.state.store.keys;
        match keys.get_mut(&change.kv.key) {
            Some(history) => history.push(change.kv.mod_revision, kv),
            None => keys.entry(change.kv.key.clone()).or_default().push(change.kv.mod_revision, kv),
        }
        self.changes.push(change);
    }

    fn revision(&self) -> i64 {
        self.state.store.revision + i64::from(!self.changes.is_empty())
    }

    /// Returns the revision of this transaction's changes.
    fn next(&self) -> i64 {
        self.state.store.revision + 1
    }
}
