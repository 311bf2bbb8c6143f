//! Texts of messages, shortened for people.

use std::borrow::Cow;

/// The most characters of one text within a message, and of all its words.
const TEXT_CHARS_MAX: usize = 60;
const WORDS_CHARS_MAX: usize = 240;

/// The number of hexadecimal digits of an owner token, and of those that the trace shows.
const OWNER_DIGITS: usize = 32;
const SHOWN_DIGITS: usize = 4;

/// Formats a value: as it is if it is printable, in quotes if it is empty or has spaces, else as `N bytes`.
/// Owner tokens are shortened.
pub(super) fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => {
            let text = shortened(text, TEXT_CHARS_MAX);
            if text.is_empty() || text.contains(' ') { format!("\"{text}\"") } else { text }
        }
        Ok(text) if is_printable(bytes) => {
            format!("\"{}\"", shortened(&text.escape_debug().to_string(), TEXT_CHARS_MAX))
        }
        _ => count(bytes),
    }
}

/// Formats bytes of an unknown protocol: escaped text, or `N bytes`.
pub(super) fn raw(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if is_printable(bytes) => shortened(&text.escape_debug().to_string(), WORDS_CHARS_MAX),
        _ => count(bytes),
    }
}

/// Joins words by spaces, and cuts them off if they are too long.
pub(super) fn joined<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    let mut joined = String::new();
    for word in words {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word.as_ref());
    }
    cut(joined, WORDS_CHARS_MAX)
}

/// Returns true if the bytes are text, with no other control characters than those of lines.
pub(super) fn is_printable(bytes: &[u8]) -> bool {
    let is_text = |text: &str| text.chars().all(|c| !c.is_control() || matches!(c, '\r' | '\n' | '\t'));
    std::str::from_utf8(bytes).is_ok_and(is_text)
}

/// Shortens all owner tokens in a text, as in the trace: `a:7f3c` for the token `a:7f3c…` of 32 digits.
pub(super) fn without_owners(text: &str) -> Cow<'_, str> {
    if text.len() < OWNER_DIGITS {
        return Cow::Borrowed(text);
    }
    let mut short = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let digits = rest[start..].find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len() - start);
        let shown = if digits == OWNER_DIGITS { SHOWN_DIGITS } else { digits };
        short.push_str(&rest[..start + shown]);
        rest = &rest[start + digits..];
    }
    short.push_str(rest);
    Cow::Owned(short)
}

fn shortened(text: &str, chars_max: usize) -> String {
    cut(without_owners(text).into_owned(), chars_max)
}

fn cut(mut text: String, chars_max: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(chars_max) {
        text.truncate(at);
        text.push('…');
    }
    text
}

fn count(bytes: &[u8]) -> String {
    match bytes.len() {
        1 => "1 byte".to_owned(),
        length => format!("{length} bytes"),
    }
}
