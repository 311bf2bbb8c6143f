//! A critical section of code under test, for the verdict `overlap`.

use dlock::{id_hash, owner_prefix};

/// A critical section that was entered. It is left when this is dropped or its process dies.
#[derive(Debug)]
#[must_use = "a section is left when it is dropped"]
pub struct Section {
    lock: String,
    owner: String,
    token: u64,
}

impl Section {
    /// Enters the section that the lock called `lock` guards, as `owner`. `token` is the grant's fencing
    /// token, 0 if the lock has none.
    pub(super) fn enter(lock: &str, owner: &str, token: u64) -> Self {
        let section = Self { lock: id_hash(lock), owner: owner_prefix(owner).to_owned(), token };
        tracing::info!(
            target: "worker",
            event = "section_entered",
            resource_id_hash = section.lock,
            owner_token_prefix = section.owner,
            fencing_token = section.token,
        );
        section
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        tracing::info!(
            target: "worker",
            event = "section_left",
            resource_id_hash = self.lock,
            owner_token_prefix = self.owner,
            fencing_token = self.token,
        );
    }
}
