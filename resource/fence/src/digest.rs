//! The digest of a body: the resource recognises retries by it, and histories name the body by it.

use sha2::{Digest, Sha256};

/// The SHA-256 of a written body.
///
/// # Example
///
/// ```
/// use fence::BodyDigest;
///
/// // The digest of an empty body.
/// assert_eq!(BodyDigest::of(b"").short(), "e3b0c44298fc1c14");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyDigest([u8; 32]);

impl BodyDigest {
    /// Returns the digest of `body`.
    pub fn of(body: &[u8]) -> Self {
        Self(Sha256::digest(body).into())
    }

    /// Builds the digest from the bytes of [`BodyDigest::as_bytes`].
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the name of the body in histories: the first eight bytes in hexadecimal.
    pub fn short(&self) -> String {
        self.0[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_name_is_the_start_of_the_sha256() {
        // The digest of the empty message, FIPS 180-4.
        assert_eq!(BodyDigest::of(b"").short(), "e3b0c44298fc1c14");
    }
}
