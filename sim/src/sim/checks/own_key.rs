//! A check for clients that guard one resource with the lock of another.

use std::collections::BTreeMap;

use history::{Event, Kind, Name};

use crate::sim::check::{Check, Evidence};

/// Returns the check that each write is made under a lease of the key that it writes to: locks and resources
/// have the same names. It fails if the resource gets a write, which it may take or refuse, whose owner has
/// acquired the lock of another key. One key for unrelated resources makes their clients wait for each other,
/// and mixes up their tokens.
pub fn own_key() -> impl Check {
    |evidence: &Evidence<'_>| {
        let mut leases = BTreeMap::new();
        evidence.events.iter().find_map(|event| observe(event, evidence, &mut leases)).map_or(Ok(()), Err)
    }
}

/// Notes the key of each owner's lease, and returns the problem with a write.
fn observe<'e>(
    event: &'e Event,
    evidence: &Evidence<'_>,
    leases: &mut BTreeMap<&'e Name, &'e Name>,
) -> Option<String> {
    match &event.kind {
        Kind::LeaseAcquired { key, owner, .. } => {
            leases.insert(owner, key);
            None
        }
        Kind::WriteAccepted { key, owner: Some(owner), .. }
        | Kind::WriteRejected { key, owner: Some(owner), .. } => {
            let lease = leases.get(owner).filter(|lease| **lease != key)?;
            let (lease, key) = (evidence.names.key(lease), evidence.names.key(key));
            Some(format!("at {} a write to {key} came under the lock of {lease}", event.at))
        }
        _ => None,
    }
}
