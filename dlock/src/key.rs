//! The name of a lock, and the keys under which a lock server stores it.

use std::fmt::{self, Write};
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// The longest part (tenant, resource type, resource id) of a key, in bytes.
const PART_BYTES_MAX: usize = 256;

/// The beginning of every key in a lock server: the version of the layout, and the brace that opens the hash
/// tag. A new layout gets a new number, so that old and new clients can't share a key by accident.
const PREFIX: &str = "lock:v1:{";

/// The end of the key with the owner token.
pub(crate) const OWNER: &str = "}:owner";

/// The end of the key that counts the grants.
pub(crate) const FENCE: &str = "}:fence";

/// The end of the key with the owners of a semaphore's permits.
pub(crate) const PERMITS: &str = "}:permits";

/// The end of the key with the tokens of these owners.
pub(crate) const TOKENS: &str = "}:tokens";

/// The end of the fencing counter that many locks share. In place of a lock's name it has the tag of a slot.
#[cfg(feature = "redis")]
pub(crate) const SHARED: &str = "}:shared";

/// The end of the channel on which releases are published.
pub(crate) const FREED: &str = "}:freed";

/// The resource that a lock guards: its type and id, and its tenant if there are several.
///
/// `LockKey::new("orders", "42")` is stored in Redis as `lock:v1:{orders:42}:owner` and
/// `lock:v1:{orders:42}:fence`. The braces are a hash tag: both keys share a slot of a Redis Cluster, so that
/// one script may touch both.
///
/// A clone shares its text with the original and costs no allocation.
///
/// # Example
///
/// ```
/// use dlock::LockKey;
///
/// let key = LockKey::new("orders", "42")?;
/// assert_eq!(key.name(), "orders:42");
/// assert_eq!(key.owner_key(), "lock:v1:{orders:42}:owner");
/// assert_ne!(LockKey::for_tenant("acme", "orders", "42")?, key);
/// # Ok::<(), dlock::KeyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey(Arc<Parts>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Parts {
    /// `tenant/type:id`, each part escaped: unlike keys have unlike names. It comes first, so that keys are
    /// ordered by it alone: clients of all versions must acquire several keys in one order.
    name: Box<str>,
    resource_type: Box<str>,
    id_hash: Box<str>,
}

/// A part of a lock key that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A part is empty: the lock would guard every resource of its type.
    #[error("the {part} of the lock key is empty: name the resource that the lock guards")]
    Empty {
        /// The part: `tenant`, `resource type` or `resource id`.
        part: &'static str,
    },
    /// A part is too long.
    #[error("the {part} of the lock key has {bytes} bytes, {max} are allowed: hash it (LockKey::sensitive)")]
    Oversized {
        /// The part.
        part: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// The largest size in bytes.
        max: usize,
    },
    /// A part has a control character.
    #[error("the {part} of the lock key holds the control character {character:?}: remove it")]
    Control {
        /// The part.
        part: &'static str,
        /// The character.
        character: char,
    },
}

impl LockKey {
    /// The prefix of the keys of all locks in etcd, with the version of the layout, as in Redis.
    pub const ETCD_PREFIX: &str = "lock/v1/";

    /// Returns the key of the resource `resource_id` of the type `resource_type`.
    ///
    /// # Errors
    ///
    /// [`KeyError`] for a part that is empty, longer than 256 bytes, or has a control character.
    pub fn new(resource_type: &str, resource_id: &str) -> Result<Self, KeyError> {
        Self::build(None, resource_type, resource_id, false)
    }

    /// Returns the key of a resource of one of several tenants, as [`LockKey::new`] does without: equal
    /// resources of two tenants have different keys.
    ///
    /// # Errors
    ///
    /// As [`LockKey::new`].
    pub fn for_tenant(tenant: &str, resource_type: &str, resource_id: &str) -> Result<Self, KeyError> {
        Self::build(Some(tenant), resource_type, resource_id, false)
    }

    /// Returns the key of a resource as [`LockKey::new`] does, with the id hashed (SHA-256), for ids that
    /// must not appear in a lock server: names, addresses, account numbers. Ids of up to 64 KiB are accepted.
    ///
    /// # Errors
    ///
    /// As [`LockKey::new`], with the larger limit for the id.
    ///
    /// # Example
    ///
    /// ```
    /// use dlock::LockKey;
    ///
    /// let key = LockKey::sensitive(None, "accounts", "jane@example.org")?;
    /// assert!(key.name().starts_with("accounts:#"));
    /// assert!(!key.name().contains("jane"));
    /// # Ok::<(), dlock::KeyError>(())
    /// ```
    pub fn sensitive(tenant: Option<&str>, resource_type: &str, resource_id: &str) -> Result<Self, KeyError> {
        Self::build(tenant, resource_type, resource_id, true)
    }

