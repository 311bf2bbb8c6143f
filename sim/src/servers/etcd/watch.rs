//! Watches: each stream of a client holds several, each sees the changes of its keys in the order of
//! revisions.
//!
//! Source: etcd's `server/mvcc/watchable_store.go` and `server/etcdserver/api/v3rpc/watch.go`.

use std::collections::BTreeMap;

use etcd_client::proto::{PbEvent, PbResponseHeader, PbWatchResponse};
use tokio::sync::mpsc::UnboundedSender;
use tonic::Status;

use super::store::span::Span;
use super::store::{Change, Store};

/// The most past revisions in one response.
const BATCH_REVISIONS_MAX: i64 = 1000;

/// The id in responses that belong to no watch.
pub(super) const NO_WATCH: i64 = -1;

const EVENT_DELETE: i32 = 1;

/// The request for a watch.
#[derive(Debug)]
pub(super) struct WatchOrder {
    pub(super) span: Span<'static>,
    /// 0: from now on.
    pub(super) start_revision: i64,
    pub(super) without_puts: bool,
    pub(super) without_deletes: bool,
    pub(super) with_former: bool,
    pub(super) with_progress: bool,
    /// 0: the server chooses.
    pub(super) id: i64,
}

/// A member's view at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Its revision is the one that the member has applied.
    pub(super) header: PbResponseHeader,
    /// On the member's clock, in nanoseconds.
    pub(super) now: u64,
}

/// One client's stream of watches on one member.
#[derive(Debug)]
pub(super) struct WatchStream {
    pub(super) member: usize,
    /// The stream ends when its member has had no leader for some time.
    pub(super) needs_leader: bool,
    answers: UnboundedSender<Result<PbWatchResponse, Status>>,
    watches: BTreeMap<i64, Watch>,
    next_id: i64,
}

#[derive(Debug)]
struct Watch {
    order: WatchOrder,
    /// The first revision that was not sent yet.
    next: i64,
    /// The time of the last message, on the member's clock: the next progress notification counts from it.
    sent_at: u64,
}

impl WatchStream {
    pub(super) fn new(
        member: usize,
        needs_leader: bool,
        answers: UnboundedSender<Result<PbWatchResponse, Status>>,
    ) -> Self {
        Self { member, needs_leader, answers, watches: BTreeMap::new(), next_id: 0 }
    }

    /// Starts a watch, and sends the confirmation or the refusal.
    pub(super) fn create(&mut self, mut order: WatchOrder, store: &Store, at: &Moment) {
        let created = PbWatchResponse { created: true, ..at.answer(0) };
        let refusal = if order.span.is_empty() {
            Some("mvcc: watcher range is empty")
        } else if order.id != 0 && self.watches.contains_key(&order.id) {
            Some("mvcc: duplicate watch ID provided on the WatchStream")
        } else {
            None
        };
        if let Some(reason) = refusal {
            let cancel_reason = reason.to_owned();
            self.send(PbWatchResponse { watch_id: NO_WATCH, canceled: true, cancel_reason, ..created });
            return;
        }
        let id = if order.id == 0 { self.free_id() } else { order.id };
        order.id = id;
        self.send(PbWatchResponse { watch_id: id, ..created });
        let applied = at.header.revision;
        let next = if order.start_revision > 0 { order.start_revision } else { applied + 1 };
        let compact_revision = store.compacted().min(applied);
        if next < compact_revision {
            // etcd names no revision here.
            let blank = Moment { header: PbResponseHeader { revision: 0, ..at.header }, ..*at };
            self.send(PbWatchResponse { canceled: true, compact_revision, ..blank.answer(id) });
            // It gets no events and keeps its id until its client cancels it.
            order.with_progress = false;
            self.watches.insert(id, Watch { order, next: i64::MAX, sent_at: at.now });
            return;
        }
        self.watches.insert(id, Watch { order, next, sent_at: at.now });
        self.advance(store, at);
    }

    /// Ends a watch. There is no response if it does not exist.
    pub(super) fn cancel(&mut self, id: i64, at: &Moment) {
        if self.watches.remove(&id).is_some() {
            self.send(PbWatchResponse { canceled: true, ..at.answer(id) });
        }
    }

    /// Sends the new changes to each watch, up to the revision that the member has applied.
    pub(super) fn advance(&mut self, store: &Store, at: &Moment) {
        let applied = at.header.revision;
        for watch in self.watches.values_mut() {
            while watch.next <= applied {
                let to = applied.min(watch.next.saturating_add(BATCH_REVISIONS_MAX - 1));
                let events = watch.events(store, to);
                watch.next = to + 1;
                if !events.is_empty() {
                    watch.sent_at = at.now;
                    // It fails if the client is gone; then the stream is about to be dropped.
                    let _ = self.answers.send(Ok(PbWatchResponse { events, ..at.answer(watch.order.id) }));
                }
            }
        }
    }

    /// Answers a progress request: all changes up to the response's revision have been sent.
    pub(super) fn progress(&self, at: &Moment) {
        self.send(at.answer(NO_WATCH));
    }

    /// Sends a progress notification to each watch that wants them and got no message for `interval`.
    pub(super) fn notify_progress(&mut self, at: &Moment, interval: u64) {
        for watch in self.watches.values_mut() {
            if watch.order.with_progress && at.now.saturating_sub(watch.sent_at) >= interval {
                watch.sent_at = at.now;
                let _ = self.answers.send(Ok(at.answer(watch.order.id)));
            }
        }
    }

    /// Ends the stream with an error.
    pub(super) fn fail(self, status: Status) {
        let _ = self.answers.send(Err(status));
    }

    fn send(&self, response: PbWatchResponse) {
        let _ = self.answers.send(Ok(response));
    }

    fn free_id(&mut self) -> i64 {
        while self.watches.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        self.next_id += 1;
        self.next_id - 1
    }
}

impl Moment {
    fn answer(&self, watch_id: i64) -> PbWatchResponse {
        PbWatchResponse { header: Some(self.header), watch_id, ..PbWatchResponse::default() }
    }
}

impl Watch {
    fn events(&self, store: &Store, to: i64) -> Vec<PbEvent> {
        let changes = store.changes(self.next, to).flat_map(|(_, changes)| changes);
        changes.filter(|change| self.wants(change)).map(|change| self.event(change)).collect()
    }

    fn wants(&self, change: &Change) -> bool {
        let is_filtered = if change.is_delete { self.order.without_deletes } else { self.order.without_puts };
        !is_filtered && self.order.span.contains(&change.kv.key)
    }

    fn event(&self, change: &Change) -> PbEvent {
        PbEvent {
            r#type: if change.is_delete { EVENT_DELETE } else { 0 },
            kv: Some((*change.kv).clone()),
            prev_kv: change.former.as_ref().filter(|_| self.order.with_former).map(|kv| (**kv).clone()),
        }
    }
}
