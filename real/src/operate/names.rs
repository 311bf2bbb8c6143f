//! The names of a lock on its servers, from the key that an operator gives.

use dlock::{KeyError, LockKey};
use dlock_zookeeper::path;
use percent_encoding::percent_decode_str;

/// The digits of a hashed id: see [`LockKey::sensitive`].
const HASH_DIGITS: usize = 32;

/// The names of a lock: that of the key, and those under which the servers store it.
///
/// # Example
///
/// ```
/// use real::operate::Names;
///
/// let names = Names::parse("lock:v1:{orders:42}:owner")?;
/// assert_eq!(names.name(), "orders:42");
/// assert_eq!(names.fence_key(), "lock:v1:{orders:42}:fence");
/// # Ok::<(), real::operate::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    name: String,
    owner_key: String,
    fence_key: String,
    freed_channel: String,
    etcd_queue: String,
}

/// A text that is no name of a lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The type of the resource is missing.
    #[error("`{0}` is no key of a lock: write TYPE:ID, or TENANT/TYPE:ID, such as orders:42")]
    NoType(String),
    /// A part is invalid.
    #[error("`{name}` is no key of a lock: {error}")]
    Part {
        /// The text.
        name: String,
        /// The problem.
        error: KeyError,
    },
}

impl Names {
    /// Parses a key: its name (`orders:42`, `acme/orders:42`), as [`LockKey::name`] returns it, or the key
    /// under which a server stores it (`lock:v1:{orders:42}:owner`, `lock/v1/orders:42/…`,
    /// `/locks/orders:42`).
    ///
    /// # Errors
    ///
    /// [`NameError`] says which part is wrong.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let name = stored_name(text).unwrap_or_else(|| text.to_owned());
        let (scope, id) = name.split_once(':').ok_or_else(|| NameError::NoType(name.clone()))?;
        let (tenant, kind) = match scope.split_once('/') {
            Some((tenant, kind)) => (Some(decoded(tenant)), decoded(kind)),
            None => (None, decoded(scope)),
        };
        let build = |id: &str| match &tenant {
            Some(tenant) => LockKey::for_tenant(tenant, &kind, id),
            None => LockKey::new(&kind, id),
        };
        let failed = |error| NameError::Part { name: name.clone(), error };
        if is_hash(id) {
            // Only the hash of the id is known, and no key can be built from it: the names are those of
            // another id of the same type, with the hash in its place.
            let other = build("0").map_err(failed)?;
            let scope = other.name().trim_end_matches('0').to_owned();
            return Ok(Self::of(&other).renamed(other.name(), &format!("{scope}{id}")));
        }
        Ok(Self::of(&build(&decoded(id)).map_err(failed)?))
    }

    /// Returns the names of `key`.
    pub fn of(key: &LockKey) -> Self {
        Self {
            name: key.name().to_owned(),
            owner_key: key.owner_key(),
            fence_key: key.fence_key(),
            freed_channel: key.freed_channel(),
            etcd_queue: key.etcd_queue(),
        }
    }

    /// Returns the name of the key, by which the resource is addressed, too.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the Redis key with the owner token.
    pub fn owner_key(&self) -> &str {
        &self.owner_key
    }

    /// Returns the Redis key that counts the grants.
    pub fn fence_key(&self) -> &str {
        &self.fence_key
    }

    /// Returns the Redis channel on which waiters listen.
    pub fn freed_channel(&self) -> &str {
        &self.freed_channel
    }

    /// Returns the prefix of the queue's keys in etcd.
    pub fn etcd_queue(&self) -> &str {
        &self.etcd_queue
    }

    /// Returns the path of the queue in ZooKeeper, below `root` (`/` for none).
    pub fn zookeeper_queue(&self, root: &str) -> String {
        format!("{}{}", root.trim_end_matches('/'), path::queue(&self.name))
    }

    fn renamed(self, from: &str, to: &str) -> Self {
        let renamed = |text: String| text.replacen(from, to, 1);
        Self {
            name: to.to_owned(),
            owner_key: renamed(self.owner_key),
            fence_key: renamed(self.fence_key),
            freed_channel: renamed(self.freed_channel),
            etcd_queue: renamed(self.etcd_queue),
        }
    }
}

/// Returns the name in a key of a server, if `text` is one.
fn stored_name(text: &str) -> Option<String> {
    if let Some((name, _)) = LockKey::split_stored(text) {
        return Some(name.to_owned());
    }
    if let Some(place) = text.strip_prefix(LockKey::ETCD_PREFIX) {
        return place.rsplit_once('/').map(|(name, _)| name.to_owned());
    }
    path::lock_name(text)
}

/// Decodes a part of a name. Bytes that are no UTF-8 are replaced: no key has them.
fn decoded(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

fn is_hash(id: &str) -> bool {
    let digits = id.strip_prefix('#');
    digits.is_some_and(|digits| {
        digits.len() == HASH_DIGITS && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_written_form_of_a_key_has_its_names() {
        let key = LockKey::for_tenant("acme", "orders", "a/b:1").unwrap();
        let queue = path::queue(key.name());
        for text in [
            key.name(),
            "acme/orders:a/b:1",
            &key.owner_key(),
            &key.fence_key(),
            &format!("{}7f3c", key.etcd_queue()),
            &queue,
        ] {
            assert_eq!(Names::parse(text), Ok(Names::of(&key)), "{text}");
        }
        assert_eq!(Names::of(&key).zookeeper_queue("/prod"), format!("/prod{queue}"));
    }

    #[test]
    fn a_hashed_id_has_the_names_of_its_key() {
        for tenant in [None, Some("acme")] {
            let key = LockKey::sensitive(tenant, "accounts00", "jane@example.org").unwrap();
            assert_eq!(Names::parse(key.name()), Ok(Names::of(&key)));
        }
    }

    #[test]
    fn a_text_that_is_no_key_is_refused() {
        assert_eq!(Names::parse("orders"), Err(NameError::NoType("orders".to_owned())));
        for text in ["", ":1", "orders:", "/orders:1", "a:\n"] {
            let error = Names::parse(text).unwrap_err().to_string();
            assert!(error.contains("is no key of a lock"), "{error}");
        }
    }
}
