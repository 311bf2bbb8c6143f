//! The file system of a process's machine: a tree of folders, files and links, behind an operating system's
//! cache. It outlives a crash of the process.
//!
//! A power loss takes changes that were not synced:
//!
//! - Data, by page of 4 KiB: each page that was written since the last sync of its file is kept or lost by
//!   itself, so that writes are torn and reordered. A cut (`set_len`, or an open that truncates) is kept or
//!   lost likewise. The disk writes one page whole.
//! - Names. `fsync` of a file makes the creation, the renames and the links of that file durable, as ext4
//!   does, and with them the earlier changes on which they depend; `fdatasync` only the creation. `fsync` of
//!   a folder makes the changes of the names in it durable. A rename is durable whole or not at all. Of all
//!   other changes a first part is kept, in their order, and the rest is lost.
//! - Permissions and times are never lost.
//!
//! The rule for names is that of ext4 with a journal of metadata (`data=ordered`): an fsync commits the
//! transaction that holds the changed inode (Linux, `fs/ext4/fsync.c`, `ext4_fsync_journal`), and its name
//! with it; POSIX and fsync(2) demand a sync of the folder. ext4's transaction also holds what other files
//! have changed, and is committed every five seconds anyway. Here neither saves a change that was not synced,
//! since other file systems do less: Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014), and
//! Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing" (OSDI 2018).
//!
//! A power loss draws the pages and names that it keeps from a stream of its own: no other draw moves.
//!
//! [`tree`] has the nodes, [`change`] and [`names`] the changes of names that are not durable, [`lookup`]
//! paths, and [`calls`] the calls.

mod calls;
mod change;
mod lookup;
mod names;
#[cfg(test)]
mod tests;
pub(super) mod tree;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::tree::Tree;
use crate::entropy::Site;

/// The point that a process passes when it opens its first file for writing, in each of its lives. A search
/// draws power losses for such a process.
pub(crate) const WRITES: &str = "writes files";

/// The number of a node, as that of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id(u64);

/// The file system of a machine. Clones are the same. Its tree is made when a process first asks for it.
#[derive(Clone, Default)]
pub(crate) struct FileSystem(Arc<Mutex<Option<Tree>>>);

impl FileSystem {
    /// Closes all files of the process, which is dead.
    pub(super) fn crash(&self) {
        if let Some(tree) = &mut *self.lock() {
            tree.close_all();
        }
    }

    /// Loses changes that were not synced. `site` returns the randomness of the loss with this number.
    pub(super) fn lose_power(&self, site: impl FnOnce(u64) -> Site) {
        if let Some(tree) = &mut *self.lock() {
            tree.lose_power(site);
        }
    }

    /// Runs `operation` on the tree.
    pub(super) fn with<T>(&self, operation: impl FnOnce(&mut Tree) -> T) -> T {
        operation(self.lock().get_or_insert_with(Tree::new))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Tree>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
