//! The lock servers of which a majority decides, and the number of them that stored a lock.

use history::{Event, Kind, Name};

use crate::sim::Report;

/// The lock servers of a run, if there are several that vote.
pub(super) struct Nodes<'a> {
    servers: &'a [Name],
    events: &'a [Event],
}

impl<'a> Nodes<'a> {
    /// Returns the servers of the run; `None` if one server or one cluster decides alone.
    pub(super) fn of(report: &'a Report) -> Option<Self> {
        let Report { servers, events, .. } = report;
        (servers.len() > 1).then_some(Self { servers, events })
    }

    /// Returns the number of servers.
    pub(super) fn count(&self) -> usize {
        self.servers.len()
    }

    /// Counts the servers that store `key` for `owner` after the first `end` events. As in the audit, the
    /// state of a server is that of its last event, even if the server died later.
    pub(super) fn storing(&self, key: &Name, owner: &Name, end: usize) -> usize {
        let stores = |server: &&Name| {
            let own = self.events[..end].iter().rev().filter(|event| event.process == **server);
            own.into_iter().find_map(|event| stored(&event.kind, key)) == Some(Some(owner))
        };
        self.servers.iter().filter(stores).count()
    }
}

/// Returns the owner for whom the server stores `key` after the event; `None` if the event does not tell.
fn stored<'a>(kind: &'a Kind, key: &Name) -> Option<Option<&'a Name>> {
    match kind {
        Kind::KeyGranted { key: of, owner, .. } | Kind::KeyExtended { key: of, owner, .. } if of == key => {
            Some(Some(owner))
        }
        Kind::KeyDeleted { key: of, .. } | Kind::KeyExpired { key: of, .. } if of == key => Some(None),
        _ => None,
    }
}
