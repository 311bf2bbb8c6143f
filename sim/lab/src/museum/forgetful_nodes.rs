//! B18: a bare majority of nodes without persistence. A node that restarts has forgotten its vote, and votes
//! again.
//!
//! Source: redsync issue 186.

use crate::{Options, Persistence};

/// Turns off the persistence of the nodes, regardless of the schedule.
pub(super) fn forget(options: &mut Options) {
    options.redis.persistence = Persistence::None;
}
