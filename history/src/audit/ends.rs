//! The times at which the leases of a lock have to be over, as its waiters may expect them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Capacity;
use crate::events::Nanos;
use crate::vocabulary::Name;

/// The ends of a lock's leases.
pub(super) enum Ends<'h> {
    /// The last owner, and the end of its lease: for a lock that one lease blocks.
    Last(Option<(&'h Name, Nanos)>),
    /// The number of permits, and the end of each owner's lease: all permits must be taken to block a waiter.
    /// Each reader blocks a writer, so that the last end counts, as with one permit.
    Each(usize, BTreeMap<&'h Name, Nanos>),
}

impl<'h> Ends<'h> {
    pub(super) fn of(capacity: Capacity) -> Self {
        match capacity {
            Capacity::Permits(count) => Self::Each(count.max(1), BTreeMap::new()),
            Capacity::ReadersWriter => Self::Each(1, BTreeMap::new()),
            Capacity::Mutex => Self::Last(None),
        }
    }

    /// Returns true if `owner` has had a lease that may block others.
    pub(super) fn knows(&self, owner: &Name) -> bool {
        match self {
            Self::Last(last) => last.is_some_and(|(last, _)| last == owner),
            Self::Each(_, ends) => ends.contains_key(owner),
        }
    }

    /// Notes a grant to `owner`, whose lease has to be over at `over`.
    pub(super) fn grant(&mut self, owner: &'h Name, over: Nanos) {
        match self {
            Self::Last(last) => {
                let former = last.map_or(Nanos(0), |(_, over)| over);
                *last = Some((owner, over.max(former)));
            }
            Self::Each(_, ends) => {
                let end = ends.entry(owner).or_default();
                *end = over.max(*end);
            }
        }
    }

    /// Notes that the lease of `owner` is over at `at`. That does not prolong a lease that had to be over
    /// before, unless its session had lasted.
    pub(super) fn end(&mut self, owner: &'h Name, at: Nanos, is_session: bool) {
        let end = match self {
            Self::Last(Some((last, over))) if *last == owner => over,
            Self::Last(_) => return,
            Self::Each(_, ends) => {
                let Some(end) = ends.get_mut(owner) else { return };
                end
            }
        };
        *end = if is_session { at } else { (*end).min(at) };
    }

    /// Notes that the lease of `owner`, who has died, has to be over at `over`.
    pub(super) fn orphan(&mut self, owner: &'h Name, over: Nanos) {
        match self {
            Self::Last(last) => *last = Some((owner, over)),
            Self::Each(_, ends) => drop(ends.insert(owner, over)),
        }
    }

    /// Notes that all leases last until `until` at least, since their holders live.
    pub(super) fn last_until(&mut self, until: Nanos) {
        match self {
            Self::Last(last) => {
                if let Some((_, over)) = last {
                    *over = until.max(*over);
                }
            }
            Self::Each(_, ends) => ends.values_mut().for_each(|end| *end = until.max(*end)),
        }
    }

    /// Restarts the TTL of each session that is not over at `at`.
    pub(super) fn restart(&mut self, at: Nanos, ttls: &BTreeMap<&'h Name, Duration>) {
        let restart = |owner: &Name, over: &mut Nanos| {
            if *over > at {
                *over = (*over).max(at.after(ttls.get(owner).copied().unwrap_or_default()));
            }
        };
        match self {
            Self::Last(last) => {
                if let Some((owner, over)) = last {
                    restart(owner, over);
                }
            }
            Self::Each(_, ends) => ends.iter_mut().for_each(|(owner, over)| restart(owner, over)),
        }
    }

    /// Returns the number of live holders that block a waiter.
    pub(super) fn capacity(&self) -> usize {
        match self {
            Self::Last(_) => 1,
            Self::Each(count, _) => *count,
        }
    }

    /// Returns the time from which on the leases block no waiter; zero if none ever did.
    pub(super) fn free(&self) -> Nanos {
        match self {
            Self::Last(last) => last.map_or(Nanos(0), |(_, over)| over),
            Self::Each(count, ends) => {
                let mut ends: Vec<Nanos> = ends.values().copied().collect();
                ends.sort_unstable_by(|one, other| other.cmp(one));
                ends.get(count - 1).copied().unwrap_or_default()
            }
        }
    }
}
