//! The tree of folders and files: nodes, and the names that lead to them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use sim_host::{FileKind, FileMetadata};

use super::Id;
use super::change::Change;
use crate::entropy::Site;
use crate::world::pages::Pages;

/// The root.
pub(in crate::world) const ROOT: Id = Id(1);

/// The folders that exist on a new machine, beside the root, of the Filesystem Hierarchy Standard 3.0.
const FOLDERS: [&[&str]; 5] = [&["etc"], &["home"], &["run"], &["tmp"], &["var", "lib", "log", "tmp"]];

/// The tree, as the operating system sees it.
pub(in crate::world) struct Tree {
    pub(in crate::world) nodes: BTreeMap<Id, Node>,
    next: u64,
    /// The changes of names that are not durable yet, in order.
    pub(in crate::world) changes: Vec<Change>,
    /// Counts crashes: a handle of an earlier life is dead.
    pub(in crate::world) life: u32,
    /// The number of power losses so far.
    losses: u64,
    /// True if the process has opened a file for writing in this life.
    has_written: bool,
}

/// A file, folder or link.
#[derive(Debug)]
pub(in crate::world) struct Node {
    pub(in crate::world) body: Body,
    pub(in crate::world) mode: u32,
    /// The number of names that lead to it.
    pub(in crate::world) links: u64,
    /// The number of open handles.
    pub(in crate::world) open: u64,
    pub(in crate::world) accessed: Duration,
    pub(in crate::world) modified: Duration,
    created: Duration,
}

/// The contents of a node.
#[derive(Debug)]
pub(in crate::world) enum Body {
    File(Pages),
    Folder(BTreeMap<OsString, Id>),
    Link(PathBuf),
}

/// Returns the error of the operating system with this number.
pub(in crate::world) fn refuse<T>(code: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(code))
}

impl Tree {
    /// Returns the tree of a new machine.
    pub(in crate::world) fn new() -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            next: ROOT.0,
            changes: Vec::new(),
            life: 0,
            losses: 0,
            has_written: false,
        };
        tree.add(Body::Folder(BTreeMap::new()), 0o755, Duration::ZERO);
        for names in FOLDERS {
            let Some((first, inner)) = names.split_first() else { continue };
            let folder = tree.add_folder(ROOT, first);
            for name in inner {
                tree.add_folder(folder, name);
            }
        }
        tree
    }

    fn add_folder(&mut self, parent: Id, name: &str) -> Id {
        let id = self.add(Body::Folder(BTreeMap::new()), 0o755, Duration::ZERO);
        self.set_entry(parent, &OsString::from(name), Some(id));
        id
    }

    /// Adds a node without a name.
    pub(in crate::world) fn add(&mut self, body: Body, mode: u32, now: Duration) -> Id {
        let id = Id(self.next);
        self.next += 1;
        let node = Node { body, mode, links: 0, open: 0, accessed: now, modified: now, created: now };
        self.nodes.insert(id, node);
        id
    }

    /// Returns a node.
    pub(in crate::world) fn node(&self, id: Id) -> io::Result<&Node> {
        self.nodes.get(&id).map_or_else(|| refuse(libc::ESTALE), Ok)
    }

    /// Returns a node to change it.
    pub(in crate::world) fn node_mut(&mut self, id: Id) -> io::Result<&mut Node> {
        self.nodes.get_mut(&id).map_or_else(|| refuse(libc::ESTALE), Ok)
    }

    /// Returns the entries of a folder.
    pub(in crate::world) fn folder(&self, id: Id) -> io::Result<&BTreeMap<OsString, Id>> {
        match &self.node(id)?.body {
            Body::Folder(entries) => Ok(entries),
            Body::File(_) | Body::Link(_) => refuse(libc::ENOTDIR),
        }
    }

    /// Sets or removes an entry of a folder, and counts the names of the nodes.
    pub(in crate::world) fn set_entry(&mut self, folder: Id, name: &OsString, to: Option<Id>) {
        let Some(Node { body: Body::Folder(entries), .. }) = self.nodes.get_mut(&folder) else { return };
        let before = match to {
            Some(id) => entries.insert(name.clone(), id),
            None => entries.remove(name),
        };
        if let Some(node) = before.and_then(|id| self.nodes.get_mut(&id)) {
            node.links -= 1;
        }
        if let Some(node) = to.and_then(|id| self.nodes.get_mut(&id)) {
            node.links += 1;
        }
    }

    /// Frees the nodes that nothing refers to: no name, no handle and no change that may be undone.
    pub(in crate::world) fn free(&mut self) {
        let undone: BTreeSet<Id> = self.changes.iter().flat_map(Change::nodes).collect();
        self.nodes.retain(|id, node| *id == ROOT || node.links > 0 || node.open > 0 || undone.contains(id));
    }

    /// Notes that the process writes. Returns true the first time in its life.
    pub(in crate::world) fn begins_to_write(&mut self) -> bool {
        !std::mem::replace(&mut self.has_written, true)
    }

    /// Ends all handles: the process is dead.
    pub(in crate::world) fn close_all(&mut self) {
        self.life += 1;
        self.has_written = false;
        for node in self.nodes.values_mut() {
            node.open = 0;
        }
        self.free();
    }

    /// Loses changes that are not durable, and keeps some of them. `site` returns the randomness of the loss
    /// with this number.
    pub(in crate::world) fn lose_power(&mut self, site: impl FnOnce(u64) -> Site) {
        self.losses += 1;
        let mut site = site(self.losses);
        let kept = match site.below(4) {
            0 => 0,
            1 => self.changes.len() as u64,
            _ => site.below(self.changes.len() as u64 + 1),
        };
        self.undo_from(kept as usize);
        for node in self.nodes.values_mut() {
            if let Body::File(pages) = &mut node.body {
                // Some files lose all pages, and some none: rare among many pages with independent draws.
                let chance = site.one_of(&[0.0, 0.5, 0.5, 1.0]);
                pages.lose_some(|| site.chance(chance));
            }
        }
    }
}

impl Node {
    /// Describes the node.
    pub(in crate::world) fn metadata(&self, inode: Id) -> FileMetadata {
        let length = match &self.body {
            Body::File(pages) => pages.length() as u64,
            Body::Folder(_) => 4096,
            Body::Link(target) => target.as_os_str().len() as u64,
        };
        let (accessed, modified, created) = (self.accessed, self.modified, self.created);
        let links = if matches!(self.body, Body::Folder(_)) { self.links + 1 } else { self.links };
        FileMetadata {
            kind: self.kind(),
            inode: inode.0,
            length,
            mode: self.mode,
            links,
            accessed,
            modified,
            created,
        }
    }

    /// Returns its kind.
    pub(in crate::world) fn kind(&self) -> FileKind {
        match self.body {
            Body::File(_) => FileKind::File,
            Body::Folder(_) => FileKind::Folder,
            Body::Link(_) => FileKind::Link,
        }
    }
}
