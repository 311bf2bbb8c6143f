//! The owner token of a request: any text that a client sends in `X-Lock-Owner`.

use std::fmt;
use std::sync::Arc;

/// The longest owner token that the resource keeps, in bytes.
pub const OWNER_BYTES_MAX: usize = 256;

/// The name of one acquisition, as sent with a request. Locks of `dlock` make a [`dlock::Owner`]; a client in
/// another language may send any text.
///
/// # Example
///
/// ```
/// use fence::OwnerToken;
///
/// let owner = OwnerToken::new("worker-4:7f3c9e12d0a84b55")?;
/// assert_eq!(owner.prefix(), "worker-4:7f3c9e12");
/// assert!(OwnerToken::new(" a").is_err());
/// # Ok::<(), fence::OwnerError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerToken(Arc<str>);

/// A text that is no owner token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// It is empty.
    #[error("the owner token is empty")]
    Empty,
    /// It is longer than [`OWNER_BYTES_MAX`].
    #[error("the owner token has {bytes} bytes, {OWNER_BYTES_MAX} are allowed")]
    Oversized {
        /// Its size in bytes.
        bytes: usize,
    },
    /// It is not UTF-8, or holds a control character, or begins or ends with a space, which HTTP would cut
    /// off.
    #[error("the owner token is not plain text")]
    NotText,
}

impl OwnerToken {
    /// Takes any plain text of 1 to [`OWNER_BYTES_MAX`] bytes.
    ///
    /// # Errors
    ///
    /// [`OwnerError`] says what is wrong with it.
    pub fn new(text: &str) -> Result<Self, OwnerError> {
        if text.is_empty() {
            return Err(OwnerError::Empty);
        }
        if text.len() > OWNER_BYTES_MAX {
            return Err(OwnerError::Oversized { bytes: text.len() });
        }
        if text.trim() != text || text.contains(char::is_control) {
            return Err(OwnerError::NotText);
        }
        Ok(Self(text.into()))
    }

    /// Returns the whole token. Anyone who knows it can release the lock: log [`OwnerToken::prefix`] instead.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part that may be logged, as [`dlock::Owner::prefix`] does: it ends at most eight
    /// characters after the last colon.
    pub fn prefix(&self) -> &str {
        dlock::owner_prefix(&self.0)
    }
}

impl fmt::Display for OwnerToken {
    /// Writes the part that may be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.prefix())
    }
}

impl TryFrom<&dlock::Owner> for OwnerToken {
    type Error = OwnerError;

    /// Fails only for an owner whose process has a name of more than some 200 bytes, or one with control
    /// characters.
    fn try_from(owner: &dlock::Owner) -> Result<Self, OwnerError> {
        Self::new(owner.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_keeps_the_process_and_eight_characters() {
        let prefix = |text| OwnerToken::new(text).unwrap().prefix().to_owned();
        assert_eq!(prefix("worker-4:7f3c9e120000"), "worker-4:7f3c9e12");
        assert_eq!(prefix("7f3c9e120000"), "7f3c9e12");
        assert_eq!(prefix("a:7f3c"), "a:7f3c");
        assert_eq!(prefix("wörker:7f3c9e120000"), "wörker:7f3c9e12");
    }

    #[test]
    fn texts_that_a_header_would_change_are_refused() {
        assert_eq!(OwnerToken::new(""), Err(OwnerError::Empty));
        assert_eq!(OwnerToken::new(" a"), Err(OwnerError::NotText));
        assert_eq!(OwnerToken::new("a\nb"), Err(OwnerError::NotText));
        assert_eq!(OwnerToken::new(&"x".repeat(257)), Err(OwnerError::Oversized { bytes: 257 }));
        assert!(OwnerToken::new(&"x".repeat(256)).is_ok());
    }
}
