//! The calls on names: each checks what Linux checks, and changes the tree.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use sim_host::{FolderEntry, Opening};
use xxhash_rust::xxh3::xxh3_64;

use super::Id;
use super::tree::{Body, Tree, refuse};
use crate::world::pages::Pages;

impl Tree {
    /// Opens a file or folder, which stays until it is closed.
    pub(in crate::world) fn open(&mut self, path: &Path, how: Opening, now: Duration) -> io::Result<Id> {
        let place = self.look_up(path, !how.create_new)?;
        let id = match place.id() {
            Ok(_) if how.create_new => return refuse(libc::EEXIST),
            Ok(id) => id,
            Err(_) if how.create || how.create_new => {
                let (folder, name) = place.free_entry()?;
                self.folder(folder)?;
                let id = self.add(Body::File(Pages::default()), how.mode & 0o777, now);
                self.change(id).creates().entry(folder, name, Some(id)).done();
                id
            }
            Err(missing) => return Err(missing),
        };
        let node = self.node_mut(id)?;
        match &mut node.body {
            Body::Folder(_) if how.write || how.create => return refuse(libc::EISDIR),
            Body::File(pages) if how.truncate && pages.length() > 0 => {
                pages.set_length(0);
                node.modified = now;
            }
            _ => {}
        }
        node.open += 1;
        Ok(id)
    }

    /// Closes a handle of the node.
    pub(in crate::world) fn close(&mut self, id: Id) {
        if let Ok(node) = self.node_mut(id) {
            node.open -= 1;
            if node.open == 0 && node.links == 0 {
                self.free();
            }
        }
    }

    /// Creates a folder or a symbolic link.
    pub(in crate::world) fn create(
        &mut self,
        path: &Path,
        body: Body,
        mode: u32,
        now: Duration,
    ) -> io::Result<()> {
        let place = self.look_up(path, false)?;
        let (folder, name) = place.free_entry()?;
        let id = self.add(body, mode & 0o7777, now);
        self.change(id).creates().entry(folder, name, Some(id)).done();
        Ok(())
    }

    /// Creates a folder.
    pub(in crate::world) fn create_folder(
        &mut self,
        path: &Path,
        mode: u32,
        now: Duration,
    ) -> io::Result<()> {
        self.create(path, Body::Folder(BTreeMap::new()), mode, now)
    }

    /// Returns the entries of a folder, ordered by hashes of their names, as ext4 does.
    pub(in crate::world) fn entries(&self, path: &Path) -> io::Result<Vec<FolderEntry>> {
        let folder = self.folder(self.look_up(path, true)?.id()?)?;
        let entry = |(name, id): (&OsString, &Id)| {
            Ok(FolderEntry { name: name.clone(), inode: id.0, kind: self.node(*id)?.kind() })
        };
        let mut entries: Vec<FolderEntry> = folder.iter().map(entry).collect::<io::Result<_>>()?;
        entries.sort_by_cached_key(|entry| xxh3_64(entry.name.as_encoded_bytes()));
        Ok(entries)
    }

    /// Removes a name of a file.
    pub(in crate::world) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        let place = self.look_up(path, false)?;
        let id = place.id()?;
        if self.folder(id).is_ok() {
            return refuse(libc::EISDIR);
        }
        let (folder, name) = place.entry()?;
        self.change(id).entry(folder, name, None).done();
        Ok(())
    }

    /// Removes an empty folder.
    pub(in crate::world) fn remove_folder(&mut self, path: &Path) -> io::Result<()> {
        let place = self.look_up(path, false)?;
        let id = place.id()?;
        if !self.folder(id)?.is_empty() {
            return refuse(libc::ENOTEMPTY);
        }
        let (folder, name) = place.entry()?;
        self.change(id).entry(folder, name, None).done();
        Ok(())
    }

    /// Renames a file or folder.
    pub(in crate::world) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.look_up(from, false)?, self.look_up(to, false)?);
        let id = from.id()?;
        let ((old_folder, old_name), (folder, name)) = (from.entry()?, to.entry()?);
        self.folder(folder)?;
        let is_folder = self.folder(id).is_ok();
        match to.id() {
            Ok(same) if same == id => return Ok(()),
            Ok(replaced) => match self.folder(replaced) {
                Ok(_) if !is_folder => return refuse(libc::EISDIR),
                Ok(entries) if !entries.is_empty() => return refuse(libc::ENOTEMPTY),
                Err(_) if is_folder => return refuse(libc::ENOTDIR),
                Ok(_) | Err(_) => {}
            },
            Err(_) => {}
        }
        if to.passes(id) {
            return refuse(libc::EINVAL);
        }
        self.change(id).entry(old_folder, old_name, None).entry(folder, name, Some(id)).done();
        Ok(())
    }

    /// Gives a file another name.
    pub(in crate::world) fn hard_link(&mut self, original: &Path, link: &Path) -> io::Result<()> {
        let id = self.look_up(original, false)?.id()?;
        let place = self.look_up(link, false)?;
        let (folder, name) = place.free_entry()?;
        if self.folder(id).is_ok() {
            return refuse(libc::EPERM);
        }
        self.change(id).entry(folder, name, Some(id)).done();
        Ok(())
    }
}
