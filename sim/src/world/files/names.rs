//! Changes of names that are not durable yet.
//!
//! A sync of a file makes the changes of its names durable, a sync of a folder those of the names in it, and
//! both the earlier changes on which these depend. A power loss keeps a first part of the others and undoes
//! the rest, since a journal is written in order.

use std::ffi::OsString;

use super::Id;
use super::change::{Change, Step};
use super::tree::Tree;

/// A change of names that is being made.
pub(in crate::world) struct Changing<'t> {
    tree: &'t mut Tree,
    change: Change,
}

impl Tree {
    /// Begins a change of the names of the node `of`.
    pub(in crate::world) fn change(&mut self, of: Id) -> Changing<'_> {
        Changing { tree: self, change: Change { of, is_creation: false, steps: Vec::new() } }
    }

    /// Makes changes of names durable: those of the node `id`, or only its creation without `all`; and those
    /// of the names in it, if it is a folder.
    pub(in crate::world) fn sync_names(&mut self, id: Id, all: bool) {
        let is_meant =
            |change: &Change| (change.of == id && (all || change.is_creation)) || change.touches(id);
        let mut is_durable: Vec<bool> = self.changes.iter().map(is_meant).collect();
        // Changes depend on earlier ones.
        for (later, change) in self.changes.iter().enumerate().rev() {
            if is_durable[later] {
                for (is_durable, earlier) in is_durable.iter_mut().zip(&self.changes[..later]) {
                    *is_durable |= change.depends_on(earlier);
                }
            }
        }
        if is_durable.contains(&true) {
            let mut is_durable = is_durable.into_iter();
            self.changes.retain(|_| is_durable.next() == Some(false));
            self.free();
        }
    }

    /// Undoes the changes from the number `first` on. All that are left are durable.
    pub(in crate::world) fn undo_from(&mut self, first: usize) {
        for change in self.changes.split_off(first).into_iter().rev() {
            for step in change.steps.into_iter().rev() {
                self.set_entry(step.folder, &step.name, step.before);
            }
        }
        self.changes.clear();
        self.free();
    }
}

impl Changing<'_> {
    /// Notes that the change creates the node.
    pub(in crate::world) fn creates(mut self) -> Self {
        self.change.is_creation = true;
        self
    }

    /// Changes an entry of a folder.
    pub(in crate::world) fn entry(mut self, folder: Id, name: &OsString, after: Option<Id>) -> Self {
        let before = self.tree.folder(folder).ok().and_then(|entries| entries.get(name).copied());
        self.tree.set_entry(folder, name, after);
        self.change.steps.push(Step { folder, name: name.clone(), before, after });
        self
    }

    /// Ends the change.
    pub(in crate::world) fn done(self) {
        self.tree.changes.push(self.change);
    }
}
