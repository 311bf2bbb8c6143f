//! The queues of Unix sockets for datagrams, in memory.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use super::SocketAddr;

/// The most bytes that wait to be received, as in Linux (`net.core.wmem_default`).
const CAPACITY: usize = 212_992;

/// The most datagrams that wait to be received, as systemd sets it (`net.unix.max_dgram_qlen`).
const LENGTH: usize = 512;

/// The most bytes in a datagram, as in Linux.
const DATAGRAM_MAX: usize = CAPACITY - 32;

/// The datagrams that a socket has not received. Clones are the same queue.
#[derive(Clone, Default)]
pub(super) struct Queue(Arc<Mutex<State>>);

/// A queue, unless its socket has been dropped.
#[derive(Clone, Default)]
pub(super) struct WeakQueue(Weak<Mutex<State>>);

#[derive(Default)]
struct State {
    datagrams: VecDeque<(SocketAddr, Vec<u8>)>,
    /// The bytes in `datagrams`.
    used: usize,
    /// The only socket from which it takes datagrams, if it is connected.
    peer: Option<WeakQueue>,
    /// True if its socket receives no more.
    is_shut: bool,
    /// Tasks that wait for a datagram, for room, or for the end.
    waiting: Vec<Waker>,
}

impl State {
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

    /// An empty queue takes any datagram.
    fn has_room(&self, length: usize) -> bool {
        self.datagrams.is_empty() || (self.datagrams.len() < LENGTH && self.used + length <= CAPACITY)
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn downgrade(&self) -> WeakQueue {
        WeakQueue(Arc::downgrade(&self.0))
    }

    /// Takes datagrams of `peer` only, from now on.
    pub(super) fn connect(&self, peer: &WeakQueue) {
        self.lock().peer = Some(peer.clone());
    }

    /// Puts a datagram of the socket with the queue `sender` into this one. Returns its length.
    pub(super) fn put(
        &self,
        waker: Option<&Waker>,
        sender: &Self,
        from: &SocketAddr,
        bytes: &[u8],
    ) -> io::Result<usize> {
        if bytes.len() > DATAGRAM_MAX {
            let problem =
                format!("a datagram of {} bytes is too long: send at most {DATAGRAM_MAX}", bytes.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let mut state = self.lock();
        if state.is_shut {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let is_foreign = |peer: &WeakQueue| !peer.upgrade().is_some_and(|peer| peer.is(sender));
        if state.peer.as_ref().is_some_and(is_foreign) {
            let problem = "the socket is connected to another one, from which alone it receives";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        if !state.has_room(bytes.len()) {
            return state.wait(waker);
        }
        state.used += bytes.len();
        state.datagrams.push_back((from.clone(), bytes.to_vec()));
        state.changed();
        Ok(bytes.len())
    }

    /// Fails with [`io::ErrorKind::WouldBlock`] while the queue is full.
    pub(super) fn check_room(&self, waker: Option<&Waker>) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_shut || (state.datagrams.len() < LENGTH && state.used < CAPACITY) {
            return Ok(());
        }
        state.wait(waker)
    }

    /// Takes the first datagram, or copies it if it `is_kept`. Returns the number of copied bytes and the
    /// sender.
    pub(super) fn take(
        &self,
        waker: Option<&Waker>,
        bytes: &mut [u8],
        is_kept: bool,
    ) -> io::Result<(usize, SocketAddr)> {
        let mut state = self.lock();
        let Some((from, datagram)) = state.datagrams.front() else { return state.wait(waker) };
        let length = datagram.len().min(bytes.len());
        bytes[..length].copy_from_slice(&datagram[..length]);
        let (from, whole) = (from.clone(), datagram.len());
        if !is_kept {
            state.datagrams.pop_front();
            state.used -= whole;
            state.changed();
        }
        Ok((length, from))
    }

    /// Takes no more datagrams.
    pub(super) fn shut(&self) {
        let mut state = self.lock();
        state.is_shut = true;
        state.changed();
    }
}

impl WeakQueue {
    pub(super) fn upgrade(&self) -> Option<Queue> {
        self.0.upgrade().map(Queue)
    }
}
