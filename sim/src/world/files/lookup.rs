//! Paths, and where they lead.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::Id;
use super::tree::{Body, ROOT, Tree, refuse};

/// The largest number of symbolic links in a path, as in Linux (`MAXSYMLINKS` in `include/linux/namei.h`).
const LINKS_MAX: usize = 40;

/// The place to which a path leads.
pub(in crate::world) struct Place {
    /// The names from the root on, each with its node.
    steps: Vec<(OsString, Id)>,
    /// The last name, if the folder has no such entry.
    missing: Option<OsString>,
}

enum Part {
    Root,
    Parent,
    Name(OsString),
}

impl Place {
    /// Returns the node of the last name that exists.
    fn last(&self) -> Id {
        self.steps.last().map_or(ROOT, |(_, id)| *id)
    }

    /// Returns the node.
    ///
    /// # Errors
    ///
    /// If there is none at this place.
    pub(in crate::world) fn id(&self) -> io::Result<Id> {
        if self.missing.is_some() { refuse(libc::ENOENT) } else { Ok(self.last()) }
    }

    /// Returns the folder and the name in it.
    ///
    /// # Errors
    ///
    /// If it is the root.
    pub(in crate::world) fn entry(&self) -> io::Result<(Id, &OsString)> {
        match (&self.missing, &self.steps[..]) {
            (Some(name), _) => Ok((self.last(), name)),
            (None, [.., (_, folder), (name, _)]) => Ok((*folder, name)),
            (None, [(name, _)]) => Ok((ROOT, name)),
            (None, []) => refuse(libc::EBUSY),
        }
    }

    /// Returns the folder and the name in it, at which nothing exists.
    ///
    /// # Errors
    ///
    /// If something does.
    pub(in crate::world) fn free_entry(&self) -> io::Result<(Id, &OsString)> {
        match &self.missing {
            Some(name) => Ok((self.last(), name)),
            None => refuse(libc::EEXIST),
        }
    }

    /// Returns true if the path leads through the node.
    pub(in crate::world) fn passes(&self, id: Id) -> bool {
        self.steps.iter().any(|(_, step)| *step == id)
    }

    /// Returns the path from the root.
    pub(in crate::world) fn path(&self) -> PathBuf {
        Path::new("/").join(self.steps.iter().map(|(name, _)| name).collect::<PathBuf>())
    }
}

impl Tree {
    /// Follows `path`. The last name may be missing. If it is a symbolic link, its target is followed only if
    /// `follow` is true.
    pub(in crate::world) fn look_up(&self, path: &Path, follow: bool) -> io::Result<Place> {
        let mut place = Place { steps: Vec::new(), missing: None };
        let mut left = parts(path);
        if path.as_os_str().is_empty() {
            return refuse(libc::ENOENT);
        }
        let mut links = 0;
        while let Some(part) = left.pop() {
            if place.missing.is_some() {
                return refuse(libc::ENOENT);
            }
            let name = match part {
                Part::Root => {
                    place.steps.clear();
                    continue;
                }
                Part::Parent => {
                    self.folder(place.last())?;
                    place.steps.pop();
                    continue;
                }
                Part::Name(name) => name,
            };
            let Some(id) = self.folder(place.last())?.get(&name).copied() else {
                place.missing = Some(name);
                continue;
            };
            match &self.node(id)?.body {
                Body::Link(target) if follow || !left.is_empty() => {
                    links += 1;
                    if links > LINKS_MAX {
                        return refuse(libc::ELOOP);
                    }
                    left.extend(parts(target));
                }
                _ => place.steps.push((name, id)),
            }
        }
        Ok(place)
    }
}

/// Returns the parts of a path, the last one first.
fn parts(path: &Path) -> Vec<Part> {
    let part = |component| match component {
        Component::RootDir | Component::Prefix(_) => Some(Part::Root),
        Component::CurDir => None,
        Component::ParentDir => Some(Part::Parent),
        Component::Normal(name) => Some(Part::Name(name.to_owned())),
    };
    path.components().rev().filter_map(part).collect()
}
