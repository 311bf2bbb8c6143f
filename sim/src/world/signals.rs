//! Signals to a process: one for which it listens wakes it; any other ends it.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use super::lock;

/// The signals that ask a program to end, with their names.
const ASKING: [(i32, &str); 2] = [(libc::SIGTERM, "SIGTERM"), (libc::SIGINT, "SIGINT")];

/// Returns the point that a process passes when it begins to listen for a signal, if that asks it to end.
pub(crate) fn point(number: i32) -> Option<String> {
    let (_, name) = ASKING.iter().find(|(asking, _)| *asking == number)?;
    Some(format!("listens for {name}"))
}

/// The signals for which a process listens, by their numbers. It listens until it dies: a listener that is
/// dropped leaves the signal without an effect, as in tokio.
#[derive(Default)]
pub(crate) struct Listening(Mutex<BTreeMap<i32, Arc<Arrived>>>);

/// The signals of one number that have arrived.
#[derive(Default)]
struct Arrived {
    count: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

/// A listener of one life of a process.
pub(crate) struct SignalListener {
    arrived: Arc<Arrived>,
    seen: AtomicU64,
}

impl Listening {
    /// Listens for signals of this number from now on.
    pub(super) fn listen(&self, number: i32) -> SignalListener {
        let arrived = Arc::clone(lock(&self.0).entry(number).or_default());
        let seen = AtomicU64::new(arrived.count.load(Ordering::Relaxed));
        SignalListener { arrived, seen }
    }

    /// Listens for nothing: the process is dead.
    pub(super) fn clear(&self) {
        let listening = std::mem::take(&mut *lock(&self.0));
        drop(listening);
    }

    /// Notes a signal. Returns false if the process does not listen for it.
    pub(super) fn signal(&self, number: i32) -> bool {
        let arrived = lock(&self.0).get(&number).cloned();
        let Some(arrived) = arrived else { return false };
        arrived.count.fetch_add(1, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *lock(&arrived.waiting));
        waiting.into_iter().for_each(Waker::wake);
        true
    }
}

impl sim_host::Signals for SignalListener {
    fn receive(&self, waker: Option<&Waker>) -> io::Result<()> {
        let count = self.arrived.count.load(Ordering::Relaxed);
        if self.seen.swap(count, Ordering::Relaxed) != count {
            return Ok(());
        }
        let mut waiting = lock(&self.arrived.waiting);
        if let Some(waker) = waker
            && !waiting.iter().any(|known| known.will_wake(waker))
        {
            waiting.push(waker.clone());
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}
