//! The numbers of runtimes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;

/// The number of a simulated process, whose runtimes all have it, or of a `LocalSet`. No two of a run are the
/// same. They count from 1, in the order in which the code of the run asks for them.
#[derive(Clone, Copy, Debug, Hash, Eq, PartialEq)]
pub struct Id(NonZeroU64);

thread_local! {
    /// The numbers of processes, by their names. A run has one thread.
    static PROCESSES: RefCell<BTreeMap<String, Id>> = const { RefCell::new(BTreeMap::new()) };
    /// The number that was given last.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

impl Id {
    /// Returns a number that nothing else has.
    pub(crate) fn next() -> Self {
        let next = NonZeroU64::MIN.saturating_add(LAST.get());
        LAST.set(next.get());
        Self(next)
    }

    /// Returns the number of the process `name`.
    pub(crate) fn of_process(name: String) -> Self {
        PROCESSES.with_borrow_mut(|processes| *processes.entry(name).or_insert_with(Self::next))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
