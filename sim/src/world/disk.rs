//! A disk behind an operating system's cache: written data survives a crash of the process; only synced data
//! survives a power loss.

use std::io;
use std::sync::{Arc, Mutex};

use super::lock;
use super::pages::Pages;

/// One file on a simulated disk. Clones are the same file; it outlives the process that writes it.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    pages: Pages,
    syncs: u64,
    /// Counts openings and crashes: a handle of an earlier life is dead.
    life: u32,
}

/// A file opened by one life of a process.
#[derive(Clone, Debug)]
pub struct File {
    disk: Disk,
    life: u32,
}

impl Disk {
    /// Returns an empty file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the file. Handles from earlier openings are dead from now on.
    pub fn open(&self) -> File {
        let mut state = lock(&self.0);
        state.life += 1;
        File { disk: self.clone(), life: state.life }
    }

    /// Ends the handle of the process, which is dead. A power loss drops all data that was not synced.
    pub fn crash(&self, power_loss: bool) {
        let mut state = lock(&self.0);
        state.life += 1;
        if power_loss {
            state.pages.lose_power();
        }
    }

    /// Returns the number of syncs of the file.
    pub fn syncs(&self) -> u64 {
        lock(&self.0).syncs
    }
}

impl File {
    /// Returns true if the process that opened the file is dead, or its world is over.
    pub fn is_dead(&self) -> bool {
        lock(&self.disk.0).life != self.life
    }

    /// Runs `operation` on the file, unless the process that opened it is dead.
    fn with<T>(&self, operation: impl FnOnce(&mut State) -> T) -> io::Result<T> {
        let mut state = lock(&self.disk.0);
        if state.life == self.life {
            Ok(operation(&mut state))
        } else {
            Err(io::Error::other("the process that had the file open is dead"))
        }
    }

    /// Appends `data`.
    ///
    /// # Errors
    ///
    /// If the process that opened the file is dead.
    pub fn append(&self, data: &[u8]) -> io::Result<()> {
        self.with(|state| state.pages.append(data))
    }

    /// Makes all written data durable.
    ///
    /// # Errors
    ///
    /// As [`File::append`].
    pub fn sync(&self) -> io::Result<()> {
        self.with(|state| {
            state.syncs += 1;
            state.pages.sync();
        })
    }

    /// Returns the contents of the file.
    ///
    /// # Errors
    ///
    /// As [`File::append`].
    pub fn contents(&self) -> io::Result<Vec<u8>> {
        self.with(|state| {
            let mut contents = vec![0; state.pages.length()];
            state.pages.read(0, &mut contents);
            contents
        })
    }
}

/// Returns an offset in a file as a number of this machine.
pub(super) fn position(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))
}

impl redb::StorageBackend for File {
    fn len(&self) -> io::Result<u64> {
        self.with(|state| state.pages.length() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = position(offset)?;
        self.with(|state| {
            if offset + out.len() > state.pages.length() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            state.pages.read(offset, out);
            Ok(())
        })?
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = position(len)?;
        self.with(|state| state.pages.set_length(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = position(offset)?;
        self.with(|state| state.pages.write(offset, data))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redb::StorageBackend;

    use super::*;

    #[test]
    fn a_crash_keeps_written_data_and_a_power_loss_only_synced() {
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

    proptest! {
        /// Compares the file with a plain copy of its contents.
        #[test]
        fn a_power_loss_restores_the_contents_at_the_last_sync(
            steps in prop::collection::vec((0..5, 0..20_000_u64, 0..9000_usize), 1..30),
        ) {
            let disk = Disk::new();
            let mut file = disk.open();
            let (mut cached, mut durable) = (Vec::new(), Vec::new());
            for (step, offset, length) in steps {
                let at = offset as usize;
                match step {
                    0 | 1 => {
                        let data = vec![length as u8 | 1; length];
                        StorageBackend::write(&file, offset, &data).unwrap();
                        cached.resize(cached.len().max(at + length), 0);
                        cached[at..at + length].copy_from_slice(&data);
                    }
                    2 => {
                        file.set_len(offset).unwrap();
                        cached.resize(at, 0);
                    }
                    3 => {
                        file.sync().unwrap();
                        durable = cached.clone();
                    }
                    _ => {
                        disk.crash(true);
                        file = disk.open();
                        cached = durable.clone();
                    }
                }
                prop_assert!(file.contents().unwrap() == cached);
            }
        }
    }

    #[test]
    fn a_dead_process_writes_nothing() {
        let disk = Disk::new();
        let old = disk.open();
        disk.crash(false);
        assert!(old.append(b"late").is_err());
        assert!(old.sync().is_err());
        assert_eq!(disk.open().contents().unwrap(), b"");
    }

    #[test]
    fn bytes_that_were_cut_off_are_zero_after_the_file_grows() {
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
