//! An open file with its position, which a file and its clones share.

use std::io::{self, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sim_host::{FileMetadata, OpenFile};

use crate::host;

/// An open file with its position.
pub(super) struct Cursor {
    open: Arc<dyn OpenFile>,
    position: Mutex<u64>,
    appends: bool,
}

/// A real file, all calls on which are refused.
pub(super) struct Refused;

impl Cursor {
    /// Returns the file at its beginning. Each write is at the end if it `appends`.
    pub(super) fn new(open: Arc<dyn OpenFile>, appends: bool) -> Self {
        Self { open, position: Mutex::new(0), appends }
    }

    /// Returns the file.
    pub(super) fn open(&self) -> &dyn OpenFile {
        &*self.open
    }

    fn position(&self) -> MutexGuard<'_, u64> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the position back over bytes that were read and not used.
    pub(super) fn back(&self, length: usize) {
        let mut position = self.position();
        *position = position.saturating_sub(length as u64);
    }

    /// Reads up to `length` bytes.
    pub(super) fn read(&self, length: usize) -> io::Result<Vec<u8>> {
        let mut position = self.position();
        let left = self.open.metadata()?.length.saturating_sub(*position);
        let mut bytes = vec![0; length.min(usize::try_from(left).unwrap_or(usize::MAX))];
        let read = self.open.read_at(*position, &mut bytes)?;
        bytes.truncate(read);
        *position += read as u64;
        Ok(bytes)
    }

    /// Writes all of `bytes`.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut position = self.position();
        if self.appends {
            *position = self.open.append(bytes)?;
        } else {
            self.open.write_at(*position, bytes)?;
            *position += bytes.len() as u64;
        }
        Ok(())
    }

    /// Moves the position, and returns it.
    pub(super) fn seek(&self, to: SeekFrom) -> io::Result<u64> {
        let mut position = self.position();
        let next = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(by) => self.open.metadata()?.length.checked_add_signed(by),
            SeekFrom::Current(by) => position.checked_add_signed(by),
        };
        let is_valid = |next: &u64| i64::try_from(*next).is_ok();
        let invalid =
            || io::Error::new(io::ErrorKind::InvalidInput, "a position before the file, or too large");
        *position = next.filter(is_valid).ok_or_else(invalid)?;
        Ok(*position)
    }
}

fn refused<T>() -> io::Result<T> {
    Err(host::refused("tokio::fs::File of a real file", super::INSTEAD))
}

impl OpenFile for Refused {
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        refused()
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        refused()
    }

    fn append(&self, _: &[u8]) -> io::Result<u64> {
        refused()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        refused()
    }

    fn sync(&self, _: bool) -> io::Result<()> {
        refused()
    }

    fn metadata(&self) -> io::Result<FileMetadata> {
        refused()
    }

    fn set_mode(&self, _: u32) -> io::Result<()> {
        refused()
    }

    fn set_times(&self, _: Option<Duration>, _: Option<Duration>) -> io::Result<()> {
        refused()
    }
}
