//! The names of the lock library's scripts, which commands call by digest or by text.

use std::sync::LazyLock;

/// The name, the text and the SHA-1 digest of each script.
static SCRIPTS: LazyLock<Vec<(&'static str, &'static str, String)>> = LazyLock::new(|| {
    let digest = |text: &str| sha1_smol::Sha1::from(text).digest().to_string();
    dlock::scripts().map(|(name, text)| (name, text, digest(text))).collect()
});

/// Returns the name of the script with this digest.
pub(super) fn by_digest(digest: &[u8]) -> Option<&'static str> {
    let named = SCRIPTS.iter().find(|(_, _, known)| known.as_bytes().eq_ignore_ascii_case(digest));
    named.map(|(name, ..)| *name)
}

/// Returns the name of the script with this text.
pub(super) fn by_text(text: &[u8]) -> Option<&'static str> {
    SCRIPTS.iter().find(|(_, known, _)| known.as_bytes() == text).map(|(name, ..)| *name)
}
