//! A disk, behind an operating system's cache: what a process writes survives its crash, what it has not synced does not
//! survive a loss of power.

use std::io;
use std::sync::{Arc, Mutex};

use super::lock;

/// One file on a simulated disk. Clones are the same file; it outlives the process that writes it.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// As the operating system sees it.
    cached: Vec<u8>,
    /// As it would be after a loss of power.
    durable: Vec<u8>,
    /// The part of the file that differs, from and to; empty if nothing does.
    dirty: Option<(usize, usize)>,
    syncs: u64,
    /// Counts the file's openings: a handle from before a crash writes no more.
    life: u32,
}

/// A file opened by one life of a process.
#[derive(Clone, Debug)]
pub struct File {
    disk: Disk,
    life: u32,
}

impl Disk {
    /// An empty file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the file. Handles from earlier openings are dead from now on.
    pub fn open(&self) -> File {
        let mut state = lock(&self.0);
        state.life += 1;
        File { disk: self.clone(), life: state.life }
    }

    /// The process that had it open is dead. With the power lost, so is all that was not synced.
    pub fn crash(&self, power_loss: bool) {
        let mut state = lock(&self.0);
        state.life += 1;
        if power_loss {
            state.cached = state.durable.clone();
            state.dirty = None;
        }
    }

    /// How often the file was synced.
    pub fn syncs(&self) -> u64 {
        lock(&self.0).syncs
    }
}

impl State {
    fn mark(&mut self, from: usize, to: usize) {
        self.dirty = Some(self.dirty.map_or((from, to), |(start, end)| (start.min(from), end.max(to))));
    }

    fn write(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        if end > self.cached.len() {
            self.cached.resize(end, 0);
        }
        self.cached[offset..end].copy_from_slice(data);
        self.mark(offset, end);
    }

    fn sync(&mut self) {
        self.syncs += 1;
        self.durable.resize(self.cached.len(), 0);
        if let Some((from, to)) = self.dirty.take() {
            let to = to.min(self.cached.len());
            let from = from.min(to);
            self.durable[from..to].copy_from_slice(&self.cached[from..to]);
        }
    }
}

impl File {
    /// Runs `operation` on the file, unless the process that opened it is dead.
    fn with<T>(&self, operation: impl FnOnce(&mut State) -> T) -> io::Result<T> {
        let mut state = lock(&self.disk.0);
        if state.life == self.life {
            Ok(operation(&mut state))
        } else {
            Err(io::Error::other("the process that had the file open is dead"))
        }
    }

    /// Adds `data` at the end.
    ///
    /// # Errors
    ///
    /// If the process that opened the file is dead.
    pub fn append(&self, data: &[u8]) -> io::Result<()> {
        self.with(|state| state.write(state.cached.len(), data))
    }

    /// Makes all that was written durable.
    ///
    /// # Errors
    ///
    /// As [`File::append`].
    pub fn sync(&self) -> io::Result<()> {
        self.with(State::sync)
    }

    /// The whole file.
    ///
    /// # Errors
    ///
    /// As [`File::append`].
    pub fn contents(&self) -> io::Result<Vec<u8>> {
        self.with(|state| state.cached.clone())
    }
}

fn position(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))
}

impl redb::StorageBackend for File {
    fn len(&self) -> io::Result<u64> {
        self.with(|state| state.cached.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = position(offset)?;
        self.with(|state| match state.cached.get(offset..offset + out.len()) {
            Some(data) => {
                out.copy_from_slice(data);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        })?
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = position(len)?;
        self.with(|state| {
            let old = state.cached.len();
            state.cached.resize(len, 0);
            state.mark(old.min(len), old.max(len));
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = position(offset)?;
        self.with(|state| state.write(offset, data))
    }
}

#[cfg(test)]
mod tests {
    use redb::StorageBackend;

    use super::*;

    #[test]
    fn a_crash_keeps_what_was_written_and_a_loss_of_power_only_what_was_synced() {
        let disk = Disk::new();
        let file = disk.open();
        file.append(b"synced ").unwrap();
        file.sync().unwrap();
        file.append(b"written").unwrap();
        disk.crash(false);
        assert_eq!(disk.open().contents().unwrap(), b"synced written");
        disk.crash(true);
        assert_eq!(disk.open().contents().unwrap(), b"synced ");
    }

    #[test]
    fn a_dead_process_writes_no_more() {
        let disk = Disk::new();
        let old = disk.open();
        disk.crash(false);
        assert!(old.append(b"late").is_err());
        assert!(old.sync().is_err());
        assert_eq!(disk.open().contents().unwrap(), b"");
    }

    #[test]
    fn what_shrinks_and_grows_again_is_zero_after_a_sync() {
        let disk = Disk::new();
        let file = disk.open();
        file.append(&[7; 8]).unwrap();
        file.sync().unwrap();
        file.set_len(2).unwrap();
        file.set_len(8).unwrap();
        file.sync().unwrap();
        disk.crash(true);
        assert_eq!(disk.open().contents().unwrap(), [7, 7, 0, 0, 0, 0, 0, 0]);
    }
}