    fn build(tenant: Option<&str>, kind: &str, id: &str, sensitive: bool) -> Result<Self, KeyError> {
        let mut name = String::with_capacity(kind.len() + id.len() + 2);
        if let Some(tenant) = tenant {
            check("tenant", tenant, PART_BYTES_MAX)?;
            escape(&mut name, tenant);
            name.push('/');
        }
        check("resource type", kind, PART_BYTES_MAX)?;
        escape(&mut name, kind);
        name.push(':');
        if sensitive {
            check("resource id", id, 64 * 1024)?;
            // `#` is escaped in plain ids, so a hashed id can't meet a plain one.
            name.push('#');
            name.push_str(&hex(&Sha256::digest(id), 32));
        } else {
            check("resource id", id, PART_BYTES_MAX)?;
            escape(&mut name, id);
        }
        let id_hash = id_hash(&name).into();
        Ok(Self(Arc::new(Parts { name: name.into(), resource_type: kind.into(), id_hash })))
    }

    /// Returns the type of the resource, as given.
    pub fn resource_type(&self) -> &str {
        &self.0.resource_type
    }

    /// Returns the name of the key, the same on every process: `orders:42`, or `acme/orders:42` for the
    /// tenant `acme`. The protected resource is addressed by it, too.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the name of the key in logs and histories: see [`id_hash`].
    pub fn id_hash(&self) -> &str {
        &self.0.id_hash
    }

    /// Returns the Redis key with the owner token of the present lease.
    pub fn owner_key(&self) -> String {
        self.stored(OWNER).concat()
    }

    /// Returns the Redis key that counts the grants. It never expires: it must outlive every lease.
    pub fn fence_key(&self) -> String {
        self.stored(FENCE).concat()
    }

    /// Returns the Redis key with the owners of the permits, if the lock is a semaphore: a sorted set,
    /// ordered by the end of their leases in milliseconds since 1970.
    pub fn permits_key(&self) -> String {
        self.stored(PERMITS).concat()
    }

    /// Returns the Redis key with the fencing tokens of the permits, by their owners: a hash.
    pub fn tokens_key(&self) -> String {
        self.stored(TOKENS).concat()
    }

    /// Returns the Redis channel on which releases of the lock are published.
    pub fn freed_channel(&self) -> String {
        self.stored(FREED).concat()
    }

    /// Splits a Redis key or channel of a lock into the lock's name ([`LockKey::name`]) and its part:
    /// `owner`, `fence`, `freed`, `permits`, `tokens`, `readers`, `reads` or `writers`. Returns `None` for a
    /// key that is of no lock.
    pub fn split_stored(stored: &str) -> Option<(&str, &str)> {
        stored.strip_prefix(PREFIX)?.rsplit_once("}:")
    }

    /// Returns the prefix of the keys of the lock's queue in etcd.
    pub fn etcd_queue(&self) -> String {
        [Self::ETCD_PREFIX, self.name(), "/"].concat()
    }

    /// Returns the Redis key or channel that ends in `part`, in pieces, which can be written without an
    /// allocation.
    pub(crate) fn stored<'a>(&'a self, part: &'a str) -> [&'a str; 3] {
        stored_as(&self.0.name, part)
    }
}

/// Returns the Redis key or channel of the lock called `name` that ends in `part`, in pieces.
pub(crate) const fn stored_as<'a>(name: &'a str, part: &'a str) -> [&'a str; 3] {
    [PREFIX, name, part]
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}

/// Returns the name in logs and histories of the resource named `name` ([`LockKey::name`]): the first 12
/// hexadecimal digits of its SHA-256. The lock and the protected resource hash the same name, so their events
/// can be joined.
///
/// # Example
///
/// ```
/// let hash = dlock::id_hash("orders:42");
/// assert_eq!(hash.len(), 12);
/// assert_eq!(dlock::LockKey::new("orders", "42")?.id_hash(), hash);
/// # Ok::<(), dlock::KeyError>(())
/// ```
pub fn id_hash(name: &str) -> String {
    hex(&Sha256::digest(name), 12)
}

fn check(part: &'static str, text: &str, max: usize) -> Result<(), KeyError> {
    if text.is_empty() {
        return Err(KeyError::Empty { part });
    }
    if text.len() > max {
        return Err(KeyError::Oversized { part, bytes: text.len(), max });
    }
    match text.chars().find(|c| c.is_control()) {
        Some(character) => Err(KeyError::Control { part, character }),
        None => Ok(()),
    }
}

/// Percent-escapes the separators of parts, the characters that would break a hash tag, and the escape
/// itself: different parts give different names.
fn escape(name: &mut String, part: &str) {
    for character in part.chars() {
        if matches!(character, ':' | '/' | '{' | '}' | '#' | '%') {
            // Writing to a String can't fail.
            let _ = write!(name, "%{:02X}", u32::from(character));
        } else {
            name.push(character);
        }
    }
}

fn hex(bytes: &[u8], digits: usize) -> String {
    let mut text = String::with_capacity(digits);
    hex_into(&mut text, &bytes[..digits / 2]);
    text
}

