//! The requests that were sent for one acquisition, with their session.

use std::sync::Arc;

use super::place::Ahead;
use super::session::Session;

/// A claim's place in the queue, as far as it is known, and the requests that may still create one.
#[derive(Default)]
pub(super) struct Trail {
    stake: Option<Stake>,
}

/// The state of a claim at the cluster under one session. It ends with that session.
struct Stake {
    session: Arc<Session>,
    /// Puts that were sent and whose answers are missing. Each may be executed at any time.
    unanswered: u32,
    /// The create revision of the claim's key.
    position: Option<i64>,
    /// The claims ahead at the last look.
    ahead: Option<Ahead>,
    /// True once the queue was found to have room for the key.
    is_admitted: bool,
}

impl Trail {
    pub(super) fn session(&self) -> Option<&Arc<Session>> {
        self.stake.as_ref().map(|stake| &stake.session)
    }

    pub(super) fn position(&self) -> Option<i64> {
        self.stake.as_ref().and_then(|stake| stake.position)
    }

    pub(super) fn ahead(&self) -> Option<&Ahead> {
        self.stake.as_ref().and_then(|stake| stake.ahead.as_ref())
    }

    /// Returns true if every put was answered.
    pub(super) fn is_answered(&self) -> bool {
        self.stake.as_ref().is_none_or(|stake| stake.unanswered == 0)
    }

    /// Notes a put that is about to be sent.
    pub(super) fn sending(&mut self, session: &Arc<Session>) {
        let new = || Stake {
            session: Arc::clone(session),
            unanswered: 0,
            position: None,
            ahead: None,
            is_admitted: false,
        };
        self.stake.get_or_insert_with(new).unanswered += 1;
    }

    /// Notes that the put that was sent last was answered.
    pub(super) fn answered(&mut self) {
        if let Some(stake) = &mut self.stake {
            stake.unanswered = stake.unanswered.saturating_sub(1);
        }
    }

    /// Notes the position of the key.
    pub(super) fn placed(&mut self, position: i64) {
        if let Some(stake) = &mut self.stake {
            stake.position = Some(position);
        }
    }

    /// Notes the claims ahead.
    pub(super) fn follows(&mut self, ahead: Ahead) {
        if let Some(stake) = &mut self.stake {
            stake.ahead = Some(ahead);
        }
    }

    /// Returns true if the queue was found to have room for the key.
    pub(super) fn is_admitted(&self) -> bool {
        self.stake.as_ref().is_some_and(|stake| stake.is_admitted)
    }

    /// Notes that the queue has room for the key.
    pub(super) fn admitted(&mut self) {
        if let Some(stake) = &mut self.stake {
            stake.is_admitted = true;
        }
    }

    /// Notes that the key is gone. A put that was not answered may still bring it back.
    pub(super) fn key_gone(&mut self) {
        if let Some(stake) = &mut self.stake {
            stake.position = None;
            stake.ahead = None;
            stake.is_admitted = false;
        }
    }

    /// Notes that nothing is left of the claim, and nothing can be created for it.
    pub(super) fn clear(&mut self) {
        self.stake = None;
    }

    /// Returns whether the cluster has a key of the claim, or may get one.
    pub(super) fn is_open(&self) -> bool {
        self.stake.as_ref().is_some_and(|stake| stake.unanswered > 0 || stake.position.is_some())
    }
}
