//! The name of a protected resource, and its form in a URL.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode_str, utf8_percent_encode};

/// The longest key, in bytes after percent-decoding.
pub const KEY_BYTES_MAX: usize = 256;

/// The characters that are escaped in a path segment: all but the unreserved ones of RFC 3986 and the colon,
/// which separates the type of a resource from its id.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// The name of a protected resource: 1 to [`KEY_BYTES_MAX`] bytes of UTF-8 without control characters. The
/// lock and the resource it guards share one name, [`dlock::LockKey::name`].
///
/// # Example
///
/// ```
/// use dlock::LockKey;
/// use fence::ResourceKey;
///
/// let key = ResourceKey::try_from(&LockKey::for_tenant("acme", "orders", "42")?)?;
/// assert_eq!(key.as_str(), "acme/orders:42");
/// assert_eq!(key.to_path_segment().to_string(), "acme%2Forders:42");
/// assert_eq!(ResourceKey::from_path_segment("acme%2Forders:42")?, key);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey(Box<str>);

/// A text that can't name a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is empty.
    #[error("the key is empty")]
    Empty,
    /// It is longer than [`KEY_BYTES_MAX`].
    #[error("the key has {bytes} bytes, {KEY_BYTES_MAX} are allowed")]
    Oversized {
        /// Its size in bytes.
        bytes: usize,
    },
    /// It holds a control character.
    #[error("the key holds a control character")]
    Control,
    /// A `%` is not followed by two hexadecimal digits.
    #[error("the key's percent-encoding is broken: a % is not followed by two hexadecimal digits")]
    Encoding,
    /// Its bytes are not UTF-8.
    #[error("the key is not UTF-8")]
    NotUtf8,
}

impl ResourceKey {
    /// Creates the key named `name`.
    ///
    /// # Errors
    ///
    /// [`KeyError`] says what is wrong with it.
    pub fn new(name: &str) -> Result<Self, KeyError> {
        if name.is_empty() {
            return Err(KeyError::Empty);
        }
        if name.len() > KEY_BYTES_MAX {
            return Err(KeyError::Oversized { bytes: name.len() });
        }
        if name.contains(char::is_control) {
            return Err(KeyError::Control);
        }
        Ok(Self(name.into()))
    }

    /// Decodes a key from a percent-encoded segment of a URL's path.
    ///
    /// # Errors
    ///
    /// As [`ResourceKey::new`], and [`KeyError::Encoding`] and [`KeyError::NotUtf8`].
    pub fn from_path_segment(segment: &str) -> Result<Self, KeyError> {
        if !escapes_are_whole(segment.as_bytes()) {
            return Err(KeyError::Encoding);
        }
        let name = percent_decode_str(segment).decode_utf8().map_err(|_| KeyError::NotUtf8)?;
        Self::new(&name)
    }

    /// Returns the key as a segment of a URL's path.
    pub fn to_path_segment(&self) -> PercentEncode<'_> {
        utf8_percent_encode(&self.0, ESCAPED)
    }

    /// Returns the name, decoded.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the type of the resource, if the key has the form of [`dlock::LockKey::name`]: `TYPE:ID` or
    /// `TENANT/TYPE:ID`. It is that of [`dlock::LockKey::resource_type`].
    ///
    /// # Example
    ///
    /// ```
    /// use fence::ResourceKey;
    ///
    /// assert_eq!(ResourceKey::new("acme/orders:42")?.resource_type().as_deref(), Some("orders"));
    /// assert_eq!(ResourceKey::new("orders")?.resource_type(), None);
    /// # Ok::<(), fence::KeyError>(())
    /// ```
    pub fn resource_type(&self) -> Option<Cow<'_, str>> {
        let (before, _) = self.0.split_once(':')?;
        let (_, escaped) = before.rsplit_once('/').unwrap_or(("", before));
        // A key that is no lock's may have any bytes behind its escapes.
        percent_decode_str(escaped).decode_utf8().ok().filter(|decoded| !decoded.is_empty())
    }

    /// Returns the name of the resource in logs and histories: see [`dlock::id_hash`].
    pub fn id_hash(&self) -> String {
        dlock::id_hash(&self.0)
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<&dlock::LockKey> for ResourceKey {
    type Error = KeyError;

    /// Returns the resource that the lock `key` guards; fails if the name of the lock is longer than
    /// [`KEY_BYTES_MAX`].
    fn try_from(key: &dlock::LockKey) -> Result<Self, KeyError> {
        Self::new(key.name())
    }
}

/// Returns true if each `%` is followed by two hexadecimal digits. The decoder would keep a broken escape as
/// plain text, and two spellings would then share a key.
fn escapes_are_whole(segment: &[u8]) -> bool {
    let mut parts = segment.split(|&byte| byte == b'%');
    parts.next();
    parts.all(|part| part.len() >= 2 && part[..2].iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_type_is_that_of_the_lock(tenant in "\\PC{1,9}", kind in "\\PC{1,9}", id in "\\PC{1,9}") {
            let with_tenant = dlock::LockKey::for_tenant(&tenant, &kind, &id);
            for lock in [with_tenant, dlock::LockKey::new(&kind, &id)] {
                let key = ResourceKey::try_from(&lock.unwrap()).unwrap();
                prop_assert_eq!(key.resource_type().map(Cow::into_owned), Some(kind.clone()));
            }
        }

        #[test]
        fn every_key_survives_its_url(name in "\\PC{1,40}") {
            let key = ResourceKey::new(&name).unwrap();
            let segment = key.to_path_segment().to_string();
            let is_plain = |b: u8| b.is_ascii_graphic() && b != b'/' && b != b'?';
            prop_assert!(segment.bytes().all(is_plain), "{segment}");
            prop_assert_eq!(ResourceKey::from_path_segment(&segment).unwrap(), key);
        }
    }

    #[test]
    fn broken_segments_are_named() {
        let table = [
            ("", KeyError::Empty),
            ("%", KeyError::Encoding),
            ("a%2", KeyError::Encoding),
            ("%zz", KeyError::Encoding),
            ("%ff", KeyError::NotUtf8),
            ("a%00b", KeyError::Control),
        ];
        for (segment, error) in table {
            assert_eq!(ResourceKey::from_path_segment(segment), Err(error), "{segment}");
        }
        let long = "%61".repeat(257);
        assert_eq!(ResourceKey::from_path_segment(&long), Err(KeyError::Oversized { bytes: 257 }));
        assert!(ResourceKey::from_path_segment(&"%61".repeat(256)).is_ok());
    }
}
