//! Short text that is kept without an allocation: a history is full of key hashes and owner prefixes, and the
//! simulator records some hundred thousand a second.

use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The bytes that fit beside the length into 24 bytes, the size of a `String`.
const INLINE_BYTES_MAX: usize = 22;

/// A name in a history: a process, a key's hash, an owner's prefix. Up to 22 bytes are stored in place; a
/// longer one is shared between its clones.
///
/// # Example
///
/// ```
/// use history::Name;
///
/// let mut names = ["redis", "a", "b"].map(Name::from);
/// names.sort();
/// assert_eq!(names.map(|name| name.to_string()), ["a", "b", "redis"]);
/// ```
#[derive(Clone)]
pub struct Name(Text);

#[derive(Clone)]
enum Text {
    Inline { len: u8, bytes: [u8; INLINE_BYTES_MAX] },
    Shared(Arc<str>),
}

impl Name {
    /// Returns the name's text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // The bytes were copied from a `str`, whole: they are UTF-8.
            Text::Inline { .. } => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Text::Shared(text) => text,
        }
    }

    /// Formats `value`, without a `String` in between if the text is short.
    pub(super) fn from_format(value: fmt::Arguments<'_>) -> Self {
        let mut buffer = Buffer { text: Self::default().0 };
        // A Buffer never fails; a `Debug` that fails leaves the text that it has written.
        let _ = buffer.write_fmt(value);
        Self(buffer.text)
    }

    fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Text::Shared(text) => text.as_bytes(),
        }
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        match inline(text) {
            Some(text) => Self(text),
            None => Self(Text::Shared(text.into())),
        }
    }
}

fn inline(text: &str) -> Option<Text> {
    let mut bytes = [0; INLINE_BYTES_MAX];
    bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    Some(Text::Inline { len: u8::try_from(text.len()).ok()?, bytes })
}

/// Collects formatted text, in place as long as it fits.
struct Buffer {
    text: Text,
}

impl fmt::Write for Buffer {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if let Text::Inline { len, bytes } = &mut self.text {
            let end = usize::from(*len) + part.len();
            if let Some(free) = bytes.get_mut(usize::from(*len)..end) {
                free.copy_from_slice(part.as_bytes());
                // `end` is at most 22.
                *len = u8::try_from(end).unwrap_or(*len);
                return Ok(());
            }
        }
        let whole = Name(self.text.clone()).as_str().to_owned() + part;
        self.text = Text::Shared(whole.into());
        Ok(())
    }
}

impl Default for Name {
    fn default() -> Self {
        Self(Text::Inline { len: 0, bytes: [0; INLINE_BYTES_MAX] })
    }
}

/// Returns 8 bytes of text stored in place as a number: such numbers order as the text does. The audit
/// compares names all the time, and numbers take a fraction of what a call of `memcmp` takes.
fn number(bytes: &[u8; INLINE_BYTES_MAX], from: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[from..from + 8]);
    u64::from_be_bytes(number)
}

/// Returns the text behind the first 8 bytes as numbers, and its length. All bytes behind the text are zero;
/// the second number overlaps the first.
fn rest(len: u8, bytes: &[u8; INLINE_BYTES_MAX]) -> (u64, u64, u8) {
    (number(bytes, 8), number(bytes, INLINE_BYTES_MAX - 8), len)
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Text::Inline { len, bytes }, Text::Inline { len: other_len, bytes: other_bytes }) => {
                number(bytes, 0) == number(other_bytes, 0)
                    && rest(*len, bytes) == rest(*other_len, other_bytes)
            }
            _ => self.as_bytes() == other.as_bytes(),
        }
    }
}

impl Eq for Name {}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Text::Inline { len, bytes }, Text::Inline { len: other_len, bytes: other_bytes }) => {
                number(bytes, 0)
                    .cmp(&number(other_bytes, 0))
                    .then_with(|| rest(*len, bytes).cmp(&rest(*other_len, other_bytes)))
            }
            _ => self.as_bytes().cmp(other.as_bytes()),
        }
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::from(text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_and_long_names_keep_their_text() {
        for text in
            ["", "a:7f3c9e12", "exactly-22-bytes-long!", "exactly-23-bytes-long!!", "é".repeat(40).as_str()]
        {
            assert_eq!(Name::from(text).as_str(), text);
            assert_eq!(Name::from_format(format_args!("{text}")), Name::from(text));
            assert_eq!(Name::from_format(format_args!("x{text}{text}")).as_str(), format!("x{text}{text}"));
        }
    }

    #[test]
    fn names_order_as_their_text_does() {
        let long = "a".repeat(30);
        assert!(Name::from("a") < Name::from(long.as_str()));
        assert!(Name::from(long.as_str()) < Name::from("b"));
        assert_eq!(size_of::<Name>(), 24);
    }

    /// Texts that share much, around the length that fits in place. Some end in zeros, as the unused bytes of
    /// the place are zeros, too.
    fn alike() -> impl Strategy<Value = String> {
        (0..24_usize, "[\0a\u{ff}]{0,3}").prop_map(|(shared, rest)| "a".repeat(shared) + &rest)
    }

    proptest! {
        #[test]
        fn names_order_as_their_text_does_if_they_share_much(left in alike(), right in alike()) {
            let (name, other) = (Name::from(left.as_str()), Name::from(right.as_str()));
            prop_assert_eq!(name.cmp(&other), left.cmp(&right));
            prop_assert_eq!(name == other, left == right);
        }
    }
}
