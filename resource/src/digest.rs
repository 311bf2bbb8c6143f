//! The digest of a body: the resource recognises retries by it, and histories name the body by it.

use sha2::{Digest, Sha256};

/// The SHA-256 of a written body.
///
/// # Example
///
/// ```
/// use resource::BodyDigest;
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
        hex(&self.0[..8])
    }
}

/// Returns `bytes` in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |digit: u8| char::from(b"0123456789abcdef"[usize::from(digit)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Parses hexadecimal digits; returns `None` for other text.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_short_name_is_the_start_of_the_sha256() {
        // The digest of the empty message, FIPS 180-4.
        assert_eq!(BodyDigest::of(b"").short(), "e3b0c44298fc1c14");
    }

    proptest! {
        #[test]
        fn hexadecimal_round_trips(bytes: Vec<u8>) {
            prop_assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        }
    }

    #[test]
    fn text_that_is_not_hexadecimal_is_refused() {
        assert_eq!(unhex("abc"), None);
        assert_eq!(unhex("zz"), None);
    }
}
