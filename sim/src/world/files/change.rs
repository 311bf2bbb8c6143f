//! A change of names that is not durable yet.

use std::ffi::OsString;

use super::Id;

/// A change of names, which becomes durable whole: a creation, a rename, a new link or a removal.
#[derive(Debug)]
pub(in crate::world) struct Change {
    /// The node whose names change.
    pub(in crate::world) of: Id,
    /// True if the change created the node.
    pub(in crate::world) is_creation: bool,
    pub(in crate::world) steps: Vec<Step>,
}

/// The change of one entry of a folder.
#[derive(Debug)]
pub(in crate::world) struct Step {
    pub(in crate::world) folder: Id,
    pub(in crate::world) name: OsString,
    pub(in crate::world) before: Option<Id>,
    pub(in crate::world) after: Option<Id>,
}

impl Change {
    /// Returns the nodes to which the change may lead back or which it names.
    pub(in crate::world) fn nodes(&self) -> impl Iterator<Item = Id> {
        let of_steps = |step: &Step| [Some(step.folder), step.before, step.after];
        self.steps.iter().flat_map(of_steps).flatten().chain([self.of])
    }

    /// Returns true if it changes an entry of the folder.
    pub(in crate::world) fn touches(&self, folder: Id) -> bool {
        self.steps.iter().any(|step| step.folder == folder)
    }

    /// Returns true if this can't be durable without `earlier`: that changed the same entry, or the names of
    /// a folder in which this changes an entry.
    pub(in crate::world) fn depends_on(&self, earlier: &Self) -> bool {
        self.steps.iter().any(|step| {
            let is_same = |before: &Step| before.folder == step.folder && before.name == step.name;
            earlier.of == step.folder || earlier.steps.iter().any(is_same)
        })
    }
}
