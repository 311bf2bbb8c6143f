//! Patterns of keys: `*`, `?`, `[a-z]`, `[^a]` and `\` before a plain character. Source: `stringmatchlen` of
//! Redis.

/// Returns true if `text` matches `pattern` as a whole.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|at| matches(rest, &text[at..])),
        [b'?', rest @ ..] => !text.is_empty() && matches(rest, &text[1..]),
        [b'[', class @ ..] => {
            let Some((first, text)) = text.split_first() else { return false };
            let (is_in, rest) = in_class(class, *first);
            is_in && matches(rest, text)
        }
        [b'\\', plain, rest @ ..] | [plain, rest @ ..] => {
            text.first() == Some(plain) && matches(rest, &text[1..])
        }
    }
}

/// Returns whether `byte` is in the class that begins behind `[`, and the rest of the pattern after the
/// class.
fn in_class(class: &[u8], byte: u8) -> (bool, &[u8]) {
    let (negated, mut rest) = match class {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut found = false;
    loop {
        match rest {
            [] => return (found != negated, rest),
            [b']', tail @ ..] => return (found != negated, tail),
            [b'\\', plain, tail @ ..] => {
                found |= *plain == byte;
                rest = tail;
            }
            [low, b'-', high, tail @ ..] => {
                found |= (*low.min(high)..=*low.max(high)).contains(&byte);
                rest = tail;
            }
            [plain, tail @ ..] => {
                found |= *plain == byte;
                rest = tail;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, matched) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abb", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("lock:v1:{*}:owner", "lock:v1:{orders:1}:owner", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), matched, "{pattern} {text}");
        }
    }
}
