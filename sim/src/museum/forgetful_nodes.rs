//! B18: a bare majority of nodes that keep nothing on a disk. A node that restarts has forgotten its vote,
//! and votes again.
//!
//! Source: redsync issue 186.

use crate::lab::{Options, Persistence};

/// Has the nodes keep nothing, whatever the schedule says.
pub(super) fn forget(options: &mut Options) {
    options.redis.persistence = Persistence::None;
}
