//! A critical section of code under test, for the verdict `overlap`.

use dlock::{id_hash, owner_prefix};
use sim_host::{Leave, Section};

use crate::world::World;
use crate::world::process::ProcessId;

/// The end of a section: dropping it leaves the section.
struct Inside {
    lock: String,
    owner: String,
    token: u64,
}

/// Enters the section that the lock called `lock` guards, in the present life of the process `id`. `token` is
/// the grant's fencing token, 0 if the lock has none.
pub(super) fn enter(world: &World, id: ProcessId, lock: &str, token: u64) -> Section {
    world.note_section(lock);
    let process = world.process(id);
    let owner = format!("{}:{:08x}", process.name(), process.life());
    let inside = Inside { lock: id_hash(lock), owner: owner_prefix(&owner).to_owned(), token };
    tracing::info!(
        target: "worker",
        event = "section_entered",
        resource_id_hash = inside.lock,
        owner_token_prefix = inside.owner,
        fencing_token = inside.token,
    );
    Section::entered(inside)
}

impl Leave for Inside {}

impl Drop for Inside {
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
