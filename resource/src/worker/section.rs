//! The events of the critical section.

use dlock::{FencingToken, LockKey, Owner};
use history::emit;

/// The critical section, from the grant to the release. If its future is dropped, the section ends with the
/// outcome `cancelled`.
pub(crate) struct Section {
    key: LockKey,
    owner: Owner,
    token: FencingToken,
    outcome: &'static str,
}

impl Section {
    /// Enters it with a grant.
    pub(crate) fn enter(key: &LockKey, owner: &Owner, token: FencingToken) -> Self {
        let section = Self { key: key.clone(), owner: owner.clone(), token, outcome: "cancelled" };
        emit!(SectionEntered { key: key.id_hash(), owner: owner.prefix(), token: token.as_u64() });
        section
    }

    /// Ends it with the outcome of an ending.
    pub(crate) fn leave(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        emit!(SectionLeft {
            key: self.key.id_hash(),
            owner: self.owner.prefix(),
            token: self.token.as_u64(),
            outcome: self.outcome,
        });
    }
}
