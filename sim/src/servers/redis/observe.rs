//! Observers of a server: for the trace and the history.

mod hashes;
mod permits;
#[cfg(test)]
mod tests;
mod waiters;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use self::hashes::{Hashes, Owners};
use self::permits::{Change, Permits};
use self::waiters::Waiters;
use super::effects::{Effect, KeyValue, Removal};
use super::number::parse_i64;
use super::request::{Args, RequestParser};

/// Receives everything that a server does, in order. It is called while no lock is held, so it may use the
/// server.
pub trait Observer: Send + Sync {
    /// Receives the effects of a command or script of `client`, at `wall_ms` milliseconds after the Unix
    /// epoch on the server's clock. If the server itself caused them, `client` is the server's name.
    fn changed(&self, client: &str, wall_ms: i64, effects: &[Effect]) {
        let _ = (client, wall_ms, effects);
    }

    /// Receives the effects by which a server has restored its keys from its disk, or has followed its
    /// primary.
    fn restored(&self, effects: &[Effect]) {
        let _ = effects;
    }

    /// Returns the time at which the server calls [`Observer::passed`], in milliseconds after the Unix epoch
    /// on its clock; `None` without one.
    fn due_ms(&self) -> Option<i64> {
        None
    }

    /// Receives the time of a primary, which is called `server`, in milliseconds after the Unix epoch on its
    /// clock: whenever it looks for expired keys, and before each record of changes.
    fn passed(&self, server: &str, wall_ms: i64) {
        let _ = (server, wall_ms);
    }

    /// Receives a command of `client` that was executed and whose reply has not been sent. Commands inside
    /// scripts are included, after the script's own EVALSHA. `command` is in lower case.
    fn executed(&self, client: &str, command: &'static str) {
        let _ = (client, command);
    }
}

/// Ignores everything.
impl Observer for () {}

/// Records the changes of locks in `tracing` events of the target `server`: `key_granted`, `key_extended`,
/// `key_deleted`, `key_expired`, and `waiter_gone` for the queue of a lock with a limit of its waiters.
///
/// It knows the keys of [`dlock::LockKey`] and those of [`LockView::add`], and ignores all others.
#[derive(Clone, Debug, Default)]
pub struct LockView {
    /// Further keys, and the locks that they belong to.
    names: BTreeMap<Vec<u8>, String>,
    permits: Permits,
    waiters: Waiters,
    hashes: Hashes,
}

impl LockView {
    /// Adds the key `key` of the lock called `lock`. The key exists while the lock is held, and its value is
    /// the owner. If it is a hash, its fields are the owners, and their values are the numbers of times that
    /// each has the lock, as Redisson's locks are stored.
    pub fn add(&mut self, key: impl Into<Vec<u8>>, lock: impl Into<String>) {
        self.names.insert(key.into(), lock.into());
    }

    /// Returns the lock's name ([`dlock::LockKey::name`]) and the part of the lock that `key` is; `None` for
    /// other keys.
    fn lock_of<'a>(&'a self, key: &'a [u8]) -> Option<(&'a str, Part)> {
        match self.names.get(key) {
            Some(name) => Some((name, Part::Owner)),
            None => lock_of(key),
        }
    }

    /// Notes a change of the owners in a hash that is a lock.
    fn note_owners(&self, effect: &Effect) -> Option<Owners> {
        self.hashes.note(effect, |key| self.names.contains_key(key))
    }

    /// Forgets what was stored at `key`.
    fn forget(&self, key: &[u8]) {
        let _ = (self.permits.remove(key), self.waiters.remove(key), self.hashes.remove(key));
    }
}

/// The state of a server as its observer knows it. A clone begins empty: it observes another server, or the
/// next life of this one.
#[derive(Debug, Default)]
struct View<T>(Mutex<T>);

impl<T> View<T> {
    fn lock(&self) -> MutexGuard<'_, T> {
        crate::world::lock(&self.0)
    }
}

impl<T: Default> Clone for View<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Observer for LockView {
    fn changed(&self, client: &str, wall_ms: i64, effects: &[Effect]) {
        // Hash names only if a subscriber wants the events.
        if tracing::enabled!(target: "server", tracing::Level::INFO) {
            Unit::new(self, client, wall_ms, effects).emit_all();
        }
    }

    fn restored(&self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Removed { key, .. } | Effect::Set { key, .. } => self.forget(key),
                Effect::Flushed { entries } => entries.iter().for_each(|entry| self.forget(&entry.key)),
                _ => {
                    let _ = (self.permits.note(effect), self.waiters.note(effect), self.note_owners(effect));
                }
            }
        }
    }

    fn due_ms(&self) -> Option<i64> {
        self.permits.next_end()
    }

    fn passed(&self, server: &str, wall_ms: i64) {
        let unit = Unit::new(self, server, wall_ms, &[]);
        for (key, owner) in self.permits.expire(wall_ms) {
            unit.emit_end(&key, &owner, Removal::Expired);
        }
    }
}

