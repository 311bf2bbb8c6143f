//! The watches that one member keeps for its connections. Each fires once.

use std::collections::{BTreeMap, BTreeSet};

use dlock_zookeeper::wire::{EventKind, WatcherEvent};

use super::observe::Change;
use super::tree::parent;

/// The nodes that connections watch.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    data: Paths,
    child: Paths,
}

#[derive(Debug, Default)]
struct Paths(BTreeMap<String, BTreeSet<u64>>);

impl Watches {
    pub(crate) fn watch_data(&mut self, path: &str, connection: u64) {
        self.data.add(path, connection);
    }

    pub(crate) fn watch_children(&mut self, path: &str, connection: u64) {
        self.child.add(path, connection);
    }

    /// Forgets a connection that has ended.
    pub(crate) fn forget(&mut self, connection: u64) {
        for paths in [&mut self.data, &mut self.child] {
            paths.0.retain(|_, connections| {
                connections.remove(&connection);
                !connections.is_empty()
            });
        }
    }

    /// Returns the events that a change causes and their connections, in the order of the real server.
    ///
    /// Source: `DataTree.createNode`, `deleteNode`, `setData`.
    pub(crate) fn fire(&mut self, change: &Change) -> Vec<(u64, WatcherEvent)> {
        let mut events = Vec::new();
        let mut add = |kind, path: &str, connections: BTreeSet<u64>| {
            let event = WatcherEvent { kind, path: path.to_owned() };
            events.extend(connections.into_iter().map(|connection| (connection, event.clone())));
        };
        match change {
            Change::Created { path, .. } => {
                add(EventKind::Created, path, self.data.take(path));
                add(EventKind::ChildrenChanged, parent(path), self.child.take(parent(path)));
            }
            Change::Deleted { path, .. } => {
                // One event for a connection that watches both.
                let mut connections = self.data.take(path);
                connections.append(&mut self.child.take(path));
                add(EventKind::Deleted, path, connections);
                add(EventKind::ChildrenChanged, parent(path), self.child.take(parent(path)));
            }
            Change::DataSet { path, .. } => add(EventKind::DataChanged, path, self.data.take(path)),
            Change::SessionOpened { .. } | Change::SessionClosed { .. } => {}
        }
        events
    }
}

impl Paths {
    fn add(&mut self, path: &str, connection: u64) {
        self.0.entry(path.to_owned()).or_default().insert(connection);
    }

    fn take(&mut self, path: &str) -> BTreeSet<u64> {
        self.0.remove(path).unwrap_or_default()
    }
}
