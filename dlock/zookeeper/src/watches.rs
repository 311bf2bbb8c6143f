//! The watches of a connection. A watch fires once.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::wire::{EventKind, Op, WatcherEvent};

/// A watch: completes once, when the watched node changes or the connection is lost. Dropping it is free.
#[derive(Debug)]
pub struct Watch(oneshot::Receiver<Fired>);

/// Why a [`Watch`] completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fired {
    /// The node was created.
    Created,
    /// The node was deleted.
    Deleted,
    /// The node's data was set.
    DataChanged,
    /// A child of the node was created or deleted.
    ChildrenChanged,
    /// The connection was lost, and the watch with it: any change may have been missed. Read again.
    Disconnected,
}

impl Future for Watch {
    type Output = Fired;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Fired> {
        Pin::new(&mut self.0).poll(cx).map(|fired| fired.unwrap_or(Fired::Disconnected))
    }
}

/// The watches that the server keeps for one connection.
///
/// A server keeps one watch for all that are set on a node over one connection, and fires once. So a single
/// event completes them all here.
#[derive(Default)]
pub(super) struct Watches {
    /// Set by exists and getData.
    data: BTreeMap<String, Vec<oneshot::Sender<Fired>>>,
    /// Set by getChildren.
    child: BTreeMap<String, Vec<oneshot::Sender<Fired>>>,
}

impl Watches {
    /// Records a watch that the reply to `op` on `path` confirms.
    pub(super) fn add(&mut self, op: Op, path: &str) -> Watch {
        let (fire, watch) = oneshot::channel();
        let map =
            if matches!(op, Op::Children | Op::ChildrenStat) { &mut self.child } else { &mut self.data };
        let waiting = map.entry(path.to_owned()).or_default();
        waiting.retain(|waiter| !waiter.is_closed());
        waiting.push(fire);
        Watch(watch)
    }

    /// Completes the watches that the event fires.
    pub(super) fn fire(&mut self, event: &WatcherEvent) {
        let (fired, data, child) = match event.kind {
            EventKind::Created => (Fired::Created, true, false),
            EventKind::Deleted => (Fired::Deleted, true, true),
            EventKind::DataChanged => (Fired::DataChanged, true, false),
            EventKind::ChildrenChanged => (Fired::ChildrenChanged, false, true),
        };
        for (map, concerned) in [(&mut self.data, data), (&mut self.child, child)] {
            let waiting = if concerned { map.remove(&event.path) } else { None };
            for waiter in waiting.into_iter().flatten() {
                // The watch may have been dropped.
                let _ = waiter.send(fired);
            }
        }
    }
}