/// The keys of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Owner,
    Fence,
    /// The permits of a semaphore, or the readers beside a writer.
    Permits,
    /// The queue of waiters.
    Waiters,
}

/// The effects of one command or script.
#[derive(Debug)]
struct Unit<'a> {
    view: &'a LockView,
    client: &'a str,
    wall_ms: i64,
    effects: &'a [Effect],
    /// New owners of hashes with the key of each. Their `key_granted` waits until a later command of the unit
    /// sets the expiry, or until the unit ends.
    granted: Vec<(Vec<u8>, Vec<u8>)>,
    /// The fields of hashes that commands of the unit named.
    named: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
}

impl<'a> Unit<'a> {
    fn new(view: &'a LockView, client: &'a str, wall_ms: i64, effects: &'a [Effect]) -> Self {
        Self { view, client, wall_ms, effects, granted: Vec::new(), named: BTreeMap::new() }
    }

    fn emit_all(mut self) {
        for effect in self.effects {
            self.emit(effect);
        }
        let keys: Vec<_> = self.granted.iter().map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.emit_granted(&key, None);
        }
    }

    fn emit(&mut self, effect: &Effect) {
        match effect {
            Effect::Set { key, value, expires_at, former } if former.as_ref() == Some(value) => {
                self.emit_change("key_extended", key, value, *expires_at, |_| None);
            }
            Effect::Set { key, value, expires_at, .. } => {
                self.emit_removal(key, None, Removal::Deleted);
                let token = |name: &str| token_in(value).or_else(|| self.fencing_token(name));
                self.emit_change("key_granted", key, value, *expires_at, token);
            }
            Effect::Extended { key, value: Some(value), expires_at } => {
                self.emit_change("key_extended", key, value, *expires_at, |_| None);
            }
            Effect::Extended { key, value: None, expires_at } => {
                let granted = self.emit_granted(key, *expires_at);
                for owner in self.extended(key).iter().filter(|owner| !granted.contains(owner)) {
                    self.emit_change("key_extended", key, owner, *expires_at, |_| None);
                }
            }
            Effect::Removed { key, value, cause } => self.emit_removal(key, value.as_deref(), *cause),
            Effect::Flushed { entries } => {
                for KeyValue { key, value } in entries {
                    self.emit_removal(key, value.as_deref(), Removal::Deleted);
                }
            }
            Effect::Command { .. } => {
                self.emit_permit(effect);
                self.emit_owners(effect);
                if let Some((key, owner, place)) = self.view.waiters.note(effect) {
                    self.emit_left(&key, &owner, place);
                }
            }
            // The same key in another database is the same lock.
            Effect::Counted { .. } | Effect::Changed { .. } | Effect::Selected { .. } => {}
        }
    }

    /// Emits the changes of owners by a command on a hash that is a lock.
    fn emit_owners(&mut self, effect: &Effect) {
        let Some(Owners { key, named, granted, ended }) = self.view.note_owners(effect) else { return };
        self.named.entry(key.clone()).or_default().extend(named);
        if !ended.is_empty() {
            // An owner that came and went in this unit was granted before it ended.
            self.emit_granted(&key, None);
        }
        ended.iter().for_each(|owner| self.emit_end(&key, owner, Removal::Deleted));
        self.granted.extend(granted.into_iter().map(|owner| (key.clone(), owner)));
    }

    /// Returns the owners of the hash `key` whose leases a new expiry extends: those that this command or
    /// script named, or the only owner. Of several, none of which it named, nothing is known.
    fn extended(&self, key: &[u8]) -> Vec<Vec<u8>> {
        let mut owners = self.view.hashes.owners(key);
        match self.named.get(key) {
            Some(named) => owners.retain(|owner| named.contains(owner)),
            None if owners.len() > 1 => owners.clear(),
            None => {}
        }
        owners
    }

    /// Emits the grants of the hash `key` that await its expiry; returns their owners.
    fn emit_granted(&mut self, key: &[u8], expires_at: Option<i64>) -> Vec<Vec<u8>> {
        let granted: Vec<_> =
            self.granted.extract_if(.., |(of, _)| of == key).map(|(_, owner)| owner).collect();
        for owner in &granted {
            let token = |name: &str| self.fencing_token(name);
            self.emit_change("key_granted", key, owner, expires_at, token);
        }
        granted
    }

    /// Emits the change of a permit by a command on the sorted set of its lock.
    fn emit_permit(&self, effect: &Effect) {
        let Some((key, owner, change)) = self.view.permits.note(effect) else { return };
        match change {
            Change::Granted(over) => {
                let token = |name: &str| self.fencing_token(name);
                self.emit_change("key_granted", &key, &owner, Some(over), token);
            }
            Change::Extended(over) => self.emit_change("key_extended", &key, &owner, Some(over), |_| None),
            Change::Ended => self.emit_end(&key, &owner, Removal::Deleted),
        }
    }

    fn emit_change(
        &self,
        event: &str,
        key: &[u8],
        owner: &[u8],
        expires_at: Option<i64>,
        fencing_token: impl Fn(&str) -> Option<u64>,
    ) {
        let Some((name, Part::Owner | Part::Permits)) = self.view.lock_of(key) else { return };
        tracing::info!(
            target: "server",
            event,
            resource_id_hash = dlock::id_hash(name),
            owner_token_prefix = &*prefix_of(owner),
            fencing_token = fencing_token(name),
            ttl_millis = expires_at.map(|at| u64::try_from(at.saturating_sub(self.wall_ms)).unwrap_or(0)),
            client = self.client,
        );
    }

    /// Emits the end of a key: of the lease of its owner, or of all permits.
    fn emit_removal(&mut self, key: &[u8], owner: Option<&[u8]>, cause: Removal) {
        self.emit_granted(key, None);
        match owner {
            Some(owner) => self.emit_end(key, owner, cause),
            None if is_permits(key) => {
                let owners = self.view.permits.remove(key);
                owners.iter().for_each(|owner| self.emit_end(key, owner, cause));
            }
            None if is_waiters(key) => {
                let waiters = self.view.waiters.remove(key);
                waiters.iter().for_each(|(owner, place)| self.emit_left(key, owner, *place));
            }
            None => {
                let owners = self.view.hashes.remove(key);
                owners.iter().for_each(|owner| self.emit_end(key, owner, cause));
            }
        }
    }

    fn emit_end(&self, key: &[u8], owner: &[u8], cause: Removal) {
        let Some((name, Part::Owner | Part::Permits)) = self.view.lock_of(key) else { return };
        tracing::info!(
            target: "server",
            event = if cause == Removal::Expired { "key_expired" } else { "key_deleted" },
            resource_id_hash = dlock::id_hash(name),
            owner_token_prefix = &*prefix_of(owner),
            client = self.client,
            detail = (cause == Removal::Evicted).then_some("evicted"),
        );
    }

    /// Emits the end of a place in the queue.
    fn emit_left(&self, key: &[u8], owner: &[u8], place: i64) {
        let Some((name, Part::Waiters)) = self.view.lock_of(key) else { return };
        tracing::info!(
            target: "server",
            event = "waiter_gone",
            resource_id_hash = dlock::id_hash(name),
            owner_token_prefix = &*prefix_of(owner),
            position = u64::try_from(place).ok(),
        );
    }

    /// Returns the value to which the same command or script set the fence counter of the lock `name`.
    fn fencing_token(&self, name: &str) -> Option<u64> {
        self.effects.iter().rev().find_map(|effect| {
            let (key, number) = match effect {
                Effect::Counted { key, value, .. } => (key, *value),
                Effect::Set { key, value, .. } => (key, parse_i64(value)?),
                _ => return None,
            };
            (self.view.lock_of(key)? == (name, Part::Fence)).then_some(u64::try_from(number).ok()?)
        })
    }
}

