//! The files of a machine as the code of a process sees them, in one of its lives.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sim_host::{FileMetadata, FolderEntry, OpenFile, Opening};

use super::World;
use super::disk::position;
use super::files::tree::{Body, Node, Tree, refuse};
use super::files::{FileSystem, Id, WRITES};
use super::pages::Pages;
use super::process::ProcessId;

/// The files, as one life of a process sees them.
#[derive(Clone)]
pub(crate) struct GuestFiles {
    world: World,
    process: ProcessId,
    files: FileSystem,
    life: u32,
}

/// An open file.
struct Open {
    files: GuestFiles,
    id: Id,
    how: Opening,
}

impl GuestFiles {
    /// Returns the files of the machine of `process`, in its present life. Without `is_alive` every call
    /// fails.
    pub(crate) fn new(world: &World, process: ProcessId, is_alive: bool) -> Self {
        let files = world.process(process).files().clone();
        let life = if is_alive { files.with(|tree| tree.life) } else { u32::MAX };
        Self { world: world.clone(), process, files, life }
    }

    /// Returns the time on the machine's wall clock.
    fn now(&self) -> Duration {
        Duration::from_nanos(self.world.process(self.process).clock().wall(self.world.now()))
    }

    /// Runs `operation` on the tree.
    ///
    /// # Errors
    ///
    /// If the process is dead, or its world is over.
    fn with<T>(&self, operation: impl FnOnce(&mut Tree) -> io::Result<T>) -> io::Result<T> {
        self.files.with(|tree| {
            if tree.life == self.life {
                operation(tree)
            } else {
                Err(io::Error::new(io::ErrorKind::NotConnected, "the process is dead"))
            }
        })
    }
}

impl sim_host::Files for GuestFiles {
    fn open(&self, path: &Path, how: Opening) -> io::Result<Arc<dyn OpenFile>> {
        let now = self.now();
        let id = self.with(|tree| tree.open(path, how, now))?;
        if how.write && self.files.with(Tree::begins_to_write) {
            tracing::info!(target: "worker", event = "point_passed", step = WRITES);
        }
        Ok(Arc::new(Open { files: self.clone(), id, how }))
    }

    fn metadata(&self, path: &Path, follow: bool) -> io::Result<FileMetadata> {
        self.with(|tree| {
            let id = tree.look_up(path, follow)?.id()?;
            Ok(tree.node(id)?.metadata(id))
        })
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.with(|tree| {
            let id = tree.look_up(path, true)?.id()?;
            tree.node_mut(id)?.mode = mode & 0o7777;
            Ok(())
        })
    }

    fn create_folder(&self, path: &Path, mode: u32) -> io::Result<()> {
        let now = self.now();
        self.with(|tree| tree.create_folder(path, mode, now))
    }

    fn entries(&self, path: &Path) -> io::Result<Vec<FolderEntry>> {
        self.with(|tree| tree.entries(path))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.with(|tree| tree.remove_file(path))
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.with(|tree| tree.remove_folder(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.with(|tree| tree.rename(from, to))
    }

    fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()> {
        self.with(|tree| tree.hard_link(original, link))
    }

    fn symlink(&self, original: &Path, link: &Path) -> io::Result<()> {
        let now = self.now();
        self.with(|tree| tree.create(link, Body::Link(original.to_owned()), 0o777, now))
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.with(|tree| match &tree.node(tree.look_up(path, false)?.id()?)?.body {
            Body::Link(target) => Ok(target.clone()),
            Body::File(_) | Body::Folder(_) => refuse(libc::EINVAL),
        })
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        self.with(|tree| {
            let place = tree.look_up(path, true)?;
            place.id().map(|_| place.path())
        })
    }
}

impl Open {
    /// Runs `operation` on the node.
    fn node<T>(&self, operation: impl FnOnce(&mut Node) -> io::Result<T>) -> io::Result<T> {
        self.files.with(|tree| operation(tree.node_mut(self.id)?))
    }

    /// Changes the data of the file at a time of the machine's clock.
    fn change<T>(&self, operation: impl FnOnce(&mut Pages) -> io::Result<T>) -> io::Result<T> {
        if !self.how.write {
            return refuse(libc::EBADF);
        }
        let now = self.files.now();
        self.node(|node| {
            let Body::File(pages) = &mut node.body else { return refuse(libc::EBADF) };
            let changed = operation(pages)?;
            node.modified = now;
            Ok(changed)
        })
    }
}

/// Returns the offset at which to write `bytes`.
fn room(offset: u64, bytes: &[u8]) -> io::Result<usize> {
    let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= i64::MAX as u64);
    end.map_or_else(|| refuse(libc::EFBIG), |_| position(offset))
}

impl OpenFile for Open {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        if !self.how.read {
            return refuse(libc::EBADF);
        }
        let offset = position(offset)?;
        self.node(|node| match &node.body {
            Body::File(pages) => {
                let length = pages.length().saturating_sub(offset).min(bytes.len());
                pages.read(offset, &mut bytes[..length]);
                Ok(length)
            }
            Body::Folder(_) | Body::Link(_) => refuse(libc::EISDIR),
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = room(offset, bytes)?;
        self.change(|pages| {
            pages.write(offset, bytes);
            Ok(())
        })
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        self.change(|pages| {
            pages.write(room(pages.length() as u64, bytes)?, bytes);
            Ok(pages.length() as u64)
        })
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        if !self.how.write || length > i64::MAX as u64 {
            return refuse(libc::EINVAL);
        }
        let length = position(length)?;
        self.change(|pages| {
            pages.set_length(length);
            Ok(())
        })
    }

    fn sync(&self, names: bool) -> io::Result<()> {
        self.node(|node| {
            if let Body::File(pages) = &mut node.body {
                pages.sync();
            }
            Ok(())
        })?;
        self.files.with(|tree| {
            tree.sync_names(self.id, names);
            Ok(())
        })
    }

    fn metadata(&self) -> io::Result<FileMetadata> {
        self.node(|node| Ok(node.metadata(self.id)))
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.node(|node| {
            node.mode = mode & 0o7777;
            Ok(())
        })
    }

    fn set_times(&self, accessed: Option<Duration>, modified: Option<Duration>) -> io::Result<()> {
        self.node(|node| {
            node.accessed = accessed.unwrap_or(node.accessed);
            node.modified = modified.unwrap_or(node.modified);
            Ok(())
        })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // A dead process has no open files.
        let _ = self.files.with(|tree| {
            tree.close(self.id);
            Ok(())
        });
    }
}
