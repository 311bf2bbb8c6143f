//! The write-ahead log on the machine's disk: each record of the database, with its length and a checksum.

use std::io;

use redb::StorageBackend;
use xxhash_rust::xxh3::xxh3_64;

use crate::world::disk::File;
use crate::world::machine::Machine;

/// The bytes before a record: its length and its checksum.
const HEAD_BYTES: usize = 12;

/// The log, and the records of asynchronous commits that are not written to it yet.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// PostgreSQL keeps them in its memory, too: a crash loses them.
    unwritten: Vec<u8>,
    /// The time at which they are written and synced, on the monotonic clock in nanoseconds.
    due: Option<u64>,
}

/// The contents of a log.
pub(super) struct Restored {
    pub(super) records: Vec<Vec<u8>>,
    /// An incomplete record was at the end.
    pub(super) was_torn: bool,
}

impl Log {
    /// Opens the log on the machine's disk.
    pub(super) fn open(machine: &impl Machine) -> Self {
        Self { file: machine.disk().open(), unwritten: Vec::new(), due: None }
    }

    /// Reads the records. Removes an incomplete record at the end, which was never acknowledged.
    pub(super) fn restore(&self) -> Restored {
        let contents = self.file.contents().unwrap_or_default();
        let (mut records, mut read) = (Vec::new(), 0);
        while let Some(record) = contents.get(read..).and_then(record) {
            read += HEAD_BYTES + record.len();
            records.push(record.to_vec());
        }
        let was_torn = read < contents.len();
        if was_torn {
            ignore_if_dead(self.file.set_len(read as u64));
        }
        Restored { records, was_torn }
    }

    /// Adds a record. [`Log::sync`] makes it durable, at `due` at the latest.
    pub(super) fn add(&mut self, record: &[u8], due: u64) {
        let Ok(length) = u32::try_from(record.len()) else { return };
        self.unwritten.extend_from_slice(&length.to_le_bytes());
        self.unwritten.extend_from_slice(&xxh3_64(record).to_le_bytes());
        self.unwritten.extend_from_slice(record);
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Returns the time at which a sync is due, if records wait for one.
    pub(super) fn due(&self) -> Option<u64> {
        self.due
    }

    /// Writes and syncs all records if a sync is due at `now`. Returns whether it was.
    pub(super) fn sync_due(&mut self, now: u64) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            self.sync();
        }
        is_due
    }

    /// Writes and syncs all records.
    pub(super) fn sync(&mut self) {
        if self.due.take().is_some() {
            ignore_if_dead(self.file.append(&self.unwritten));
            ignore_if_dead(self.file.sync());
            self.unwritten.clear();
        }
    }
}

/// Returns the first record of `bytes`; `None` if it is not there as a whole.
fn record(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let record = rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    (xxh3_64(record) == u64::from_le_bytes(*checksum)).then_some(record)
}

/// Ignores an error: the file of a killed process fails, and its last running task may still write.
fn ignore_if_dead(_: io::Result<()>) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::disk::Disk;

    fn log(disk: &Disk) -> Log {
        Log { file: disk.open(), unwritten: Vec::new(), due: None }
    }

    #[test]
    fn a_torn_tail_is_dropped() {
        let disk = Disk::new();
        let mut first = log(&disk);
        [b"one".as_slice(), b"two"].into_iter().for_each(|record| first.add(record, 0));
        first.sync();
        let length = disk.open().contents().unwrap().len();
        disk.open().set_len(length as u64 - 1).unwrap();
        let restored = log(&disk).restore();
        assert!(restored.was_torn);
        assert_eq!(restored.records, [b"one"]);
        // The next record follows on the last whole one.
        let mut second = log(&disk);
        second.add(b"three", 0);
        second.sync();
        let restored = log(&disk).restore();
        assert!(!restored.was_torn);
        assert_eq!(restored.records, [b"one".as_slice(), b"three"]);
    }

    #[test]
    fn a_record_with_other_contents_is_dropped() {
        let disk = Disk::new();
        let mut first = log(&disk);
        first.add(b"one", 0);
        first.sync();
        let file = disk.open();
        StorageBackend::write(&file, 13, b"x").unwrap();
        assert!(log(&disk).restore().records.is_empty());
    }

    #[test]
    fn an_asynchronous_commit_is_on_the_disk_when_it_is_due() {
        let disk = Disk::new();
        let mut log = log(&disk);
        log.add(b"one", 5);
        log.add(b"two", 7);
        assert!(!log.sync_due(4));
        assert!(log.file.contents().unwrap().is_empty());
        assert!(log.sync_due(5));
        assert_eq!(log.due(), None);
        disk.crash(true);
        assert_eq!(disk.open().contents().unwrap().len(), 2 * (HEAD_BYTES + 3));
    }
}