/// Returns the result of `read` for the command of an effect; `None` for other effects.
fn of_command<T>(effect: &Effect, read: impl FnOnce(Args<'_>) -> Option<T>) -> Option<T> {
    let Effect::Command { encoded, .. } = effect else { return None };
    let mut parser = RequestParser::default();
    parser.parse(encoded).ok()??;
    read(parser.args(encoded))
}

/// Returns the fencing token that a lock stores with its owner, if it does: one from a shared counter.
fn token_in(value: &[u8]) -> Option<u64> {
    let (_, token) = std::str::from_utf8(value).ok()?.rsplit_once('#')?;
    token.parse().ok()
}

/// Returns the part of an owner token that a history shows. Of one that can't be printed, such as random
/// bytes, it is the first four bytes in hexadecimal digits.
fn prefix_of(owner: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(owner) {
        Ok(text) if !text.chars().any(char::is_control) => dlock::owner_prefix(text).into(),
        _ => owner.iter().take(4).map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// As [`LockView::lock_of`], for the keys of [`dlock::LockKey`] alone.
fn lock_of(key: &[u8]) -> Option<(&str, Part)> {
    let key = std::str::from_utf8(key).ok()?;
    match dlock::LockKey::split_stored(key)? {
        (name, "owner") => Some((name, Part::Owner)),
        (name, "fence") => Some((name, Part::Fence)),
        (name, "permits" | "readers") => Some((name, Part::Permits)),
        (name, "waiters") => Some((name, Part::Waiters)),
        _ => None,
    }
}

/// Returns true if `key` is the sorted set of a semaphore's permits, or of the readers of a lock.
fn is_permits(key: &[u8]) -> bool {
    matches!(lock_of(key), Some((_, Part::Permits)))
}

/// Returns true if `key` is the queue of a lock.
fn is_waiters(key: &[u8]) -> bool {
    matches!(lock_of(key), Some((_, Part::Waiters)))
}