/// Appends `bytes` in hexadecimal.
fn hex_into(text: &mut String, bytes: &[u8]) {
    for part in bytes.chunks(16) {
        text.push_str(hex_digits(part, &mut [0; 32]));
    }
}

/// Writes up to 16 bytes as hexadecimal digits, without an allocation.
pub(crate) fn hex_digits<'a>(bytes: &[u8], digits: &'a mut [u8; 32]) -> &'a str {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    // Digits are ASCII.
    std::str::from_utf8(&digits[..2 * bytes.len().min(16)]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the part of a key by which Redis Cluster chooses its slot: between the first brace and the
    /// next closing one.
    fn hash_tag(key: String) -> String {
        let start = key.find('{').unwrap() + 1;
        let end = start + key[start..].find('}').unwrap();
        assert!(end > start, "an empty tag would not count");
        key[start..end].to_owned()
    }

    /// A range to cut out, and whether the first part is a tenant.
    fn cuts() -> impl Strategy<Value = (usize, usize, bool)> {
        (1..4usize, 1..4usize, any::<bool>())
    }

    /// Returns the parts between the cuts, without the characters at the cuts.
    fn cut(text: &str, (tenant, kind, has_tenant): (usize, usize, bool)) -> [&str; 3] {
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let start = if has_tenant { tenant + 1 } else { 0 };
        let tenant = if has_tenant { part(0, tenant) } else { "" };
        [tenant, part(start, start + kind), part(start + kind + 1, text.len())]
    }

    fn key_of([tenant, kind, id]: &[&str; 3]) -> Result<LockKey, KeyError> {
        if tenant.is_empty() { LockKey::new(kind, id) } else { LockKey::for_tenant(tenant, kind, id) }
    }

    proptest! {
        #[test]
        fn both_keys_of_a_lock_share_a_slot(kind in "\\PC{1,40}", id in "\\PC{1,40}") {
            let key = LockKey::new(&kind, &id).unwrap();
            prop_assert_eq!(hash_tag(key.owner_key()), key.name());
            prop_assert_eq!(hash_tag(key.fence_key()), key.name());
        }

        #[test]
        fn a_sensitive_id_appears_nowhere(id in "[a-z]{13,40}") {
            let key = LockKey::sensitive(None, "account", &id).unwrap();
            let shown = format!("{:?}{}{}", key, key.owner_key(), key.fence_key());
            prop_assert!(!shown.contains(&id));
            prop_assert_ne!(key, LockKey::new("account", &id).unwrap());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Two partitions of one text: their names collide if separators are not escaped.
        #[test]
        fn different_parts_have_different_names(text in "[a:/]{3,6}|[2F:/%]{3,9}", one in cuts(), two in cuts()) {
            let (one, two) = (cut(&text, one), cut(&text, two));
            if let (Ok(one_key), Ok(two_key)) = (key_of(&one), key_of(&two)) {
                prop_assert_eq!(one == two, one_key.name() == two_key.name());
            }
        }
    }

    #[test]
    fn names_are_the_same_on_every_process_and_release() {
        let key = LockKey::for_tenant("acme", "orders", "a/b:1").unwrap();
        assert_eq!(key.owner_key(), "lock:v1:{acme/orders:a%2Fb%3A1}:owner");
        assert_eq!(key.fence_key(), "lock:v1:{acme/orders:a%2Fb%3A1}:fence");
        assert_eq!(LockKey::split_stored(&key.freed_channel()), Some((key.name(), "freed")));
        assert_eq!(key.etcd_queue(), "lock/v1/acme/orders:a%2Fb%3A1/");
        assert_eq!(LockKey::new("orders", "42").unwrap().id_hash(), id_hash("orders:42"));
        assert_eq!(id_hash("abc"), "ba7816bf8f01");
        let sensitive = LockKey::sensitive(None, "mail", "abc").unwrap();
        assert_eq!(sensitive.name(), "mail:#ba7816bf8f01cfea414140de5dae2223");
    }

    #[test]
    fn bad_parts_are_refused_by_name() {
        let part = |error: KeyError| match error {
            KeyError::Empty { part } | KeyError::Oversized { part, .. } | KeyError::Control { part, .. } => {
                part
            }
        };
        assert_eq!(part(LockKey::new("", "1").unwrap_err()), "resource type");
        assert_eq!(part(LockKey::new("a", "").unwrap_err()), "resource id");
        assert_eq!(part(LockKey::for_tenant("", "a", "1").unwrap_err()), "tenant");
        assert_eq!(part(LockKey::new("a", "1\r\nDEL").unwrap_err()), "resource id");
        let error = LockKey::new("a", &"x".repeat(257)).unwrap_err();
        assert!(error.to_string().contains("LockKey::sensitive"), "{error}");
        assert!(LockKey::new("a", &"x".repeat(256)).is_ok());
        assert!(LockKey::sensitive(None, "a", &"x".repeat(65_536)).is_ok());
        assert!(LockKey::sensitive(None, "a", &"x".repeat(65_537)).is_err());
    }
}
