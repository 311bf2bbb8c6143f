//! The names of the lock systems.

/// The lock system that the workers use, by its name in schedule files. The table in `systems` has them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct System(pub(super) &'static str);
