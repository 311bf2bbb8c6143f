//! One direction of a connection within a process, in memory.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The bytes that one end has sent and the other has not read. Clones are the same direction.
#[derive(Clone)]
pub(super) struct Direction(Arc<Mutex<State>>);

struct State {
    bytes: VecDeque<u8>,
    /// The most bytes that wait to be read.
    capacity: usize,
    /// The most bytes that one write sends as a whole or not at all.
    whole_max: usize,
    is_closed: bool,
    /// Tasks that wait for bytes, for room, or for the end.
    waiting: Vec<Waker>,
}

impl Direction {
    /// Returns a direction in which up to `capacity` bytes wait to be read. Writes of up to `whole_max` bytes
    /// are sent as a whole.
    pub(super) fn new(capacity: usize, whole_max: usize) -> Self {
        let (bytes, waiting) = (VecDeque::new(), Vec::new());
        Self(Arc::new(Mutex::new(State { bytes, capacity, whole_max, is_closed: false, waiting })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what has arrived, up to the length of `bytes`; 0 at the end.
    pub(super) fn read(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<usize> {
        let mut state = self.lock();
        let length = state.copy_to(waker, bytes)?;
        state.bytes.drain(..length);
        state.changed();
        Ok(length)
    }

    /// Copies what has arrived, and leaves it to be read.
    pub(super) fn peek(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<usize> {
        self.lock().copy_to(waker, bytes)
    }

    /// Sends `bytes`, as far as there is room. Returns the number of those that were sent.
    pub(super) fn write(&self, waker: Option<&Waker>, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let needed = if bytes.len() <= state.whole_max { bytes.len() } else { 1 };
        if state.room() < needed {
            return state.wait(waker);
        }
        let sent = &bytes[..bytes.len().min(state.room())];
        state.bytes.extend(sent);
        state.changed();
        Ok(sent.len())
    }

    /// Fails with [`io::ErrorKind::WouldBlock`] while a write would.
    pub(super) fn check_room(&self, waker: Option<&Waker>) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_closed || state.room() >= state.whole_max.max(1) { Ok(()) } else { state.wait(waker) }
    }

    /// Closes it: a read gets the rest of the bytes, then the end.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.changed();
    }

    /// Returns true if it is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}

impl State {
    fn room(&self) -> usize {
        self.capacity - self.bytes.len()
    }

    fn wait<T>(&mut self, waker: Option<&Waker>) -> io::Result<T> {
        if let Some(waker) = waker
            && !self.waiting.iter().any(|other| other.will_wake(waker))
        {
            self.waiting.push(waker.clone());
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn changed(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }

    fn copy_to(&mut self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() && !self.is_closed {
            return self.wait(waker);
        }
        bytes.iter_mut().zip(&self.bytes).for_each(|(to, from)| *to = *from);
        Ok(bytes.len().min(self.bytes.len()))
    }
}
