//! The reach of a fault: the steps of a run that it may change.

use super::link::Link;

/// The steps of a run that a fault touches. It changes other steps, and their order, only through these. An
/// exhaustive search leaves out placements between two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All steps: true of every fault, and leaves nothing out.
    Everything,
    /// The turns of the process. Members of a cluster share their turns.
    Turns(String),
    /// The turns of the process, and all that happens on its connections.
    Life(String),
    /// The turns of all servers.
    Servers,
    /// The bytes sent on these links.
    Links(Vec<Link>),
    /// All that happens on the connections of the two processes.
    Connections(Link),
    /// The readings of the process's wall clock.
    WallClock(String),
}

impl Reach {
    /// Returns the reach of a fault of the bytes on the link, in `both` directions or in its own.
    pub fn link(link: &Link, both: bool) -> Self {
        let back = both.then(|| Link::new(&link.to, &link.from));
        Self::Links([link.clone()].into_iter().chain(back).collect())
    }
}
