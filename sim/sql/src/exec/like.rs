//! Patterns of `LIKE`.

/// Returns whether a text matches a pattern: `%` is any text, `_` any character, and a backslash escapes.
pub(super) fn matches(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|from| matches(text.get(from..).unwrap_or_default(), rest)),
        ['_', rest @ ..] => !text.is_empty() && matches(text.get(1..).unwrap_or_default(), rest),
        ['\\', c, rest @ ..] | [c, rest @ ..] => {
            text.first() == Some(c) && matches(text.get(1..).unwrap_or_default(), rest)
        }
    }
}
