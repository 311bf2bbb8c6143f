//! The capacity of a key: which of its grants may be live at once.
//!
//! A mutex has one live grant. Of N permits, N may be live. A lock for readers and a writer has any number of
//! readers (`lease_shared`), or one writer. The judges ask for the live grants that a new one crowds.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use crate::events::Event;
use crate::vocabulary::{Kind, Name};

/// The grants of a key that may be live at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capacity {
    /// One.
    #[default]
    Mutex,
    /// At most this number.
    Permits(usize),
    /// Any number of readers, or one writer.
    ReadersWriter,
}

/// The capacities of keys, and the requests that are for reading.
#[derive(Default)]
pub(super) struct Capacities<'h> {
    by_key: BTreeMap<Name, Capacity>,
    /// By key and owner.
    readers: BTreeSet<(&'h Name, &'h Name)>,
}

impl<'h> Capacities<'h> {
    pub(super) fn of(rules: &Rules) -> Self {
        Self { by_key: rules.capacities.clone(), readers: BTreeSet::new() }
    }

    pub(super) fn observe(&mut self, event: &'h Event) {
        if let Kind::LeaseShared { key, owner, .. } = &event.kind {
            self.readers.insert((key, owner));
        }
    }

    pub(super) fn of_key(&self, key: &Name) -> Capacity {
        self.by_key.get(key).copied().unwrap_or_default()
    }

    /// Returns true if this request, or the grant to it, is for reading.
    pub(super) fn reads(&self, key: &'h Name, owner: &'h Name) -> bool {
        self.readers.contains(&(key, owner))
    }

    /// Returns the groups of `live` grants of the key beside which `new` may not be live: each grant alone
    /// that excludes it, or all of them if their number does. `owner` returns the owner of a grant.
    pub(super) fn crowded<'g, G>(
        &self,
        key: &'h Name,
        live: &[&'g G],
        new: &G,
        owner: impl Fn(&G) -> &'h Name,
    ) -> Vec<Vec<&'g G>> {
        let alone = |grant: &&'g G| vec![*grant];
        match self.of_key(key) {
            Capacity::Mutex => live.iter().map(alone).collect(),
            Capacity::Permits(count) if live.len() >= count => vec![live.to_vec()],
            Capacity::Permits(_) => Vec::new(),
            Capacity::ReadersWriter => {
                let reads = |grant: &G| self.reads(key, owner(grant));
                let excludes = |grant: &&&'g G| !(reads(grant) && reads(new));
                live.iter().filter(excludes).map(alone).collect()
            }
        }
    }
}

/// Returns the rules with the capacities that the requests in `history` name, for keys without one.
pub(super) fn with_those_of<'r>(history: &[Event], rules: &'r Rules) -> Cow<'r, Rules> {
    let mut rules = Cow::Borrowed(rules);
    let given: BTreeSet<Name> = rules.capacities.keys().cloned().collect();
    for event in history {
        let Some((key, named)) = named_by(&event.kind).filter(|(key, _)| !given.contains(*key)) else {
            continue;
        };
        let is_larger = match (rules.capacities.get(key), named) {
            (Some(Capacity::Permits(less)), Capacity::Permits(permits)) => *less < permits,
            (known, _) => known.is_none(),
        };
        if is_larger {
            rules.to_mut().capacities.insert(key.clone(), named);
        }
    }
    rules
}

/// Returns the key of a request that names the capacity of its lock, and the capacity.
fn named_by(kind: &Kind) -> Option<(&Name, Capacity)> {
    match kind {
        Kind::LeasePermits { key, permits, .. } => {
            Some((key, Capacity::Permits(usize::try_from(*permits).unwrap_or(usize::MAX))))
        }
        Kind::LeaseShared { key, .. } => Some((key, Capacity::ReadersWriter)),
        _ => None,
    }
}

/// Joins the words for grants: `a (token 1) and b (token 2)`.
pub(super) fn joined(grants: &[String]) -> String {
    match grants {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
