//! `stale_write` and `late_write`: the resource accepted a write of a grant that a newer one had replaced.
//!
//! Writes compare as (token, sequence). A plain write is the last of its grant, several numbered writes of
//! one grant count up. At an equal token the owner must be the same, since a failover can hand one token out
//! twice; a writer that sends no owner is taken for the same as any other. `write_repeated` is a retry that
//! stored nothing.
//!
//! N holders of N permits may write in any order. A write is judged against a newer holder only if its own
//! permit was gone when that one got its own, by the servers' events. A resource can refuse such a write if
//! each grant names the other live tokens.
//!
//! A conditional write (`conditional_accepted`) carries no token, and its position is below all tokens: on a
//! key that holders of a lock read or write, it bypasses the fence. On a key without such holders it is
//! judged by `lost_update` alone.
//!
//! A write is judged once, by the stronger evidence against it:
//!
//! - `stale_write` if a write at its position or above was accepted before. Source: Kleppmann, "How to do
//!   distributed locking" (2016): the storage service rejects a write whose token is not higher than all it
//!   has processed.
//! - otherwise `late_write` if a newer holder had already read the resource, or claimed it by a fenced read,
//!   but had not written yet. A check on write alone can't see it: nothing newer was written. The token of a
//!   plain read is that of its owner's grant, if the history has it; a read of an unknown owner is no
//!   evidence. Another owner's claim at the same token is evidence, since a claim is position (token, 0) and
//!   the owner rule applies there, too.

use std::collections::BTreeMap;

use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use super::{Capacity, Rules};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

/// The token of a conditional write: below every real one.
const NO_TOKEN: u64 = 0;

#[derive(Default)]
pub(super) struct Writes<'h> {
    resources: BTreeMap<&'h Name, Resource<'h>>,
}

#[derive(Default)]
struct Resource<'h> {
    /// The accepted write with the highest position, of those with a token.
    written: Option<Write<'h>>,
    /// The read or claim with the highest token.
    read: Option<Read<'h>>,
}

#[derive(Clone, Copy)]
struct Write<'h> {
    at: Nanos,
    owner: Option<&'h Name>,
    token: u64,
    seq: u64,
}

#[derive(Clone, Copy)]
struct Read<'h> {
    at: Nanos,
    owner: Option<&'h Name>,
    token: u64,
    claims: bool,
}

impl<'h> Judge<'h> for Writes<'h> {
    fn of(_: &Rules) -> Option<Self> {
        Some(Self::default())
    }

    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let holders = &state.holders;
        let at = event.at;
        match &event.kind {
            Kind::WriteAccepted { key, owner, token, seq, .. } => {
                let seq = seq.unwrap_or(u64::MAX);
                let write = Write { at, owner: owner.as_ref(), token: *token, seq };
                let resource = self.resources.entry(key).or_default();
                resource.judge(key, write, state, verdicts);
                resource.keep_write(write);
            }
            Kind::ConditionalAccepted { key, owner, .. } => {
                let write = Write { at, owner: owner.as_ref(), token: NO_TOKEN, seq: 0 };
                self.resources.entry(key).or_default().judge(key, write, state, verdicts);
            }
            Kind::ResourceRead { key, owner, token, .. } => {
                let owner = owner.as_ref();
                let granted = || owner.and_then(|owner| holders.token(key, owner));
                if let Some(number) = token.or_else(granted) {
                    let read = Read { at, owner, token: number, claims: token.is_some() };
                    self.resources.entry(key).or_default().keep_read(read);
                }
            }
            // The operator vouches for it that no higher token will come: the rule goes on from the new one.
            Kind::FenceSet { key, token, .. } => {
                let set = Write { at, owner: None, token: *token, seq: u64::MAX };
                let written = (*token > 0).then_some(set);
                self.resources.insert(key, Resource { written, read: None });
            }
            _ => {}
        }
    }
}

impl<'h> Resource<'h> {
    fn judge(&self, key: &'h Name, write: Write<'h>, state: &State<'h>, verdicts: &mut Verdicts) {
        let name = |owner, token| state.holders.process(key, owner, token);
        let writer = name(write.owner, write.token);
        let excludes = |newer: Option<&'h Name>| excludes(key, newer, write.owner, state);
        let written = self.written.filter(|newer| write.is_stale_after(newer) && excludes(newer.owner));
        let read = self.read.filter(|newer| write.is_late_after(newer) && excludes(newer.owner));
        if let Some(newer) = written {
            let other = name(newer.owner, newer.token);
            let detail = format!(
                "the resource accepted the write of {writer} ({}) at {}, after that of {other} (token {}) at \
                 {}",
                write.token_in_words(),
                write.at,
                newer.token,
                newer.at,
            );
            verdicts.convict(VerdictKind::StaleWrite, write.at, key, &[&writer, &other], detail);
        } else if let Some(newer) = read {
            let other = name(newer.owner, newer.token);
            let read = if newer.claims { "claimed" } else { "read" };
            let detail = format!(
                "the resource accepted the write of {writer} ({}) at {}, after {other} (token {}) had {read} \
                 it at {}",
                write.token_in_words(),
                write.at,
                newer.token,
                newer.at,
            );
            verdicts.convict(VerdictKind::LateWrite, write.at, key, &[&writer, &other], detail);
        }
    }

    fn keep_write(&mut self, write: Write<'h>) {
        if self.written.is_none_or(|highest| (write.token, write.seq) > (highest.token, highest.seq)) {
            self.written = Some(write);
        }
    }

    /// Keeps `read` if its token is higher. Of equal tokens, a claim is kept before a plain read, and the
    /// first of several.
    fn keep_read(&mut self, read: Read<'h>) {
        if self.read.is_none_or(|highest| (read.token, read.claims) > (highest.token, highest.claims)) {
            self.read = Some(read);
        }
    }
}

impl Write<'_> {
    fn token_in_words(&self) -> String {
        if self.token == NO_TOKEN { "no token".to_owned() } else { format!("token {}", self.token) }
    }

    fn is_stale_after(&self, newer: &Self) -> bool {
        let repeated =
            self.token == newer.token && (self.seq <= newer.seq || differ(self.owner, newer.owner));
        self.token < newer.token || repeated
    }

    fn is_late_after(&self, newer: &Read<'_>) -> bool {
        self.token < newer.token
            || (self.token == newer.token && newer.claims && differ(self.owner, newer.owner))
    }
}

/// Returns true if the grant of `newer` excludes that of `writer`.
fn excludes(key: &Name, newer: Option<&Name>, writer: Option<&Name>, state: &State<'_>) -> bool {
    if !matches!(state.capacities.of_key(key), Capacity::Permits(_)) {
        return true;
    }
    let (Some(newer), Some(writer), Some(stored)) = (newer, writer, &state.stored) else { return false };
    !stored.may_be_beside(key, newer, writer)
}

/// Returns true if the two owners are known to be different.
fn differ(one: Option<&Name>, other: Option<&Name>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}
