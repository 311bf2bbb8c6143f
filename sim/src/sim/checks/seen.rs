//! The highest token that a resource has seen, and its refusals of a higher one.

use std::collections::{BTreeMap, BTreeSet};

use history::{Event, Kind, Name};

/// The tokens that resources have accepted or had claimed.
#[derive(Default)]
pub(super) struct Seen<'e> {
    /// The highest token by key, with fencing on or off.
    highest: BTreeMap<&'e Name, u64>,
    crashed: BTreeSet<&'e Name>,
}

/// A refusal of a token above all others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfounded<'e> {
    pub(super) key: &'e Name,
    pub(super) token: u64,
    /// The highest token that the resource says it has seen.
    pub(super) seen: u64,
    /// The highest token that it has accepted or had claimed; 0 if there is none.
    pub(super) highest: u64,
}

impl<'e> Seen<'e> {
    /// Notes the tokens that a resource takes, and returns the refusal of a token above all of them.
    pub(super) fn observe(&mut self, event: &'e Event) -> Option<Unfounded<'e>> {
        match &event.kind {
            Kind::ProcessCrashed { .. } => {
                self.crashed.insert(&event.process);
            }
            Kind::FenceSet { key, token, .. } => {
                self.highest.insert(key, *token);
            }
            Kind::WriteAccepted { key, token, .. } | Kind::ResourceRead { key, token: Some(token), .. } => {
                let highest = self.highest.entry(key).or_default();
                *highest = (*token).max(*highest);
            }
            Kind::WriteRejected { key, token, seen, outcome, .. }
            | Kind::ReadRejected { key, token, seen, outcome, .. }
                // A limit on the jump of a token refuses tokens above all others on purpose.
                if outcome.as_ref().is_none_or(|outcome| outcome.as_str() != "jump") =>
            {
                let highest = self.highest.get(key).copied().unwrap_or_default();
                let is_above_all = *token > highest && !self.crashed.contains(&event.process);
                let refusal = Unfounded { key, token: *token, seen: *seen, highest };
                return (token > seen || is_above_all).then_some(refusal);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use history::Nanos;

    use super::*;

    fn key() -> Name {
        Name::from("2f1a6b03c9de")
    }

    fn accepted(token: u64) -> Kind {
        Kind::WriteAccepted { key: key(), owner: None, token, seq: None, version: 1, body: None }
    }

    fn claimed(token: u64) -> Kind {
        Kind::ResourceRead { key: key(), owner: None, token: Some(token), version: 1, seen: token }
    }

    fn rejected(token: u64, seen: u64) -> Kind {
        Kind::WriteRejected { key: key(), owner: None, token, seq: None, seen, outcome: None }
    }

    fn claim_rejected(token: u64, seen: u64) -> Kind {
        Kind::ReadRejected { key: key(), owner: None, token, seen, outcome: None }
    }

    /// Returns the first unfounded refusal: its token, the one that the resource says it has seen, and the
    /// highest.
    fn found<const N: usize>(kinds: [Kind; N]) -> Option<(u64, u64, u64)> {
        let event = |kind| Event { at: Nanos(0), process: Name::from("resource"), kind };
        let events = kinds.map(event);
        let mut seen = Seen::default();
        let unfounded = events.iter().find_map(|event| seen.observe(event));
        unfounded.map(|Unfounded { token, seen, highest, .. }| (token, seen, highest))
    }

    #[test]
    fn a_refusal_of_a_token_above_all_others_is_unfounded() {
        assert_eq!(found([accepted(9), rejected(10, 9)]), Some((10, 9, 9)));
        assert_eq!(found([accepted(9), claim_rejected(10, 9)]), Some((10, 9, 9)));
        assert_eq!(found([claimed(9), rejected(10, 11)]), Some((10, 11, 9)));
        assert_eq!(found([rejected(1, 1)]), Some((1, 1, 0)));
    }

    #[test]
    fn a_refusal_of_a_token_that_is_not_above_all_others_is_right() {
        assert_eq!(found([accepted(10), rejected(9, 10)]), None);
        assert_eq!(found([accepted(10), rejected(10, 10)]), None);
        assert_eq!(found([claimed(10), rejected(9, 10), claim_rejected(9, 10)]), None);
    }

    #[test]
    fn a_refused_jump_and_a_set_fence_are_no_mistakes() {
        let jump = |token, seen| Kind::WriteRejected {
            key: key(),
            owner: None,
            token,
            seq: None,
            seen,
            outcome: Some("jump".into()),
        };
        let set = |token, seen| Kind::FenceSet { key: key(), token, seen };
        assert_eq!(found([accepted(9), jump(u64::MAX, 9)]), None);
        assert_eq!(found([accepted(9), set(20, 9), rejected(10, 20)]), None);
        assert_eq!(found([accepted(9), set(3, 9), rejected(4, 9)]), Some((4, 9, 3)));
    }

    #[test]
    fn a_resource_that_crashed_may_have_stored_what_the_history_lacks() {
        let crashed = || Kind::ProcessCrashed { detail: None };
        assert_eq!(found([accepted(9), crashed(), rejected(10, 10)]), None);
        assert_eq!(found([accepted(9), crashed(), rejected(10, 9)]), Some((10, 9, 9)));
    }
}
