//! The same exchange over other simulators, without our stack: the same numbers of clients, servers, rounds
//! and calls, and a lock table behind each server. Their messages are plain structs or short frames: no Redis
//! client, no RESP, no Lua, no audit. So every shortcut favours them.

pub(crate) mod madsim_rpc;
pub(crate) mod turmoil_tcp;

use std::collections::BTreeMap;

/// The lock table of a peer's server. It does the work of our scripts in plain Rust.
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

    /// Releases `key` if `owner` holds it. Returns 1 if it did, else 0.
    pub(crate) fn release(&mut self, key: u64, owner: u64) -> u64 {
        if self.owners.get(&key) != Some(&owner) {
            return 0;
        }
        self.owners.remove(&key);
        1
    }
}
