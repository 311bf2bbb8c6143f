//! A member of an ensemble: its role, and the state that it shows while it is out of touch.

use super::observe::Change;
use super::tree::Tree;
use super::watch::Watches;

#[derive(Debug, Default)]
pub(crate) struct Member {
    pub(crate) role: Role,
    /// The time at which it got out of touch, on its own clock, in nanoseconds.
    pub(super) out_of_touch_since: Option<u64>,
    /// The state that it shows while it is out of touch.
    pub(crate) behind: Option<Behind>,
    pub(crate) watches: Watches,
    /// The number of its next session; 0: none yet.
    pub(crate) next_session: i64,
    /// The number of starts of its process.
    pub(super) life: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// Its process does not run.
    #[default]
    Down,
    Looking,
    Following {
        epoch: i64,
    },
    Leading {
        epoch: i64,
    },
}

/// The state in which a member got out of touch, and the changes that it has missed since.
#[derive(Debug)]
pub(crate) struct Behind {
    pub(crate) tree: Tree,
    pub(super) zxid: i64,
    pub(crate) missed: Vec<Change>,
}

impl Member {
    /// Returns the latest transaction that the member knows of; `latest` is the ensemble's.
    pub(crate) fn zxid(&self, latest: i64) -> i64 {
        self.behind.as_ref().map_or(latest, |behind| behind.zxid)
    }

    pub(crate) fn is_serving(&self) -> bool {
        matches!(self.role, Role::Following { .. } | Role::Leading { .. })
    }

    pub(crate) fn is_in_touch(&self) -> bool {
        self.is_serving() && self.out_of_touch_since.is_none()
    }
}
