//! A disk whose power can fail: changes that are not synced survive in part or not at all.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

/// A handle on the disk. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    synced: Vec<u8>,
    current: Vec<u8>,
    /// The changes since the last sync.
    pending: Vec<Change>,
    /// The number of operations until the power fails; `None` if it does not.
    power: Option<u64>,
}

#[derive(Clone, Debug)]
enum Change {
    Length(usize),
    Bytes(usize, Vec<u8>),
}

impl Change {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Change::Length(len) => image.resize(*len, 0),
            Change::Bytes(at, bytes) => {
                image.resize(image.len().max(at + bytes.len()), 0);
                image[*at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}

impl Disk {
    /// Fails every operation after the next `operations`.
    pub(crate) fn fail_after(&self, operations: u64) {
        self.state().power = Some(operations);
    }

    /// Returns the disk after a loss of power: all synced changes, and those later ones that `survives` picks
    /// by their number. This disk is not changed.
    pub(crate) fn after_power_loss(&self, survives: impl Fn(usize) -> bool) -> Disk {
        let state = self.state();
        let mut image = state.synced.clone();
        for (_, change) in state.pending.iter().enumerate().filter(|(number, _)| survives(*number)) {
            change.apply(&mut image);
        }
        Disk(Arc::new(Mutex::new(State { synced: image.clone(), current: image, ..State::default() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn powered(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        match &mut state.power {
            Some(0) => return Err(io::Error::other("the power is off")),
            Some(operations) => *operations -= 1,
            None => {}
        }
        Ok(state)
    }

    fn change(&self, change: Change) -> io::Result<()> {
        let mut state = self.powered()?;
        change.apply(&mut state.current);
        state.pending.push(change);
        Ok(())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.powered()?.current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.powered()?;
        let at = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = state.current.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::Length(usize::try_from(len).map_err(io::Error::other)?))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.powered()?;
        state.synced = state.current.clone();
        state.pending.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Change::Bytes(usize::try_from(offset).map_err(io::Error::other)?, data.to_vec()))
    }
}
