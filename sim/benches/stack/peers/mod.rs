//! The same exchange without our stack: as many clients, servers, rounds and calls, a lock table behind each
//! server, over the simulators that others use. Their messages are plain structs or short frames: no Redis
//! client, no RESP, no Lua, no audit, so every shortcut is theirs.

pub(crate) mod madsim_rpc;
pub(crate) mod turmoil_tcp;

use std::collections::BTreeMap;

/// The lock table of a peer's server: what the scripts do, in a line of Rust each.
#[derive(Default)]
pub(crate) struct Table {
    owners: BTreeMap<u64, u64>,
    fence: u64,
}

impl Table {
    /// Acquires `key` for `owner` and returns the fencing token, 0 if the lock is held.
    pub(crate) fn acquire(&mut self, key: u64, owner: u64) -> u64 {
        if self.owners.contains_key(&key) {
            return 0;
        }
        self.owners.insert(key, owner);
        self.fence += 1;
        self.fence
    }

    /// Releases `key` if `owner` holds it; 1 if so.
    pub(crate) fn release(&mut self, key: u64, owner: u64) -> u64 {
        if self.owners.get(&key) != Some(&owner) {
            return 0;
        }
        self.owners.remove(&key);
        1
    }
}
